"""The gate's secrets are rotated while it serves: the new key signs, the older ones verify until they are retired."""

from __future__ import annotations

import pytest
from gate_world import PROJECT, GateWorld

from memory_git.charon.gate import Gate
from memory_git.domain.canonical import decode
from memory_git.domain.envelope import MergeKeys
from memory_git.domain.errors import Clash, Invalid, NotAllowed, NotFound, Unauthenticated
from memory_git.storage import lethe_receipts


def signing(world: GateWorld, name: str) -> str:
    found = world.gate.secrets(world.operator)
    return str(next(item["key_id"] for item in found if item["name"] == name and item["signs"]))


def test_a_merge_key_is_rotated_under_two_gates_and_both_go_on_merging(world: GateWorld) -> None:
    other = Gate.open(world.settings, world.now)
    old = signing(world, "merge")
    world.add("one", "m/1", "before")
    world.accept("one")
    rotated = other.rotate_secret(other.as_operator(), "merge")
    assert rotated["verifies"] == [old]
    world.add("one", "m/2", "after")
    proposal_id = world.propose("one")["proposal_id"]
    world.approve(proposal_id)
    other.merge(other.authenticate(world.tokens["bob"], "http"), proposal_id)
    with world.lethe._view(PROJECT) as view:
        advances = lethe_receipts.list_advances(view.connection, PROJECT)
    signed_by = [decode(row.envelope_wire)["envelope"]["key_id"] for row in advances]
    assert signed_by == [old, rotated["key_id"]]
    world.gate.retire_secret(world.operator, "merge", old)
    world.add("one", "m/3", "last")
    world.accept("one")
    assert world.lethe.verify(PROJECT)["ok"]
    other.close()


def test_a_token_key_takes_its_tokens_with_it_only_when_asked(world: GateWorld) -> None:
    old = signing(world, "token")
    new = world.gate.rotate_secret(world.operator, "token")["key_id"]
    fresh = world.gate.mint_obol(world.operator, "one")["token"]
    world.caller("one")
    with pytest.raises(Clash) as refused:
        world.gate.retire_secret(world.operator, "token", old)
    assert (refused.value.code, refused.value.facts["tokens"]) == ("tokens_held", 5)
    assert world.gate.retire_secret(world.operator, "token", old, end_tokens=True)["tokens_ended"] == 5
    with pytest.raises(Unauthenticated):
        world.caller("one")
    assert world.gate.authenticate(fresh, "http").principal_id == "one"
    assert signing(world, "token") == new


def test_the_ledger_verifies_over_a_rotation_and_its_older_keys_stay(world: GateWorld) -> None:
    old = signing(world, "ledger")
    world.gate.rotate_secret(world.operator, "ledger")
    world.add("one", "m/1", "text")
    world.gate.revoke_grant(world.operator, "two", PROJECT)
    world.restart()
    assert world.gate.ledger_verify(world.operator)["ok"]
    assert world.gate.reconcile(world.operator)["ok"]
    with pytest.raises(Clash) as refused:
        world.gate.retire_secret(world.operator, "ledger", old)
    assert refused.value.code == "key_kept"


def test_what_signs_or_is_not_there_is_not_retired(world: GateWorld) -> None:
    with pytest.raises(Clash) as refused:
        world.gate.retire_secret(world.operator, "token", signing(world, "token"))
    assert refused.value.code == "key_signs"
    with pytest.raises(NotFound):
        world.gate.retire_secret(world.operator, "token", "nobody")
    with pytest.raises(Invalid):
        world.gate.rotate_secret(world.operator, "../token")


def test_only_an_administrator_of_everything_rotates_and_no_secret_is_shown(world: GateWorld) -> None:
    with pytest.raises(NotAllowed):
        world.gate.rotate_secret(world.caller("bob"), "merge")
    said = [world.gate.rotate_secret(world.operator, "merge"), world.gate.secrets(world.operator)]
    secrets = [
        secret
        for name in ("merge", "token", "ledger")
        for _, secret in world.gate._house.keys.ring(name).secrets
    ]
    assert not [secret for secret in secrets if secret in str(said)]


def test_merge_keys_of_the_environment_are_rotated_there(world: GateWorld) -> None:
    world.gate.close()
    gate = Gate.open(
        type(world.settings)(data_dir=world.folder, merge_keys=MergeKeys((("env", "e" * 40),))), world.now
    )
    with pytest.raises(Clash) as refused:
        gate.rotate_secret(gate.as_operator(), "merge")
    assert refused.value.code == "keys_in_environment"
    gate.close()
    world.gate = world._open()

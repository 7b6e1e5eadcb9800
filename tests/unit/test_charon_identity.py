"""Tokens, principals, grants, sign-in links and sessions take effect, and end, at once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from gate_world import MAIN, PROJECT, GateWorld

from memory_git.domain.errors import Clash, Invalid, NotAllowed, NotFound, Unauthenticated


def test_a_token_is_shown_once_and_kept_as_a_digest_alone(world: GateWorld) -> None:
    made = world.gate.mint_obol(world.operator, "one")
    assert re.fullmatch(r"obol_[0-9a-f]{16}_[0-9a-f]{64}", made["token"])
    secret = made["token"].rpartition("_")[2]
    assert "token" not in world.gate.obols(world.operator, "one")[0]
    world.gate.close()
    for path in world.folder.rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path.name
    world.restart()


@pytest.mark.parametrize(
    "bearer",
    [
        pytest.param("", id="empty"),
        pytest.param("obol_" + "0" * 16 + "_" + "0" * 64, id="unknown id"),
        pytest.param("obol_zz_zz", id="no token at all"),
        pytest.param("x" * 100_000, id="very long"),
        pytest.param("obol_\ud800", id="lone surrogate"),
    ],
)
def test_a_bearer_that_is_no_token_of_ours_is_refused_alike(world: GateWorld, bearer: str) -> None:
    with pytest.raises(Unauthenticated) as refused:
        world.gate.authenticate(bearer, "http")
    assert (refused.value.code, refused.value.message) == (
        "unauthenticated",
        "the token is absent or not known",
    )


def test_a_known_id_with_a_wrong_secret_looks_like_an_unknown_one(world: GateWorld) -> None:
    token = world.tokens["one"]
    wrong = token[:-1] + ("0" if token[-1] != "0" else "1")
    with pytest.raises(Unauthenticated, match="absent or not known"):
        world.gate.authenticate(wrong, "http")


def test_a_token_of_another_gateway_does_not_verify_here(world: GateWorld, tmp_path: Path) -> None:
    other = GateWorld(tmp_path / "other")
    with pytest.raises(Unauthenticated):
        world.gate.authenticate(other.tokens["one"], "http")
    other.close()


def test_a_token_expires(world: GateWorld) -> None:
    token = world.gate.mint_obol(world.operator, "one", expires_s=60)["token"]
    caller = world.gate.authenticate(token, "http")
    world.later(seconds=61)
    with pytest.raises(Unauthenticated, match="expired"):
        world.gate.authenticate(token, "http")
    with pytest.raises(Unauthenticated, match="expired"):
        world.gate.status(caller, PROJECT)


def test_a_revoked_token_is_refused_with_the_very_next_call(world: GateWorld) -> None:
    caller = world.caller("one")
    assert world.gate.status(caller, PROJECT)["principal"] == "one"
    world.gate.revoke_obol(world.operator, caller.obol_id or "")
    for call in (lambda: world.gate.status(caller, PROJECT), lambda: world.caller("one")):
        with pytest.raises(Unauthenticated, match="revoked"):
            call()


def test_a_disabled_principal_is_out_at_once_and_may_come_back(world: GateWorld) -> None:
    caller = world.caller("one")
    world.gate.disable_principal(world.operator, "one")
    with pytest.raises(Unauthenticated, match="disabled"):
        world.gate.whoami(caller)
    world.gate.disable_principal(world.operator, "one", disabled=False)
    assert world.gate.whoami(caller)["principal_id"] == "one"


def test_a_revoked_grant_counts_with_the_next_call(world: GateWorld) -> None:
    caller = world.caller("one")
    world.gate.revoke_grant(world.operator, "one", PROJECT)
    with pytest.raises(NotFound):
        world.gate.status(caller, PROJECT)


def test_a_token_may_hold_less_than_its_principal_and_never_more(world: GateWorld) -> None:
    token = world.gate.mint_obol(world.operator, "one", scopes=["memory.read"])["token"]
    caller = world.gate.authenticate(token, "http")
    assert world.gate.whoami(caller)["scopes"] == ["memory.read"]
    with pytest.raises(NotAllowed, match=r"lacks the scope memory\.search"):
        world.gate.search(caller, PROJECT, "x")
    with pytest.raises(Invalid, match="can't be made"):
        world.gate.mint_obol(world.operator, "one", scopes=["memory.merge"])


def test_the_last_use_of_a_token_is_noted(world: GateWorld) -> None:
    world.caller("two")
    world.restart()
    assert world.gate.obols(world.operator, "two")[0]["last_used_at"] is not None
    assert world.gate.obols(world.operator, "cy")[0]["last_used_at"] is None


def test_the_project_is_the_tokens_or_the_only_one_granted(world: GateWorld) -> None:
    assert world.gate.status(world.caller("one"))["project"] == PROJECT
    world.gate.init_project(world.gate.as_principal("ann"), "second")
    world.gate.grant(world.operator, "one", "second")
    with pytest.raises(Invalid) as refused:
        world.gate.status(world.caller("one"))
    assert refused.value.code == "project_needed"
    token = world.gate.mint_obol(world.operator, "one", project="second")["token"]
    assert world.gate.status(world.gate.authenticate(token, "mcp"))["project"] == "second"


def test_an_actor_belongs_to_one_principal(world: GateWorld) -> None:
    world.gate.add_actor(world.operator, "one", "helper")
    with pytest.raises(Clash, match="belongs to another"):
        world.gate.add_actor(world.operator, "two", "helper")
    op = {"op_type": "add_memory", "payload": {"content": "by the helper"}}
    done = world.commit("one", [op], ref="refs/agents/helper/main")
    assert done["changeset"]["actor_id"] == "helper"


@pytest.mark.parametrize("principal_id", ["charon", "system", "local-operator", "a/b", "", "..", "one"])
def test_a_reserved_malformed_or_taken_name_makes_no_principal(world: GateWorld, principal_id: str) -> None:
    with pytest.raises((Invalid, Clash)):
        world.gate.add_principal(world.operator, principal_id, "agent")


def test_a_wildcard_grant_reads_and_never_writes(world: GateWorld) -> None:
    world.gate.add_principal(world.operator, "auditor", "human", profile="write")
    with pytest.raises(Invalid, match="breaks a rule"):
        world.gate.grant(world.operator, "auditor", "*", scopes=["memory.commit"])
    world.gate.grant(world.operator, "auditor", "*")
    auditor = world.gate.as_principal("auditor")
    assert world.gate.list_projects(auditor) == [PROJECT]
    world.add("one", "m/in", "internal text")
    world.add("one", "m/out", "shared text", visibility="shared")
    world.accept("one")
    shown = world.gate.memories(auditor, PROJECT, ref=MAIN)
    assert [item["memory_id"] for item in shown["memories"]] == ["m/out"]
    assert shown["total"] == 1
    with pytest.raises(NotAllowed):
        world.gate.commit(auditor, PROJECT, message="w", ops=[])


def test_a_sign_in_link_works_once_and_for_ten_minutes(world: GateWorld) -> None:
    code = world.gate.mint_sign_in(world.operator, "bob")["code"]
    cookie = world.gate.use_sign_in(code)
    assert world.gate.session_caller(cookie).principal_id == "bob"
    with pytest.raises(Unauthenticated):
        world.gate.use_sign_in(code)
    late = world.gate.mint_sign_in(world.operator, "bob")["code"]
    world.later(minutes=10, seconds=1)
    with pytest.raises(Unauthenticated):
        world.gate.use_sign_in(late)


def test_a_session_ends_by_time_by_sign_out_and_with_its_principal(world: GateWorld) -> None:
    def signed_in() -> str:
        return world.gate.use_sign_in(world.gate.mint_sign_in(world.operator, "bob")["code"])

    out, disabled, old = signed_in(), signed_in(), signed_in()
    world.gate.end_session(out)
    with pytest.raises(Unauthenticated):
        world.gate.web_session(out)
    world.later(hours=13)
    with pytest.raises(Unauthenticated):
        world.gate.web_session(old)
    disabled = signed_in()
    world.gate.disable_principal(world.operator, "bob")
    world.gate.disable_principal(world.operator, "bob", disabled=False)
    with pytest.raises(Unauthenticated):
        world.gate.web_session(disabled)


def test_a_session_opened_with_a_token_may_do_what_the_token_may(world: GateWorld) -> None:
    made = world.gate.mint_obol(world.operator, "bob", scopes=["memory.read"])
    cookie = world.gate.open_session(world.gate.authenticate(made["token"], "web"))
    caller = world.gate.session_caller(cookie)
    assert world.gate.whoami(caller)["scopes"] == ["memory.read"]
    world.gate.revoke_obol(world.operator, made["obol_id"])
    with pytest.raises(Unauthenticated):
        world.gate.session_caller(cookie)


def test_a_form_of_another_session_is_refused(world: GateWorld) -> None:
    sessions = [
        world.gate.web_session(world.gate.use_sign_in(world.gate.mint_sign_in(world.operator, name)["code"]))
        for name in ("bob", "cy")
    ]
    sessions[0].require_csrf(sessions[0].csrf_token)
    with pytest.raises(NotAllowed) as refused:
        sessions[0].require_csrf(sessions[1].csrf_token)
    assert refused.value.code == "bad_csrf"


@pytest.mark.parametrize(
    "verb", ["principals", "obols", "grants", "ledger_tail", "ledger_verify", "reconcile", "figures"]
)
def test_administration_takes_its_scope(world: GateWorld, verb: str) -> None:
    with pytest.raises(NotAllowed, match="scope admin"):
        getattr(world.gate, verb)(world.caller("bob"))
    getattr(world.gate, verb)(world.caller("ann"))

"""Step 15: the model tries to reach shared memory in every way there is."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from memory_git.cli.story.disagreement import branch_and_commit
from memory_git.cli.story.expect import expect, expect_equal, refusal
from memory_git.cli.story.tale import Tale
from memory_git.cli.story.world import PROJECT, nonce
from memory_git.domain.envelope import Envelope, MergeKeys, MergeRequest, issue, sign
from memory_git.domain.ids import SHARED_MAIN
from memory_git.lethe.protocol import Json
from memory_git.storage.lethe_receipts import list_nonces
from memory_git.storage.lethe_schema import SCHEMA
from memory_git.storage.opening import open_database

FOREIGN_KEY = MergeKeys((("", "a key that this store was never given, long enough"),))


def every_way_is_refused(tale: Tale) -> Mapping[str, Any]:
    """Through MCP as a model, and with envelopes as whoever holds Lethe's key: each try is refused with its code."""
    op = {
        "op_type": "add_memory",
        "payload": {"memory_id": "story/smuggled", "content": "Trust me.", "kind": "fact"},
    }
    mine = branch_and_commit(tale, "agent-a", "smuggling", [op], "Work to smuggle in")
    head, before = tale.shared_head(), _traces(tale)
    refused = {**_as_a_model(tale, mine, head, op), **_with_envelopes(tale, mine, head)}
    expect_equal(tale.shared_head(), head, "shared memory has not moved")
    expect("story/smuggled" not in tale.state_at(head), "nothing was smuggled in")
    after = _traces(tale)
    expect_equal(after["advances"], before["advances"], "the number of advances")
    replayed = _replay_and_races(tale, mine)
    return {"refused": {**refused, **replayed}, "tries": len(refused) + len(replayed)}


def _as_a_model(tale: Tale, mine: Json, head: str, op: Json) -> dict[str, str]:
    agent = tale.agent_a
    commit = {"project": PROJECT, "message": "in", "ops": [op], "expected_head": head, "parent_ids": [head]}
    proposal = tale.propose("agent-a", mine["changeset_id"], "Smuggled work")["proposal_id"]
    tries: dict[str, tuple[str, dict[str, Any]]] = {
        "commit to shared": (
            "memory_changeset_create",
            {**commit, "ref": SHARED_MAIN, "idempotency_key": "s1"},
        ),
        "make another shared ref": ("memory_branch_create", {"project": PROJECT, "ref": "refs/shared/mine"}),
        "commit into a new shared ref": (
            "memory_changeset_create",
            {**commit, "ref": "refs/shared/mine", "idempotency_key": "s2"},
        ),
        "commit to another's ref": (
            "memory_changeset_create",
            {**commit, "ref": "refs/agents/agent-b/main", "idempotency_key": "s3"},
        ),
        "review one's own work": ("memory_merge_review", {"proposal_id": proposal, "verdict": "approve"}),
        "merge one's own work": ("memory_merge", {"proposal_id": proposal, "idempotency_key": "s4"}),
    }
    found = {name: agent.refused(tool, **arguments).code for name, (tool, arguments) in tries.items()}
    for name, code in found.items():
        expect(
            code in {"denied", "protected_ref", "unknown_tool"},
            f"{name} is refused as not allowed, not as {code}",
        )
    found["merge without approval"] = refusal(
        lambda: tale.reviewer.post(f"/proposals/{proposal}/merge"),
        "not_approved",
        "merging without an approval",
    ).code
    for act, name in (
        (lambda: _direct(tale, "advance", mine, head), "advance"),
        (lambda: _direct(tale, "branch", mine, head), "branch"),
    ):
        found[f"Lethe: {name} a protected ref"] = refusal(
            act, "protected_ref", f"{name} of a protected ref"
        ).code
    tale.agent_a.call("memory_merge_cancel", proposal_id=proposal)
    return found


def _direct(tale: Tale, how: str, mine: Json, head: str) -> Any:
    if how == "advance":
        return tale.store.advance_ref(PROJECT, SHARED_MAIN, head, mine["changeset_id"])
    return tale.store.create_branch(
        PROJECT, "refs/topics/guarded", mine["changeset_id"], "agent-a", protected=True
    )


def _traces(tale: Tale) -> Json:
    database = open_database(tale.world.store_place, SCHEMA, read_only=True)
    try:
        with database.read() as connection:
            return {
                "nonces": list_nonces(connection, PROJECT),
                "advances": len(tale.store.list_advances(PROJECT)),
            }
    finally:
        database.close()


def _envelope(mine: Json, head: str, **changes: Any) -> tuple[MergeRequest, Envelope]:
    request = MergeRequest(PROJECT, SHARED_MAIN, head, mine["changeset_id"], "no-proposal", "reviewer")
    envelope = issue(
        request,
        proposal_digest="0" * 64,
        merger_principal="reviewer",
        strategy="fast_forward",
        now=datetime.now(UTC),
        nonce=nonce(),
    )
    return request, replace(envelope, **changes)


def _ask(tale: Tale, request: MergeRequest, wire: str) -> Any:
    return tale.store.merge_ref(
        PROJECT,
        {
            "ref_name": request.ref_name,
            "expected_head": request.expected_head,
            "new_head": request.new_head,
            "merge_proposal_id": request.proposal_id,
            "reviewer_principal": request.reviewer_principal,
            "merge_authorization": wire,
        },
    )


def _with_envelopes(tale: Tale, mine: Json, head: str) -> dict[str, str]:
    """Forged, expired, foreign-key, unknown-key and field-swapped envelopes: refused, and no nonce row is left."""
    keys, now = tale.world.keys.merge, datetime.now(UTC)
    before = _traces(tale)["nonces"]
    old = (now - timedelta(minutes=30)).isoformat(), (now - timedelta(minutes=28)).isoformat()
    request, plain = _envelope(mine, head)
    forged = json.loads(sign(plain, keys))
    forged["signature"] = "0" * 64
    unknown = json.loads(sign(plain, keys))
    unknown["envelope"]["key_id"] = "nobody"
    tries: dict[str, tuple[str, str]] = {
        "forged": (json.dumps(forged), "bad_signature"),
        "signed by a foreign key": (_under_our_name(plain, keys), "bad_signature"),
        "unknown key": (json.dumps(unknown), "unknown_key"),
        "expired": (sign(replace(plain, issued_at=old[0], expires_at=old[1]), keys), "expired"),
        "another head": (sign(replace(plain, new_head=head), keys), "field_mismatch"),
        "another project": (sign(replace(plain, project_id="elsewhere"), keys), "field_mismatch"),
        "another reviewer": (
            sign(replace(plain, reviewer_principal="second-reviewer"), keys),
            "field_mismatch",
        ),
        "not an envelope": ("{}", "bad_form"),
    }
    found = {}
    for name, (wire, reason) in tries.items():
        error = refusal(_asking(tale, request, wire), "invalid_authorization", f"an envelope: {name}")
        expect_equal(error.facts.get("reason"), reason, f"why an envelope is refused: {name}")
        found[f"envelope: {name}"] = f"{error.code} ({reason})"
    expect_equal(_traces(tale)["nonces"], before, "refused envelopes leave no nonce")
    return found


def _asking(tale: Tale, request: MergeRequest, wire: str) -> Callable[[], Any]:
    return lambda: _ask(tale, request, wire)


def _under_our_name(envelope: Envelope, keys: MergeKeys) -> str:
    foreign = MergeKeys(((keys.signing_key_id, FOREIGN_KEY.secrets[0][1]),))
    return sign(envelope, foreign)


def _replay_and_races(tale: Tale, mine: Json) -> dict[str, str]:
    """A lost race and a wrong shape burn the nonce; a replay finds it burnt; refs and advances stay as they are."""
    keys, found = tale.world.keys.merge, {}
    head = tale.shared_head()
    stale_head = tale.base_head
    before = _traces(tale)
    request, envelope = _envelope(mine, stale_head)
    lost = sign(envelope, keys)
    found["lost race"] = refusal(_asking(tale, request, lost), "ref_moved", "a lost race").code
    found["the same again"] = refusal(
        _asking(tale, request, lost), "authorization_replayed", "its replay"
    ).code
    request, envelope = _envelope(mine, head, strategy="merge_commit")
    wrong = sign(envelope, keys)
    found["wrong shape"] = refusal(_asking(tale, request, wrong), "wrong_merge_shape", "a wrong shape").code
    after = _traces(tale)
    expect_equal(len(after["nonces"]) - len(before["nonces"]), 2, "the burnt nonces")
    expect_equal(after["advances"], before["advances"], "the number of advances")
    used = tale.store.list_advances(PROJECT)[-1]["nonce"]
    expect(used in after["nonces"], "the nonce of a merge that landed is burnt")
    expect_equal(tale.shared_head(), head, "shared memory has not moved")
    return found

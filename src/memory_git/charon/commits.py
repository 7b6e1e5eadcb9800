"""Commits and branches of a caller's own (6-charon, ownership; 3-model, changeset).

1. The author is the caller. Claims of authority are refused, all at once with the faults of form.
2. A ref is written by whom the policy lets write it; a topic or repo ref belongs to who makes it.
3. A head that the caller gave is never refreshed. Without one it is read only when the caller says so, or for a ref that
   isn't there yet, which then starts at accepted memory; the commit makes it, and a refused one doesn't.
4. A body that would shrink to a tenth is asked about, where the caller wants to be asked (`charon.shrinking`).
5. A head that the gate chose is kept with the idempotency key, so that a repeated request is the same request.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uuid_utils import uuid7

from memory_git.charon.authority import attested_faults, authority_faults, stamped
from memory_git.charon.caller import Caller
from memory_git.charon.hidden import hidden_faults
from memory_git.charon.house import House, Passage
from memory_git.charon.refs import (
    find_ref,
    head_of,
    may_read,
    require_changeset,
    shared_head,
    working_ref,
)
from memory_git.charon.shrinking import shrunk_faults
from memory_git.charon.standings import Identity
from memory_git.charon.steps import Steps
from memory_git.domain.changeset import invalid_changeset
from memory_git.domain.errors import Invalid, NotAllowed
from memory_git.domain.ids import SHARED_MAIN, parse_ref
from memory_git.domain.policy import Denied, may_write_ref
from memory_git.domain.validate import check_ops
from memory_git.lethe.protocol import Json
from memory_git.storage import charon_identity, charon_proposals

_CREATED_SPACES = frozenset({"topics", "repos"})


@dataclass(frozen=True, slots=True)
class Work:
    """What a caller wants to commit."""

    message: str
    ops: Sequence[Any]
    model: str | None = None
    session_id: str | None = None
    topic_id: str | None = None
    context_manifest_id: str | None = None
    evidence: Sequence[Any] = ()
    verification: Sequence[Any] = ()

    def stated(self) -> dict[str, Any]:
        """Gives the fields of a create request that are set."""
        values = {
            "message": self.message,
            "model": self.model,
            "session_id": self.session_id,
            "topic_id": self.topic_id,
            "context_manifest_id": self.context_manifest_id,
            "evidence": list(self.evidence) or None,
            "verification": list(self.verification) or None,
        }
        return {key: value for key, value in values.items() if value is not None}


def create_branch(
    house: House, caller: Caller, project: str | None, ref_name: str, from_ref: str | None, head: str | None
) -> Json:
    """Makes a ref at a head that the caller may read, by default that of accepted memory; the same again is the same ref."""
    request = {"ref_name": ref_name, "from_ref": from_ref, "head": head}
    with house.changes(caller, "create_branch", project, "memory.branch", **request) as passage:
        at = head_of(house, passage, head or from_ref or SHARED_MAIN)
        made = _make_ref(house, passage, ref_name, at)
        passage.ids.update(ref_name=ref_name, head=at)
        return made


def commit(
    house: House,
    caller: Caller,
    project: str | None,
    work: Work,
    *,
    ref: str | None,
    expected_head: str | None,
    read_head: bool,
    parent_ids: Sequence[str] | None,
    idempotency_key: str | None,
    shrink_ok: bool,
    identity: Identity | None,
) -> Steps[Json]:
    """Gives the steps of a commit to a ref of the caller's; their outcome is `{changeset, ref, replayed}`."""
    request = {
        "ref": ref,
        "expected_head": expected_head,
        "read_head": read_head,
        "parents": list(parent_ids or ()),
    }
    key = idempotency_key or str(uuid7())
    stated = {**request, **work.stated(), "ops": list(work.ops), "idempotency_key": key}
    passage = house.admits(caller, identity, "commit", project, "memory.commit", **stated)

    def steps(passage: Passage) -> Steps[Json]:
        ref_name = ref or working_ref(passage)
        _require_writable(house, passage, ref_name)
        passage.ids["ref_name"] = ref_name
        ops = _own_ops(passage, work)
        found = find_ref(house, passage.project_id, ref_name)
        expected = _expected_head(
            house, passage, ref_name, found, expected_head, read_head=read_head, key=idempotency_key
        )
        parents = list(parent_ids) if parent_ids is not None else [expected]
        for parent in parents:
            if (
                found is None
                or parent != found["head_changeset_id"]
                or not may_read(house, passage, ref_name)
            ):
                require_changeset(house, passage, parent)
        if hidden := hidden_faults(house, passage, parents, ops):
            raise invalid_changeset(hidden)
        if not shrink_ok and (shrunk := shrunk_faults(house, passage, parents, ops)):
            raise invalid_changeset(shrunk)
        request = {
            **work.stated(),
            "project_id": passage.project_id,
            "ref_name": ref_name,
            "parent_ids": parents,
            "author_principal": passage.principal_id,
            "actor_id": _actor(passage, ref_name),
            "surface": caller.surface,
            "idempotency_key": key,
            "ops": ops,
            "expected_head": expected,
            "advance_ref": True,
            "create_ref_if_missing": True,
        }
        changeset, replayed, moved = yield house.creating(request)
        passage.replayed = replayed
        passage.ids.update(changeset_id=changeset["changeset_id"], replayed=replayed)
        ref_now = moved or house.lethe.resolve_ref(passage.project_id, ref_name)
        return {"changeset": changeset, "ref": ref_now, "replayed": replayed}

    return (yield from house.changing(passage, steps))


def commit_planned(
    house: House, passage: Passage, *, ref_name: str, parent: str, message: str, ops: Sequence[Json], key: str
) -> str:
    """Commits ops that the store planned (a rebase, a revert) in the caller's name; gives the changeset's id."""
    changeset, _ = house.lethe.create_changeset(
        {
            "project_id": passage.project_id,
            "ref_name": ref_name,
            "parent_ids": [parent],
            "author_principal": passage.principal_id,
            "actor_id": _actor(passage, ref_name),
            "surface": passage.caller.surface,
            "message": message,
            "idempotency_key": key,
            "ops": list(ops),
            "expected_head": parent,
            "advance_ref": True,
        }
    )
    return str(changeset["changeset_id"])


def make_own_ref(house: House, passage: Passage, ref_name: str, head: str) -> Json:
    """Makes a ref of the caller's at a head that the gate chose."""
    return _make_ref(house, passage, ref_name, head)


def _make_ref(house: House, passage: Passage, ref_name: str, head: str) -> Json:
    claimed = _require_writable(house, passage, ref_name)
    try:
        return house.lethe.create_branch(passage.project_id, ref_name, head, passage.principal_id)
    except (Invalid, NotAllowed):
        if claimed:
            house.ledger.write(
                lambda connection: charon_identity.drop_claim(connection, passage.project_id, ref_name)
            )
        raise


def _require_writable(house: House, passage: Passage, ref_name: str) -> bool:
    """Refuses a ref that isn't the caller's to write (rule 2); says whether the caller has claimed it just now."""
    verdict = may_write_ref(passage.standing, passage.project_id, ref_name)
    if not isinstance(verdict, Denied):
        return False
    if parse_ref(ref_name).is_protected_by_name:
        raise NotAllowed("protected_ref", verdict.reason)
    if parse_ref(ref_name).space in _CREATED_SPACES and find_ref(house, passage.project_id, ref_name) is None:
        owner = house.ledger.write(
            lambda connection: charon_identity.claim_ref(
                connection, passage.project_id, ref_name, passage.principal_id, house.time()
            )
        )
        if owner == passage.principal_id:
            passage.identity = house.identify(passage.caller)
            return True
    return house.forbid(verdict.reason)


def _own_ops(passage: Passage, work: Work) -> list[Any]:
    kind = passage.identity.principal.kind
    faults = [
        *authority_faults(work.ops, kind),
        *attested_faults("evidence", work.evidence),
        *attested_faults("verification", work.verification),
    ]
    if faults:
        _, form = check_ops(list(work.ops), iter(lambda: str(uuid7()), None))
        raise invalid_changeset([*faults, *form])
    return stamped(work.ops, passage.principal_id, kind)


def _expected_head(
    house: House,
    passage: Passage,
    ref_name: str,
    found: Json | None,
    stated: str | None,
    *,
    read_head: bool,
    key: str | None,
) -> str:
    """Gives the head that the commit builds on (rules 3 and 5)."""
    if found is None:
        base = stated or _kept_head(house, passage, ref_name, key, shared_head(house, passage.project_id))
        require_changeset(house, passage, base)
        return base
    if stated is not None:
        return stated
    kept = _kept(house, passage, ref_name, key)
    if kept is None and not read_head:
        raise Invalid(
            "expected_head_needed",
            "say which head you saw as expected_head, or ask for the present one with read_head",
            current_head=found["head_changeset_id"],
        )
    return kept or _kept_head(house, passage, ref_name, key, found["head_changeset_id"])


def _kept(house: House, passage: Passage, ref_name: str, key: str | None) -> str | None:
    if key is None:
        return None
    with house.database.read() as connection:
        found = charon_proposals.answer_of(
            connection, passage.project_id, passage.principal_id, "commit", key
        )
    if found is None:
        return None
    answer = json.loads(found[1])
    return str(answer["expected_head"]) if answer["ref_name"] == ref_name else None


def _kept_head(house: House, passage: Passage, ref_name: str, key: str | None, head: str) -> str:
    if key is None:
        return head
    answer = json.dumps({"ref_name": ref_name, "expected_head": head})
    _, kept = house.ledger.write(
        lambda connection: charon_proposals.keep_answer(
            connection,
            passage.project_id,
            passage.principal_id,
            route="commit",
            key=key,
            request_digest="",
            answer=answer,
        )
    )
    return str(json.loads(kept)["expected_head"])


def _actor(passage: Passage, ref_name: str) -> str | None:
    ref = parse_ref(ref_name)
    if ref.space in ("agents", "sessions"):
        return ref.owner
    return passage.caller.default_actor or next(iter(passage.identity.actors), None)

"""Rebase and revert: planned by the store, committed like any other work (4-history; 6-charon, a stale proposal).

1. A rebased proposal gets new heads in the gate's name, each op naming its original, so that authorship is kept; they stand
   at a fresh `refs/proposals/<id>.<n>`. Its conflicts are found anew. Approvals are carried over if the outcome is the same.
2. A rebased ref of the caller's becomes a new ref beside it, `<ref>-rebased-<n>`: no ref is ever moved backwards.
3. A revert is a changeset of the caller's on a branch of its own, and a proposal of kind `revert`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from memory_git.charon import keeping
from memory_git.charon.authority import TRUST_OPS, ceiling
from memory_git.charon.caller import Caller
from memory_git.charon.commits import commit_planned, make_own_ref
from memory_git.charon.house import House, Passage
from memory_git.charon.judging import Judgement, judge, keep_conflicts
from memory_git.charon.merges import settle_attempts
from memory_git.charon.proposals import (
    Asked,
    announce,
    detail,
    project_of,
    propose_in,
    require,
    require_open,
    require_seen,
)
from memory_git.charon.refs import find_ref, require_changeset, require_ref
from memory_git.charon.reviews import refresh_status
from memory_git.domain.errors import Clash, Invalid
from memory_git.domain.policy import Denied, may_write_ref
from memory_git.domain.proposals import outcome_digest
from memory_git.lethe.protocol import Json
from memory_git.storage import charon_proposals
from memory_git.storage.charon_proposals import ProposalRow
from memory_git.storage.sqlite import Connection

MAX_REBASED_REFS = 1000


def rebase_proposal(house: House, caller: Caller, proposal_id: str) -> Json:
    """Rebases an open proposal onto the present head of its target; gives it as `proposal` does, with `carried_approvals`."""
    project_id = project_of(house, caller, "rebase", proposal_id)
    with house.changes(caller, "rebase", project_id, "memory.propose", proposal_id=proposal_id) as passage:
        passage.ids["proposal_id"] = proposal_id
        settle_attempts(house, project_id, proposal_id)
        row = require_open(house, require_seen(house, passage, proposal_id))
        before = judge(house, row)
        if passage.principal_id not in {row.originator, *before.authors}:
            house.forbid("only its originator or an author rebases a proposal")
        if house.lethe.is_ancestor(project_id, before.target_head, row.head_changeset_id):
            return {**detail(house, row, passage), "carried_approvals": 0, "rebased": False}
        moved = _rebased(house, row, before.target_head)
        after = keep_conflicts(house, moved, judge(house, moved))
        carried = _repin(house, row, moved, before, after)
        row = refresh_status(house, require(house, project_id, proposal_id), after)
        announce(house, row)
        return {**detail(house, row, passage), "carried_approvals": carried, "rebased": True}


def rebase_ref(house: House, caller: Caller, project: str | None, ref_name: str, onto: str) -> Json:
    """Rebases a ref of the caller's onto the head of another; gives `{ref, rebased_from, changesets}`."""
    with house.changes(caller, "rebase", project, "memory.commit", ref=ref_name, onto=onto) as passage:
        ref = require_ref(house, passage, ref_name)
        verdict = may_write_ref(passage.standing, passage.project_id, ref_name)
        if isinstance(verdict, Denied):
            house.forbid(verdict.reason)
        target = require_ref(house, passage, onto)["head_changeset_id"]
        plan = _planned(house, passage.project_id, ref["head_changeset_id"], target)
        new_ref = _free_name(house, passage, ref_name)
        make_own_ref(house, passage, new_ref, target)
        made = _replay(
            plan["steps"],
            target,
            lambda parent, step: commit_planned(
                house,
                passage,
                ref_name=new_ref,
                parent=parent,
                message=step["message"],
                ops=step["ops"],
                key=f"rebase:{new_ref}:{step['source_changeset_id']}:{parent}",
            ),
        )
        passage.ids.update(ref_name=new_ref, changesets=made)
        now = house.lethe.resolve_ref(passage.project_id, new_ref)
        return {"ref": now, "rebased_from": ref["head_changeset_id"], "changesets": made}


def propose_revert(
    house: House,
    caller: Caller,
    project: str | None,
    changeset_id: str,
    *,
    from_changeset_id: str | None,
    target_ref: str,
    mainline: int | None,
    title: str,
    message: str,
    idempotency_key: str | None,
) -> Json:
    """Commits what takes a changeset or a range back, on a branch of the caller's, and proposes it; gives the proposal."""
    request = {
        "changeset_id": changeset_id,
        "from_changeset_id": from_changeset_id,
        "target_ref": target_ref,
        "mainline": mainline,
        "title": title,
        "message": message,
        "idempotency_key": idempotency_key,
    }
    scopes = ("memory.branch", "memory.commit", "memory.propose")
    with house.changes(caller, "propose_revert", project, *scopes, **request) as passage:
        target, step = _planned_revert(house, passage, target_ref, changeset_id, mainline, from_changeset_id)
        since = f"{from_changeset_id[-12:]}-" if from_changeset_id else ""
        ref_name = f"refs/topics/revert-{since}{changeset_id}-{target[-12:]}-{passage.principal_id[:48]}"
        _make_own_ref(house, passage, ref_name, target)
        head = commit_planned(
            house,
            passage,
            ref_name=ref_name,
            parent=target,
            message=message or step["message"],
            ops=_worth(passage, step["ops"]),
            key=f"revert:{since}{changeset_id}:{target}",
        )
        passage.ids.update(changeset_id=head, ref_name=ref_name)
        asked = Asked(
            target_ref=target_ref,
            source_ref=ref_name,
            head_changeset_id=head,
            base_changeset_id=None,
            kind="revert",
            title=title or f"Revert of {f'{from_changeset_id}..' if from_changeset_id else ''}{changeset_id}",
            message=message,
            selected_ops=None,
            lifetime_s=None,
        )
        return propose_in(house, passage, asked, idempotency_key)


def _planned_revert(
    house: House,
    passage: Passage,
    target_ref: str,
    changeset_id: str,
    mainline: int | None,
    since: str | None,
) -> tuple[str, Json]:
    """Gives the head of a protected ref, and the one changeset that takes back there what was asked for."""
    for name in (changeset_id, since):
        if name is not None:
            require_changeset(house, passage, name)
    ref = require_ref(house, passage, target_ref)
    if not ref["protected"]:
        # On another's branch, which a grant may open, taking back could bring a private value under a wider record.
        raise Invalid("target_not_protected", "the target is not protected: revert what is accepted")
    target = str(ref["head_changeset_id"])
    if not house.lethe.is_ancestor(passage.project_id, changeset_id, target):
        raise Invalid(
            "not_accepted", "the target does not reach that changeset: there is nothing to take back"
        )
    plan = house.lethe.plan_revert(passage.project_id, changeset_id, target, mainline, since)
    _require_planned(plan, target)
    (step,) = plan["steps"]
    if not step["ops"]:
        raise Clash("already_reverted", "what it changed is not there any more", current_head=target)
    return target, step


def _make_own_ref(house: House, passage: Passage, ref_name: str, head: str) -> None:
    """Makes a ref of the caller's at a head, unless an earlier, broken-off call has made it."""
    if find_ref(house, passage.project_id, ref_name) is None:
        make_own_ref(house, passage, ref_name, head)


def _rebased(house: House, row: ProposalRow, target: str) -> ProposalRow:
    """Makes the rebased changesets of a proposal, or its selected ops' new candidate, and gives it with them."""
    if row.selected_ops is not None:
        plan = house.lethe.plan_cherry_pick(row.project_id, row.selected_ops, target)
        candidate = keeping.pick_candidate(house, row, target, plan)
        return replace(row, candidate_changeset_id=candidate, target_head_at_creation=target)
    plan = _planned(house, row.project_id, row.head_changeset_id, target)
    ref_name = _next_kept_ref(house, row)
    made = _replay(
        plan["steps"],
        target,
        lambda parent, step: str(
            keeping.make_changeset(
                house,
                row.project_id,
                ref_name,
                parents=[parent],
                ops=step["ops"],
                message=step["message"],
                key=f"rebase:{ref_name}:{step['source_changeset_id']}:{parent}",
            )["changeset_id"]
        ),
    )
    keeping.keep(house, row.project_id, ref_name, made[-1])
    return replace(
        row,
        base_changeset_id=target,
        head_changeset_id=made[-1],
        kept_ref=ref_name,
        target_head_at_creation=target,
    )


def _repin(house: House, row: ProposalRow, moved: ProposalRow, before: Judgement, after: Judgement) -> int:
    """Stores a proposal's new heads, and carries its reviews over if the outcome is the same; gives how many."""
    same = outcome_digest(before.judged) == outcome_digest(after.judged)
    changes: dict[str, Any] = {
        "base_changeset_id": moved.base_changeset_id,
        "head_changeset_id": moved.head_changeset_id,
        "candidate_changeset_id": moved.candidate_changeset_id,
        "kept_ref": moved.kept_ref,
        "target_head_at_creation": moved.target_head_at_creation,
        "judged_digest": after.digest,
        "updated_at": house.time(),
    }

    def repin(connection: Connection) -> int:
        if charon_proposals.is_under_way(
            connection, row.project_id, row.proposal_id
        ) or not charon_proposals.change(connection, row, (row.status,), **changes):
            raise Clash("proposal_changed", "the proposal changed meanwhile: try again")
        return charon_proposals.carry_reviews(connection, row, before.digest, after.digest) if same else 0

    return house.ledger.write(repin)


def _planned(house: House, project_id: str, head: str, onto: str) -> Json:
    plan = house.lethe.plan_rebase(project_id, head, onto)
    _require_planned(plan, onto)
    if not plan["steps"]:
        raise Clash("nothing_to_rebase", "the target holds all of it already", current_head=onto)
    return plan


def _require_planned(plan: Json, onto: str) -> None:
    if plan["refused"]:
        raise Clash(
            "ops_refused",
            f"{len(plan['refused'])} op(s) can't stand on the target: merge, or make the change anew",
            refused=plan["refused"],
            current_head=onto,
        )


def _replay(steps: Sequence[Json], onto: str, make: Callable[[str, Json], str]) -> list[str]:
    """Makes one changeset a step, each on the one before; gives their ids."""
    made: list[str] = []
    for step in steps:
        made.append(make(made[-1] if made else onto, step))
    return made


def _next_kept_ref(house: House, row: ProposalRow) -> str:
    for place in range(1, MAX_REBASED_REFS):
        name = keeping.kept_ref(row.proposal_id, place)
        if find_ref(house, row.project_id, name) is None:
            return name
    raise Clash(
        "rebased_too_often", f"a proposal is rebased at most {MAX_REBASED_REFS} times: make a new one"
    )


def _free_name(house: House, passage: Passage, ref_name: str) -> str:
    for place in range(1, MAX_REBASED_REFS):
        name = f"{ref_name}-rebased-{place}"
        if find_ref(house, passage.project_id, name) is None:
            return name
    raise Clash(
        "rebased_too_often", "delete nothing, but work on a fresh branch: this one has been rebased too often"
    )


def _worth(passage: Passage, ops: Sequence[Json]) -> list[Json]:
    """Gives planned ops with the trust of who commits them: what was accepted before is not vouched for anew."""
    trust = ceiling(passage.identity.principal.kind)
    return [
        {**op, "payload": {**op["payload"], "source_trust": trust}} if op["op_type"] in TRUST_OPS else op
        for op in ops
    ]

"""Merges into protected refs: the gate is the only signer (6-charon, merge).

In the order of the code:
1. an attempt that a crash left open is settled first, by what the store says;
2. the merger wrote and proposed none of it; approvals, conflicts and the target are judged anew;
3. the shape is picked: fast-forward, else a merge commit, or a cherry-pick of the selected ops; its changeset is made;
4. the attempt, with its nonce, is durable in the ledger and the database before anything is signed, and only while the
   proposal is as it was judged; from then on nobody cancels, rejects, reviews or rebases it until its outcome is known;
5. the store verifies and moves the ref; the outcome, the head and the proposal's end are one transaction;
6. a merge that another call was quicker than is judged anew and tried again;
7. any other refusal ends the attempt; an answer that never came leaves it open, for the next call or for reconcile.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence, Set
from typing import Any

from memory_git.charon import keeping
from memory_git.charon.caller import Caller
from memory_git.charon.house import House, Passage
from memory_git.charon.judging import (
    Judgement,
    as_reviews,
    eligible,
    judge,
    keep_conflicts,
    missing,
    reviews_of,
    work_of,
)
from memory_git.charon.ledger import Call
from memory_git.charon.proposals import announce, detail, project_of, require, require_open
from memory_git.charon.settling import settling_ops
from memory_git.domain.canonical import digest
from memory_git.domain.envelope import LIFETIME, MergeRequest, Strategy, issue, sign
from memory_git.domain.errors import Clash, Invalid, Refused, Unavailable
from memory_git.domain.policy import SOMEBODY_ELSE, Denied, may_judge
from memory_git.domain.proposals import (
    OPEN_STATUSES,
    Missing,
    blocking_conflicts,
    counting_approvals,
    latest_reviews,
    proposal_digest,
)
from memory_git.domain.times import format_time
from memory_git.lethe.protocol import Json
from memory_git.storage import charon_proposals
from memory_git.storage.charon_proposals import AttemptRow, ProposalRow
from memory_git.storage.sqlite import Connection

MAX_TRIES = 10
_CONTRADICTIONS = frozenset({"incompatible_fact", "contradictory_decision", "protected_decision"})
STRATEGIES = ("fast_forward", "merge_commit", "cherry_pick")
_OPEN = tuple(sorted(OPEN_STATUSES))


def merge(
    house: House,
    caller: Caller,
    proposal_id: str,
    *,
    idempotency_key: str | None,
    strategy: str | None,
    resolutions: Sequence[Any] | None,
) -> Json:
    """Merges an approved proposal; gives it as `proposal` does, with `ref`, `merged_head`, `strategy` and `replayed`."""
    project_id = project_of(house, caller, "merge", proposal_id)
    request = {
        "proposal_id": proposal_id,
        "idempotency_key": idempotency_key,
        "strategy": strategy,
        "resolutions": list(resolutions) if resolutions is not None else None,
    }
    with house.changes(caller, "merge", project_id, "memory.merge", **request) as passage:
        passage.ids["proposal_id"] = proposal_id
        if strategy is not None and strategy not in STRATEGIES:
            raise Invalid("bad_strategy", f"strategy is one of {', '.join(STRATEGIES)}")
        settle_attempts(house, project_id, proposal_id)
        row = require(house, project_id, proposal_id)
        replayed = row.status == "merged" and _is_repeated(house, passage, row, idempotency_key)
        passage.replayed = replayed
        if not replayed:
            row = _merge_in_turn(house, passage, row, strategy, resolutions)
            _remember(house, passage, row, idempotency_key)
        return _shown(house, passage, row, replayed=replayed)


def settle_attempts(house: House, project_id: str, proposal_id: str) -> None:
    """Finishes or ends the attempts of a proposal of which it isn't known what became (rule 1)."""
    with house.database.read() as connection:
        attempts = charon_proposals.attempts(connection, project_id, proposal_id)
    for attempt in attempts:
        if attempt.state == "intended":
            settle(house, attempt)


def became(house: House, attempt: AttemptRow) -> str:
    """Tells what became of an attempt: `landed`, `failed`, or `pending` while its authorization could still be used."""
    row = require(house, attempt.project_id, attempt.proposal_id)
    # The head is read before the advances: one that this very attempt moves in between must not count as somebody else's.
    target = house.lethe.resolve_ref(attempt.project_id, row.target_ref)["head_changeset_id"]
    advances = house.lethe.list_advances(attempt.project_id)
    if any(item["nonce"] == attempt.nonce for item in advances):
        return "landed"
    return "pending" if target == attempt.expected_head and house.time() < attempt.expires_at else "failed"


def settle(house: House, attempt: AttemptRow) -> str:
    """Finishes an attempt that landed, ends one that failed, leaves a pending one; gives which."""
    found = became(house, attempt)
    if found == "landed":
        row = require(house, attempt.project_id, attempt.proposal_id)
        _land(house, row, attempt, _call_of(house, attempt), None)
    elif found == "failed":
        house.ledger.write(lambda connection: charon_proposals.settle_attempt(connection, attempt, "failed"))
    return found


def _merge_in_turn(
    house: House, passage: Passage, row: ProposalRow, strategy: str | None, resolutions: Sequence[Any] | None
) -> ProposalRow:
    """Merges, judging anew each time another merge was quicker: disjoint work does not fail for having met."""
    for left in reversed(range(MAX_TRIES)):
        try:
            return _merge(house, passage, require_open(house, row), strategy, resolutions)
        except Clash as clash:
            if clash.code not in ("ref_moved", "proposal_changed") or not left:
                raise
        row = require(house, row.project_id, row.proposal_id)
    raise AssertionError("the last try returns or raises")


def _merge(
    house: House, passage: Passage, row: ProposalRow, strategy: str | None, resolutions: Sequence[Any] | None
) -> ProposalRow:
    judgement = judge(house, row)
    reviews = as_reviews(reviews_of(house, row))
    _require_merger(house, passage, row, judgement)
    judgement = keep_conflicts(house, row, judgement)
    if lacking := missing(house, row, judgement, reviews):
        raise _unready(house, passage, row, judgement, lacking)
    able = eligible(house, row, reviews)
    counted = counting_approvals(reviews, judgement.digest, able)
    reviewer = counted[0].reviewer
    shape = _shape(row, judgement, strategy)
    new_head = _new_head(
        house, passage, row, judgement, shape=shape, reviewer=reviewer, resolutions=resolutions
    )
    now = house.now()
    attempt = AttemptRow(
        row.project_id,
        row.proposal_id,
        secrets.token_hex(16),
        passage.principal_id,
        reviewer,
        shape,
        judgement.target_head,
        new_head,
        "intended",
        format_time(now),
        format_time(now + LIFETIME),
    )
    passage.ids.update(ref_name=row.target_ref, expected_head=judgement.target_head, new_head=new_head)
    _intend(house, passage, row, attempt, len(reviews))
    state = {
        "judged": judgement.judged,
        "reviews": [item.to_json() for item in latest_reviews(reviews, able)],
    }
    try:
        house.lethe.merge_ref(row.project_id, _signed(house, row, attempt, judgement, state))
    except Unavailable:
        raise
    except Refused:
        house.ledger.write(lambda connection: charon_proposals.settle_attempt(connection, attempt, "failed"))
        raise
    return _land(house, row, attempt, passage.call, passage)


def _require_merger(house: House, passage: Passage, row: ProposalRow, judgement: Judgement) -> None:
    verdict = may_judge(
        passage.principal_id,
        [*judgement.authors, row.originator],
        lone_person_may_merge=judgement.policy.lone_person_may_merge,
        judge_kind=passage.identity.principal.kind,
    )
    if isinstance(verdict, Denied):
        house.forbid(f"self merge: {SOMEBODY_ELSE}")


def _unready(
    house: House, passage: Passage, row: ProposalRow, judgement: Judgement, lacking: Sequence[Missing]
) -> Clash:
    """Gives the refusal of what is not ready to be merged, naming all that is missing, and the conflicts that may be seen."""
    facts: dict[str, Any] = {
        "missing": [item.to_json() for item in lacking],
        "judged_digest": judgement.digest,
        "current_head": judgement.target_head,
    }
    open_conflicts = blocking_conflicts(judgement.conflicts, judgement.policy)
    if not open_conflicts:
        return Clash("not_approved", "it lacks: " + "; ".join(item.what for item in lacking), **facts)
    plan = house.lethe.plan_merge(row.project_id, judgement.target_head, work_of(row), passage.audience)
    seen = {item["conflict_id"] for item in plan["conflicts"]}
    facts["conflicts"] = [dict(item) for item in open_conflicts if item["conflict_id"] in seen]
    return Clash("merge_conflicts", f"{len(open_conflicts)} conflict(s) need a recorded resolution", **facts)


def _shape(row: ProposalRow, judgement: Judgement, asked: str | None) -> Strategy:
    """Picks the shape (rule 3); one that was asked for and can't be is a Clash."""
    possible: list[Strategy] = ["merge_commit"]
    if row.selected_ops is not None:
        possible = ["cherry_pick"]
    elif judgement.plan["strategy"] == "up_to_date":
        raise Clash(
            "nothing_to_merge", "the target holds all of it already", current_head=judgement.target_head
        )
    elif judgement.plan["strategy"] == "fast_forward":
        possible = ["fast_forward", "merge_commit"]
    chosen = next((item for item in possible if asked in (None, item)), None)
    if chosen is None:
        raise Clash(
            "wrong_merge_shape",
            f"it can't be merged by {asked}: rebase it first, or let the gate pick the shape",
            possible=possible,
            current_head=judgement.target_head,
        )
    return chosen


def _new_head(
    house: House,
    passage: Passage,
    row: ProposalRow,
    judgement: Judgement,
    *,
    shape: Strategy,
    reviewer: str,
    resolutions: Sequence[Any] | None,
) -> str:
    """Gives the head that the target shall have, making its changeset where the shape needs one."""
    if shape == "fast_forward":
        return work_of(row)
    target = judgement.target_head
    attestation = _attestation(row, reviewer)
    if shape == "cherry_pick":
        plan = house.lethe.plan_cherry_pick(row.project_id, row.selected_ops or (), target)
        message = row.message or f"Selected ops of {row.head_changeset_id}"
        return keeping.make_pick(house, row, target, plan, extra=[attestation], message=message)
    ops = settling_ops(passage, judgement.plan["unsettled"], judgement.conflicts, resolutions)
    ops.append(attestation)
    changeset = keeping.make_changeset(
        house,
        row.project_id,
        row.kept_ref,
        parents=[target, row.head_changeset_id],
        ops=ops,
        message=row.message or f"Merge proposal {row.proposal_id}",
        key=f"merge:{row.proposal_id}:{target}:{digest(ops)[:16]}",
    )
    new_head = str(changeset["changeset_id"])
    if resolutions:
        _require_no_contradiction(house, row, judgement, new_head, {op.get("target_event_id") for op in ops})
    return new_head


def _require_no_contradiction(
    house: House, row: ProposalRow, judgement: Judgement, new_head: str, edited: Set[str | None]
) -> None:
    """Refuses resolutions in the merger's own words that contradict what is accepted: nobody could have found it before."""
    target = judgement.target_head
    known = {(item["conflict_type"], tuple(item["memory_ids"])) for item in judgement.conflicts}
    found = [
        item
        for item in house.lethe.detect_conflicts(row.project_id, target, target, new_head)
        if item["conflict_type"] in _CONTRADICTIONS
        and edited & {*item["memory_ids"]}
        and (item["conflict_type"], tuple(item["memory_ids"])) not in known
    ]
    if found:
        raise Clash(
            "merge_conflicts",
            f"the resolutions contradict accepted memory in {len(found)} place(s): settle it otherwise",
            conflicts=found,
            current_head=target,
        )


def _attestation(row: ProposalRow, reviewer: str) -> Json:
    payload = {
        "kind": "review",
        "summary": f"Approved: proposal {row.proposal_id}",
        "status": "approved",
        "reviewer": reviewer,
        "proposal_id": row.proposal_id,
        "left_branch": row.target_ref,
        "right_branch": row.source_ref,
    }
    return {"op_type": "attach_verification", "payload": payload}


def _intend(house: House, passage: Passage, row: ProposalRow, attempt: AttemptRow, reviews: int) -> None:
    """Makes an attempt durable before it is signed (rule 4), if the proposal is still as it was judged."""

    def intend(connection: Connection) -> None:
        now = charon_proposals.get(connection, row.project_id, row.proposal_id)
        if now is None or now.status not in OPEN_STATUSES:
            raise Clash("proposal_closed", "the proposal was closed meanwhile")
        said = charon_proposals.reviews(connection, row.project_id, row.proposal_id)
        if (now.head_changeset_id, now.candidate_changeset_id, len(said)) != (
            row.head_changeset_id,
            row.candidate_changeset_id,
            reviews,
        ):
            raise Clash("proposal_changed", "the proposal changed meanwhile: try again")
        charon_proposals.add_attempt(connection, attempt)
        house.ledger.note_in(
            connection, passage.call, "authorization", {**passage.ids, "nonce": attempt.nonce}
        )

    house.ledger.write(intend)


def _signed(house: House, row: ProposalRow, attempt: AttemptRow, judgement: Judgement, state: Json) -> Json:
    request = MergeRequest(
        row.project_id,
        row.target_ref,
        attempt.expected_head,
        attempt.new_head,
        row.proposal_id,
        attempt.reviewer,
    )
    envelope = issue(
        request,
        proposal_digest=proposal_digest(judgement.digest, state["reviews"]),
        merger_principal=attempt.merger,
        strategy=attempt.strategy,  # type: ignore[arg-type]
        now=house.now(),
        nonce=attempt.nonce,
    )
    return {
        "ref_name": row.target_ref,
        "expected_head": attempt.expected_head,
        "new_head": attempt.new_head,
        "merge_proposal_id": row.proposal_id,
        "reviewer_principal": attempt.reviewer,
        "merge_authorization": sign(envelope, house.keys.merge),
        "proposal_state": state,
    }


def _land(
    house: House, row: ProposalRow, attempt: AttemptRow, call: Call, passage: Passage | None
) -> ProposalRow:
    """Records that a merge landed: attempt, proposal, protected head and outcome in one transaction (rule 5)."""
    integrity = house.lethe.get_changeset(attempt.new_head)["integrity_digest"]
    ids = {
        "ref_name": row.target_ref,
        "head": attempt.new_head,
        "integrity_digest": integrity,
        "proposal_id": row.proposal_id,
        "nonce": attempt.nonce,
    }
    changes = {
        "status": "merged",
        "merged_changeset_id": attempt.new_head,
        "closed_by": attempt.merger,
        "updated_at": house.time(),
    }

    def land(connection: Connection) -> None:
        charon_proposals.settle_attempt(connection, attempt, "landed")
        charon_proposals.change(connection, row, (*_OPEN, "expired"), **changes)
        house.ledger.note_in(connection, call, "head", ids)
        if passage is not None:
            house.ledger.settle_in(connection, call, passage.intent_seq, "done", passage.ids)

    house.ledger.write(land)
    if passage is not None:
        passage.settled = True
    landed = keeping.follow_up(house, keeping.reload(house, row))
    announce(house, landed)
    return landed


def _call_of(house: House, attempt: AttemptRow) -> Call:
    """Names the call that an attempt belongs to, when it is settled later."""
    digested = house.ledger.request_digest({"nonce": attempt.nonce})
    return Call(attempt.project_id, attempt.merger, None, "reconcile", "merge", attempt.project_id, digested)


def _is_repeated(house: House, passage: Passage, row: ProposalRow, key: str | None) -> bool:
    if key is None:
        return False
    with house.database.read() as connection:
        known = charon_proposals.answer_of(connection, row.project_id, passage.principal_id, "merge", key)
        attempts = charon_proposals.attempts(connection, row.project_id, row.proposal_id)
    if known is not None:
        return known[1] == row.proposal_id
    # The answer was lost in a crash after the merge landed: whoever merged it may have it again.
    return any(item.state == "landed" and item.merger == passage.principal_id for item in attempts)


def _remember(house: House, passage: Passage, row: ProposalRow, key: str | None) -> None:
    if key is None:
        return
    house.ledger.write(
        lambda connection: charon_proposals.keep_answer(
            connection,
            row.project_id,
            passage.principal_id,
            route="merge",
            key=key,
            request_digest=row.proposal_id,
            answer=row.proposal_id,
        )
    )


def _shown(house: House, passage: Passage, row: ProposalRow, *, replayed: bool) -> Json:
    with house.database.read() as connection:
        attempts = charon_proposals.attempts(connection, row.project_id, row.proposal_id)
    landed = next(item for item in attempts if item.state == "landed")
    return {
        **detail(house, row, passage),
        "ref": house.lethe.resolve_ref(row.project_id, row.target_ref),
        "merged_head": landed.new_head,
        "strategy": landed.strategy,
        "replayed": replayed,
    }

"""Reviews of proposals, and the resolution of their conflicts (6-charon, proposals; 4-history, conflicts).

1. Nobody reviews what they wrote, nor approves what they proposed, unless the project lets a person merge alone.
2. A review binds to the judged digest that it saw. One that was named and is no longer the present one is refused, with the
   present one.
3. An objection or a rejection says why. A rejection is final, is attested where the work is kept, and is told again to whoever
   meets the same value in another proposal (`refusals`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from uuid_utils import uuid7

from memory_git.charon import keeping, refusals
from memory_git.charon.caller import Caller
from memory_git.charon.house import House, Passage
from memory_git.charon.judging import Judgement, as_reviews, eligible, judge, keep_conflicts, reviews_of
from memory_git.charon.merges import settle_attempts
from memory_git.charon.proposals import announce, change_open, detail, project_of, require, require_open
from memory_git.charon.seeing import seen_conflicts
from memory_git.domain.errors import Clash, Fault, Invalid, NotFound
from memory_git.domain.policy import SOMEBODY_ELSE, Denied, may_judge
from memory_git.domain.project_policy import SEVERITIES
from memory_git.domain.proposals import OPEN_STATUSES, VERDICTS, open_status
from memory_git.lethe.protocol import Json
from memory_git.storage import charon_proposals
from memory_git.storage.charon_proposals import ProposalRow, ReviewRow
from memory_git.storage.sqlite import Connection

MAX_COMMENT_BYTES = 4 * 1024
MAX_FINDINGS = 100
_FINDING_KEYS = frozenset({"severity", "text", "changeset_id", "ordinal", "memory_id"})


def review(
    house: House,
    caller: Caller,
    proposal_id: str,
    verdict: str,
    *,
    comment: str,
    findings: Sequence[Mapping[str, Any]],
    severity: str | None,
    judged_digest: str | None,
) -> Json:
    """Records a verdict on a proposal and gives the proposal as it stands after it."""
    project_id = project_of(house, caller, "review", proposal_id)
    request = {
        "proposal_id": proposal_id,
        "verdict": verdict,
        "comment": comment,
        "findings": [dict(item) for item in findings],
        "severity": severity,
        "judged_digest": judged_digest,
    }
    with house.changes(caller, "review", project_id, "memory.review", **request) as passage:
        passage.ids["proposal_id"] = proposal_id
        _check(verdict, comment, findings, severity)
        settle_attempts(house, project_id, proposal_id)
        row = require_open(house, require(house, project_id, proposal_id))
        judgement = judge(house, row)
        require_judge(house, passage, row, judgement, approves=verdict == "approve")
        judgement = keep_conflicts(house, row, judgement)
        if judged_digest is not None and judged_digest != judgement.digest:
            raise Clash(
                "judged_changed",
                "what was judged has changed since: look again, and review that",
                judged_digest=judgement.digest,
                current_head=judgement.target_head,
            )
        made = ReviewRow(
            str(uuid7()),
            passage.principal_id,
            passage.identity.principal.kind,
            verdict,
            comment,
            tuple(_finding(item, severity) for item in findings),
            severity,
            judgement.digest,
            judgement.digest,
            house.time(),
        )
        passage.ids["review_id"] = made.review_id
        return detail(house, _record(house, passage, row, judgement, made), passage)


def require_judge(
    house: House, passage: Passage, row: ProposalRow, judgement: Judgement, *, approves: bool
) -> None:
    """Refuses a reviewer who wrote or proposed it (rule 1)."""
    policy, kind = judgement.policy, passage.identity.principal.kind
    asked = {"lone_person_may_merge": policy.lone_person_may_merge, "judge_kind": kind}
    if isinstance(may_judge(passage.principal_id, judgement.authors, **asked), Denied):  # type: ignore[arg-type]
        house.forbid(f"self review: {SOMEBODY_ELSE}")
    if isinstance(may_judge(passage.principal_id, [row.originator], **asked), Denied):  # type: ignore[arg-type]
        house.forbid(f"{'self approval' if approves else 'self review'}: {SOMEBODY_ELSE}")


def conflicts(
    house: House, caller: Caller, project: str | None, status: str | None, proposal_id: str | None
) -> list[Json]:
    """Gives the stored conflicts that the caller may see."""
    request = {"status": status, "proposal_id": proposal_id}
    with house.reads(caller, "conflicts", project, "memory.read", **request) as passage:
        return seen_conflicts(house, passage, status, proposal_id)


def resolve_conflict(
    house: House, caller: Caller, project: str | None, conflict_id: str, outcome: str, note: str
) -> Json:
    """Records how a conflict is settled, with the reason, by a reviewer who wrote neither side."""
    request = {"conflict_id": conflict_id, "outcome": outcome, "note": note}
    with house.changes(caller, "resolve_conflict", project, "memory.review", **request) as passage:
        if len(note.encode("utf-8", "replace")) > MAX_COMMENT_BYTES:
            raise Invalid("too_long", f"a note has at most {MAX_COMMENT_BYTES} bytes", field="note")
        found = next(
            (item for item in seen_conflicts(house, passage) if item["conflict_id"] == conflict_id), None
        )
        if found is None:
            raise NotFound("not_found", "no such conflict")
        passage.ids["conflict_id"] = conflict_id
        if passage.principal_id in _authors_of_sides(house, passage, found):
            house.forbid("who wrote a side does not settle its conflict")
        return house.lethe.resolve_conflict(
            passage.project_id,
            conflict_id,
            outcome=outcome,
            resolution_note=note,
            principal=passage.principal_id,
        )


def refresh_status(house: House, row: ProposalRow, judgement: Judgement) -> ProposalRow:
    """Brings an open proposal's stored status and digest to what its reviews and the target say now."""
    reviews = as_reviews(reviews_of(house, row))
    status = open_status(reviews, judgement.digest, judgement.policy, eligible(house, row, reviews))
    changes = {"status": status, "judged_digest": judgement.digest, "updated_at": house.time()}
    if not house.ledger.write(
        lambda connection: charon_proposals.change(connection, row, tuple(OPEN_STATUSES), **changes)
    ):
        raise Clash("proposal_closed", "the proposal was closed meanwhile")
    return require(house, row.project_id, row.proposal_id)


def _record(
    house: House, passage: Passage, row: ProposalRow, judgement: Judgement, made: ReviewRow
) -> ProposalRow:
    if made.verdict == "reject":
        changes = {"status": "rejected", "closed_by": passage.principal_id}
        _store(house, row, made, changes, refused=judgement.plan["diff"])
        closed = keeping.follow_up(house, keeping.reload(house, row))
        announce(house, closed)
        return closed
    _store(house, row, made, {})
    after = refresh_status(house, row, judgement)
    announce(house, after)
    return after


def _store(
    house: House, row: ProposalRow, made: ReviewRow, changes: dict[str, Any], refused: Json | None = None
) -> None:
    """Stores a review, what it changes of the proposal, and what it refuses for good; if it is still open and no merge of it
    is under way."""
    changes = {**changes, "updated_at": house.time()}

    def store(connection: Connection) -> None:
        change_open(connection, row, **changes)
        charon_proposals.add_review(connection, row.project_id, row.proposal_id, made)
        if refused is not None:
            refusals.note_in(house, connection, row, refused)

    house.ledger.write(store)


def _authors_of_sides(house: House, passage: Passage, conflict: Json) -> set[str]:
    named = {
        party["changeset_id"]
        for side in ("left", "right")
        for party in conflict[side]
        if party["changeset_id"]
    }
    authors: set[str] = set()
    for changeset_id in named:
        parents = house.lethe.get_changeset(changeset_id)["parent_ids"]
        if parents:
            authors.update(house.lethe.authors(passage.project_id, changeset_id, parents[0]))
    return authors


def _check(verdict: str, comment: str, findings: Sequence[Mapping[str, Any]], severity: str | None) -> None:
    faults = []
    if verdict not in VERDICTS:
        faults.append(Fault(None, "verdict", f"one of {', '.join(VERDICTS)}"))
    elif verdict != "approve" and not comment.strip():
        faults.append(Fault(None, "comment", f"to {verdict.replace('_', ' ')}, say why"))
    if len(comment.encode("utf-8", "replace")) > MAX_COMMENT_BYTES:
        faults.append(Fault(None, "comment", f"at most {MAX_COMMENT_BYTES} bytes"))
    if severity is not None and severity not in SEVERITIES:
        faults.append(Fault(None, "severity", f"one of {', '.join(SEVERITIES)}"))
    if len(findings) > MAX_FINDINGS:
        faults.append(Fault(None, "findings", f"at most {MAX_FINDINGS}"))
    for place, item in enumerate(findings):
        faults += _finding_faults(place, item)
    if faults:
        raise Invalid("bad_review", "the review breaks a rule", faults)


def _finding_faults(place: int, item: Mapping[str, Any]) -> list[Fault]:
    name = f"findings[{place}]"
    faults = [Fault(None, f"{name}.{key[:64]}", "unknown key") for key in sorted(item.keys() - _FINDING_KEYS)]
    text = item.get("text")
    if (
        not isinstance(text, str)
        or not text.strip()
        or len(text.encode("utf-8", "replace")) > MAX_COMMENT_BYTES
    ):
        faults.append(Fault(None, f"{name}.text", f"a text of up to {MAX_COMMENT_BYTES} bytes"))
    if item.get("severity", "info") not in SEVERITIES:
        faults.append(Fault(None, f"{name}.severity", f"one of {', '.join(SEVERITIES)}"))
    ordinal = item.get("ordinal", 0)
    if not isinstance(ordinal, int) or isinstance(ordinal, bool):
        faults.append(Fault(None, f"{name}.ordinal", "a number"))
    for key in ("changeset_id", "memory_id"):
        if not isinstance(item.get(key, ""), str):
            faults.append(Fault(None, f"{name}.{key}", "a string"))
    return faults


def _finding(item: Mapping[str, Any], severity: str | None) -> Mapping[str, Any]:
    return {**item, "severity": item.get("severity") or severity or "info"}

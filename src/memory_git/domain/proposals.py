"""The decisions about a proposal: its states, what reviewers judged, which approvals count (6-charon, proposals). Pure.

1. `pending`, `approved` and `changes_requested` are open; `merged`, `rejected`, `canceled` and `expired` are final.
2. What was judged: project, target ref, base, head, selected ops, conflicts (type, identity, record digests), policy, and the
   difference that the merge would make. Not the reviews, and not the target's head: an unrelated merge changes nothing of it.
   A `stale_base` warning speaks of heads alone, and a finding about the target's own side of what was accepted before:
   neither is judged, neither blocks.
3. Each reviewer's latest review speaks for them. An approval counts for the judged digest that it saw, or for one that a
   rebase reached with the same outcome. An objection blocks until its reviewer lifts it, whatever moved meanwhile.
4. Only reviewers who may still review count: a revoked grant takes the approval and the objection with it.
5. The outcome is what was judged less base, head and selection: two heads with one outcome change memory alike.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from memory_git.domain.canonical import canonical_bytes, digest
from memory_git.domain.ops import PROVENANCE_KEYS
from memory_git.domain.project_policy import ProjectPolicy, policy_from_json

Status = Literal["pending", "approved", "changes_requested", "merged", "rejected", "canceled", "expired"]
ReviewVerdict = Literal["approve", "request_changes", "reject"]

KINDS = ("merge_request", "changeset", "memory", "checkpoint", "revert")
VERDICTS = ("approve", "request_changes", "reject")
OPEN_STATUSES = frozenset({"pending", "approved", "changes_requested"})
FINAL_STATUSES = frozenset({"merged", "rejected", "canceled", "expired"})
_LEAVES = frozenset({"rejected", "canceled", "expired"})
TRANSITIONS: dict[str, frozenset[str]] = {
    "pending": frozenset({"approved", "changes_requested"}) | _LEAVES,
    "approved": frozenset({"pending", "changes_requested", "merged"}) | _LEAVES,
    "changes_requested": frozenset({"pending", "approved"}) | _LEAVES,
    **{status: frozenset() for status in sorted(FINAL_STATUSES)},
}
STATUSES = tuple(TRANSITIONS)
CONFLICT_STATUS = {
    "merged": "superseded",
    "rejected": "rejected",
    "canceled": "canceled",
    "expired": "canceled",
}
"""What becomes of a proposal's open conflicts when it is closed."""

_NOT_JUDGED = frozenset(
    {"base_changeset_id", "target_changeset_id", "base_state_root", "target_state_root", "next"}
)
_PLACE_KEYS = frozenset({"op_ordinal", "changeset_id"})
_RECORD_KEYS = frozenset({"payload", "summary", "op_type", "target_event_id", "resulting_event_id"})
_UNJUDGED_CONFLICTS = frozenset({"stale_base"})


@dataclass(frozen=True, slots=True)
class Review:
    """One verdict on a proposal. `counts_for` is the judged digest that it saw, until a rebase carries it over."""

    review_id: str
    reviewer: str
    reviewer_kind: str
    verdict: str
    judged_digest: str
    counts_for: str
    created_at: str

    def to_json(self) -> dict[str, str]:
        """Gives what the proposal digest covers of a review: no text."""
        return {
            "review_id": self.review_id,
            "reviewer": self.reviewer,
            "reviewer_kind": self.reviewer_kind,
            "verdict": self.verdict,
            "judged_digest": self.judged_digest,
            "counts_for": self.counts_for,
            "created_at": self.created_at,
        }


@dataclass(frozen=True, slots=True)
class Missing:
    """One thing that still keeps a proposal from being merged: a stable code, and what to do."""

    code: str
    what: str

    def to_json(self) -> dict[str, str]:
        """Gives the wire form."""
        return {"code": self.code, "what": self.what}


def may_move(status: str, to: str) -> bool:
    """Decides whether a proposal may go from one status to another; staying is not a move."""
    return to in TRANSITIONS[status]


def concerns_merge(conflict: Mapping[str, Any]) -> bool:
    """Decides whether a conflict speaks of what the merge would bring (rule 2)."""
    return conflict["conflict_type"] not in _UNJUDGED_CONFLICTS and conflict["identity"].get("side") != "left"


def judged_view(
    *,
    project_id: str,
    target_ref: str,
    base: str | None,
    head: str,
    selected_ops: Sequence[Mapping[str, Any]] | None,
    conflicts: Iterable[Mapping[str, Any]],
    policy: ProjectPolicy,
    diff: Mapping[str, Any],
) -> dict[str, Any]:
    """Gives what a reviewer judges of a proposal (rule 2); the difference stands in it as its digest."""
    found = {item["identity_digest"]: _judged_conflict(item) for item in conflicts if concerns_merge(item)}
    return {
        "project_id": project_id,
        "target_ref": target_ref,
        "base_changeset_id": base,
        "head_changeset_id": head,
        "selected_ops": [dict(item) for item in selected_ops] if selected_ops is not None else None,
        "conflicts": [found[key] for key in sorted(found)],
        "policy": policy.to_json(),
        "diff_digest": digest(judged_diff(diff)),
    }


def judged_diff(diff: Mapping[str, Any]) -> dict[str, Any]:
    """Gives a semantic diff less all that a rebase or an unrelated merge changes: heads, roots, changesets, ordinals."""
    return {
        section: sorted((_judged_item(item) for item in value), key=canonical_bytes)
        if isinstance(value, list)
        else value
        for section, value in diff.items()
        if section not in _NOT_JUDGED and section != "unresolved_conflicts"
    }


def judged_digest(judged: Mapping[str, Any]) -> str:
    """Gives the digest that reviews bind to."""
    return digest(["memory_git/judged/v1", dict(judged)])


def outcome_digest(judged: Mapping[str, Any]) -> str:
    """Gives the digest of what would change, whatever the heads (rule 5)."""
    heads = ("base_changeset_id", "head_changeset_id", "selected_ops")
    return digest(
        ["memory_git/outcome/v1", {key: value for key, value in judged.items() if key not in heads}]
    )


def proposal_digest(judged: str, reviews: Iterable[Mapping[str, Any]]) -> str:
    """Gives the digest that the merge envelope carries: of the judged digest and the reviews, in their order."""
    return digest({"judged_digest": judged, "reviews": [dict(review) for review in reviews]})


def state_digest(proposal_state: Mapping[str, Any]) -> str:
    """Gives the proposal digest of `{judged, reviews}`, as Lethe recomputes it (5-lethe, protected merges)."""
    return proposal_digest(judged_digest(proposal_state["judged"]), proposal_state["reviews"])


def lone_merge_allowed(proposal_state: Mapping[str, Any]) -> bool:
    """Decides whether the policy inside `{judged, reviews}` lets an author review and merge."""
    return policy_from_json(proposal_state["judged"]["policy"]).lone_person_may_merge


def latest_reviews(reviews: Iterable[Review], eligible: Collection[str]) -> list[Review]:
    """Gives each eligible reviewer's latest review, by reviewer; `reviews` stand in the order they were made (rules 3, 4)."""
    latest = {review.reviewer: review for review in reviews if review.reviewer in eligible}
    return [latest[reviewer] for reviewer in sorted(latest)]


def counting_approvals(reviews: Iterable[Review], judged: str, eligible: Collection[str]) -> list[Review]:
    """Gives the approvals that count for a judged digest."""
    found = latest_reviews(reviews, eligible)
    return [review for review in found if review.verdict == "approve" and review.counts_for == judged]


def objections(reviews: Iterable[Review], eligible: Collection[str]) -> list[Review]:
    """Gives the objections that stand."""
    return [review for review in latest_reviews(reviews, eligible) if review.verdict != "approve"]


def open_status(
    reviews: Sequence[Review], judged: str, policy: ProjectPolicy, eligible: Collection[str]
) -> Status:
    """Gives the status that reviews give to an open proposal."""
    if objections(reviews, eligible):
        return "changes_requested"
    return "pending" if approvals_missing(reviews, judged, policy, eligible) else "approved"


def approvals_missing(
    reviews: Sequence[Review], judged: str, policy: ProjectPolicy, eligible: Collection[str]
) -> list[Missing]:
    """Gives what is missing of the approvals: their number, and a person's where the policy wants one."""
    approvals = counting_approvals(reviews, judged, eligible)
    missing = []
    if len(approvals) < policy.approvals_needed:
        had = sum(review.verdict == "approve" for review in latest_reviews(reviews, eligible))
        voided = (
            "; an earlier approval does not count: what it judged has changed" if had > len(approvals) else ""
        )
        lacking = policy.approvals_needed - len(approvals)
        noun = "approval" if lacking == 1 else "approvals"
        what = f"{lacking} more {noun} of what it now changes{voided}"
        missing.append(Missing("approval_missing", what))
    if policy.human_must_approve and not any(review.reviewer_kind == "human" for review in approvals):
        missing.append(Missing("human_approval_missing", "the policy wants a person's approval"))
    return missing


def merge_missing(
    status: str,
    reviews: Sequence[Review],
    judged: Mapping[str, Any],
    *,
    eligible: Collection[str],
    open_conflicts: Iterable[Mapping[str, Any]],
    diff: Mapping[str, Any],
) -> list[Missing]:
    """Gives all that keeps a proposal from being merged; empty when it may be."""
    if status in FINAL_STATUSES:
        return [Missing("proposal_closed", f"the proposal is {status}")]
    policy = policy_from_json(judged["policy"])
    missing = [
        Missing("changes_requested", f"{review.reviewer} asks for changes")
        for review in objections(reviews, eligible)
    ]
    missing += approvals_missing(reviews, judged_digest(judged), policy, eligible)
    blocking = blocking_conflicts(open_conflicts, policy)
    missing += [
        Missing("conflict_open", f"{item['conflict_type']} {item['conflict_id']} needs a recorded resolution")
        for item in blocking
    ]
    missing += [
        Missing("verification_missing", f"{memory_id} needs a verification")
        for memory_id in unverified(diff, policy)
    ]
    return missing


def blocking_conflicts(
    conflicts: Iterable[Mapping[str, Any]], policy: ProjectPolicy
) -> list[Mapping[str, Any]]:
    """Gives the conflicts without a resolution that block a merge."""
    return [
        item
        for item in conflicts
        if item["severity"] in policy.blocking_severities
        and item.get("status", "open") != "resolved"
        and concerns_merge(item)
    ]


def unverified(diff: Mapping[str, Any], policy: ProjectPolicy) -> list[str]:
    """Gives the memories of kinds that need a verification and would be accepted without one."""
    after = [
        item["after"]
        for section in diff.values()
        if isinstance(section, list)
        for item in section
        if item.get("after")
    ]
    found = {
        record["memory_id"]
        for record in after
        if record["kind"] in policy.verified_kinds and not record.get("verification")
    }
    return sorted(found)


def with_resolutions(
    conflicts: Iterable[Mapping[str, Any]], stored: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Gives found conflicts with the status of stored equals; a resolution of the same conflict at other heads carries over."""
    rows = list(stored)
    by_id = {row["conflict_id"]: row for row in rows}
    resolved = {row["identity_digest"]: row for row in rows if row.get("status") == "resolved"}
    found = []
    for conflict in conflicts:
        row = resolved.get(conflict["identity_digest"]) or by_id.get(conflict["conflict_id"]) or {}
        kept = {
            key: row[key] for key in ("status", "outcome", "resolution_note", "resolved_by") if key in row
        }
        found.append({"status": "open", **conflict, **kept})
    return found


def _judged_conflict(conflict: Mapping[str, Any]) -> dict[str, Any]:
    return {key: conflict[key] for key in ("conflict_type", "severity", "identity_digest")}


def _judged_item(item: Any) -> Any:
    """Gives an item of a diff without its place in history; records stand for themselves, op by op is left out."""
    if not isinstance(item, dict):
        return item
    left_out = _PLACE_KEYS | (_RECORD_KEYS if item.get("before") or item.get("after") else frozenset())
    shown = {key: value for key, value in item.items() if key not in left_out}
    if isinstance(shown.get("payload"), dict):
        shown["payload"] = {
            key: value for key, value in shown["payload"].items() if key not in PROVENANCE_KEYS
        }
    return shown

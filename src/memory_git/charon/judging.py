"""What a proposal would change right now, and what its reviewers have said of it (6-charon, proposals).

A proposal's work is its head, or for selected ops the candidate: a cherry-pick made when it was proposed, so that its
difference and conflicts can be judged before it is merged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory_git.charon.grants import policy_of
from memory_git.charon.house import House
from memory_git.charon.principals import eligible_reviewers
from memory_git.domain.policy import SERVICE_PRINCIPAL
from memory_git.domain.project_policy import ProjectPolicy
from memory_git.domain.proposals import (
    Missing,
    Review,
    judged_digest,
    judged_view,
    merge_missing,
    with_resolutions,
)
from memory_git.lethe.protocol import Json
from memory_git.storage import charon_proposals
from memory_git.storage.charon_proposals import ProposalRow, ReviewRow

MAX_CONFLICTS = 1000


@dataclass(frozen=True, slots=True)
class Judgement:
    """A proposal against its target as it stands; `conflicts` carry their status."""

    judged: Json
    digest: str
    target_head: str
    plan: Json
    conflicts: list[Json]
    policy: ProjectPolicy

    @property
    def authors(self) -> list[str]:
        """Who wrote what is proposed, the gate's own copies apart."""
        return [name for name in self.plan["authors"] if name != SERVICE_PRINCIPAL]


def judge(house: House, row: ProposalRow) -> Judgement:
    """Judges a proposal against the present head of its target; writes nothing."""
    target = house.lethe.resolve_ref(row.project_id, row.target_ref)["head_changeset_id"]
    return judge_plan(house, row, house.lethe.plan_merge(row.project_id, target, work_of(row)))


def judge_plan(house: House, row: ProposalRow, plan: Json) -> Judgement:
    """Judges a proposal by the plan that the store made of it."""
    policy = policy_of(house, row.project_id)
    resolved = house.lethe.list_conflicts(
        row.project_id, status="resolved", proposal_id=row.proposal_id, limit=MAX_CONFLICTS
    )
    judged = judged_view(
        project_id=row.project_id,
        target_ref=row.target_ref,
        base=row.base_changeset_id,
        head=row.head_changeset_id,
        selected_ops=row.selected_ops,
        conflicts=plan["conflicts"],
        policy=policy,
        diff=plan["diff"],
    )
    conflicts = with_resolutions(plan["conflicts"], resolved)
    return Judgement(judged, judged_digest(judged), plan["target_head"], plan, conflicts, policy)


def keep_conflicts(house: House, row: ProposalRow, judgement: Judgement) -> Judgement:
    """Stores the conflicts that were found, bound to the proposal, and gives the judgement with what is stored of them."""
    if not judgement.plan["conflicts"]:
        return judgement
    house.lethe.persist_conflicts(row.project_id, row.proposal_id, judgement.plan["conflicts"])
    return judge_plan(house, row, judgement.plan)


def work_of(row: ProposalRow) -> str:
    """Gives the changeset that holds what is proposed."""
    return row.candidate_changeset_id or row.head_changeset_id


def reviews_of(house: House, row: ProposalRow) -> list[ReviewRow]:
    """Gives a proposal's reviews with their text, in the order they were made."""
    with house.database.read() as connection:
        return charon_proposals.reviews(connection, row.project_id, row.proposal_id)


def as_reviews(rows: Sequence[ReviewRow]) -> list[Review]:
    """Gives what decides of reviews: no text."""
    return [
        Review(
            item.review_id,
            item.reviewer,
            item.reviewer_kind,
            item.verdict,
            item.judged_digest,
            item.counts_for,
            item.created_at,
        )
        for item in rows
    ]


def eligible(house: House, row: ProposalRow, reviews: Sequence[ReviewRow | Review]) -> frozenset[str]:
    """Gives the reviewers who may still review."""
    return eligible_reviewers(house, row.project_id, sorted({item.reviewer for item in reviews}))


def missing(house: House, row: ProposalRow, judgement: Judgement, reviews: Sequence[Review]) -> list[Missing]:
    """Gives all that keeps the proposal from being merged."""
    return merge_missing(
        row.status,
        reviews,
        judgement.judged,
        eligible=eligible(house, row, reviews),
        open_conflicts=judgement.conflicts,
        diff=judgement.plan["diff"],
    )


def shown_proposal(row: ProposalRow, reviews: Sequence[ReviewRow], conflict_ids: Sequence[str]) -> Json:
    """Gives a proposal in the wire form of 6-charon."""
    return {
        "proposal_id": row.proposal_id,
        "project_id": row.project_id,
        "kind": row.kind,
        "originator": row.originator,
        "title": row.title,
        "message": row.message,
        "source_ref": row.source_ref,
        "base_changeset_id": row.base_changeset_id,
        "head_changeset_id": row.head_changeset_id,
        "target_ref": row.target_ref,
        "target_head_at_creation": row.target_head_at_creation,
        "selected_ops": [dict(item) for item in row.selected_ops] if row.selected_ops is not None else None,
        "conflict_ids": list(conflict_ids),
        "findings": [dict(finding) for item in reviews for finding in item.findings],
        "status": row.status,
        "judged_digest": row.judged_digest,
        "kept_ref": row.kept_ref,
        "candidate_changeset_id": row.candidate_changeset_id,
        "merged_changeset_id": row.merged_changeset_id,
        "attestation_changeset_id": row.attestation_changeset_id,
        "closed_by": row.closed_by,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "expires_at": row.expires_at,
    }


def shown_review(item: ReviewRow) -> Mapping[str, Any]:
    """Gives a review in the wire form."""
    return {
        "review_id": item.review_id,
        "reviewer": item.reviewer,
        "reviewer_kind": item.reviewer_kind,
        "verdict": item.verdict,
        "comment": item.comment,
        "findings": [dict(finding) for finding in item.findings],
        "severity": item.severity,
        "judged_digest": item.judged_digest,
        "counts_for": item.counts_for,
        "created_at": item.created_at,
    }

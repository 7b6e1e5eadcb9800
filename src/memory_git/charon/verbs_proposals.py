"""The verbs of proposals: conflicts, reviews, merges, rewrites, as the faces call them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memory_git.charon import closing, merges, proposals, redactions, reviews, rewrites
from memory_git.charon.caller import Caller
from memory_git.charon.house import House
from memory_git.charon.proposals import Asked
from memory_git.domain.ids import SHARED_MAIN
from memory_git.lethe.protocol import Json


class ProposalVerbs:
    """What moves accepted memory."""

    _house: House

    def conflicts(
        self,
        caller: Caller,
        project: str | None = None,
        status: str | None = None,
        proposal_id: str | None = None,
    ) -> list[Json]:
        """Gives the stored conflicts."""
        return reviews.conflicts(self._house, caller, project, status, proposal_id)

    def resolve_conflict(
        self, caller: Caller, project: str | None, conflict_id: str, outcome: str, note: str
    ) -> Json:
        """Records how a conflict is settled: keep_left, keep_right, both, edited."""
        return reviews.resolve_conflict(self._house, caller, project, conflict_id, outcome, note)

    def propose(
        self,
        caller: Caller,
        project: str | None = None,
        *,
        message: str,
        title: str = "",
        target_ref: str = SHARED_MAIN,
        source_ref: str | None = None,
        head_changeset_id: str | None = None,
        base_changeset_id: str | None = None,
        kind: str = "merge_request",
        idempotency_key: str | None = None,
        selected_ops: Sequence[Mapping[str, Any]] | None = None,
        lifetime_s: int | None = None,
    ) -> Json:
        """Proposes a head, or some ops, for a protected ref."""
        asked = Asked(
            target_ref,
            source_ref,
            head_changeset_id,
            base_changeset_id,
            kind,
            title,
            message,
            selected_ops,
            lifetime_s,
        )
        return proposals.propose(self._house, caller, project, asked, idempotency_key)

    def proposals(
        self,
        caller: Caller,
        project: str | None = None,
        status: str | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> Json:
        """Gives `{proposals, next?}`, newest first; status `open` takes all open ones."""
        return proposals.proposals(self._house, caller, project, status, limit, after)

    def proposal(self, caller: Caller, proposal_id: str) -> Json:
        """Gives a proposal with diff, conflicts, reviews, `stale`, `current_head` and `verdict`."""
        return proposals.proposal(self._house, caller, proposal_id)

    def review(
        self,
        caller: Caller,
        proposal_id: str,
        verdict: str,
        comment: str = "",
        findings: Sequence[Mapping[str, Any]] = (),
        severity: str | None = None,
        judged_digest: str | None = None,
    ) -> Json:
        """Records approve, request_changes or reject."""
        return reviews.review(
            self._house,
            caller,
            proposal_id,
            verdict,
            comment=comment,
            findings=findings,
            severity=severity,
            judged_digest=judged_digest,
        )

    def merge(
        self,
        caller: Caller,
        proposal_id: str,
        idempotency_key: str | None = None,
        strategy: str | None = None,
        resolutions: Sequence[Any] | None = None,
    ) -> Json:
        """Merges an approved proposal."""
        return merges.merge(
            self._house,
            caller,
            proposal_id,
            idempotency_key=idempotency_key,
            strategy=strategy,
            resolutions=resolutions,
        )

    def cancel(self, caller: Caller, proposal_id: str) -> Json:
        """Withdraws an open proposal."""
        return closing.cancel(self._house, caller, proposal_id)

    def rebase(self, caller: Caller, proposal_id: str) -> Json:
        """Rebases a proposal onto the present head of its target."""
        return rewrites.rebase_proposal(self._house, caller, proposal_id)

    def rebase_ref(self, caller: Caller, project: str | None, ref_name: str, onto: str = SHARED_MAIN) -> Json:
        """Rebases a ref of the caller's into a new ref beside it."""
        return rewrites.rebase_ref(self._house, caller, project, ref_name, onto)

    def propose_revert(
        self,
        caller: Caller,
        project: str | None,
        changeset_id: str,
        target_ref: str = SHARED_MAIN,
        mainline: int | None = None,
        title: str = "",
        message: str | None = None,
        idempotency_key: str | None = None,
        from_changeset_id: str | None = None,
    ) -> Json:
        """Proposes to take an accepted changeset back, or all that was accepted after another one up to it."""
        return rewrites.propose_revert(
            self._house,
            caller,
            project,
            changeset_id,
            from_changeset_id=from_changeset_id,
            target_ref=target_ref,
            mainline=mainline,
            title=title,
            message=message or "",
            idempotency_key=idempotency_key,
        )

    def redact(self, caller: Caller, project: str | None, memory_id: str, reason: str) -> Json:
        """Erases a memory for good, in every version; takes the scope `memory.redact`."""
        return redactions.redact(self._house, caller, project, memory_id, reason)

    def redactions(self, caller: Caller, project: str | None = None) -> list[Json]:
        """Gives the redactions of a project, oldest first, to who may redact."""
        return redactions.redactions(self._house, caller, project)

"""The gate's verbs, as the faces call them; each module behind has the rules (6-charon).

Every verb asks who calls, whether they may, writes it into the ledger, and speaks to the store for the caller's audience.
`project` None is the token's project, or the only one granted; `ref` None is the caller's working branch, and for reads
accepted memory where there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from memory_git.charon import (
    audits,
    backup,
    commits,
    grants,
    history,
    merges,
    obols,
    principals,
    projects,
    proposals,
    reconcile,
    redactions,
    reviews,
    rewrites,
    sign_in,
)
from memory_git.charon.caller import LOCAL_OPERATOR, Caller
from memory_git.charon.commits import Work
from memory_git.charon.house import House
from memory_git.charon.opening import GateSettings, close_house, open_house, utc_now
from memory_git.charon.proposals import Asked
from memory_git.charon.sign_in import WebSession
from memory_git.domain.ids import SHARED_MAIN
from memory_git.lethe.feed import Feed, FeedEvent
from memory_git.lethe.protocol import Json

__all__ = ["Caller", "Gate", "GateSettings", "WebSession"]


class Gate:
    """One gate over one data directory; any number of threads may call it."""

    def __init__(self, house: House, settings: GateSettings) -> None:
        self._house = house
        self._settings = settings

    @classmethod
    def open(cls, settings: GateSettings, now: Callable[[], datetime] = utc_now) -> Gate:
        """Opens or creates what the settings name; refuses damaged, newer or insufficiently durable storage."""
        return cls(open_house(settings, now), settings)

    def close(self) -> None:
        """Writes what waits, and closes; a call under way may be refused."""
        close_house(self._house)

    @property
    def feed(self) -> Feed:
        """What moves and what is proposed, live."""
        return self._house.feed

    # who calls

    def authenticate(self, bearer: str, surface: str) -> Caller:
        """Gives the caller of a token; raises Unauthenticated."""
        return obols.authenticate(self._house, bearer, surface)

    def as_principal(self, principal_id: str, surface: str = "cli") -> Caller:
        """Gives a principal as the owner of the data directory may act in its name: its grants, and administration."""
        principals.require_principal(self._house, principal_id)
        identity = self._house.standings.of(principal_id, None)
        return obols.caller_of(identity, surface, local_operator=True)

    def local_operator(self, surface: str = "cli") -> Caller:
        """Gives the owner of the data directory in nobody's name: administration alone."""
        return obols.caller_of(self._house.standings.of(LOCAL_OPERATOR, None), surface, local_operator=True)

    def whoami(self, caller: Caller) -> Json:
        """Tells a caller who it is and what it may do."""
        return principals.whoami(self._house, caller)

    # projects, refs, history

    def list_projects(self, caller: Caller) -> list[str]:
        """Gives the projects that the caller may know of."""
        return history.list_projects(self._house, caller)

    def init_project(self, caller: Caller, project: str) -> Json:
        """Starts a project; repeatable."""
        return projects.init_project(self._house, caller, project)

    def status(self, caller: Caller, project: str | None = None) -> Json:
        """Tells where the working branch stands, and what is open."""
        return history.status(self._house, caller, project)

    def list_refs(self, caller: Caller, project: str | None = None) -> list[Json]:
        """Gives the readable refs."""
        return history.list_refs(self._house, caller, project)

    def create_branch(
        self,
        caller: Caller,
        project: str | None,
        ref_name: str,
        from_ref: str | None = None,
        head: str | None = None,
    ) -> Json:
        """Makes a ref, by default at accepted memory."""
        return commits.create_branch(self._house, caller, project, ref_name, from_ref, head)

    def log(
        self,
        caller: Caller,
        project: str | None = None,
        ref: str | None = None,
        limit: int = 20,
        before: str | None = None,
        first_parent: bool = False,
    ) -> Json:
        """Gives the ancestors of a ref's head, newest first, by pages."""
        return history.log(
            self._house, caller, project, ref, limit=limit, before=before, first_parent=first_parent
        )

    def show(self, caller: Caller, project: str | None, changeset_id: str) -> Json:
        """Gives one changeset."""
        return history.show(self._house, caller, project, changeset_id)

    def diff(self, caller: Caller, project: str | None, target: str, base: str | None = None) -> Json:
        """Gives the semantic diff base → target; each a changeset id or a ref's name."""
        return history.diff(self._house, caller, project, target, base)

    def commit(
        self,
        caller: Caller,
        project: str | None = None,
        *,
        message: str,
        ops: Sequence[Any],
        ref: str | None = None,
        expected_head: str | None = None,
        read_head: bool = False,
        parent_ids: Sequence[str] | None = None,
        idempotency_key: str | None = None,
        model: str | None = None,
        session_id: str | None = None,
        topic_id: str | None = None,
        context_manifest_id: str | None = None,
        evidence: Sequence[Any] | None = None,
        verification: Sequence[Any] | None = None,
    ) -> Json:
        """Commits to a ref of the caller's; gives `{changeset, ref, replayed}`."""
        work = Work(
            message,
            ops,
            model,
            session_id,
            topic_id,
            context_manifest_id,
            tuple(evidence or ()),
            tuple(verification or ()),
        )
        return commits.commit(
            self._house,
            caller,
            project,
            work,
            ref=ref,
            expected_head=expected_head,
            read_head=read_head,
            parent_ids=parent_ids,
            idempotency_key=idempotency_key,
        )

    # memory

    def memories(
        self,
        caller: Caller,
        project: str | None = None,
        ref: str | None = None,
        head: str | None = None,
        limit: int = 50,
        after: str | None = None,
        kind: str | None = None,
        status: str | None = None,
    ) -> Json:
        """Gives the memories at a head, by pages."""
        return history.memories(
            self._house, caller, project, ref, head, limit=limit, after=after, kind=kind, status_is=status
        )

    def memory(
        self,
        caller: Caller,
        project: str | None,
        memory_id: str,
        ref: str | None = None,
        head: str | None = None,
    ) -> Json:
        """Gives one memory at a head, with its proof."""
        return history.memory(self._house, caller, project, memory_id, ref, head)

    def memory_history(
        self,
        caller: Caller,
        project: str | None,
        memory_id: str,
        ref: str | None = None,
        head: str | None = None,
    ) -> Json:
        """Gives the versions of one memory, newest first."""
        return history.memory_history(self._house, caller, project, memory_id, ref, head)

    def search(
        self,
        caller: Caller,
        project: str | None,
        query: str,
        ref: str | None = None,
        head: str | None = None,
        limit: int = 20,
    ) -> Json:
        """Gives the active memories with a word of the query, best first."""
        return history.search(self._house, caller, project, query, ref, head, limit)

    def context(
        self,
        caller: Caller,
        project: str | None = None,
        ref: str | None = None,
        head: str | None = None,
        query: str | None = None,
        limit: int = 20,
        max_tokens: int | None = None,
        session_id: str | None = None,
        create_manifest: bool = False,
        now: str | None = None,
    ) -> Json:
        """Gives the accepted memory for a prompt at a head."""
        asked = {
            "query": query,
            "limit": limit,
            "max_tokens": max_tokens,
            "session_id": session_id,
            "now": now,
        }
        return history.context(
            self._house, caller, project, ref, head, create_manifest=create_manifest, asked=asked
        )

    def manifest(self, caller: Caller, manifest_id: str) -> Json:
        """Gives a manifest to its principal, or an administrator."""
        return history.manifest(self._house, caller, manifest_id, reproduce=False)

    def reproduce(self, caller: Caller, manifest_id: str) -> Json:
        """Rebuilds what a manifest pins, for its principal, or an administrator."""
        return history.manifest(self._house, caller, manifest_id, reproduce=True)

    # conflicts and proposals

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
        return proposals.cancel(self._house, caller, proposal_id)

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
    ) -> Json:
        """Proposes to take an accepted changeset back."""
        return rewrites.propose_revert(
            self._house,
            caller,
            project,
            changeset_id,
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

    # administration

    def add_principal(
        self,
        caller: Caller,
        principal_id: str,
        kind: str,
        display_name: str = "",
        profile: str = "propose",
        actor_ids: Sequence[str] | None = None,
        scopes: Sequence[str] = (),
    ) -> Json:
        """Adds a principal; without actors it owns one of its own name."""
        return principals.add_principal(
            self._house,
            caller,
            principal_id,
            kind,
            display_name=display_name,
            profile=profile,
            actor_ids=actor_ids,
            scopes=scopes,
        )

    def principals(self, caller: Caller) -> list[Json]:
        """Gives all principals."""
        return principals.principals(self._house, caller)

    def disable_principal(self, caller: Caller, principal_id: str, disabled: bool = True) -> Json:
        """Disables a principal at once, or enables it again."""
        return principals.disable_principal(self._house, caller, principal_id, disabled)

    def add_actor(self, caller: Caller, principal_id: str, actor_id: str) -> Json:
        """Gives an actor to a principal."""
        return principals.add_actor(self._house, caller, principal_id, actor_id)

    def mint_obol(
        self,
        caller: Caller,
        principal_id: str,
        expires_s: int | None = None,
        scopes: Sequence[str] | None = None,
        project: str | None = None,
    ) -> Json:
        """Makes a token, shown once as `token`."""
        return obols.mint_obol(self._house, caller, principal_id, expires_s, scopes, project)

    def obols(self, caller: Caller, principal_id: str | None = None) -> list[Json]:
        """Gives tokens, without their secrets."""
        return obols.obols(self._house, caller, principal_id)

    def revoke_obol(self, caller: Caller, obol_id: str) -> Json:
        """Revokes a token at once."""
        return obols.revoke_obol(self._house, caller, obol_id)

    def grant(
        self,
        caller: Caller,
        principal_id: str,
        project: str,
        scopes: Sequence[str] | None = None,
        refs: Sequence[str] = (),
    ) -> Json:
        """Grants scopes on a project; "*" grants reading of all."""
        return grants.grant(self._house, caller, principal_id, project, scopes=scopes, refs=refs)

    def revoke_grant(self, caller: Caller, principal_id: str, project: str) -> Json:
        """Takes a grant away at once."""
        return grants.revoke_grant(self._house, caller, principal_id, project)

    def grants(
        self, caller: Caller, principal_id: str | None = None, project: str | None = None
    ) -> list[Json]:
        """Gives grants."""
        return grants.grants(self._house, caller, principal_id, project)

    def project_policy(
        self, caller: Caller, project: str | None = None, changes: Mapping[str, Any] | None = None
    ) -> Json:
        """Gives a project's policy, after setting the fields of `changes`."""
        return grants.project_policy(self._house, caller, project, changes)

    def mint_sign_in(self, caller: Caller, principal_id: str) -> Json:
        """Makes a one-time sign-in code: `{code, principal_id, expires_at}`."""
        return sign_in.mint_sign_in(self._house, caller, principal_id)

    def use_sign_in(self, code: str) -> str:
        """Uses a code up and gives a session's cookie."""
        return sign_in.use_sign_in(self._house, code)

    def open_session(self, caller: Caller) -> str:
        """Gives a session's cookie to a caller that showed a token."""
        return sign_in.open_session(self._house, caller)

    def web_session(self, cookie: str) -> WebSession:
        """Gives the session of a cookie; raises Unauthenticated."""
        return sign_in.web_session(self._house, cookie)

    def session_caller(self, cookie: str) -> Caller:
        """Gives the caller of a cookie; raises Unauthenticated."""
        return sign_in.web_session(self._house, cookie).caller

    def end_session(self, cookie: str) -> None:
        """Ends a session."""
        sign_in.end_session(self._house, cookie)

    # audit and operations

    def ledger_tail(self, caller: Caller, project: str | None = None, limit: int = 50) -> list[Json]:
        """Gives a chain's last rows; without a project, of the calls that name none."""
        return audits.ledger_tail(self._house, caller, project, limit)

    def ledger_verify(self, caller: Caller, project: str | None = None) -> Json:
        """Recomputes a chain, or all: `{ok, checked, faults}`."""
        return audits.ledger_verify(self._house, caller, project)

    def ledger_export(self, caller: Caller, project: str | None = None) -> Iterator[Json]:
        """Gives all rows of a chain, or of all chains."""
        return audits.ledger_export(self._house, caller, project)

    def reconcile(self, caller: Caller, repair: bool = False) -> Json:
        """Compares gate and store: `{ok, faults, repaired, checked, recovery_lifted}`; only a clean report ends recovery."""
        report = reconcile.reconcile(self._house, caller, repair=repair)
        lifted = report["ok"] and self._settings.marker.exists()
        if lifted:
            self._settings.marker.unlink()
        return {**report, "recovery_lifted": lifted}

    def backup(self, caller: Caller, out: Path, with_keys: bool = False) -> Json:
        """Writes both databases and a manifest into a new folder, while serving."""
        return backup.backup(
            self._house, caller, out, self._settings.data_dir / "keys" if with_keys else None
        )

    def ready(self) -> Json:
        """Says that both databases can be used, or raises Unavailable."""
        return projects.ready(self._house)

    def figures(self, caller: Caller) -> dict[str, float]:
        """Gives the gate's counters, to an administrator."""
        return projects.figures(self._house, caller)

    def may_see(self, caller: Caller, event: FeedEvent) -> bool:
        """Decides whether a caller may learn of an event of the feed."""
        return projects.may_see(self._house, caller, event)

"""A running Charon, asked by its HTTP API with the verbs of the gate.

The token alone says who calls: each verb takes a caller as the gate's does, and leaves it to the server. What needs the data
directory itself is refused as `local_only`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memory_git.charon.caller import Caller
from memory_git.client.remote_administration import RemoteAdministration
from memory_git.client.road import Json, part_of
from memory_git.domain.errors import NotAllowed
from memory_git.domain.ids import SHARED_MAIN
from memory_git.domain.policy import Grant, Standing


class RemoteGate(RemoteAdministration):
    """The verbs of `charon.gate.Gate` that a client may ask."""

    # who calls

    def as_operator(self) -> Caller:
        """Gives the caller that the token is; whether it administers is for the server to say."""
        me = self._whoami()
        grants = [
            Grant(item["project"], frozenset(item["scopes"]), tuple(item["refs"])) for item in me["grants"]
        ]
        standing = Standing(
            me["principal_id"], me["kind"], frozenset(me["scopes"]), tuple(grants), frozenset(me["actor_ids"])
        )
        return Caller(me["principal_id"], me["kind"], standing, "http", default_project=me["default_project"])

    def as_principal(self, principal_id: str) -> Caller:
        """Gives the caller that the token is, if it is that principal."""
        caller = self.as_operator()
        if caller.principal_id != principal_id:
            raise NotAllowed(
                "denied", f"denied: CHARON_TOKEN is {caller.principal_id}'s; --as names another principal"
            )
        return caller

    def whoami(self, _caller: Caller) -> Json:
        """Tells who the token is."""
        return self._whoami()

    # projects, refs, history

    def list_projects(self, _caller: Caller) -> list[str]:
        """Gives the projects, sorted."""
        return list(self._road.get("/projects")["projects"])

    def init_project(self, _caller: Caller, project: str) -> Json:
        """Starts a project; repeatable."""
        return self._road.post("/projects", project=project)

    def list_refs(self, _caller: Caller, project: str | None = None) -> list[Json]:
        """Gives the refs."""
        return list(self._road.get(self._in(project, "refs"))["refs"])

    def memories(self, _caller: Caller, project: str | None = None, **asked: Any) -> Json:
        """Gives a page of memories at a head."""
        return self._road.get(self._in(project, "memories"), **asked)

    def commit(self, _caller: Caller, project: str | None = None, **work: Any) -> Json:
        """Commits to a ref."""
        return self._road.post(self._in(project, "changesets"), **work)

    def status(self, _caller: Caller, project: str | None = None) -> Json:
        """Tells where the working branch stands, and what is open."""
        return self._road.get(self._in(project, "status"))

    def create_branch(
        self,
        _caller: Caller,
        project: str | None,
        ref_name: str,
        from_ref: str | None = None,
        head: str | None = None,
    ) -> Json:
        """Makes a ref, by default at accepted memory."""
        return self._road.post(self._in(project, "refs"), ref_name=ref_name, from_ref=from_ref, head=head)

    def log(
        self,
        _caller: Caller,
        project: str | None = None,
        ref: str | None = None,
        limit: int = 20,
        before: str | None = None,
        first_parent: bool = False,
    ) -> Json:
        """Gives the ancestors of a ref's head, newest first, by pages."""
        asked = {"ref": ref, "limit": limit, "before": before, "first_parent": first_parent}
        return self._road.get(self._in(project, "changesets"), **asked)

    def show(self, _caller: Caller, project: str | None, changeset_id: str) -> Json:
        """Gives one changeset."""
        return self._road.get(self._in(project, f"changesets/{part_of(changeset_id)}"))

    def diff(
        self,
        _caller: Caller,
        project: str | None,
        target: str,
        base: str | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Json:
        """Gives the semantic diff base to target, whole or by pages."""
        return self._road.get(self._in(project, "diff"), target=target, base=base, limit=limit, after=after)

    def memory(
        self,
        _caller: Caller,
        project: str | None,
        memory_id: str,
        ref: str | None = None,
        head: str | None = None,
    ) -> Json:
        """Gives one memory at a head, with its proof."""
        return self._road.get(self._in(project, "memories/one"), id=memory_id, ref=ref, head=head)

    def memory_history(
        self,
        _caller: Caller,
        project: str | None,
        memory_id: str,
        ref: str | None = None,
        head: str | None = None,
    ) -> Json:
        """Gives the versions of one memory, newest first."""
        return self._road.get(self._in(project, "memories/history"), id=memory_id, ref=ref, head=head)

    def search(self, _caller: Caller, project: str | None, query: str, **asked: Any) -> Json:
        """Gives the active memories with a word of the query, best first."""
        return self._road.get(self._in(project, "search"), query=query, **asked)

    def context(self, _caller: Caller, project: str | None = None, **asked: Any) -> Json:
        """Gives the accepted memory for a prompt at a head."""
        return self._road.post(self._in(project, "context"), **asked)

    def manifest(self, _caller: Caller, manifest_id: str) -> Json:
        """Gives a manifest."""
        return self._road.get(f"/manifests/{part_of(manifest_id)}")

    def reproduce(self, _caller: Caller, manifest_id: str) -> Json:
        """Rebuilds what a manifest pins."""
        return self._road.get(f"/manifests/{part_of(manifest_id)}/reproduce")

    # conflicts and proposals

    def conflicts(
        self,
        _caller: Caller,
        project: str | None = None,
        status: str | None = None,
        proposal_id: str | None = None,
    ) -> list[Json]:
        """Gives the stored conflicts."""
        found = self._road.get(self._in(project, "conflicts"), status=status, proposal_id=proposal_id)
        return list(found["conflicts"])

    def resolve_conflict(
        self, _caller: Caller, project: str | None, conflict_id: str, outcome: str, note: str
    ) -> Json:
        """Records how a conflict is settled."""
        path = self._in(project, f"conflicts/{part_of(conflict_id)}/resolve")
        return dict(self._road.post(path, outcome=outcome, note=note)["resolved"])

    def propose(self, _caller: Caller, project: str | None = None, **asked: Any) -> Json:
        """Makes a proposal."""
        return self._road.post(self._in(project, "proposals"), **asked)

    def proposals(
        self,
        _caller: Caller,
        project: str | None = None,
        status: str | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> Json:
        """Gives a page of proposals."""
        return self._road.get(self._in(project, "proposals"), status=status, limit=limit, after=after)

    def proposal(self, _caller: Caller, proposal_id: str) -> Json:
        """Gives a proposal."""
        return self._road.get(_proposal(proposal_id))

    def review(
        self,
        _caller: Caller,
        proposal_id: str,
        verdict: str,
        comment: str = "",
        findings: Sequence[Mapping[str, Any]] = (),
        severity: str | None = None,
        judged_digest: str | None = None,
    ) -> Json:
        """Records a review."""
        body = {"verdict": verdict, "comment": comment, "findings": [dict(item) for item in findings]}
        path = _proposal(proposal_id, "review")
        return self._road.post(path, **body, severity=severity, judged_digest=judged_digest)

    def merge(
        self,
        _caller: Caller,
        proposal_id: str,
        idempotency_key: str | None = None,
        strategy: str | None = None,
        resolutions: Sequence[Any] | None = None,
    ) -> Json:
        """Merges an approved proposal."""
        ops = None if resolutions is None else list(resolutions)
        path = _proposal(proposal_id, "merge")
        body = {"idempotency_key": idempotency_key, "strategy": strategy, "resolutions": ops}
        return self._road.post(path, **body)

    def cancel(self, _caller: Caller, proposal_id: str) -> Json:
        """Takes a proposal back."""
        return self._road.post(_proposal(proposal_id, "cancel"))

    def rebase(self, _caller: Caller, proposal_id: str) -> Json:
        """Rebases a proposal."""
        return self._road.post(_proposal(proposal_id, "rebase"))

    def rebase_ref(
        self, _caller: Caller, project: str | None, ref_name: str, onto: str = SHARED_MAIN
    ) -> Json:
        """Rebases a ref into a new one beside it."""
        return self._road.post(self._in(project, "refs/rebase"), ref_name=ref_name, onto=onto)

    def propose_revert(
        self,
        _caller: Caller,
        project: str | None,
        changeset_id: str,
        target_ref: str = SHARED_MAIN,
        mainline: int | None = None,
        title: str = "",
        message: str | None = None,
        idempotency_key: str | None = None,
        from_changeset_id: str | None = None,
    ) -> Json:
        """Proposes to take a changeset back, or a range."""
        body = {"changeset_id": changeset_id, "target_ref": target_ref, "mainline": mainline, "title": title}
        more = {
            "message": message,
            "idempotency_key": idempotency_key,
            "from_changeset_id": from_changeset_id,
        }
        return self._road.post(self._in(project, "reverts"), **body, **more)

    def redact(self, _caller: Caller, project: str | None, memory_id: str, reason: str) -> Json:
        """Erases a memory for good."""
        return self._road.post(self._in(project, "redactions"), memory_id=memory_id, reason=reason)

    def redactions(self, _caller: Caller, project: str | None = None) -> list[Json]:
        """Gives the redactions."""
        return list(self._road.get(self._in(project, "redactions"))["redactions"])


def _proposal(proposal_id: str, act: str | None = None) -> str:
    return f"/proposals/{part_of(proposal_id)}{f'/{act}' if act else ''}"

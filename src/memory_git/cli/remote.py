"""A running Charon, asked by its HTTP API with the verbs of the gate, for commands with CHARON_URL and CHARON_TOKEN.

The token alone says who calls: each verb takes a caller as the gate's does, and leaves it to the server. What needs the data
directory itself is refused as `local_only`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote

from memory_git.charon.caller import Caller
from memory_git.cli.remote_road import Json, Road
from memory_git.domain.errors import Invalid, NotAllowed
from memory_git.domain.ids import SHARED_MAIN
from memory_git.domain.policy import Grant, Standing


class RemoteGate:
    """The verbs of `charon.gate.Gate` that a client may ask."""

    def __init__(self, url: str, token: str) -> None:
        self._road = Road(url, token)
        self._me: Json | None = None

    def close(self) -> None:
        """Closes the connection."""
        self._road.close()

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

    def _whoami(self) -> Json:
        if self._me is None:
            self._me = self._road.get("/whoami")
        return self._me

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
        path = self._in(project, f"conflicts/{_part(conflict_id)}/resolve")
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

    # administration

    def add_principal(
        self,
        _caller: Caller,
        principal_id: str,
        kind: str,
        display_name: str = "",
        profile: str = "propose",
        actor_ids: Sequence[str] | None = None,
        scopes: Sequence[str] = (),
    ) -> Json:
        """Adds a principal."""
        body = {"principal_id": principal_id, "kind": kind, "display_name": display_name, "profile": profile}
        actors = None if actor_ids is None else list(actor_ids)
        return self._road.post("/principals", **body, actor_ids=actors, scopes=list(scopes))

    def principals(self, _caller: Caller) -> list[Json]:
        """Gives all principals."""
        return list(self._road.get("/principals")["principals"])

    def disable_principal(self, _caller: Caller, principal_id: str, disabled: bool = True) -> Json:
        """Disables a principal, or enables it again."""
        act = "disable" if disabled else "enable"
        return self._road.post(f"/principals/{_part(principal_id)}/{act}")

    def mint_obol(
        self,
        _caller: Caller,
        principal_id: str,
        expires_s: int | None = None,
        scopes: Sequence[str] | None = None,
        project: str | None = None,
    ) -> Json:
        """Makes a token."""
        some = None if scopes is None else list(scopes)
        body = {"principal_id": principal_id, "expires_s": expires_s, "scopes": some, "project": project}
        return self._road.post("/obols", **body)

    def obols(self, _caller: Caller, principal_id: str | None = None) -> list[Json]:
        """Gives the tokens, without their secrets."""
        return list(self._road.get("/obols", principal_id=principal_id)["obols"])

    def revoke_obol(self, _caller: Caller, obol_id: str) -> Json:
        """Revokes a token."""
        return self._road.post(f"/obols/{_part(obol_id)}/revoke")

    def grant(
        self,
        _caller: Caller,
        principal_id: str,
        project: str,
        scopes: Sequence[str] | None = None,
        refs: Sequence[str] = (),
    ) -> Json:
        """Grants scopes on a project."""
        some = None if scopes is None else list(scopes)
        body = {"principal_id": principal_id, "project": project, "scopes": some, "refs": list(refs)}
        return self._road.post("/grants", **body)

    def revoke_grant(self, _caller: Caller, principal_id: str, project: str) -> Json:
        """Takes a grant away."""
        return self._road.post("/grants/revoke", principal_id=principal_id, project=project)

    def grants(
        self, _caller: Caller, principal_id: str | None = None, project: str | None = None
    ) -> list[Json]:
        """Gives the grants."""
        return list(self._road.get("/grants", principal_id=principal_id, project=project)["grants"])

    def project_policy(
        self, _caller: Caller, project: str | None = None, changes: Mapping[str, Any] | None = None
    ) -> Json:
        """Gives a project's policy, after setting the fields of `changes`."""
        path = self._in(project, "policy")
        return self._road.get(path) if changes is None else self._road.patch(path, changes=dict(changes))

    # the audit

    def ledger_tail(self, _caller: Caller, project: str | None = None, limit: int = 50) -> list[Json]:
        """Gives a chain's last rows."""
        return list(self._road.get("/ledger", project=project, limit=limit)["rows"])

    def ledger_verify(self, _caller: Caller, project: str | None = None) -> Json:
        """Recomputes a chain, or all."""
        return self._road.get("/ledger/verification", project=project)

    def ledger_export(self, _caller: Caller, project: str | None = None) -> Iterator[Json]:
        """Is for the data directory alone."""
        _local_only()

    def reconcile(self, _caller: Caller, repair: bool = False, without_journal: bool = False) -> Json:
        """Is for the data directory alone."""
        _local_only()

    def oauth_clients(self, _caller: Caller) -> list[Json]:
        """Is for the data directory alone."""
        _local_only()

    def oauth_connections(self, _caller: Caller) -> list[Json]:
        """Is for the data directory alone."""
        _local_only()

    def oauth_disconnect(self, _caller: Caller, grant_id: str) -> Json:
        """Is for the data directory alone."""
        _local_only()

    def oauth_disable_client(self, _caller: Caller, client_id: str) -> Json:
        """Is for the data directory alone."""
        _local_only()

    def secrets(self, _caller: Caller) -> list[Json]:
        """Is for the data directory alone."""
        _local_only()

    def rotate_secret(self, _caller: Caller, name: str) -> Json:
        """Is for the data directory alone."""
        _local_only()

    def retire_secret(self, _caller: Caller, name: str, key_id: str, end_tokens: bool = False) -> Json:
        """Is for the data directory alone."""
        _local_only()

    def backup(self, _caller: Caller, out: Path, with_keys: bool = False) -> Json:
        """Is for the data directory alone."""
        _local_only()

    def _in(self, project: str | None, rest: str) -> str:
        """Gives a path within a project: the one named, the token's, or the only one granted."""
        return f"/projects/{_part(project or self._own_project())}/{rest}"

    def _own_project(self) -> str:
        me = self._whoami()
        granted = [item["project"] for item in me["grants"] if item["project"] != "*"]
        if me["default_project"] is None and len(granted) != 1:
            raise Invalid(
                "project_needed", "name a project: none is the default, and not exactly one is granted"
            )
        return str(me["default_project"] or granted[0])


def _proposal(proposal_id: str, act: str | None = None) -> str:
    return f"/proposals/{_part(proposal_id)}{f'/{act}' if act else ''}"


def _part(name: str) -> str:
    """Gives a name as one segment of a path."""
    return quote(name, safe="")


def _local_only() -> NoReturn:
    raise Invalid("local_only", "this works on the data directory: give --data-dir, or unset CHARON_URL")

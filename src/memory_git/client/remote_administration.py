"""The verbs of administration and audit of a running Charon, and those that need its data directory, which are refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from memory_git.charon.caller import Caller
from memory_git.client.road import Json, Road, part_of
from memory_git.domain.errors import Invalid


class RemoteAdministration:
    """Who may do what, and what was done."""

    def __init__(self, url: str, token: str) -> None:
        self._road = Road(url, token)
        self._me: Json | None = None

    def close(self) -> None:
        """Closes the connection."""
        self._road.close()

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
        return self._road.post(f"/principals/{part_of(principal_id)}/{act}")

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
        return self._road.post(f"/obols/{part_of(obol_id)}/revoke")

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

    def _whoami(self) -> Json:
        if self._me is None:
            self._me = self._road.get("/whoami")
        return self._me

    def _in(self, project: str | None, rest: str) -> str:
        """Gives a path within a project: the one named, the token's, or the only one granted."""
        return f"/projects/{part_of(project or self._own_project())}/{rest}"

    def _own_project(self) -> str:
        me = self._whoami()
        granted = [item["project"] for item in me["grants"] if item["project"] != "*"]
        if me["default_project"] is None and len(granted) != 1:
            raise Invalid(
                "project_needed", "name a project: none is the default, and not exactly one is granted"
            )
        return str(me["default_project"] or granted[0])


def _local_only() -> NoReturn:
    raise Invalid("local_only", "this works on the data directory: give --data-dir, or unset CHARON_URL")

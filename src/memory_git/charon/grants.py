"""Grants on projects, and what a project asks of its merges (6-charon, grants; per-project policy)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memory_git.charon.caller import Caller
from memory_git.charon.house import House
from memory_git.charon.journal import GRANT_REVOKED, GRANT_SET
from memory_git.charon.principals import require_principal
from memory_git.charon.standings import scopes_of
from memory_git.domain.errors import Fault, Invalid, NotFound
from memory_git.domain.ids import check_project_id
from memory_git.domain.policy import READ_SCOPES, SCOPES
from memory_git.domain.project_policy import ProjectPolicy, policy_from_json
from memory_git.storage import charon_identity, charon_proposals
from memory_git.storage.charon_identity import GrantRow

MAX_PATTERNS = 64


def grant(
    house: House,
    caller: Caller,
    principal_id: str,
    project: str,
    *,
    scopes: Sequence[str] | None,
    refs: Sequence[str],
) -> dict[str, Any]:
    """Grants a principal scopes on a project, by default all it has; in place of an earlier grant. "*" grants reading."""
    request: dict[str, Any] = {"principal": principal_id, "scopes": scopes, "refs": list(refs)}
    with house.administers(caller, "grant", project, **request) as passage:
        held = scopes_of(require_principal(house, principal_id))
        wildcard = project == "*"
        asked = frozenset(scopes) if scopes is not None else (held & READ_SCOPES if wildcard else held)
        _check(project, asked, refs)
        passage.ids.update(principal_id=principal_id, project_id=project)
        row = GrantRow(
            project, principal_id, tuple(sorted(asked)), tuple(refs), passage.principal_id, house.time()
        )
        house.journal.change(
            lambda connection: charon_identity.set_grant(connection, row),
            GRANT_SET,
            project_id=project,
            principal_id=principal_id,
            scopes=list(row.scopes),
            refs=list(row.refs),
            granted_by=row.granted_by,
        )
        return _shown(row)


def revoke_grant(house: House, caller: Caller, principal_id: str, project: str) -> dict[str, Any]:
    """Takes a grant away; the principal's next call is decided without it."""
    with house.administers(caller, "revoke_grant", project, principal=principal_id) as passage:
        if not house.journal.change(
            lambda connection: charon_identity.revoke_grant(connection, principal_id, project),
            GRANT_REVOKED,
            principal_id=principal_id,
            project_id=project,
        ):
            raise NotFound("not_found", "no such grant")
        passage.ids.update(principal_id=principal_id, project_id=project)
        return {"principal_id": principal_id, "project": project, "revoked": True}


def grants(
    house: House, caller: Caller, principal_id: str | None, project: str | None
) -> list[dict[str, Any]]:
    """Gives the grants, of one principal or on one project where named."""
    with house.administers(caller, "grants", project, reads=True, principal=principal_id):
        with house.database.read() as connection:
            rows = charon_identity.grants(connection, principal_id=principal_id, project_id=project)
        return [_shown(row) for row in rows]


def project_policy(
    house: House, caller: Caller, project: str | None, changes: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Gives a project's policy; with changes, sets these fields first, which takes an administrator."""
    if changes is None:
        with house.reads(caller, "project_policy", project, "memory.read") as passage:
            return policy_of(house, passage.project_id).to_json()
    with house.administers(caller, "set_project_policy", project, changes=dict(changes)) as passage:
        project_id = check_project_id(passage.project_id)
        policy = policy_of(house, project_id).changed(changes)
        house.ledger.write(
            lambda connection: charon_proposals.set_policy(
                connection, project_id, policy.to_json(), passage.principal_id, house.time()
            )
        )
        return policy.to_json()


def policy_of(house: House, project_id: str) -> ProjectPolicy:
    """Gives the policy of a project; one that was never set is the default."""
    with house.database.read() as connection:
        stored = charon_proposals.policy(connection, project_id)
    return policy_from_json(stored or {})


def _check(project: str, scopes: frozenset[str], refs: Sequence[str]) -> None:
    faults = [Fault(None, "scopes", f"no scope {scope[:64]}") for scope in sorted(scopes - frozenset(SCOPES))]
    if project == "*":
        faults += [
            Fault(None, "scopes", f"a wildcard grant is read-only: {scope} needs an exact one")
            for scope in sorted((scopes & frozenset(SCOPES)) - READ_SCOPES)
        ]
    else:
        check_project_id(project)
    if not scopes:
        faults.append(Fault(None, "scopes", "at least one"))
    if len(refs) > MAX_PATTERNS or not all(pattern.startswith("refs/") for pattern in refs):
        faults.append(Fault(None, "refs", f"up to {MAX_PATTERNS} patterns that start with refs/"))
    if faults:
        raise Invalid("bad_grant", "the grant breaks a rule", faults)


def _shown(row: GrantRow) -> dict[str, Any]:
    return {
        "principal_id": row.principal_id,
        "project": row.project_id,
        "scopes": sorted(row.scopes),
        "refs": list(row.refs),
        "granted_by": row.granted_by,
        "created_at": row.created_at,
    }

"""Principals and the actors they own (6-charon, principals)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memory_git.charon.caller import LOCAL_OPERATOR, Caller
from memory_git.charon.house import House
from memory_git.charon.journal import PRINCIPAL_DISABLED, PRINCIPAL_ENABLED
from memory_git.domain.errors import Clash, Fault, Invalid, NotFound, Refused
from memory_git.domain.ids import is_component
from memory_git.domain.policy import PROFILES, SCOPES, SERVICE_PRINCIPAL, Denied, Grant, Standing, may
from memory_git.storage import charon_identity, charon_sessions
from memory_git.storage.charon_identity import PrincipalRow
from memory_git.storage.sqlite import Connection

KINDS = ("human", "agent", "service")
RESERVED = frozenset({SERVICE_PRINCIPAL, LOCAL_OPERATOR, "system", "legacy"})
MAX_NAME_BYTES = 1024


def add_principal(
    house: House,
    caller: Caller,
    principal_id: str,
    kind: str,
    *,
    display_name: str,
    profile: str,
    actor_ids: Sequence[str] | None,
    scopes: Sequence[str],
) -> dict[str, Any]:
    """Adds a principal with its actors (by default one of its own name); gives it."""
    request: dict[str, Any] = {
        "principal": principal_id,
        "kind": kind,
        "display_name": display_name,
        "profile": profile,
        "actors": None if actor_ids is None else list(actor_ids),
        "scopes": list(scopes),
    }
    with house.administers(caller, "add_principal", **request) as passage:
        actors = (principal_id,) if actor_ids is None else tuple(actor_ids)
        _check(principal_id, kind, display_name, profile, actors=actors, scopes=scopes)
        passage.ids["principal_id"] = principal_id
        row = PrincipalRow(
            principal_id, kind, display_name or principal_id, profile, tuple(scopes), False, house.time()
        )

        def add(connection: Connection) -> None:
            if not charon_identity.add_principal(connection, row):
                raise Clash("principal_exists", f"there is a principal {principal_id} already")
            for actor_id in actors:
                _own(connection, actor_id, principal_id)

        house.ledger.write(add)
        return _shown(row, actors)


def principals(house: House, caller: Caller) -> list[dict[str, Any]]:
    """Gives all principals, by id."""
    with house.administers(caller, "principals", reads=True), house.database.read() as connection:
        rows = [row for row in charon_identity.principals(connection) if row.principal_id != LOCAL_OPERATOR]
        return [_shown(row, charon_identity.actors(connection, row.principal_id)) for row in rows]


def disable_principal(house: House, caller: Caller, principal_id: str, disabled: bool) -> dict[str, Any]:
    """Disables a principal, with its tokens and sessions, at once; or enables it again."""
    with house.administers(caller, "disable_principal", principal=principal_id, disabled=disabled) as passage:
        require_principal(house, principal_id)
        passage.ids["principal_id"] = principal_id

        def disable(connection: Connection) -> None:
            charon_identity.set_disabled(connection, principal_id, disabled)
            if disabled:
                charon_sessions.end_sessions_of(connection, principal_id)

        kind = PRINCIPAL_DISABLED if disabled else PRINCIPAL_ENABLED
        house.journal.change(disable, kind, principal_id=principal_id)
        return show_principal(house, principal_id)


def add_actor(house: House, caller: Caller, principal_id: str, actor_id: str) -> dict[str, Any]:
    """Gives an actor to a principal; gives the principal."""
    with house.administers(caller, "add_actor", principal=principal_id, actor=actor_id) as passage:
        require_principal(house, principal_id)
        if not is_component(actor_id):
            raise Invalid("bad_principal", "an actor id is one component of a ref name", [_actor_fault()])
        passage.ids.update(principal_id=principal_id, actor_id=actor_id)
        house.ledger.write(lambda connection: _own(connection, actor_id, principal_id))
        return show_principal(house, principal_id)


def whoami(house: House, caller: Caller) -> dict[str, Any]:
    """Tells a caller who it is and what it may do; asks nothing of the store."""
    identity = house.identify(caller)
    actor = identity.actors[0] if identity.actors else None
    house.ledger.read(house.call(caller, "whoami", None, {}), "shown", {})
    return {
        "principal_id": identity.principal.principal_id,
        "kind": identity.principal.kind,
        "display_name": identity.principal.display_name,
        "profile": identity.principal.profile,
        "actor_ids": list(identity.actors),
        "scopes": sorted(identity.standing.scopes),
        "grants": [_grant(grant) for grant in identity.standing.grants],
        "default_project": caller.default_project,
        "working_ref": f"refs/agents/{actor}/main" if actor else None,
        "recovery_readonly": house.recovery_readonly,
    }


def require_principal(house: House, principal_id: str) -> PrincipalRow:
    """Gives a principal that people made, or raises NotFound."""
    with house.database.read() as connection:
        row = charon_identity.principal(connection, principal_id)
    if row is None or principal_id in RESERVED:
        raise NotFound("not_found", "no such principal")
    return row


def show_principal(house: House, principal_id: str) -> dict[str, Any]:
    """Gives a principal in the wire form."""
    row = require_principal(house, principal_id)
    with house.database.read() as connection:
        return _shown(row, charon_identity.actors(connection, principal_id))


def eligible_reviewers(house: House, project_id: str, principal_ids: Sequence[str]) -> frozenset[str]:
    """Gives those of some principals who may review in a project now."""
    return frozenset(name for name in principal_ids if _may_review(house, project_id, name))


def _may_review(house: House, project_id: str, principal_id: str) -> bool:
    try:
        standing: Standing = house.standings.of(principal_id, None).standing
    except Refused:
        return False
    return not isinstance(may(standing, "memory.review", project_id), Denied)


def _own(connection: Connection, actor_id: str, principal_id: str) -> None:
    if charon_identity.add_actor(connection, actor_id, principal_id) != principal_id:
        raise Clash("actor_taken", f"the actor {actor_id} belongs to another principal")


def _check(
    principal_id: str,
    kind: str,
    display_name: str,
    profile: str,
    *,
    actors: Sequence[str],
    scopes: Sequence[str],
) -> None:
    faults = []
    if not is_component(principal_id) or principal_id in RESERVED:
        faults.append(Fault(None, "principal_id", "one component of a ref name, and no reserved name"))
    if kind not in KINDS:
        faults.append(Fault(None, "kind", f"one of {', '.join(KINDS)}"))
    if profile not in PROFILES:
        faults.append(Fault(None, "profile", f"one of {', '.join(PROFILES)}"))
    if len(display_name.encode("utf-8", "replace")) > MAX_NAME_BYTES:
        faults.append(Fault(None, "display_name", f"at most {MAX_NAME_BYTES} bytes"))
    faults += [Fault(None, "scopes", f"no scope {scope[:64]}") for scope in scopes if scope not in SCOPES]
    faults += [_actor_fault() for actor in actors if not is_component(actor)]
    if faults:
        raise Invalid("bad_principal", "the principal breaks a rule", faults)


def _actor_fault() -> Fault:
    return Fault(None, "actor_ids", "an actor id is one component of a ref name")


def _shown(row: PrincipalRow, actors: Sequence[str]) -> dict[str, Any]:
    return {
        "principal_id": row.principal_id,
        "kind": row.kind,
        "display_name": row.display_name,
        "profile": row.profile,
        "scopes": sorted(row.scopes),
        "actor_ids": list(actors),
        "disabled": row.disabled,
        "created_at": row.created_at,
    }


def _grant(grant: Grant) -> dict[str, Any]:
    return {"project": grant.project_id, "scopes": sorted(grant.scopes), "refs": list(grant.refs)}

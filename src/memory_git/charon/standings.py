"""What holds for a principal and its token right now (6-charon, principals).

A revoked token, a disabled principal or a changed grant takes effect with the next call: what is remembered is kept only
while the identity epoch in the database stands still.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from memory_git.domain.errors import Unauthenticated
from memory_git.domain.policy import PROFILES, Denied, Grant, Standing, may
from memory_git.domain.times import parse_time
from memory_git.storage import charon_identity, charon_oauth
from memory_git.storage.charon_identity import ObolRow, PrincipalRow
from memory_git.storage.connection import Connection
from memory_git.storage.engine import Database

MAX_REMEMBERED = 10_000
OAUTH_MARK = "oauth-"
"""What the name of an OAuth client's token begins with, where an obol's id would stand."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A principal, its token if it came with one, and what both may do; `actors` has the default one first."""

    principal: PrincipalRow
    obol: ObolRow | None
    actors: tuple[str, ...]
    standing: Standing


class Standings:
    """Reads identities, and remembers them for one epoch."""

    def __init__(self, database: Database, now: Callable[[], datetime]) -> None:
        self._database = database
        self._now = now
        self._remembered: tuple[int, dict[tuple[str, str | None], Identity | None]] = (0, {})

    def by_token(self, obol_id: str) -> Identity | None:
        """Gives the identity of a token, whatever its state; None for an unknown one."""
        return self._find("", obol_id)

    def of(self, principal_id: str, obol_id: str | None) -> Identity:
        """Gives the identity of a caller; raises Unauthenticated when the principal or the token no longer holds."""
        found = self._find(principal_id, obol_id)
        if found is None or found.principal.principal_id != principal_id:
            raise Unauthenticated("unauthenticated", "the principal is not known")
        self.require_valid(found)
        return found

    def require_valid(self, identity: Identity) -> None:
        """Raises Unauthenticated for a disabled principal, a revoked or an expired token."""
        obol = identity.obol
        if identity.principal.disabled:
            raise Unauthenticated("unauthenticated", "the principal is disabled")
        if obol is not None and obol.revoked_at is not None:
            raise Unauthenticated("unauthenticated", "the token was revoked")
        expires_at = parse_time(obol.expires_at) if obol is not None else None
        if expires_at is not None and expires_at <= self._now():
            raise Unauthenticated("unauthenticated", "the token has expired")

    def _find(self, principal_id: str, obol_id: str | None) -> Identity | None:
        key = (principal_id, obol_id)
        with self._database.read() as connection:
            epoch = charon_identity.epoch(connection)
            remembered_epoch, remembered = self._remembered
            if epoch != remembered_epoch or len(remembered) > MAX_REMEMBERED:
                remembered = {}
                self._remembered = (epoch, remembered)
            if key not in remembered:
                remembered[key] = _load(connection, principal_id, obol_id)
            return remembered[key]


def scopes_of(principal: PrincipalRow) -> frozenset[str]:
    """Gives all scopes that a principal may hold: its profile's, and those given one by one."""
    return PROFILES[principal.profile] | frozenset(principal.scopes)


def _load(connection: Connection, principal_id: str, obol_id: str | None) -> Identity | None:
    if obol_id is not None and obol_id.startswith(OAUTH_MARK):
        return _load_client(connection, obol_id)
    obol = charon_identity.obol(connection, obol_id) if obol_id is not None else None
    if obol_id is not None and obol is None:
        return None
    name = obol.principal_id if obol is not None else principal_id
    principal = charon_identity.principal(connection, name)
    if principal is None:
        return None
    actors = tuple(charon_identity.actors(connection, name))
    scopes = scopes_of(principal)
    standing = Standing(
        name,
        principal.kind,
        scopes & frozenset(obol.scopes) if obol is not None and obol.scopes is not None else scopes,
        tuple(
            Grant(row.project_id, frozenset(row.scopes), row.refs)
            for row in charon_identity.grants(connection, principal_id=name)
        ),
        frozenset(actors),
        frozenset(charon_identity.created_refs(connection, name)),
    )
    return Identity(principal, obol, actors, standing)


def _load_client(connection: Connection, name: str) -> Identity | None:
    """Gives the identity of an OAuth client: its agent, with what the consent says as far as the person still has it."""
    token = charon_oauth.token(connection, name.removeprefix(OAUTH_MARK))
    consent = charon_oauth.grant(connection, token.grant_id) if token is not None else None
    if token is None or consent is None:
        return None
    client = charon_oauth.client(connection, consent.client_id)
    agent, person = (_load(connection, who, None) for who in (consent.principal_id, consent.granted_by))
    if agent is None or person is None or client is None:
        return None
    held = frozenset(
        scope
        for scope in frozenset(token.scopes) & agent.standing.scopes
        if not isinstance(may(person.standing, scope, consent.project_id), Denied)
    )
    revoked_at = consent.revoked_at or client.disabled_at
    obol = ObolRow(
        name,
        consent.principal_id,
        token.digest,
        token.key_id,
        tuple(sorted(held)),
        consent.project_id,
        token.created_at,
        token.expires_at,
        None,
        revoked_at,
    )
    principal = replace(agent.principal, disabled=agent.principal.disabled or person.principal.disabled)
    grants = (Grant(consent.project_id, held),) if held else ()
    standing = replace(agent.standing, scopes=held, grants=grants)
    return Identity(principal, obol, agent.actors, standing)

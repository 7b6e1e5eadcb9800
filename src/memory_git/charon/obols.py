"""Tokens: `obol_<id>_<secret>` (6-charon, tokens).

1. The secret has 256 random bits and is shown once. Stored is HMAC-SHA256 under the token key, which is this gateway's
   own: a token of another gateway does not verify here.
2. Digests are compared in constant time, also for an id that isn't known.
3. Only who shows the right secret learns that a token was revoked or has expired.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from memory_git.charon.caller import Caller
from memory_git.charon.house import House
from memory_git.charon.journal import TOKEN_REVOKED
from memory_git.charon.ledger import Call
from memory_git.charon.principals import require_principal
from memory_git.charon.standings import Identity, scopes_of
from memory_git.domain.canonical import hmac_hex
from memory_git.domain.envelope import MergeKeys
from memory_git.domain.errors import Fault, Invalid, NotFound, Unauthenticated
from memory_git.domain.ids import check_project_id
from memory_git.domain.times import format_time
from memory_git.storage import charon_identity
from memory_git.storage.charon_identity import ObolRow

MAX_LIFETIME_S = 10 * 366 * 24 * 3600
_TOKEN = re.compile(r"obol_([0-9a-f]{16})_([0-9a-f]{64})")
_UNKNOWN = "the token is absent or not known"


def recognise(house: House, bearer: str, surface: str) -> tuple[Caller, Identity]:
    """Gives the caller of a token with what holds for it now, or raises Unauthenticated."""
    found = _TOKEN.fullmatch(bearer) if isinstance(bearer, str) else None
    obol_id, secret = found.groups() if found else ("0" * 16, "0" * 64)
    identity = house.standings.by_token(obol_id)
    if not (_verifies(house.keys.token, identity, obol_id, secret) and identity is not None and found):
        raise _unauthenticated(house, surface, None, _UNKNOWN)
    try:
        house.standings.require_valid(identity)
    except Unauthenticated as refusal:
        raise _unauthenticated(house, surface, identity, refusal.message) from None
    if not house.recovery_readonly:
        house.ledger.token_used(obol_id)
    return caller_of(identity, surface), identity


def caller_of(identity: Identity, surface: str, *, local_operator: bool = False) -> Caller:
    """Gives the caller that an identity is at a face."""
    obol = identity.obol
    return Caller(
        identity.principal.principal_id,
        identity.principal.kind,
        identity.standing,
        surface,
        obol.obol_id if obol else None,
        obol.default_project if obol else None,
        identity.actors[0] if identity.actors else None,
        local_operator,
    )


def mint_obol(
    house: House,
    caller: Caller,
    principal_id: str,
    expires_s: int | None,
    scopes: Sequence[str] | None,
    project: str | None,
) -> dict[str, Any]:
    """Makes a token and gives its record with `token`, which is never shown again."""
    with house.administers(
        caller, "mint_obol", principal=principal_id, scopes=scopes, project=project
    ) as passage:
        principal = require_principal(house, principal_id)
        _check(scopes, expires_s, scopes_of(principal))
        obol_id, secret = secrets.token_hex(8), secrets.token_hex(32)
        passage.ids["obol_id"] = obol_id
        key_id = house.keys.token.signing_key_id
        now = house.now()
        row = ObolRow(
            obol_id,
            principal_id,
            _digest(house.keys.token, key_id, obol_id, secret),
            key_id,
            None if scopes is None else tuple(scopes),
            None if project is None else check_project_id(project),
            format_time(now),
            None if expires_s is None else format_time(now + timedelta(seconds=expires_s)),
            None,
            None,
        )
        house.ledger.write(lambda connection: charon_identity.add_obol(connection, row))
        return {**_shown(row), "token": f"obol_{obol_id}_{secret}"}


def obols(house: House, caller: Caller, principal_id: str | None) -> list[dict[str, Any]]:
    """Gives the tokens of a principal, or of all, without their secrets."""
    with (
        house.administers(caller, "obols", reads=True, principal=principal_id),
        house.database.read() as connection,
    ):
        return [_shown(row) for row in charon_identity.obols(connection, principal_id)]


def revoke_obol(house: House, caller: Caller, obol_id: str) -> dict[str, Any]:
    """Revokes a token; the next call with it is refused. A second time changes nothing."""
    with house.administers(caller, "revoke_obol", obol_id=obol_id) as passage:
        house.journal.change(
            lambda connection: charon_identity.revoke_obol(connection, obol_id, house.time()),
            TOKEN_REVOKED,
            obol_id=obol_id,
        )
        with house.database.read() as connection:
            row = charon_identity.obol(connection, obol_id)
        if row is None:
            raise NotFound("not_found", "no such token")
        passage.ids["obol_id"] = obol_id
        return _shown(row)


def _check(scopes: Sequence[str] | None, expires_s: int | None, held: frozenset[str]) -> None:
    faults = [
        Fault(None, "scopes", f"the principal does not hold {scope}")
        for scope in sorted({*(scopes or ())} - held)
    ]
    if expires_s is not None and not 0 < expires_s <= MAX_LIFETIME_S:
        faults.append(Fault(None, "expires_s", f"seconds from 1 to {MAX_LIFETIME_S}"))
    if faults:
        raise Invalid("bad_obol", "the token can't be made", faults)


def _verifies(keys: MergeKeys, identity: Identity | None, obol_id: str, secret: str) -> bool:
    row = identity.obol if identity is not None else None
    key_id = row.key_id if row is not None else keys.signing_key_id
    return hmac.compare_digest(
        _digest(keys, key_id, obol_id, secret), row.digest if row is not None else "0" * 64
    )


def _digest(keys: MergeKeys, key_id: str, obol_id: str, secret: str) -> str:
    key = keys.secret(key_id)
    # A token whose key was dropped verifies under none; a digest is made all the same, in the same time.
    return hmac_hex(key or secrets.token_bytes(32), f"obol/v1\0{obol_id}\0{secret}".encode())


def _unauthenticated(house: House, surface: str, identity: Identity | None, reason: str) -> Unauthenticated:
    principal_id = identity.principal.principal_id if identity else ""
    obol_id = identity.obol.obol_id if identity and identity.obol else None
    digest = house.ledger.request_digest({})
    house.ledger.deny(Call("", principal_id, obol_id, surface, "authenticate", None, digest), reason)
    return Unauthenticated("unauthenticated", reason)


def _shown(row: ObolRow) -> dict[str, Any]:
    return {
        "obol_id": row.obol_id,
        "principal_id": row.principal_id,
        "scopes": None if row.scopes is None else sorted(row.scopes),
        "default_project": row.default_project,
        "created_at": row.created_at,
        "expires_at": row.expires_at,
        "last_used_at": row.last_used_at,
        "revoked_at": row.revoked_at,
    }

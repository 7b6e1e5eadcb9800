"""Codes and tokens of OAuth clients (OAuth 2.1, token endpoint; RFC 7009; 6-charon, tokens).

1. A code lives a minute, and is good once, for its client, its redirect address and the verifier of its challenge. Shown again, it
   ends all that came of it.
2. An access token lives for a quarter of an hour, a refresh token for thirty days and one use: its successor comes with the next access
   token. One that is used again was stolen on the way, from the client or by it: the consent ends, with every token.
3. Stored are HMAC-SHA256 digests under the gate's oauth key. Whoever holds no right secret is told nothing but `invalid_grant`.
4. A token may do what the consent says, as far as the person who gave it may do it now, and is good at the face it is for.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, TypeVar
from urllib.parse import urlsplit

from memory_git.charon.caller import Caller
from memory_git.charon.house import House
from memory_git.charon.ledger import Call
from memory_git.charon.obols import caller_of
from memory_git.charon.standings import OAUTH_MARK, Identity
from memory_git.domain.canonical import hmac_hex, sha256_hex
from memory_git.domain.errors import Invalid, Unauthenticated, Unavailable
from memory_git.domain.times import format_time
from memory_git.storage import charon_oauth
from memory_git.storage.charon_oauth import GrantRow, TokenRow
from memory_git.storage.connection import Connection

T = TypeVar("T")
CODE_LIFETIME = timedelta(minutes=1)
ACCESS_LIFETIME = timedelta(minutes=15)
REFRESH_LIFETIME = timedelta(days=30)
REPLAYS_SEEN = timedelta(days=1)
AUDIENCES = {"": "any", "/": "any", "/mcp": "mcp", "/api/v1": "api"}
"""What a resource's path says of the face at which a token may be shown."""
_PREFIXES = {"access": "oat", "refresh": "ort"}
_TOKEN = re.compile(r"(oat|ort)_([0-9a-f]{16})_([0-9a-f]{64})")
_VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")
_FACES = {"mcp": ("mcp",), "api": ("http",), "any": ("mcp", "http")}


def is_access_token(bearer: str) -> bool:
    """Says whether a bearer is of the form of an OAuth access token."""
    return bearer.startswith("oat_")


def new_code() -> str:
    """Gives a fresh code of 256 random bits."""
    return secrets.token_urlsafe(32)


def digest_of(kind: str, secret: str) -> str:
    """Gives what is stored of a code or of a request's name."""
    return sha256_hex(f"oauth-{kind}/v1\0".encode() + secret.encode("utf-8", "replace"))


def audience_of(resource: str | None, base: str) -> str:
    """Gives the face that a resource indicator names (RFC 8707); without one it is the MCP endpoint."""
    if resource is None:
        return "mcp"
    parts, own = urlsplit(resource), urlsplit(base)
    path = parts.path.rstrip("/") if parts.path != "/" else ""
    if (
        (parts.scheme, parts.netloc.lower()) != (own.scheme, own.netloc.lower())
        or path not in AUDIENCES
        or parts.query
    ):
        raise Invalid("invalid_target", "the resource is not one of this server")
    return AUDIENCES[path]


def exchange(house: House, params: Mapping[str, str], base: str) -> dict[str, Any]:
    """Answers a token request; raises Invalid with the code of RFC 6749."""
    if house.recovery_readonly:
        raise Unavailable("recovery_readonly", "no token can be issued until recovery is over")
    if "client_secret" in params or not params.get("client_id"):
        raise Invalid("invalid_client", "clients are public: client_id, and no secret")
    kind = params.get("grant_type", "")
    if kind == "authorization_code":
        return _of_code(house, params, base)
    if kind == "refresh_token":
        return _of_refresh(house, params, base)
    raise Invalid("unsupported_grant_type", "grant_type is authorization_code or refresh_token")


def revoke(house: House, params: Mapping[str, str]) -> None:
    """Ends a token; a refresh token with its whole consent's tokens. What is unknown stays so (RFC 7009)."""
    if house.recovery_readonly:
        raise Unavailable("recovery_readonly", "no token can be revoked until recovery is over")
    found = _found(house, params.get("token", ""), None)
    if found is None:
        return
    token, grant = found
    if grant.client_id != params.get("client_id"):
        raise Invalid("invalid_client", "the token is another client's")

    def end(connection: Connection) -> None:
        if token.kind == "access":
            charon_oauth.drop_token(connection, token.token_id)
        else:
            charon_oauth.revoke_grant(connection, grant.grant_id, house.time())

    _recorded(house, grant, "oauth_revoke", end)


def recognise(house: House, bearer: str, surface: str) -> tuple[Caller, Identity]:
    """Gives the caller of an access token at a face with what holds for it now, or raises Unauthenticated."""
    found = _found(house, bearer, "access")
    if found is None:
        raise _unauthenticated(house, surface, "", "the token is absent or not known")
    token, grant = found
    if surface not in _FACES[grant.audience]:
        raise _unauthenticated(
            house, surface, grant.principal_id, "the token is for another face of this server"
        )
    identity = house.standings.by_token(OAUTH_MARK + token.token_id)
    if identity is None:
        raise _unauthenticated(house, surface, grant.principal_id, "the token is absent or not known")
    try:
        house.standings.require_valid(identity)
    except Unauthenticated as refusal:
        raise _unauthenticated(house, surface, grant.principal_id, refusal.message) from None
    return caller_of(identity, surface), identity


def _of_code(house: House, params: Mapping[str, str], base: str) -> dict[str, Any]:
    digest, now = digest_of("code", params.get("code", "")), house.time()
    with house.database.read() as connection:
        code = charon_oauth.code(connection, digest)
        grant = charon_oauth.grant(connection, code.grant_id) if code is not None else None
    if code is None or grant is None or grant.client_id != params["client_id"]:
        raise _invalid_grant("the code is not known")
    if code.used_at is not None:
        _end(house, grant, "oauth_code_replayed")
        raise _invalid_grant("the code was used before: everything that came of it is revoked")
    if code.expires_at <= now or grant.revoked_at is not None:
        raise _invalid_grant("the code has expired")
    if params.get("redirect_uri", code.redirect_uri) != code.redirect_uri:
        raise _invalid_grant("the redirect address is another than that of the request")
    if not _proves(params.get("code_verifier", ""), code.code_challenge):
        raise _invalid_grant("the code verifier does not fit")
    _require_audience(params, base, grant)

    def issue(connection: Connection) -> dict[str, Any]:
        if not charon_oauth.use_code(connection, digest, now):
            raise _invalid_grant("the code was used before")
        return _issued(house, connection, grant, grant.scopes)

    return _recorded(house, grant, "oauth_token", issue)


def _of_refresh(house: House, params: Mapping[str, str], base: str) -> dict[str, Any]:
    found, now = _found(house, params.get("refresh_token", ""), "refresh"), house.time()
    if found is None or found[1].client_id != params["client_id"]:
        raise _invalid_grant("the refresh token is not known")
    token, grant = found
    if token.used_at is not None:
        _end(house, grant, "oauth_refresh_replayed")
        raise _invalid_grant("the refresh token was used before: everything that came of it is revoked")
    if token.expires_at <= now or grant.revoked_at is not None:
        raise _invalid_grant("the refresh token has expired")
    scopes = frozenset(params.get("scope", "").split()) or frozenset(token.scopes)
    if not scopes <= frozenset(grant.scopes):
        raise Invalid("invalid_scope", "a refresh widens nothing: ask the person anew")
    _require_audience(params, base, grant)
    _require_standing(house, grant)

    def issue(connection: Connection) -> dict[str, Any]:
        if not charon_oauth.use_refresh(connection, token.token_id, now):
            raise _invalid_grant("the refresh token was used before")
        return _issued(house, connection, grant, tuple(sorted(scopes)))

    return _recorded(house, grant, "oauth_refresh", issue)


def _issued(house: House, connection: Connection, grant: GrantRow, scopes: tuple[str, ...]) -> dict[str, Any]:
    now = house.now()
    charon_oauth.drop_expired(connection, format_time(now), format_time(now - REPLAYS_SEEN))
    access = _new_token(house, connection, grant, "access", scopes, ACCESS_LIFETIME)
    refresh = _new_token(house, connection, grant, "refresh", grant.scopes, REFRESH_LIFETIME)
    return {
        "access_token": access,
        "token_type": "Bearer",
        "expires_in": int(ACCESS_LIFETIME.total_seconds()),
        "refresh_token": refresh,
        "scope": " ".join(scopes),
    }


def _new_token(
    house: House,
    connection: Connection,
    grant: GrantRow,
    kind: str,
    scopes: tuple[str, ...],
    lifetime: timedelta,
) -> str:
    token_id, secret, key_id = secrets.token_hex(8), secrets.token_hex(32), house.keys.oauth.signing_key_id
    now = house.now()
    charon_oauth.add_token(
        connection,
        TokenRow(
            token_id,
            grant.grant_id,
            kind,
            _keyed(house, key_id, kind, token_id, secret),
            key_id,
            scopes,
            format_time(now),
            format_time(now + lifetime),
        ),
    )
    return f"{_PREFIXES[kind]}_{token_id}_{secret}"


def _found(house: House, token: str, kind: str | None) -> tuple[TokenRow, GrantRow] | None:
    """Gives the row of a token whose secret is right, whatever its state, and its consent."""
    named = _TOKEN.fullmatch(token)
    if named is None:
        return None
    prefix, token_id, secret = named.groups()
    with house.database.read() as connection:
        row = charon_oauth.token(connection, token_id)
        grant = charon_oauth.grant(connection, row.grant_id) if row is not None else None
    if (
        row is None
        or grant is None
        or _PREFIXES[row.kind] != prefix
        or (kind is not None and row.kind != kind)
    ):
        return None
    holds = hmac.compare_digest(_keyed(house, row.key_id, row.kind, token_id, secret), row.digest)
    return (row, grant) if holds else None


def _keyed(house: House, key_id: str, kind: str, token_id: str, secret: str) -> str:
    key = house.keys.oauth.secret(key_id) or secrets.token_bytes(32)
    return hmac_hex(key, f"oauth-{kind}/v1\0{token_id}\0{secret}".encode())


def _proves(verifier: str, challenge: str) -> bool:
    if not _VERIFIER.fullmatch(verifier):
        return False
    made = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=")
    return hmac.compare_digest(made, challenge.encode())


def _require_audience(params: Mapping[str, str], base: str, grant: GrantRow) -> None:
    if "resource" in params and audience_of(params["resource"], base) != grant.audience:
        raise Invalid("invalid_target", "the resource is another than that which the person was asked for")


def _require_standing(house: House, grant: GrantRow) -> None:
    """Refuses a refresh where the person who consented, or the agent, may not act any more."""
    try:
        house.standings.of(grant.granted_by, None)
        house.standings.of(grant.principal_id, None)
    except Unauthenticated:
        raise _invalid_grant("who consented, or the agent, may not act any more") from None


def _end(house: House, grant: GrantRow, route: str) -> None:
    if grant.revoked_at is None:
        _recorded(
            house,
            grant,
            route,
            lambda connection: charon_oauth.revoke_grant(connection, grant.grant_id, house.time()),
        )


def _recorded(house: House, grant: GrantRow, route: str, work: Callable[[Connection], T]) -> T:
    """Does a work in one transaction with its intent and outcome in the ledger."""
    digest = house.ledger.request_digest({"grant_id": grant.grant_id})
    call = Call(grant.project_id, grant.principal_id, None, "oauth", route, grant.project_id, digest)
    ids = {"grant_id": grant.grant_id, "client_id": grant.client_id}

    def together(connection: Connection, intent_seq: int) -> T:
        done = work(connection)
        house.ledger.settle_in(connection, call, intent_seq, "done", ids)
        return done

    return house.ledger.intend(call, ids, together)


def _invalid_grant(why: str) -> Invalid:
    return Invalid("invalid_grant", why)


def _unauthenticated(house: House, surface: str, principal_id: str, reason: str) -> Unauthenticated:
    digest = house.ledger.request_digest({})
    house.ledger.deny(Call("", principal_id, None, surface, "authenticate", None, digest), reason)
    return Unauthenticated("unauthenticated", reason)

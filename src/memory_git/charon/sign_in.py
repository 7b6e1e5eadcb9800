"""One-time sign-in links and web sessions (6-charon, web page).

A link lives ten minutes and works once. Codes and cookies have 256 random bits; stored are digests of them.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from memory_git.charon.caller import Caller
from memory_git.charon.house import House
from memory_git.charon.ledger import Call
from memory_git.charon.obols import caller_of
from memory_git.charon.principals import require_principal
from memory_git.domain.canonical import sha256_hex
from memory_git.domain.errors import NotAllowed, Unauthenticated, Unavailable
from memory_git.domain.times import format_time
from memory_git.storage import charon_sessions
from memory_git.storage.charon_sessions import SessionRow
from memory_git.storage.sqlite import Connection

LINK_LIFETIME = timedelta(minutes=10)
SESSION_LIFETIME = timedelta(hours=12)


@dataclass(frozen=True, slots=True, repr=False)
class WebSession:
    """A session that holds: its caller, and the secret that its forms carry."""

    caller: Caller
    csrf_token: str

    def require_csrf(self, token: str) -> None:
        """Refuses a form that this session's page did not make."""
        if not hmac.compare_digest(token.encode("utf-8", "replace"), self.csrf_token.encode()):
            raise NotAllowed("bad_csrf", "the form is out of date: load the page again")


def mint_sign_in(house: House, caller: Caller, principal_id: str) -> dict[str, Any]:
    """Makes a link's code for a principal: `{code, principal_id, expires_at}`."""
    with house.administers(caller, "mint_sign_in", principal=principal_id) as passage:
        require_principal(house, principal_id)
        passage.ids["principal_id"] = principal_id
        code = secrets.token_urlsafe(32)
        now = house.now()
        at, expires_at = format_time(now), format_time(now + LINK_LIFETIME)
        house.ledger.write(
            lambda connection: charon_sessions.add_sign_in(
                connection, _digest(code), principal_id, at, expires_at
            )
        )
        return {"code": code, "principal_id": principal_id, "expires_at": expires_at}


def use_sign_in(house: House, code: str) -> str:
    """Uses a code up and gives the value of a new session's cookie."""
    if house.recovery_readonly:
        raise Unavailable("recovery_readonly", "links can't be used up until recovery is over: use a token")
    cookie = secrets.token_urlsafe(32)
    now = house.now()

    def use(connection: Connection) -> str | None:
        principal_id = charon_sessions.use_sign_in(connection, _digest(code), format_time(now))
        if principal_id is not None:
            row = SessionRow(
                principal_id, None, secrets.token_urlsafe(32), format_time(now + SESSION_LIFETIME)
            )
            charon_sessions.add_session(connection, _digest(cookie), row, format_time(now))
        return principal_id

    principal_id = house.ledger.write(use)
    call = Call("", principal_id or "", None, "web", "sign_in", None, house.ledger.request_digest({}))
    if principal_id is None:
        house.ledger.deny(call, "the sign-in link is unknown, used or expired")
        raise Unauthenticated(
            "unauthenticated",
            "the sign-in link is used up or expired: restart `charon serve` for a new one, or sign in with a token",
        )
    house.ledger.read(call, "signed in", {})
    return cookie


def open_session(house: House, caller: Caller) -> str:
    """Gives the cookie of a new session for a caller that showed a token."""
    if house.recovery_readonly:
        raise Unavailable("recovery_readonly", "no session can be opened until recovery is over")
    cookie = secrets.token_urlsafe(32)
    now = house.now()
    row = SessionRow(
        caller.principal_id, caller.obol_id, secrets.token_urlsafe(32), format_time(now + SESSION_LIFETIME)
    )
    house.ledger.write(
        lambda connection: charon_sessions.add_session(connection, _digest(cookie), row, format_time(now))
    )
    house.ledger.read(house.call(caller, "sign_in", None, {}), "signed in", {})
    return cookie


def web_session(house: House, cookie: str) -> WebSession:
    """Gives the session of a cookie, or raises Unauthenticated."""
    with house.database.read() as connection:
        row = charon_sessions.session(connection, _digest(cookie))
    if row is None or row.expires_at <= house.time():
        raise Unauthenticated("unauthenticated", "the session has ended: sign in again")
    identity = house.standings.of(row.principal_id, row.obol_id)
    return WebSession(caller_of(identity, "web"), row.csrf_secret)


def end_session(house: House, cookie: str) -> None:
    """Ends a session."""
    if not house.recovery_readonly:
        house.ledger.write(lambda connection: charon_sessions.end_session(connection, _digest(cookie)))


def _digest(secret: str) -> str:
    return sha256_hex(b"sign-in/v1\0" + secret.encode("utf-8", "replace"))

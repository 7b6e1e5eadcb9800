"""OAuth clients: who may ask people for access (RFC 7591, client-id metadata documents; 6-charon, tokens).

1. Clients are public: they hold no secret, and prove by PKCE that the code is theirs. What a client calls itself proves nothing.
2. A registration keeps name and redirect addresses, and says what it really got: `none`, `code`, both grant types.
3. Registrations are few a second; those that nobody consents to are forgotten after a week, and there are never more than MAX_CLIENTS.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from memory_git.charon.caller import Caller
from memory_git.charon.house import House
from memory_git.charon.ledger import Call
from memory_git.charon.oauth_documents import is_document_id
from memory_git.domain.errors import Fault, Invalid, NotFound, Unavailable
from memory_git.domain.redirects import redirect_fault
from memory_git.domain.times import format_time
from memory_git.storage import charon_oauth
from memory_git.storage.charon_oauth import ClientRow
from memory_git.storage.connection import Connection

MAX_CLIENTS = 5_000
MAX_REDIRECTS = 20
MAX_NAME_CHARACTERS = 100
IDLE = timedelta(days=7)


def register(house: House, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Registers a client and gives its information response."""
    if house.recovery_readonly:
        raise Unavailable("recovery_readonly", "no client can be registered until recovery is over")
    house.limits.registration()
    name, redirects = _checked(metadata)
    now = house.now()
    client_id, at = f"client_{secrets.token_hex(16)}", format_time(now)
    row = ClientRow(client_id, name, redirects, at, at)
    ids = {"client_id": client_id}
    call = Call("", "", None, "oauth", "register", None, house.ledger.request_digest({"name": name}))

    def add(connection: Connection, intent_seq: int) -> None:
        charon_oauth.drop_idle_clients(connection, format_time(now - IDLE))
        if charon_oauth.count_clients(connection) >= MAX_CLIENTS:
            raise Unavailable("too_many_clients", "no more clients can register: revoke some")
        charon_oauth.add_client(connection, row)
        house.ledger.settle_in(connection, call, intent_seq, "done", ids)

    house.ledger.intend(call, ids, add)
    return {
        "client_id": client_id,
        "client_id_issued_at": int(now.timestamp()),
        "client_name": name,
        "redirect_uris": list(redirects),
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }


def client_of(house: House, client_id: str) -> ClientRow:
    """Gives a client that may ask, or raises Invalid `invalid_client`; a document's is read, and stored once it is needed."""
    with house.database.read() as connection:
        row = charon_oauth.client(connection, client_id)
    if row is not None and row.disabled_at is not None:
        raise Invalid("invalid_client", "the client was turned off")
    if is_document_id(client_id):
        document = house.documents.get(client_id)
        name, redirects = _checked(document)
        at = house.time()
        return ClientRow(client_id, name, redirects, row.created_at if row else at, at)
    if row is None:
        raise Invalid("invalid_client", "the client is not known: register it anew")
    return row


def clients(house: House, caller: Caller) -> list[dict[str, Any]]:
    """Gives all clients."""
    with house.administers(caller, "oauth_clients", reads=True), house.database.read() as connection:
        return [_shown(row) for row in charon_oauth.clients(connection)]


def disable_client(house: House, caller: Caller, client_id: str) -> dict[str, Any]:
    """Turns a client off for good, with every token of it."""
    with house.administers(caller, "oauth_disable_client", client_id=client_id) as passage:
        house.ledger.write(
            lambda connection: charon_oauth.disable_client(connection, client_id, house.time())
        )
        with house.database.read() as connection:
            row = charon_oauth.client(connection, client_id)
        if row is None:
            raise NotFound("not_found", "no such client")
        passage.ids["client_id"] = client_id
        return _shown(row)


def _checked(metadata: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    redirects = metadata.get("redirect_uris")
    if not isinstance(redirects, list) or not 0 < len(redirects) <= MAX_REDIRECTS:
        raise Invalid("invalid_redirect_uri", f"redirect_uris has 1 to {MAX_REDIRECTS} addresses")
    faults = [
        Fault(None, f"redirect_uris.{place}", why)
        for place, uri in enumerate(redirects)
        if (why := redirect_fault(uri))
    ]
    if faults:
        raise Invalid("invalid_redirect_uri", f"a redirect address is refused: {faults[0].rule}", faults)
    name = metadata.get("client_name", "")
    if not isinstance(name, str) or len(name) > MAX_NAME_CHARACTERS or not name.isprintable():
        raise Invalid(
            "invalid_client_metadata", f"client_name has at most {MAX_NAME_CHARACTERS} printable characters"
        )
    for field, needed in (("grant_types", "authorization_code"), ("response_types", "code")):
        given = metadata.get(field)
        if given is not None and (not isinstance(given, list) or needed not in given):
            raise Invalid("invalid_client_metadata", f"{field} has {needed}")
    return name.strip() or "A client without a name", tuple(redirects)


def _shown(row: ClientRow) -> dict[str, Any]:
    return {
        "client_id": row.client_id,
        "name": row.name,
        "redirect_uris": list(row.redirect_uris),
        "created_at": row.created_at,
        "last_used_at": row.last_used_at,
        "disabled_at": row.disabled_at,
    }

"""What a client asks for, and what a person lets it do (OAuth 2.1, authorization endpoint; 6-charon, tokens).

1. A request names a known client, one of its redirect addresses, PKCE with S256, and this gate as the resource. Before the address is
   known to be the client's, a fault is shown and nobody is sent anywhere; afterwards it is told to the client.
2. The request is kept for ten minutes under a secret of its own, for it comes from another site, where no session goes along.
3. A signed-in person names project, scopes and agent. The client becomes an agent of that person's: a principal of its own, so that its
   work is told from the person's, and can be reviewed by them. It never has more than the person has now, and never reviews or merges.
4. The client is told the issuer, so that an answer of another server is not taken for ours (RFC 9207).
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode, urlsplit

from memory_git.charon.caller import Caller
from memory_git.charon.house import House, Passage
from memory_git.charon.oauth_clients import client_of
from memory_git.charon.oauth_tokens import CODE_LIFETIME, audience_of, digest_of, new_code
from memory_git.charon.principals import RESERVED
from memory_git.domain.errors import Fault, Invalid, NotAllowed, NotFound, Unavailable
from memory_git.domain.ids import is_component
from memory_git.domain.policy import READ_SCOPES, Denied, may
from memory_git.domain.redirects import fits, origin_of
from memory_git.domain.times import format_time
from memory_git.storage import charon_identity, charon_oauth
from memory_git.storage.charon_identity import PrincipalRow
from memory_git.storage.charon_oauth import CodeRow, GrantRow, RequestRow
from memory_git.storage.connection import Connection

REQUEST_LIFETIME = timedelta(minutes=10)
MAX_STATE_CHARACTERS = 4096
_CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
_READ_ONLY = READ_SCOPES | {"memory.propose"}
_AUTHOR = _READ_ONLY | {"memory.branch", "memory.commit"}


@dataclass(frozen=True, slots=True)
class Asked:
    """Where the browser goes after a request: to a person's decision (`request`), or back to the client (`redirect`)."""

    request: str = ""
    redirect: str = ""


def offered_scopes(house: House) -> frozenset[str]:
    """Gives the scopes that a client may have at all; the setting may narrow them."""
    return _AUTHOR if house.oauth_author_scopes else _READ_ONLY


def begin(house: House, params: Mapping[str, str], base: str) -> Asked:
    """Takes a client's request; raises Invalid where nobody may be sent back (rule 1). `base` is the address of this gate."""
    if house.recovery_readonly:
        raise Unavailable("recovery_readonly", "no client can be let in until recovery is over")
    client = client_of(house, params.get("client_id", ""))
    redirect_uri = params.get("redirect_uri", "")
    if not redirect_uri and len(client.redirect_uris) == 1:
        redirect_uri = client.redirect_uris[0]
    if not fits(redirect_uri, client.redirect_uris):
        raise Invalid(
            "invalid_redirect_uri", "the client did not register the address that it wants people sent to"
        )
    state = params.get("state")
    try:
        row = _request_row(house, params, base, client.client_id, redirect_uri)
    except Invalid as refusal:
        return Asked(
            redirect=_answer(redirect_uri, base, state, error=refusal.code, error_description=refusal.message)
        )
    request, now = secrets.token_urlsafe(32), house.time()

    def add(connection: Connection) -> None:
        charon_oauth.add_client(connection, client)
        charon_oauth.add_request(connection, digest_of("request", request), row, now)

    house.ledger.write(add)
    return Asked(request=request)


def asked(house: House, caller: Caller, request: str) -> dict[str, Any]:
    """Gives what a person is asked to decide: `{client, client_id, returns_to, scopes, projects, agent, agents}`."""
    row = _waiting(house, request)
    with house.database.read() as connection:
        client = charon_oauth.client(connection, row.client_id)
        agents = charon_oauth.agents_of(connection, caller.principal_id)
    name = client.name if client is not None else row.client_id
    standing = house.identify(caller).standing
    projects = {
        grant.project_id: sorted(
            scope for scope in row.scopes if not isinstance(may(standing, scope, grant.project_id), Denied)
        )
        for grant in standing.grants
        if not grant.is_wildcard
    }
    return {
        "client": name,
        "client_id": row.client_id,
        "returns_to": origin_of(row.redirect_uri),
        "scopes": list(row.scopes),
        "projects": {project: scopes for project, scopes in projects.items() if scopes},
        "agent": _free_name(house, f"{caller.principal_id}-{_slug(name)}", agents),
        "agents": agents,
    }


def decide(
    house: House,
    caller: Caller,
    request: str,
    base: str,
    *,
    project: str,
    scopes: frozenset[str],
    agent: str,
) -> str:
    """Lets a client in as a person says; gives the address that the browser is sent to."""
    with house.changes(
        caller, "oauth_consent", project, "memory.read", agent=agent, scopes=sorted(scopes)
    ) as passage:
        row = _waiting(house, request)
        _require_person(passage)
        granted = _granted(passage, row, scopes)
        _check_agent(house, passage, agent)
        grant = GrantRow(
            secrets.token_hex(8),
            row.client_id,
            agent,
            passage.principal_id,
            passage.project_id,
            tuple(sorted(granted)),
            row.audience,
            house.time(),
        )
        code = new_code()
        expires_at = format_time(house.now() + CODE_LIFETIME)

        def let_in(connection: Connection) -> None:
            if not charon_oauth.take_request(connection, digest_of("request", request)):
                raise NotFound(
                    "request_over",
                    "the request is decided already, or its time is over: begin anew in the client",
                )
            if charon_oauth.agent_owner(connection, agent) is None:
                _add_agent(connection, agent, passage.principal_id, house.time())
            charon_oauth.add_grant(connection, grant)
            charon_oauth.add_code(
                connection,
                digest_of("code", code),
                CodeRow(grant.grant_id, row.redirect_uri, row.code_challenge, expires_at, None),
            )

        house.ledger.write(let_in)
        passage.ids.update(grant_id=grant.grant_id, client_id=row.client_id, principal_id=agent)
        return _answer(row.redirect_uri, base, row.state, code=code)


def refuse(house: House, caller: Caller, request: str, base: str) -> str:
    """Turns a client away; gives the address that the browser is sent to."""
    row = _waiting(house, request)
    house.ledger.write(
        lambda connection: charon_oauth.take_request(connection, digest_of("request", request))
    )
    house.ledger.read(house.call(caller, "oauth_refuse", None, {"client_id": row.client_id}), "refused", {})
    return _answer(
        row.redirect_uri, base, row.state, error="access_denied", error_description="the person said no"
    )


def returns_to(house: House, request: str) -> str:
    """Gives the origin that a decision sends the browser to, for the page's own policy; empty for none."""
    with house.database.read() as connection:
        row = charon_oauth.request(connection, digest_of("request", request))
    return origin_of(row.redirect_uri) if row is not None else ""


def connections(house: House, caller: Caller) -> list[dict[str, Any]]:
    """Gives what a person let clients do, and whether it still holds."""
    house.identify(caller)
    with house.database.read() as connection:
        rows = charon_oauth.grants(connection, None if caller.local_operator else caller.principal_id)
        names = {row.client_id: row.name for row in charon_oauth.clients(connection)}
    house.ledger.read(house.call(caller, "oauth_connections", None, {}), "shown", {})
    return [
        {
            "grant_id": row.grant_id,
            "client": names.get(row.client_id, row.client_id),
            "client_id": row.client_id,
            "principal_id": row.principal_id,
            "granted_by": row.granted_by,
            "project": row.project_id,
            "scopes": list(row.scopes),
            "created_at": row.created_at,
            "revoked_at": row.revoked_at,
        }
        for row in rows
    ]


def disconnect(house: House, caller: Caller, grant_id: str) -> dict[str, Any]:
    """Ends what a person let a client do; their own consents, or as the owner of the data directory any."""
    held = {item["grant_id"]: item for item in connections(house, caller)}
    if grant_id not in held:
        raise NotFound("not_found", "no such connection")
    if house.recovery_readonly:
        raise Unavailable("recovery_readonly", "writes are refused until recovery is over")
    call = house.call(caller, "oauth_disconnect", held[grant_id]["project"], {"grant_id": grant_id})
    ids = {"grant_id": grant_id}

    def end(connection: Connection, intent_seq: int) -> None:
        charon_oauth.revoke_grant(connection, grant_id, house.time())
        house.ledger.settle_in(connection, call, intent_seq, "done", ids)

    house.ledger.intend(call, ids, end)
    return {"grant_id": grant_id, "revoked": True}


def _request_row(
    house: House, params: Mapping[str, str], base: str, client_id: str, redirect_uri: str
) -> RequestRow:
    state = params.get("state")
    if params.get("response_type") != "code":
        raise Invalid("unsupported_response_type", "response_type is code")
    if state is not None and len(state) > MAX_STATE_CHARACTERS:
        raise Invalid("invalid_request", "the state is too long")
    if params.get("code_challenge_method") != "S256" or not _CHALLENGE.fullmatch(
        params.get("code_challenge", "")
    ):
        raise Invalid("invalid_request", "PKCE is needed: code_challenge with code_challenge_method S256")
    if params.get("response_mode", "query") != "query":
        raise Invalid("invalid_request", "response_mode is query")
    offered = offered_scopes(house)
    scopes = frozenset(params.get("scope", "").split()) or offered
    if not scopes <= offered:
        raise Invalid("invalid_scope", f"a client may have {' '.join(sorted(offered))}")
    return RequestRow(
        client_id,
        redirect_uri,
        state,
        tuple(sorted(scopes)),
        audience_of(params.get("resource"), base),
        params["code_challenge"],
        format_time(house.now() + REQUEST_LIFETIME),
    )


def _waiting(house: House, request: str) -> RequestRow:
    with house.database.read() as connection:
        row = charon_oauth.request(connection, digest_of("request", request))
    if row is None or row.expires_at <= house.time():
        raise NotFound(
            "request_over", "the request is decided already, or its time is over: begin anew in the client"
        )
    return row


def _require_person(passage: Passage) -> None:
    if passage.identity.principal.kind != "human" or passage.caller.surface != "web":
        raise NotAllowed("denied", "denied: a person lets clients in, on the page")


def _granted(passage: Passage, row: RequestRow, scopes: frozenset[str]) -> frozenset[str]:
    held = frozenset(scope for scope in row.scopes if passage.may(scope))
    if not scopes or not scopes <= held:
        raise Invalid(
            "bad_consent",
            "choose scopes that the client asked for and that you hold in the project",
            [Fault(None, "scopes", f"some of {' '.join(sorted(held))}")],
        )
    return scopes


def _check_agent(house: House, passage: Passage, agent: str) -> None:
    with house.database.read() as connection:
        owner = charon_oauth.agent_owner(connection, agent)
        known = charon_identity.principal(connection, agent)
        actor = charon_identity.actor_owner(connection, agent)
    if owner == passage.principal_id and known is not None and not known.disabled:
        return
    if not is_component(agent) or agent in RESERVED or known is not None or actor is not None:
        raise Invalid(
            "bad_consent",
            "the agent's name is taken, or is none: choose another",
            [Fault(None, "agent", "one component of a ref name that nobody has")],
        )


def _add_agent(connection: Connection, agent: str, owner: str, at: str) -> None:
    row = PrincipalRow(agent, "agent", agent, "propose", (), False, at)
    if not charon_identity.add_principal(connection, row):
        raise Invalid("bad_consent", "the agent's name was taken meanwhile: choose another")
    charon_identity.add_actor(connection, agent, agent)
    charon_oauth.add_agent(connection, agent, owner)


def _free_name(house: House, wanted: str, agents: list[str]) -> str:
    """Gives a name for the agent that the person has already, or that nobody has."""
    with house.database.read() as connection:
        for place in range(1, 100):
            name = wanted if place == 1 else f"{wanted}-{place}"
            if name in agents or charon_identity.principal(connection, name) is None:
                return name
    return f"{wanted}-{secrets.token_hex(3)}"


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:24] or "client"


def _answer(redirect_uri: str, base: str, state: str | None, **said: str) -> str:
    facts = {**said, **({"state": state} if state is not None else {}), "iss": base}
    return f"{redirect_uri}{'&' if urlsplit(redirect_uri).query else '?'}{urlencode(facts)}"

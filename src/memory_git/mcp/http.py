"""MCP over streamable HTTP at /mcp: stateless, for bearers that the gate knows, from allowed hosts and origins (6-charon, MCP).

1. The token verifier asks the gate at every request, so that a revoked token ends at once; the caller goes with the request.
2. `?toolsets=review,history` on the address widens the list of tools for that client; it permits nothing.
3. The Host and Origin lists hold here too, whatever stands before.
4. Stateless: no session is kept, so that the calls of one client may go to any of several processes.
"""

from __future__ import annotations

from collections.abc import Collection
from contextvars import ContextVar
from typing import Any
from urllib.parse import parse_qs

import anyio.to_thread
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import Field, SkipValidation
from starlette.types import ASGIApp, Receive, Scope, Send

from memory_git.charon.gate import Caller, Gate
from memory_git.domain.errors import Unauthenticated
from memory_git.mcp.server import MemoryServer, build_server
from memory_git.mcp.tool import wanted_toolsets

PATH = "/mcp"
MAX_BODY_BYTES = 9 << 20
"""A changeset of 8 MiB, and its frame."""
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")
_wanted: ContextVar[frozenset[str]] = ContextVar("toolsets")


class ObolToken(AccessToken):
    """A verified token with the caller that the gate knows by it."""

    caller: SkipValidation[Caller] = Field(exclude=True)


class ObolVerifier:
    """Verifies bearers at the gate (rule 1)."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    async def verify_token(self, token: str) -> AccessToken | None:
        """Gives the verified token, or None for one that the gate refuses."""
        try:
            caller = await anyio.to_thread.run_sync(self._gate.authenticate, token, "mcp")
        except Unauthenticated:
            return None
        scopes = sorted(caller.standing.scopes)
        return ObolToken(
            token=token,
            client_id=caller.principal_id,
            scopes=scopes,
            subject=caller.principal_id,
            caller=caller,
        )


class Toolsets:
    """Notes which toolsets the address of a request asks for (rule 2)."""

    def __init__(self, app: ASGIApp, default: frozenset[str]) -> None:
        self.app = app
        self.default = default

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        query = parse_qs(scope.get("query_string", b"").decode("ascii", "replace"))
        named = wanted_toolsets(",".join(query.get("toolsets", ())))
        mark = _wanted.set(named | self.default)
        try:
            await self.app(scope, receive, send)
        finally:
            _wanted.reset(mark)


def mcp_app(
    gate: Gate,
    *,
    hosts: Collection[str] = LOOPBACK_HOSTS,
    origins: Collection[str] = (),
    server_url: str = "http://localhost",
    toolsets: str = "default",
    **options: Any,
) -> ASGIApp:
    """Gives the application, with a lifespan of its own; `hosts` are names without ports, `options` the SDK server's."""
    server = http_server(gate, server_url, **options)
    return application(server, hosts=hosts, origins=origins, toolsets=toolsets)


def http_server(gate: Gate, server_url: str = "http://localhost", **options: Any) -> MemoryServer:
    """Gives the server whose callers are the bearers of their requests."""
    # The issuer is named for OAuth, which is served by whoever mounts this; bearers are verified by the gate alone.
    auth = AuthSettings.model_validate({"issuer_url": server_url, "resource_server_url": None})
    return build_server(
        gate, _present_caller, _wanted.get, token_verifier=ObolVerifier(gate), auth=auth, **options
    )


def application(
    server: MemoryServer,
    *,
    hosts: Collection[str] = LOOPBACK_HOSTS,
    origins: Collection[str] = (),
    toolsets: str = "default",
    **transport: Any,
) -> ASGIApp:
    """Gives the application of a server; `transport` is the SDK's, stateless unless it says otherwise."""
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=MAX_BODY_BYTES,
        transport_security=_security(hosts, origins),
        **{"stateless_http": True, **transport},
    )
    return Trimmed(Toolsets(app, wanted_toolsets(toolsets)))


class Trimmed:
    """Takes the blanks off the ends of header values: RFC 9110 5.5 has them outside the value, servers differ in what they pass on."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        if scope["type"] == "http":
            scope = {**scope, "headers": [(name, value.strip(b" \t")) for name, value in scope["headers"]]}
        await self.app(scope, receive, send)


def _present_caller() -> Caller:
    token = get_access_token()
    if not isinstance(token, ObolToken):
        raise Unauthenticated("unauthenticated", "the token is absent or not known")
    return token.caller


def _security(hosts: Collection[str], origins: Collection[str]) -> TransportSecuritySettings:
    named = [f"[{host}]" if ":" in host and not host.startswith("[") else host for host in sorted(hosts)]
    own = [f"{scheme}://{host}" for scheme in ("http", "https") for host in named]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[*named, *(f"{host}:*" for host in named)],
        allowed_origins=[*own, *(f"{origin}:*" for origin in own), *sorted(origins)],
    )

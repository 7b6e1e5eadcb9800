"""OAuth for programs: metadata, registration, token and revocation endpoints, and what a 401 or 403 says of them (6-charon, tokens).

1. The issuer and every address in the metadata is CHARON_PUBLIC_URL, or what the client's allowed Host says.
2. Metadata stands at the paths of RFC 8414 and RFC 9728, with and without the resource's path; answers are never stored.
3. Token and revocation requests are forms, each field once; errors have the form of RFC 6749, with 400, 401, 429 or 503.
4. A 401 names the resource's metadata and the scopes; a 403 for a scope that the token lacks names that scope (RFC 6750).
The consent itself is a page (`web`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl

import orjson
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memory_git.charon.gate import Gate
from memory_git.domain.canonical import decode
from memory_git.domain.errors import Invalid, Refused, TooMany, Unavailable
from memory_git.http.strict import read_capped

FORM_BYTES = 64 << 10
MCP_PATH, API_PATH = "/mcp", "/api/v1"
_RESOURCE_METADATA = "/.well-known/oauth-protected-resource"
_SERVER_METADATA = "/.well-known/oauth-authorization-server"
_UNSTORED = {"Cache-Control": "no-store", "Pragma": "no-cache"}
_CODES = frozenset(
    [
        "invalid_request",
        "invalid_client",
        "invalid_grant",
        "invalid_scope",
        "invalid_target",
        "unsupported_grant_type",
        "invalid_redirect_uri",
        "invalid_client_metadata",
    ]
)
_UNFIT = {"/oauth/register": "invalid_client_metadata"}
Endpoint = Callable[[Request], Awaitable[Response]]


def oauth_app(gate: Gate, public_url: str | None) -> Starlette:
    """Gives the application of the endpoints; `public_url` is None where the Host says the address (rule 1)."""
    app = Starlette(
        routes=[
            Route(_SERVER_METADATA, _told(_server_metadata)),
            Route(f"{_SERVER_METADATA}/{{path:path}}", _told(_server_metadata)),
            Route(_RESOURCE_METADATA, _told(_resource_metadata)),
            Route(f"{_RESOURCE_METADATA}/{{path:path}}", _told(_resource_metadata)),
            Route("/oauth/register", _done(_register), methods=["POST"]),
            Route("/oauth/token", _done(_token), methods=["POST"]),
            Route("/oauth/revoke", _done(_revoke), methods=["POST"]),
        ]
    )
    app.state.gate = gate
    app.state.public_url = public_url
    return app


def base_of(scope: Scope, public_url: str | None) -> str:
    """Gives the address by which a client knows this server, without a slash at its end."""
    if public_url is not None:
        return public_url.rstrip("/")
    host = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "")
    return f"{scope.get('scheme', 'http')}://{host}"


class Challenged:
    """Adds to each 401, and to a 403 for a lacking scope, what a client needs to ask a person (rule 4)."""

    def __init__(self, app: ASGIApp, gate: Gate, public_url: str | None) -> None:
        self.app = app
        self.gate = gate
        self.public_url = public_url

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        path = scope.get("path", "")
        resource = MCP_PATH if path == MCP_PATH or path.startswith(f"{MCP_PATH}/") else API_PATH
        if scope["type"] != "http" or not path.startswith((MCP_PATH, f"{API_PATH}/")):
            await self.app(scope, receive, send)
            return

        async def challenge(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] in (401, 403):
                lacking = scope.get("lacking_scope")
                if message["status"] == 401 or lacking:
                    value = self._challenge(scope, resource, lacking)
                    MutableHeaders(scope=message)["WWW-Authenticate"] = value
            await send(message)

        await self.app(scope, receive, challenge)

    def _challenge(self, scope: Scope, resource: str, lacking: str | None) -> str:
        base = base_of(scope, self.public_url)
        given = any(name == b"authorization" for name, _ in scope["headers"])
        parts = [f'resource_metadata="{base}{_RESOURCE_METADATA}{resource}"']
        if lacking:
            parts = ['error="insufficient_scope"', f'scope="{lacking}"', *parts]
        else:
            parts = [
                *(['error="invalid_token"'] if given else []),
                f'scope="{" ".join(self.gate.oauth_scopes())}"',
                *parts,
            ]
        return f"Bearer {', '.join(parts)}"


def _server_metadata(_path: str, gate: Gate, base: str) -> dict[str, Any]:
    return {
        "issuer": base,
        "authorization_endpoint": f"{base}/oauth/authorize",
        "token_endpoint": f"{base}/oauth/token",
        "registration_endpoint": f"{base}/oauth/register",
        "revocation_endpoint": f"{base}/oauth/revoke",
        "scopes_supported": gate.oauth_scopes(),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": ["none"],
        "revocation_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": True,
    }


def _resource_metadata(path: str, gate: Gate, base: str) -> dict[str, Any]:
    path = f"/{path.strip('/')}".rstrip("/") or MCP_PATH
    if path not in (MCP_PATH, API_PATH):
        raise Invalid("invalid_target", f"the resources of this server are {MCP_PATH} and {API_PATH}")
    return {
        "resource": f"{base}{path}",
        "authorization_servers": [base],
        "scopes_supported": gate.oauth_scopes(),
        "bearer_methods_supported": ["header"],
        "resource_name": "Memory Git",
    }


def _told(metadata: Callable[[str, Gate, str], dict[str, Any]]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        base = base_of(request.scope, request.app.state.public_url)
        try:
            told = metadata(request.path_params.get("path", ""), request.app.state.gate, base)
        except Invalid as refusal:
            return _problem(request, refusal, 404)
        return _json(told)

    return endpoint


def _done(act: Callable[[Request], Awaitable[Response]]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        try:
            return await act(request)
        except (Invalid, TooMany, Unavailable, Refused) as refusal:
            return _problem(request, refusal, _status(refusal))

    return endpoint


async def _register(request: Request) -> Response:
    metadata = decode(await read_capped(request, FORM_BYTES))
    if not isinstance(metadata, dict):
        raise Invalid("invalid_client_metadata", "a registration is a JSON object")
    gate: Gate = request.app.state.gate
    return _json(await run_in_threadpool(gate.oauth_register, metadata), 201)


async def _token(request: Request) -> Response:
    gate: Gate = request.app.state.gate
    base = base_of(request.scope, request.app.state.public_url)
    return _json(await run_in_threadpool(gate.oauth_token, await _form(request), base))


async def _revoke(request: Request) -> Response:
    gate: Gate = request.app.state.gate
    await run_in_threadpool(gate.oauth_revoke, await _form(request))
    return _json({})


async def _form(request: Request) -> dict[str, str]:
    """Gives the fields of a form, each at most once; credentials stand in the body alone."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/x-www-form-urlencoded":
        raise Invalid("invalid_request", "this endpoint takes forms: application/x-www-form-urlencoded")
    if request.url.query:
        raise Invalid("invalid_request", "the fields stand in the body, never in the address")
    if "authorization" in request.headers:
        raise Invalid("invalid_client", "clients are public: client_id in the body, and no secret")
    return form_fields(await read_capped(request, FORM_BYTES))


def form_fields(body: bytes) -> dict[str, str]:
    """Gives the fields of a form or of a query; raises Invalid for a repeated one (RFC 6749 §3.1)."""
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=50, errors="strict")
    except ValueError:
        raise Invalid("invalid_request", "the form is not UTF-8, or has too many fields") from None
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise Invalid("invalid_request", "a field stands twice")
    return fields


def _status(refusal: Refused) -> int:
    return 401 if refusal.code == "invalid_client" else refusal.status


def _problem(request: Request, refusal: Refused, status: int) -> Response:
    """Gives an error in the form of RFC 6749: a refusal that it has no code for is the request's own fault."""
    request.scope["problem_code"] = refusal.code
    code = refusal.code if refusal.code in _CODES else _UNFIT.get(request.url.path, "invalid_request")
    code = "temporarily_unavailable" if status in (429, 503) else code
    headers = {"Retry-After": str(refusal.facts.get("retry_after_s", 1))} if status in (429, 503) else {}
    return _json({"error": code, "error_description": refusal.message}, status, headers)


def _json(
    content: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    return Response(
        orjson.dumps(content),
        status,
        headers={**_UNSTORED, **(headers or {})},
        media_type="application/json",
    )

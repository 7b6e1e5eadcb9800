"""What stands before every route, as plain ASGI: a request id and the last catch, the Host and Origin lists, the bearer.

1. A request whose Host is not on the list is refused: a page of a foreign site can rebind its name to this address.
2. A request that names an Origin must name the very host that it asks, or one on the list of origins.
3. Lethe's bearer is compared in constant time; only liveness, readiness and the API's own description go without.
4. Requests that wait for their answer are bounded in number; one too many is 503 `busy`.
5. Whatever leaves a route as an exception becomes a problem document here; nothing reaches the server's own log.
"""

from __future__ import annotations

import hmac
import itertools
import secrets
from collections.abc import Callable, Collection

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memory_git.domain.errors import NotAllowed, Unauthenticated, Unavailable
from memory_git.http.problems import problem_answer

LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})


class LastCatch:
    """Gives each request an id (`X-Request-Id`) and each escaped exception an answer (rule 5)."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._run = secrets.token_hex(4)
        self._numbers = itertools.count(secrets.randbits(16))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = scope["request_id"] = f"{self._run}{next(self._numbers):08x}"
        started = finished = False

        async def numbered(message: Message) -> None:
            nonlocal started, finished
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [*message["headers"], (b"x-request-id", request_id.encode())]
            await send(message)
            finished = started and not message.get("more_body", message["type"] == "http.response.start")

        try:
            await self.app(scope, receive, numbered)
        except Exception as error:
            if finished:
                return
            answer = problem_answer(error, request_id)
            if started:
                raise _Broken(request_id) from None
            scope["problem_code"] = getattr(error, "code", "internal")
            await answer(scope, receive, numbered)


class _Broken(Exception):
    """An answer broke off half-way; only its request id is said, for the server to close the connection."""


class AtMost:
    """Refuses a request with 503 `busy` while too many others wait for their answer; a stream waits for nothing."""

    def __init__(self, app: ASGIApp, most: int = 256) -> None:
        self.app = app
        self.most = most
        self._waiting: set[object] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if len(self._waiting) >= self.most:
            raise Unavailable("busy", "too many requests at once: come again", retry_after_s=1)
        mark = object()
        self._waiting.add(mark)

        async def begun(message: Message) -> None:
            self._waiting.discard(mark)
            await send(message)

        try:
            await self.app(scope, receive, begun)
        finally:
            self._waiting.discard(mark)


class HostAndOrigin:
    """Refuses a foreign Host or Origin (rules 1 and 2)."""

    def __init__(self, app: ASGIApp, hosts: Collection[str], origins: Collection[str] = ()) -> None:
        self.app = app
        self.hosts = frozenset(host.lower() for host in hosts)
        self.origins = frozenset(origin.lower() for origin in origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        if scope["type"] == "http":
            self._check(scope)
        await self.app(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        named = headers.getlist("host")
        host = named[0].lower() if len(named) == 1 else ""
        if host_name(host) not in self.hosts:
            raise NotAllowed("host_not_allowed", "this address is not served here under that host name")
        for origin in headers.getlist("origin"):
            own = {f"http://{host}", f"https://{host}"}
            if origin.lower() not in own | self.origins:
                raise NotAllowed("origin_not_allowed", "a page of another origin may not call this address")


class BearerCheck:
    """Refuses every request without one of the keys: two while one is rotated, save to the open paths (rule 3)."""

    def __init__(
        self, app: ASGIApp, keys: Callable[[], Collection[str]], open_paths: Collection[str]
    ) -> None:
        self.app = app
        self.keys = keys
        self.open_paths = frozenset(open_paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        if scope["type"] == "http" and scope["path"] not in self.open_paths:
            given = bearer(Request(scope)).encode("utf-8", "surrogateescape")
            if not any(hmac.compare_digest(given, key.encode()) for key in self.keys()):
                raise Unauthenticated("unauthenticated", "the Authorization header lacks the right bearer")
        await self.app(scope, receive, send)


def bearer(request: Request) -> str:
    """Gives the bearer of a request, or an empty text."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def host_name(host: str) -> str:
    """Gives the name in a Host header, without its port.

    >>> host_name("[::1]:80"), host_name("localhost:18484")
    ('::1', 'localhost')
    """
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]

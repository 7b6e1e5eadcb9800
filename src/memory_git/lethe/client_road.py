"""How a client's requests travel to Lethe.

1. The store is reached by HTTPS, a Unix socket (`unix:/path`) or HTTP on loopback; a bearer never leaves this machine in clear.
2. Only what reads is tried again, at most twice, and only when the connection failed; a write is never sent twice.
3. What I-JSON excludes is refused here as the store would refuse it, never sent as something else.
4. Problem documents are raised as the errors that they were; an answer of another shape is Unavailable `lethe_failed`.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
import orjson

from memory_git.domain.canonical import canonical_bytes
from memory_git.domain.errors import Invalid, Unavailable
from memory_git.lethe.client_errors import error_of
from memory_git.lethe.protocol import Json

T = TypeVar("T")
UNBOUNDED = httpx.Timeout(None, connect=5.0)
_PAUSES_S = (0.05, 0.25)
_LIMITS = httpx.Limits(max_connections=64, max_keepalive_connections=32)


class Road:
    """The connections to one store, for the threads of one process."""

    def __init__(self, url: str, api_key: str, timeout_s: float) -> None:
        base, transport = _reach(url)
        headers = {"Authorization": f"Bearer {api_key}"}
        self._http = httpx.Client(
            base_url=base, transport=transport, timeout=timeout_s, headers=headers, trust_env=False
        )

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def get(self, path: str, **query: Any) -> Json:
        """Gives the object that a GET answers."""
        return content_of(self._again("GET", path, query=query), dict)

    def rows(self, path: str, **query: Any) -> list[Json]:
        """Gives the array that a GET answers."""
        return content_of(self._again("GET", path, query=query), list)

    def plan(self, path: str, body: Json, query: Mapping[str, Any] | None = None) -> Json:
        """Gives the object that a POST answers which only reads."""
        return content_of(self._again("POST", path, query=query, body=body), dict)

    def post(self, path: str, body: Json | None = None, query: Mapping[str, Any] | None = None) -> Json:
        """Gives the object that a POST answers."""
        return content_of(self.send("POST", path, query=query, body=body), dict)

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Json | None = None,
        timeout: httpx.Timeout | None = None,
    ) -> httpx.Response:
        """Gives an answer of the 2xx kind, or raises what the problem document says."""
        request = self._http.build_request(
            method,
            path,
            params={name: value for name, value in (query or {}).items() if value is not None},
            content=None if body is None else canonical_bytes(body),
            headers={} if body is None else {"Content-Type": "application/json"},
            timeout=timeout or httpx.USE_CLIENT_DEFAULT,
        )
        try:
            answer = self._http.send(request)
        except httpx.TimeoutException as error:
            raise Unavailable("lethe_timeout", "the store did not answer in time") from error
        except httpx.HTTPError as error:
            raise Unavailable("lethe_unreachable", "the store can't be reached") from error
        if not answer.is_success:
            raise error_of(answer.status_code, answer.content)
        return answer

    def _again(self, method: str, path: str, **parts: Any) -> httpx.Response:
        """Sends what may be sent again (rule 2)."""
        for pause_s in _PAUSES_S:
            try:
                return self.send(method, path, **parts)
            except Unavailable as failed:
                if failed.code != "lethe_unreachable":
                    raise
                time.sleep(pause_s)
        return self.send(method, path, **parts)


def content_of(answer: httpx.Response, kind: type[T]) -> T:
    """Gives the JSON of an answer, which must be of a kind."""
    try:
        content = orjson.loads(answer.content)
    except orjson.JSONDecodeError:
        content = None
    if not isinstance(content, kind):
        raise Unavailable("lethe_failed", "what answers there does not speak Lethe's API")
    return content


def part(document: Json, name: str, kind: type[T]) -> T:
    """Gives one member of an answer, which must be of a kind."""
    content = document.get(name)
    if not isinstance(content, kind):
        raise Unavailable("lethe_failed", "what answers there does not speak Lethe's API")
    return content


def _reach(url: str) -> tuple[str, httpx.HTTPTransport]:
    """Gives base address and transport for a store's URL (rule 1)."""
    if url.startswith("unix:"):
        return "http://localhost", httpx.HTTPTransport(uds=url.removeprefix("unix:"), limits=_LIMITS)
    parts = urlsplit(url)
    if parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(parts.hostname or "")):
        return url.rstrip("/"), httpx.HTTPTransport(limits=_LIMITS)
    raise Invalid(
        "bad_upstream", "the store is reached by https, a Unix socket (unix:/path) or http on loopback"
    )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

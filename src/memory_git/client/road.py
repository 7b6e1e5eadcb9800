"""How the requests of a program travel to a running Charon.

1. It is reached by HTTPS, or by HTTP on loopback: a token never leaves this machine in clear. Proxies of the environment are
   not asked.
2. Nothing is sent twice: whether to try again is for who asked.
3. Problem documents are raised as the errors that they were; an answer of another shape is Unavailable `charon_failed`.
"""

from __future__ import annotations

import ipaddress
import json
from typing import Any
from urllib.parse import quote, urlsplit

import httpx

from memory_git.domain.canonical import canonical_bytes
from memory_git.domain.errors import Invalid, Unavailable
from memory_git.lethe.client_errors import error_of

Json = dict[str, Any]
_PREFIX = "/api/v1"
_TIMEOUT = httpx.Timeout(60.0, connect=5.0)


class Road:
    """The connection of one program to a Charon."""

    def __init__(self, url: str, token: str) -> None:
        require_safe(url)
        self._http = httpx.Client(
            base_url=url.rstrip("/") + _PREFIX,
            headers={"Authorization": f"Bearer {token}"},
            timeout=_TIMEOUT,
            trust_env=False,
        )

    def close(self) -> None:
        """Closes the connection."""
        self._http.close()

    def get(self, path: str, **query: Any) -> Json:
        """Gives the object that a GET answers; a parameter that is None is not sent."""
        return self._send("GET", path, query=query)

    def post(self, path: str, **body: Any) -> Json:
        """Gives the object that a POST answers; a member that is None is not sent."""
        return self._send("POST", path, body=body)

    def patch(self, path: str, **body: Any) -> Json:
        """Gives the object that a PATCH answers."""
        return self._send("PATCH", path, body=body)

    def _send(
        self, method: str, path: str, query: dict[str, Any] | None = None, body: dict[str, Any] | None = None
    ) -> Json:
        request = self._http.build_request(
            method,
            path,
            params=_given(query or {}),
            content=canonical_bytes(_given(body)) if body else None,
            headers={"Content-Type": "application/json"} if body else {},
        )
        try:
            answer = self._http.send(request)
        except httpx.TimeoutException as error:
            raise Unavailable("charon_timeout", "Charon did not answer in time") from error
        except httpx.HTTPError as error:
            raise Unavailable(
                "charon_unreachable",
                f"no Charon answers at {self._http.base_url}: start it with `charon serve`, or unset CHARON_URL",
            ) from error
        return _content(answer)


def _content(answer: httpx.Response) -> Json:
    """Gives the object of an answer, or raises what it says (rule 3)."""
    try:
        content = json.loads(answer.content)
    except ValueError:
        content = None
    if not isinstance(content, dict) or (not answer.is_success and "code" not in content):
        raise Unavailable(
            "charon_failed",
            f"what answers there does not speak Charon's API (status {answer.status_code})",
            upstream_status=answer.status_code,
        )
    if not answer.is_success:
        raise error_of(answer.status_code, answer.content)
    return content


def _given(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def require_safe(url: str) -> None:
    """Refuses an address on which the token could be overheard (rule 1)."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        parts, host = urlsplit(""), ""
    if not host or not (parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(host))):
        raise Invalid("bad_charon_url", "CHARON_URL is of the form https://host[:port], or http on loopback")


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def part_of(name: str) -> str:
    """Gives a name as one segment of a path."""
    return quote(name, safe="")

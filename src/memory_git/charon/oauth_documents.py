"""Client-id metadata documents: a client whose id is the https address of its description (6-charon, tokens).

1. The address is https with a path, and no user, fragment, query or dot segment. It is read from public addresses alone: each address
   of its host is checked, and the connection goes to the one that was checked. No redirect is followed.
2. At most 64 KiB within five seconds; JSON that names this very address as `client_id`. It is remembered for an hour, a refusal for a
   minute, so that nobody makes the gate fetch at will.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import httpx

from memory_git.domain.canonical import decode
from memory_git.domain.errors import Invalid, Refused

MAX_BYTES = 64 << 10
TIMEOUT_S = 5.0
KEPT_S, REFUSED_S = 3600.0, 60.0
REMEMBERED = 1000
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def is_public(address: Address) -> bool:
    """Decides whether an address is one of the open network."""
    inner = getattr(address, "ipv4_mapped", None) or getattr(address, "sixtofour", None) or address
    return bool(inner.is_global and address.is_global and not address.is_multicast)


class Documents:
    """Reads and remembers documents; `admits` decides which addresses may be asked."""

    def __init__(
        self,
        admits: Callable[[Address], bool] = is_public,
        tls: ssl.SSLContext | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._admits = admits
        self._tls = tls
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[float, dict[str, Any] | Invalid]] = OrderedDict()

    def get(self, client_id: str) -> dict[str, Any]:
        """Gives a client's document, or raises Invalid `invalid_client`."""
        with self._lock:
            until, found = self._kept.get(client_id, (0.0, None))
        if found is None or until <= self._clock():
            try:
                found, lives_s = self._read(client_id), KEPT_S
            except Invalid as refusal:
                found, lives_s = refusal, REFUSED_S
            with self._lock:
                self._kept[client_id] = (self._clock() + lives_s, found)
                while len(self._kept) > REMEMBERED:
                    self._kept.popitem(last=False)
        if isinstance(found, Invalid):
            raise Invalid(found.code, found.message)
        return found

    def _read(self, client_id: str) -> dict[str, Any]:
        host, port, rest = _parts(client_id)
        address = self._address(host, port)
        shown = f"[{address}]" if address.version == 6 else str(address)
        try:
            with (
                httpx.Client(
                    verify=self._tls or True, timeout=TIMEOUT_S, follow_redirects=False, trust_env=False
                ) as http,
                http.stream(
                    "GET",
                    f"https://{shown}:{port}{rest}",
                    headers={"Host": host if port == 443 else f"{host}:{port}", "Accept": "application/json"},
                    extensions={"sni_hostname": host},
                ) as answer,
            ):
                if answer.status_code != 200:
                    raise _refused(f"its document answers with {answer.status_code}")
                body = self._body(answer)
        except (httpx.HTTPError, ssl.SSLError, OSError, ValueError) as error:
            raise _refused(f"its document can't be read: {type(error).__name__}") from None
        try:
            document = decode(body)
        except Refused:
            raise _refused("its document is no JSON") from None
        if not isinstance(document, dict) or document.get("client_id") != client_id:
            raise _refused("its document names another client_id")
        return document

    def _body(self, answer: httpx.Response) -> bytes:
        body = bytearray()
        until = self._clock() + TIMEOUT_S
        for chunk in answer.iter_bytes():
            body += chunk
            if len(body) > MAX_BYTES or self._clock() > until:
                raise _refused(f"its document is larger than {MAX_BYTES} bytes, or too slow")
        return bytes(body)

    def _address(self, host: str, port: int) -> Address:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise _refused("the host of its document is not known") from None
        addresses = [ipaddress.ip_address(str(item[4][0]).partition("%")[0]) for item in found]
        if not addresses or not all(self._admits(address) for address in addresses):
            raise _refused("the host of its document is not on the open network")
        return addresses[0]


def is_document_id(client_id: str) -> bool:
    """Says whether a client id is the address of a document."""
    return client_id.startswith("https://")


def _parts(client_id: str) -> tuple[str, int, str]:
    try:
        parts = urlsplit(client_id)
        port = parts.port or 443
    except ValueError:
        raise _refused("it is no address") from None
    segments = parts.path.split("/")
    plain = not (parts.username or parts.password or parts.fragment or parts.query or "#" in client_id)
    if not (plain and parts.hostname and len(parts.path) > 1 and client_id.isascii()):
        raise _refused("it is no https address with a path, and without user, query and fragment")
    if "." in segments or ".." in segments or any(sign in client_id for sign in "\\ \r\n\t"):
        raise _refused("it has dot segments or blanks")
    return parts.hostname, port, parts.path


def _refused(why: str) -> Invalid:
    return Invalid("invalid_client", f"the client is not known: {why}")

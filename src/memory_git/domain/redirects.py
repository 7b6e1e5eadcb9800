"""Where an OAuth client may be sent back to (RFC 9700 §2.1, RFC 8252 §7; 6-charon, tokens). Pure.

1. https anywhere; http on loopback only; a scheme of the client's own, but none that a browser runs or opens itself.
2. No fragment, no user, no wildcard. It is compared as it stands; on loopback alone the port may be another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import SplitResult, urlsplit

MAX_CHARACTERS = 2048
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_FORBIDDEN = frozenset(
    [
        "about",
        "blob",
        "chrome",
        "data",
        "file",
        "filesystem",
        "ftp",
        "ftps",
        "javascript",
        "mailto",
        "tel",
        "vbscript",
        "view-source",
        "ws",
        "wss",
    ]
)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")
_PLAIN = re.compile(r"[\x21-\x7e]+")


def redirect_fault(uri: object) -> str:
    """Says why nobody may be sent to an address; empty when they may.

    >>> redirect_fault("https://client.example/back"), redirect_fault("http://client.example/back")
    ('', 'http is for loopback only')
    """
    if not isinstance(uri, str) or not _PLAIN.fullmatch(uri) or len(uri) > MAX_CHARACTERS:
        return "not an address of printable ASCII"
    parts = _split(uri)
    if parts is None or not _SCHEME.fullmatch(parts.scheme):
        return "not an absolute address"
    if "#" in uri or "*" in parts.netloc or "\\" in uri:
        return "has a fragment, a wildcard or a backslash"
    if parts.username is not None or parts.password is not None:
        return "names a user"
    if parts.scheme in _FORBIDDEN:
        return f"a browser opens {parts.scheme}: itself"
    if parts.scheme in ("http", "https"):
        if not parts.hostname:
            return "names no host"
        if parts.scheme == "http" and parts.hostname not in LOOPBACK:
            return "http is for loopback only"
    return ""


def fits(uri: str, registered: Iterable[str]) -> bool:
    """Decides whether an address is one of those that a client registered (rule 2).

    >>> fits("http://127.0.0.1:50123/back", ["http://127.0.0.1/back"]), fits("https://a.example/b", ["https://a.example/"])
    (True, False)
    """
    return not redirect_fault(uri) and any(
        uri == known or _is_same_loopback(uri, known) for known in registered
    )


def origin_of(uri: str) -> str:
    """Gives an address's origin as a content security policy names it: scheme and host, or the scheme alone.

    >>> origin_of("http://127.0.0.1:50123/back"), origin_of("cursor://anysphere/x")
    ('http://127.0.0.1:50123', 'cursor:')
    """
    parts = urlsplit(uri)
    return f"{parts.scheme}://{parts.netloc}" if parts.scheme in ("http", "https") else f"{parts.scheme}:"


def _is_same_loopback(uri: str, known: str) -> bool:
    one, other = _split(uri), _split(known)
    if one is None or other is None or redirect_fault(known):
        return False
    if one.scheme != "http" or one.hostname not in LOOPBACK:
        return False
    return (one.scheme, one.hostname, one.path, one.query) == (
        other.scheme,
        other.hostname,
        other.path,
        other.query,
    )


def _split(uri: str) -> SplitResult | None:
    try:
        parts = urlsplit(uri)
        _ = parts.port, parts.hostname
    except ValueError:
        return None
    return parts

"""Where the next page of a diff begins: opaque text that names a place, and the two changesets that it is a place between."""

from __future__ import annotations

import base64
import binascii

from memory_git.domain.canonical import canonical_bytes, decode, sha256_hex
from memory_git.domain.errors import Invalid

Place = tuple[str, tuple[str, ...]]
"""What stands last on a page: `m` a memory, `r` a relationship; and its key."""

_KEY_PARTS = {"m": 1, "r": 3}
_MARK_DIGITS = 12
MAX_CURSOR_CHARACTERS = 8192


def write_cursor(place: Place, base: str, target: str) -> str:
    """Gives the cursor of a place."""
    body = canonical_bytes([_mark(base, target), place[0], *place[1]])
    return base64.urlsafe_b64encode(body).decode().rstrip("=")


def read_cursor(cursor: str, base: str, target: str) -> Place:
    """Gives the place of a cursor; raises Invalid `bad_cursor` for what is none of this diff."""
    mark, stream, *key = _parts(cursor)
    if stream not in _KEY_PARTS or len(key) != _KEY_PARTS[stream]:
        raise _bad_cursor("`after` is the `next` of an earlier page")
    if mark != _mark(base, target):
        raise _bad_cursor("`after` is of another diff: name the two changesets that its page named")
    return stream, tuple(key)


def _parts(cursor: str) -> list[str]:
    try:
        body = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        parts = decode(body) if len(cursor) <= MAX_CURSOR_CHARACTERS else None
    except (binascii.Error, ValueError, Invalid):
        parts = None
    if not isinstance(parts, list) or len(parts) < 2 or not all(isinstance(part, str) for part in parts):
        raise _bad_cursor("`after` is the `next` of an earlier page")
    return parts


def _mark(base: str, target: str) -> str:
    return sha256_hex(f"{base} {target}".encode())[:_MARK_DIGITS]


def _bad_cursor(why: str) -> Invalid:
    return Invalid("bad_cursor", why)

"""Where the next page of a log begins: what is left of the walk, in opaque text that only this store can have written.

1. A cursor holds the head that the walk began at, whether it keeps to first parents, and the changesets where it goes on. Their
   ancestors are the rest, in any process, at the same cost at any depth.
2. It is signed with a salt of the project that is never served: or anybody could name a changeset of a ref that is not theirs, and
   read on from there.
3. It holds for a ref as long as the ref's head descends from that head, or is it.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from uuid import UUID

from memory_git.domain.errors import Invalid

_ID_BYTES = _MARK_BYTES = 16
_ALL_PARENTS, _FIRST_PARENTS = b"\x01", b"\x02"
MAX_CURSOR_CHARACTERS = 1 << 20


@dataclass(frozen=True, slots=True)
class Walk:
    """A walk to go on with: its head, its frontier, and which parents it follows."""

    head: str
    frontier: tuple[str, ...]
    first_parent: bool


def write_cursor(walk: Walk, salt: str) -> str:
    """Gives the cursor of a walk, signed with a project's salt."""
    ids = b"".join(UUID(name).bytes for name in (walk.head, *walk.frontier))
    body = (_FIRST_PARENTS if walk.first_parent else _ALL_PARENTS) + ids
    return base64.urlsafe_b64encode(body + _mark(body, salt)).decode().rstrip("=")


def read_cursor(cursor: str, salt: str) -> Walk:
    """Gives the walk of a cursor; raises Invalid `bad_cursor` for what this store has not written."""
    raw = _decoded(cursor)
    body, mark = raw[:-_MARK_BYTES], raw[-_MARK_BYTES:]
    if len(body) <= 2 * _ID_BYTES or not hmac.compare_digest(mark, _mark(body, salt)):
        raise bad_cursor()
    ids = _ids(body[1:])
    return Walk(ids[0], tuple(ids[1:]), body[:1] == _FIRST_PARENTS)


def bad_cursor() -> Invalid:
    """Gives the refusal of a cursor."""
    return Invalid(
        "bad_cursor",
        "`before` is the `next` of an earlier page of this log, or a changeset that its head descends from",
    )


def _decoded(cursor: str) -> bytes:
    try:
        if len(cursor) <= MAX_CURSOR_CHARACTERS:
            return base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        pass
    raise bad_cursor()


def _ids(body: bytes) -> Sequence[str]:
    return [str(UUID(bytes=body[at : at + _ID_BYTES])) for at in range(0, len(body), _ID_BYTES)]


def _mark(body: bytes, salt: str) -> bytes:
    return hmac.new(bytes.fromhex(salt), b"memory_git/log-cursor/v1\0" + body, sha256).digest()[:_MARK_BYTES]

"""Hash chains of events, of a ref's log and, keyed, of the ledger (5-lethe, writing; 6-charon, audit ledger).

1. A row's link is SHA-256 of the canonical JSON array `["memory_git/chain/v1", previous, view]`; `previous`
   is the link of the row before, null for the first; `view` is the row as its owner defines it, linkless.
2. In a keyed chain the link is HMAC-SHA256 of the same bytes: who can write the table can't recompute it.
3. A view holds digests of salted content, never the content: so a redaction leaves the chain whole.
4. A chain cut at its end is whole in itself: the owner compares the last link with what it keeps elsewhere.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from memory_git.domain.canonical import canonical_bytes, hmac_hex, sha256_hex

FORMAT = "memory_git/chain/v1"


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a chain as it is stored."""

    previous: str | None
    view: Mapping[str, Any]
    link: str


@dataclass(frozen=True, slots=True)
class ChainFault:
    """Where a chain first breaks: the row's place, from 0, and what doesn't agree."""

    place: int
    why: Literal["previous_differs", "link_differs"]


def link(previous: str | None, view: Mapping[str, Any]) -> str:
    """Gives the link of a row after `previous`, as 64 lower-case hex digits."""
    return sha256_hex(_linked_bytes(previous, view))


def link_keyed(key: bytes, previous: str | None, view: Mapping[str, Any]) -> str:
    """Gives the link of a row of a keyed chain, as 64 lower-case hex digits."""
    return hmac_hex(key, _linked_bytes(previous, view))


def check(rows: Iterable[Row], *, after: str | None = None, key: bytes | None = None) -> ChainFault | None:
    """Gives the first fault of rows in their order, or None; `after` is the link before the first of them."""
    previous = after
    for place, row in enumerate(rows):
        if row.previous != previous:
            return ChainFault(place, "previous_differs")
        expected = link(previous, row.view) if key is None else link_keyed(key, previous, row.view)
        if not hmac.compare_digest(expected.encode(), row.link.encode("utf-8", "replace")):
            return ChainFault(place, "link_differs")
        previous = row.link
    return None


def _linked_bytes(previous: str | None, view: Mapping[str, Any]) -> bytes:
    return canonical_bytes([FORMAT, previous, dict(view)])

"""Stable memory ids for what has a name elsewhere: the name alone decides, so a repeated import finds them again."""

from __future__ import annotations

import hashlib
import unicodedata

MAX_SLUG_BYTES = 240
_KEPT = frozenset("._-")


def stable_id(prefix: str, name: str) -> str:
    """Gives the memory id of a name; two names never share one but for a clash of 40-bit digests.

    A name that its slug spells out keeps it bare; any other carries a digest of the name.

    >>> stable_id("entity", "seat-hold"), stable_id("entity", "Seat hold!")
    ('entity/seat-hold', 'entity/Seat-hold-be888f6092')
    """
    name = unicodedata.normalize("NFC", name)
    spelled = "/".join(filter(None, (slug(part) for part in name.split("/"))))
    spelled = clip_bytes(spelled, MAX_SLUG_BYTES)
    if spelled == name:
        return f"{prefix}/{spelled}"
    mark = hashlib.sha256(name.encode("utf-8")).hexdigest()[:10]
    return f"{prefix}/{spelled}-{mark}" if spelled else f"{prefix}/{mark}"


def slug(text: str) -> str:
    """Gives the letters, marks, digits and `._-` of a text, any other run as one hyphen; case and script stay."""
    kept = "".join(character if _is_kept(character) else " " for character in text)
    return "-".join(kept.split()).strip("-")


def clip_bytes(text: str, limit_bytes: int) -> str:
    """Gives the longest start of a text that fits into so many UTF-8 bytes."""
    if len(text) * 4 <= limit_bytes:
        return text
    return text.encode("utf-8")[:limit_bytes].decode("utf-8", "ignore")


def _is_kept(character: str) -> bool:
    return character in _KEPT or unicodedata.category(character)[0] in "LMN"

"""What is selected for a prompt, and why something is not (7-context). Pure: the same inputs give the same selection.

1. Left out, with the reason where it would else have been shown: withheld by an open conflict, expired at the time of evaluation, over
   the token budget.
2. Order: pinned, then the score of the query, then the last change (newest first), then the id.
3. A disputed or deprecated memory ranks at half its score, and after the others where there is no query.
4. A token budget drops whole memories from the low end, never a part of one: a larger budget shows all that a smaller one does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from memory_git.domain.record import Record
from memory_git.domain.times import parse_time

PROJECTION_VERSION = "memory-context/v1"
DEFAULT_LIMIT = 20
MAX_LIMIT = 100
DOUBTED_STATUSES = frozenset({"disputed", "deprecated", "deprecation_proposed"})
BYTES_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Candidate:
    """An active memory that the asking principal may see. `changed` orders by the last change, greater is newer."""

    memory_id: str
    pinned: bool
    status: str
    valid_to: str | None
    changed: int
    score: float | None = None
    """The query's score; None when there is no query. A memory without a matching word is no candidate."""


@dataclass(slots=True)
class Selection:
    """The chosen memory ids in order, and for each why; and what was left out, with the reason."""

    chosen: list[str] = field(default_factory=list)
    inclusion_reasons: dict[str, str] = field(default_factory=dict)
    exclusion_reasons: dict[str, str] = field(default_factory=dict)


def rank_key(item: Candidate) -> tuple[bool, float, bool, int, str]:
    """Gives what candidates are ordered by, best first (rules 2 and 3)."""
    doubted = item.status in DOUBTED_STATUSES
    score = (item.score or 0.0) * (0.5 if doubted else 1.0)
    return not item.pinned, -score, doubted, -item.changed, item.memory_id


def best(
    ranked: Iterable[Candidate], withheld: Mapping[str, str], now: datetime, limit: int
) -> tuple[list[Candidate], Selection]:
    """Gives the best candidates that may be shown, and a selection that so far says what stood before the last of them and was left out.

    They come best first, and no more of them is asked for than is needed. `withheld` maps a memory id to the conflict that holds it back.
    """
    selection = Selection()
    kept: list[Candidate] = []
    for item in ranked:
        if len(kept) == limit:
            break
        reason = _left_out(item, withheld, now)
        if reason is None:
            kept.append(item)
        else:
            selection.exclusion_reasons[item.memory_id] = reason
    return kept, selection


def _left_out(item: Candidate, withheld: Mapping[str, str], now: datetime) -> str | None:
    if item.memory_id in withheld:
        return f"conflicted: {withheld[item.memory_id]}"
    expires = parse_time(item.valid_to) if item.valid_to else None
    return "expired" if expires is not None and expires <= now else None


def choose(
    kept: Sequence[Candidate], records: Mapping[str, Record], selection: Selection, max_tokens: int | None
) -> int:
    """Fills the selection from the best ones, as far as the budget goes (rule 4); gives the estimated tokens."""
    used = 0
    for place, item in enumerate(kept):
        tokens = estimate_tokens(records[item.memory_id])
        if max_tokens is not None and used + tokens > max_tokens:
            over = {dropped.memory_id: "over the token budget" for dropped in kept[place:]}
            selection.exclusion_reasons |= over
            break
        used += tokens
        selection.chosen.append(item.memory_id)
        selection.inclusion_reasons[item.memory_id] = _why(item)
    return used


def _why(item: Candidate) -> str:
    if item.pinned:
        return "pinned"
    why = "recent" if item.score is None else "matches the query"
    return f"{why} ({item.status})" if item.status in DOUBTED_STATUSES else why


def estimate_tokens(record: Record) -> int:
    """Estimates the tokens of a record's text: a quarter of its UTF-8 bytes, at least one."""
    texts = (record.title or "", record.summary or "", record.content)
    return max(1, sum(len(text.encode()) for text in texts) // BYTES_PER_TOKEN)

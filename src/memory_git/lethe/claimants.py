"""Who makes claims in a stored state: the index of versions, read many claims at a time (4-history, conflicts)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING

from memory_git.domain.record import Record
from memory_git.storage import lethe_states
from memory_git.storage.connection import Connection

if TYPE_CHECKING:
    from memory_git.lethe.session import StoredState

MOST_CLAIMANTS = 256
"""So many are looked at of those that make some of several claims, first who makes the most; who makes one claim is never cut."""


class ClaimIndex:
    """The versions that make a claim, whatever state they stand in; each claim is read once, for both sides of a merge."""

    def __init__(self, connection: Connection, project_id: str) -> None:
        self._connection = connection
        self._project_id = project_id
        self._rows: dict[str, list[int]] = {}
        self._memory_ids: dict[int, str] = {}

    def read(self, claims: Iterable[str]) -> None:
        """Reads the claims that are not known yet, in one statement."""
        unknown = [claim for claim in claims if claim not in self._rows]
        if unknown:
            self._rows |= lethe_states.claim_rows(self._connection, self._project_id, unknown)

    def know(self, memory_ids: Mapping[int, str]) -> None:
        """Takes note of the memories of versions."""
        self._memory_ids |= memory_ids

    def rows_of(self, claims: Collection[str], at_least: int) -> list[int]:
        """Gives the versions that make at least so many of some claims; who makes most of them first, then the newest."""
        if any(claim not in self._rows for claim in claims):
            self.read(claims)
        if len(claims) == 1:
            return self._rows[next(iter(claims))]
        if len(claims) < at_least:
            return []
        lists = sorted((self._rows[claim] for claim in claims), key=len)
        hits: dict[int, int] = Counter(chain.from_iterable(lists[: len(lists) - at_least + 1]))
        # Who is in none of the shorter lists is in too few: the longest are only asked about those found already.
        for rows in lists[len(lists) - at_least + 1 :]:
            for row in hits.keys() & rows:
                hits[row] += 1
        return sorted([row for row in hits if hits[row] >= at_least], key=lambda row: (-hits[row], -row))

    def memory_ids(self, rows: Iterable[int]) -> dict[int, str]:
        """Gives the memories of versions, unknown ones read in one statement."""
        unknown = [row for row in rows if row not in self._memory_ids]
        if unknown:
            self._memory_ids |= lethe_states.memory_ids_of(self._connection, self._project_id, unknown)
        return self._memory_ids


def claimants(
    state: StoredState, index: ClaimIndex, claims: Collection[str], at_least: int = 1
) -> list[Record]:
    """Gives the records of a state that make at least so many of some claims, by memory id.

    Only what stands in this state counts, toward the limit too: or anybody could hide a contradiction behind a branch of
    their own. A record whose claim has an equal key in the index may be among them: callers compare the records.
    """
    rows = index.rows_of(claims, at_least)
    if not rows:
        return []
    memory_ids = index.memory_ids(rows)
    found: dict[str, Record] = {}
    for row in rows:
        entry = state.entry(memory_ids[row])
        if entry is not None and entry.row == row:
            found[memory_ids[row]] = state.view.record(entry)
            if len(found) == MOST_CLAIMANTS and len(claims) > 1:
                break
    return [found[name] for name in sorted(found)]

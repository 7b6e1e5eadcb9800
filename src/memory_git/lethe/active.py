"""The active memories of a state, in order and counted by visibility class: what context and counts read (7-context).

1. An index belongs to one trie root and is never changed; another root's is made from the nearest one by the diff of the two.
2. What changed since a base lies beside it, and is worked into a new base once it has grown: a new head costs what it changed.
3. A class is a visibility, and of private memories an owner. An audience reads the classes that are open to it: nothing that it may
   not see is counted or ordered, and the first twenty cost the same whatever the number of memories.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import islice, takewhile
from typing import NamedTuple

from memory_git.domain import trie
from memory_git.domain.context import Candidate, rank_key
from memory_git.domain.errors import Corrupt
from memory_git.domain.policy import Audience
from memory_git.domain.record import Record
from memory_git.domain.state_root import memory_key
from memory_git.domain.trie import Entry, Root
from memory_git.lethe.session import View, is_dropped
from memory_git.storage import lethe_history

KEPT = 4
MOST_BESIDE = 1_024
"""So many changed memories may lie beside a base."""
_READ_AT_ONCE = 1_000
_Rank = tuple[bool, float, bool, int, str]
_Class = tuple[str, str | None]
_Sort = tuple[str, str | None, str, str]
"""Visibility, owner, kind and status of a record: what a listing filters by."""


@dataclass(frozen=True, slots=True)
class Active:
    """One active memory: what selection needs, without its text."""

    memory_id: str
    entry: Entry
    visibility: str
    owner_principal: str | None
    pinned: bool
    valid_to: str | None
    status: str

    @property
    def of_class(self) -> _Class:
        """Gives its class (rule 3)."""
        return self.visibility, self.owner_principal if self.visibility == "private" else None

    def candidate(self, score: float | None = None) -> Candidate:
        """Gives what selection asks of it."""
        return Candidate(self.memory_id, self.pinned, self.status, self.valid_to, self.entry.changed, score)

    def rank(self) -> _Rank:
        """Gives its place in the order without a query."""
        return rank_key(self.candidate())


@dataclass(frozen=True, slots=True)
class ActiveIndex:
    """The active memories of one state: a base, what is otherwise in this state, and how many each class has.

    `base` has them by key, `orders` by class in the order without a query; `beside` has what changed since (None: not active), and
    `changed` those of them that are active, in order. `tally` counts all records of the state, the inactive ones too.
    """

    base: Mapping[bytes, Active]
    orders: Mapping[_Class, Sequence[Active]]
    counts: Mapping[_Class, int]
    beside: Mapping[bytes, Active | None]
    changed: Sequence[Active]
    tally: Mapping[_Sort, int]

    @classmethod
    def over(cls, items: Iterable[Active], tally: Mapping[_Sort, int]) -> ActiveIndex:
        """Gives the index of memories, which come in the order without a query."""
        base: dict[bytes, Active] = {}
        orders: dict[_Class, list[Active]] = {}
        for item in items:
            base[item.entry.key] = item
            orders.setdefault(item.of_class, []).append(item)
        return cls(base, orders, {of_class: len(order) for of_class, order in orders.items()}, {}, (), tally)

    def get(self, memory_id: str, audience: Audience | None) -> Active | None:
        """Gives an active memory that an audience may see, or None."""
        found = self._at(memory_key(memory_id))
        return found if found is not None and _admits(audience, found.of_class) else None

    def count(self, audience: Audience | None) -> int:
        """Counts the active memories that an audience may see."""
        return sum(count for of_class, count in self.counts.items() if _admits(audience, of_class))

    def count_all(self, audience: Audience | None, kind: str | None, status: str | None) -> int:
        """Counts the records that an audience may see, of a kind and a status where they are named."""
        return sum(
            count
            for (visibility, owner, of_kind, of_status), count in self.tally.items()
            if (not kind or kind == of_kind)
            and (not status or status == of_status)
            and _admits(audience, (visibility, owner))
        )

    def ranked(self, audience: Audience | None) -> Iterator[Active]:
        """Yields the active memories that an audience may see, best first, in the order without a query."""
        orders = [self._rest(order) for of_class, order in self.orders.items() if _admits(audience, of_class)]
        changed = (item for item in self.changed if _admits(audience, item.of_class))
        return merge(*orders, changed, key=Active.rank)

    def pinned(self, audience: Audience | None) -> Iterator[Active]:
        """Yields the pinned ones: they stand first in the order."""
        return takewhile(lambda item: item.pinned, self.ranked(audience))

    def with_changes(
        self,
        changes: Mapping[bytes, Active | None],
        tally: Mapping[_Sort, int],
        most_beside: int = MOST_BESIDE,
    ) -> ActiveIndex:
        """Gives the index with other memories under some keys (rule 2)."""
        counts = dict(self.counts)
        for key, item in changes.items():
            for counted, by in ((self._at(key), -1), (item, 1)):
                if counted is not None:
                    counts[counted.of_class] = counts.get(counted.of_class, 0) + by
        beside = {**self.beside, **changes}
        changed = sorted((item for item in beside.values() if item is not None), key=Active.rank)
        index = ActiveIndex(self.base, self.orders, counts, beside, changed, tally)
        return index if len(beside) <= most_beside else ActiveIndex.over(index.ranked(None), tally)

    def _at(self, key: bytes) -> Active | None:
        return self.beside[key] if key in self.beside else self.base.get(key)

    def _rest(self, order: Sequence[Active]) -> Iterator[Active]:
        return (item for item in order if item.entry.key not in self.beside) if self.beside else iter(order)


class Kept(NamedTuple):
    """The active memories of a changeset's state, and the root that they are of."""

    head: str
    root: Root
    active: ActiveIndex


class ActiveIndexes:
    """The indexes of the roots that were asked for last, by project and root row."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, int, int], Kept] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, view: View, head: str) -> ActiveIndex:
        """Gives the active memories of a changeset's state."""
        root = view.roots(head)[0]
        key = (view.project_id, view.epoch, root.row)
        with self._lock:
            found = self._kept.get(key)
            nearest = next((kept for name, kept in reversed(self._kept.items()) if name[:2] == key[:2]), None)
        if found is not None:
            return found.active
        index = _derived(view, nearest, root)
        with self._lock:
            self._kept[key] = Kept(head, root, index)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return index


def _is_stored(view: View, head: str) -> bool:
    """Decides whether this snapshot has the nodes of a head, which another reader may have seen on a later one."""
    row = lethe_history.get_state(view.connection, view.project_id, head)
    return row is not None and not is_dropped(row)


def _derived(view: View, nearest: Kept | None, root: Root) -> ActiveIndex:
    if nearest is None or not _is_stored(view, nearest.head):
        return _made_of_all(view, root)
    changes: dict[bytes, Active | None] = {}
    tally = Counter(nearest.active.tally)
    for before, after in trie.diff(view, nearest.root, root, "row"):
        if before is not None:
            changes.setdefault(before.key, None)
            tally[_sort(view.record(before))] -= 1
        if after is not None:
            record = view.record(after)
            changes[after.key] = _active(record, after)
            tally[_sort(record)] += 1
    return nearest.active.with_changes(changes, +tally)


def _made_of_all(view: View, root: Root) -> ActiveIndex:
    entries = trie.walk(view, root)
    tally: Counter[_Sort] = Counter()
    items: list[Active] = []
    while page := list(islice(entries, _READ_AT_ONCE)):
        records = view.load(page)
        for entry in page:
            record = _own(records[entry.digest], entry)
            tally[_sort(record)] += 1
            item = _active(record, entry)
            if item is not None:
                items.append(item)
    return ActiveIndex.over(sorted(items, key=Active.rank), tally)


def _sort(record: Record) -> _Sort:
    return record.visibility, record.owner_principal, record.kind, record.status


def _own(record: Record, entry: Entry) -> Record:
    if memory_key(record.memory_id) != entry.key:
        raise Corrupt("version", entry.row, "stands under another memory's key")
    return record


def _active(record: Record, entry: Entry) -> Active | None:
    if not record.is_active:
        return None
    return Active(
        record.memory_id,
        entry,
        record.visibility,
        record.owner_principal,
        record.pinned,
        record.valid_to,
        record.status,
    )


def _admits(audience: Audience | None, of_class: _Class) -> bool:
    return audience is None or audience.admits(*of_class)

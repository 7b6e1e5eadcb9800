"""The active memories of a state, light enough to hold and sort: what context and counts read (7-context).

An index belongs to one trie root and is never changed; another root's is made from the nearest one by the diff of the two.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import NamedTuple

from memory_git.domain import trie
from memory_git.domain.policy import Audience
from memory_git.domain.trie import Entry, Root
from memory_git.lethe.session import View, is_dropped

KEPT = 4


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


class Kept(NamedTuple):
    """The active memories of a changeset's state, and the root that they are of."""

    head: str
    root: Root
    active: dict[bytes, Active]


class ActiveIndexes:
    """The indexes of the roots that were asked for last, by project and root row."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, int, int], Kept] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, view: View, head: str) -> dict[bytes, Active]:
        """Gives the active memories of a changeset's state, by key."""
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


def _derived(view: View, nearest: Kept | None, root: Root) -> dict[bytes, Active]:
    if nearest is None or is_dropped(view.state_row(nearest.head)):
        return {
            entry.key: item for entry in trie.walk(view, root) if (item := _active(view, entry)) is not None
        }
    index = dict(nearest.active)
    for before, after in trie.diff(view, nearest.root, root, "row"):
        if before is not None:
            index.pop(before.key, None)
        item = _active(view, after) if after is not None else None
        if item is not None:
            index[item.entry.key] = item
    return index


def _active(view: View, entry: Entry) -> Active | None:
    record = view.record(entry)
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


def visible(index: dict[bytes, Active], audience: Audience | None) -> list[Active]:
    """Gives the active memories that an audience may see."""
    if audience is None:
        return list(index.values())
    return [item for item in index.values() if audience.admits(item.visibility, item.owner_principal)]

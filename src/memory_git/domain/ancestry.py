"""The commit graph of one project, in memory (4-history, ancestry).

1. A changeset's position is the order of its arrival, parents first: positions are a topological order.
2. A walk takes positions downwards. When one is taken, all its descendants in the walk were taken before, so what
   was painted on it is complete, and a decision made then is exact, also on criss-cross merges.
3. The search for bases stops as soon as one side has nothing of its own left to walk and nothing common is pending.
4. A walk beyond `max_history` changesets is refused as `history_too_long`, never cut short.

One thread appends while any number read: a changeset is found by its id only once its row is whole.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from memory_git.domain.errors import Corrupt, NotFound, TooLarge

MAX_HISTORY = 10_000_000
MAX_PARENTS = 2
_NONE = -1
_LEFT, _RIGHT, _STALE = 1, 2, 4
_COMMON = _LEFT | _RIGHT
_PAINTS = 8


@dataclass(frozen=True, slots=True)
class Page:
    """Some ids in topological order, descendants first, and where the walk goes on; an empty frontier is the end."""

    ids: tuple[str, ...]
    frontier: tuple[str, ...]


class CommitGraph:
    """Parents and generations of changesets, by position: twelve bytes each, beside the ids."""

    def __init__(self, max_history: int = MAX_HISTORY) -> None:
        self.max_history = max_history
        self._parents = array("i")
        self._generations = array("i")
        self._ids: list[str] = []
        self._positions: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, changeset_id: str) -> bool:
        return changeset_id in self._positions

    def append(self, changeset_id: str, parent_ids: Sequence[str]) -> None:
        """Adds a changeset whose parents are known; of one that is there already, nothing changes.

        Raises Corrupt for an unknown parent, more than two, or other parents than before.
        """
        if changeset_id in self._positions:
            if self.parents(changeset_id) != tuple(parent_ids):
                raise Corrupt("changeset", changeset_id, "came twice, with different parents")
            return
        if len(parent_ids) > MAX_PARENTS or any(parent not in self._positions for parent in parent_ids):
            raise Corrupt("changeset", changeset_id, "its parents are not all known, or more than two")
        parents = [self._positions[parent] for parent in parent_ids]
        self._parents.extend([*parents, _NONE, _NONE][:MAX_PARENTS])
        self._generations.append(1 + max((self._generations[parent] for parent in parents), default=0))
        self._ids.append(changeset_id)
        self._positions[changeset_id] = len(self._ids) - 1

    def position(self, changeset_id: str) -> int:
        """Gives the position of a changeset; raises NotFound `changeset_not_found`."""
        position = self._positions.get(changeset_id)
        if position is None:
            raise NotFound("changeset_not_found", "no such changeset in this project")
        return position

    def id_at(self, position: int) -> str:
        """Gives the changeset at a position."""
        return self._ids[position]

    def parents(self, changeset_id: str) -> tuple[str, ...]:
        """Gives the parents of a changeset, in its own order."""
        return tuple([self._ids[parent] for parent in self.parents_at(self.position(changeset_id))])

    def generation(self, changeset_id: str) -> int:
        """Gives the length of the longest path to a root, roots counting 1."""
        return self._generations[self.position(changeset_id)]

    def parents_at(self, position: int) -> list[int]:
        """Gives the positions of the parents of the changeset at a position."""
        first, second = self._parents[2 * position : 2 * position + 2]
        return [first] if second < 0 <= first else [first, second] if first >= 0 else []

    def best_common_ancestors(self, a: str, b: str) -> tuple[str, ...]:
        """Gives every common ancestor that is no ancestor of another, sorted by id; none for unrelated histories."""
        walk = _Walk(self)
        walk.paint(self.position(a), _LEFT)
        walk.paint(self.position(b), _RIGHT)
        best = []
        while walk.pending[_COMMON] or (walk.pending[_LEFT] and walk.pending[_RIGHT]):
            position, paint = walk.take()
            if paint == _COMMON:
                best.append(self._ids[position])
                paint |= _STALE
            for parent in self.parents_at(position):
                walk.paint(parent, paint)
        return tuple(sorted(best))

    def is_ancestor(self, a: str, of: str) -> bool:
        """Decides whether `of` descends from `a`, or is it."""
        wanted, start = self.position(a), self.position(of)
        lowest = self._generations[wanted]
        walk = _Walk(self)
        walk.paint(start, _LEFT)
        while walk.pending[_LEFT]:
            position, _ = walk.take()
            if position == wanted:
                return True
            for parent in self.parents_at(position):
                if parent == wanted or (parent > wanted and self._generations[parent] > lowest):
                    walk.paint(parent, _LEFT)
        return False

    def is_on_mainline(self, a: str, of: str) -> bool:
        """Decides whether first parents lead from `of` to `a`, or it is it."""
        wanted, position = self.position(a), self.position(of)
        for _ in range(self.max_history):
            parents = self.parents_at(position)
            if position <= wanted or not parents:
                return position == wanted
            position = parents[0]
        raise _too_long(self.max_history)

    def reachable_not_from(self, head: str, exclude: Iterable[str]) -> list[str]:
        """Gives the changesets reachable from the head and from none of the excluded, parents first."""
        walk = _Walk(self)
        walk.paint(self.position(head), _LEFT)
        for excluded in exclude:
            walk.paint(self.position(excluded), _RIGHT)
        found = []
        while walk.pending[_LEFT]:
            position, paint = walk.take()
            if paint == _LEFT:
                found.append(self._ids[position])
            for parent in self.parents_at(position):
                walk.paint(parent, paint)
        return found[::-1]

    def log(
        self,
        heads: Iterable[str],
        limit: int,
        frontier: Iterable[str] | None = None,
        first_parent: bool = False,
    ) -> Page:
        """Gives a page of all ancestors of the heads, themselves included, descendants first.

        The frontier of a page asks for the next one, in any process: what is left of the walk is its ancestors.
        """
        starts = {self.position(start) for start in (heads if frontier is None else frontier)}
        queue = [-position for position in starts]
        heapify(queue)
        ids: list[str] = []
        while queue and len(ids) < limit:
            position = -heappop(queue)
            ids.append(self._ids[position])
            parents = self.parents_at(position)
            for parent in parents[:1] if first_parent else parents:
                if parent not in starts:
                    starts.add(parent)
                    heappush(queue, -parent)
        return Page(tuple(ids), tuple([self._ids[-position] for position in sorted(queue)]))


class _Walk:
    """Painted changesets not yet taken, the newest first, and how many are pending under each paint."""

    def __init__(self, graph: CommitGraph) -> None:
        self._queue: list[int] = []
        self._paints: dict[int, int] = {}
        self._left = self._limit = graph.max_history
        self.pending = [0] * _PAINTS

    def paint(self, position: int, paint: int) -> None:
        """Adds paint to a changeset, which is walked once however often it is painted."""
        before = self._paints.get(position, 0)
        after = before | paint
        if after == before:
            return
        if before:
            self.pending[before] -= 1
        else:
            heappush(self._queue, -position)
        self._paints[position] = after
        self.pending[after] += 1

    def take(self) -> tuple[int, int]:
        """Gives the newest pending changeset with all its paint; raises TooLarge `history_too_long`."""
        if not self._left:
            raise _too_long(self._limit)
        self._left -= 1
        position = -heappop(self._queue)
        paint = self._paints.pop(position)
        self.pending[paint] -= 1
        return position, paint


def _too_long(most: int) -> TooLarge:
    return TooLarge("history_too_long", f"the answer lies beyond {most} changesets", max_history=most)

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
_STRIDE = 256
_BARE = bytes(_STRIDE)


@dataclass(frozen=True, slots=True)
class Page:
    """Some ids in topological order, descendants first, and where the walk goes on; an empty frontier is the end."""

    ids: tuple[str, ...]
    frontier: tuple[str, ...]


class CommitGraph:
    """Parents and generations of changesets, by position: twelve bytes each, beside the ids."""

    def __init__(self, max_history: int = MAX_HISTORY) -> None:
        self.max_history = max_history
        self.parent_positions = array("i"), array("i")
        """The first and the second parent of each changeset, -1 where it has none."""
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
        for positions, parent in zip(self.parent_positions, [*parents, _NONE, _NONE], strict=False):
            positions.append(parent)
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
        return [positions[position] for positions in self.parent_positions if positions[position] >= 0]

    def best_common_ancestors(self, a: str, b: str) -> tuple[str, ...]:
        """Gives every common ancestor that is no ancestor of another, sorted by id; none for unrelated histories."""
        walk = _Walk(self, [self.position(a)], [self.position(b)])
        return tuple(sorted([self._ids[position] for position in walk.best_common()]))

    def is_ancestor(self, a: str, of: str) -> bool:
        """Decides whether `of` descends from `a`, or is it."""
        wanted, start = self.position(a), self.position(of)
        if self._mainline_at(start, wanted) == wanted:
            return True
        lowest = self._generations[wanted]
        walk = _Walk(self, [start])
        while walk.pending[_LEFT]:
            position, paint = walk.take()
            if position <= wanted:
                return position == wanted
            if self._generations[position] > lowest:
                walk.paint_parents(position, paint)
        return False

    def reached(self, head: str, among: Iterable[str]) -> set[str]:
        """Gives those of some changesets that a head descends from, or is."""
        wanted = {self._positions[name] for name in among if name in self._positions}
        lowest = min(wanted, default=0)
        walk = _Walk(self, [self.position(head)])
        found: set[str] = set()
        while walk.pending[_LEFT] and len(found) < len(wanted):
            position, paint = walk.take()
            if position < lowest:
                break
            if position in wanted:
                found.add(self._ids[position])
            walk.paint_parents(position, paint)
        return found

    def is_on_mainline(self, a: str, of: str) -> bool:
        """Decides whether first parents lead from `of` to `a`, or it is it."""
        wanted = self.position(a)
        found = self._mainline_at(self.position(of), wanted)
        if found > wanted:
            raise _too_long(self.max_history)
        return found == wanted

    def _mainline_at(self, position: int, wanted: int) -> int:
        """Gives the first changeset of a line of first parents that is not above a position; one above it when that lies too far."""
        firsts = self.parent_positions[0]
        for _ in range(self.max_history):
            if position <= wanted:
                break
            position = firsts[position]
        return position

    def reachable_not_from(self, head: str, exclude: Iterable[str]) -> list[str]:
        """Gives the changesets reachable from the head and from none of the excluded, parents first."""
        walk = _Walk(self, [self.position(head)], [self.position(name) for name in exclude])
        found = []
        while walk.pending[_LEFT]:
            position, paint = walk.take()
            if paint == _LEFT:
                found.append(self._ids[position])
            walk.paint_parents(position, paint)
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
    """Changesets painted and not yet taken, by position, and how many are pending under each paint.

    Paints lie in one byte a position, which costs less than a queue: histories are dense, and what is not is stepped over.
    """

    def __init__(self, graph: CommitGraph, left: Sequence[int], right: Sequence[int] = ()) -> None:
        self._parents = graph.parent_positions
        self._left = self._limit = graph.max_history
        self._position = max(*left, *right, 0)
        self._paints = bytearray(self._position + 1)
        self.pending = [0] * _PAINTS
        for positions, paint in ((left, _LEFT), (right, _RIGHT)):
            for position in positions:
                self._paint(position, paint)

    def _paint(self, position: int, paint: int) -> None:
        before = self._paints[position]
        self._paints[position] = after = before | paint
        self.pending[before] -= 1
        self.pending[after] += 1

    def take(self) -> tuple[int, int]:
        """Gives the newest pending changeset with all its paint; raises TooLarge `history_too_long`."""
        if not self._left:
            raise _too_long(self._limit)
        self._left -= 1
        paints, position = self._paints, self._position
        while not paints[position]:
            position -= _STRIDE if paints[position - _STRIDE : position] == _BARE else 1
        self._position = position - 1
        paint = paints[position]
        self.pending[paint] -= 1
        return position, paint

    def paint_parents(self, position: int, paint: int) -> None:
        """Adds paint to the parents of a changeset, which are walked once however often they are painted."""
        for parents in self._parents:
            if parents[position] >= 0:
                self._paint(parents[position], paint)

    def best_common(self) -> list[int]:
        """Takes what is needed to find every best common ancestor (rule 3); all in one loop, since a search takes thousands."""
        paints, pending, position, both = self._paints, self.pending, self._position, self._parents
        left, right, common = _LEFT, _RIGHT, _COMMON
        best: list[int] = []
        for _ in range(self._limit):
            if not ((pending[left] and pending[right]) or pending[common]):
                return best
            while not paints[position]:
                position -= _STRIDE if paints[position - _STRIDE : position] == _BARE else 1
            paint = paints[position]
            pending[paint] -= 1
            if paint == common:
                best.append(position)
                paint |= _STALE
            for parents in both:
                parent = parents[position]
                if parent < 0:
                    break
                before = paints[parent]
                after = before | paint
                if after != before:
                    pending[before] -= 1
                    pending[after] += 1
                    paints[parent] = after
            position -= 1
        if (pending[left] and pending[right]) or pending[common]:
            raise _too_long(self._limit)
        return best


def _too_long(most: int) -> TooLarge:
    return TooLarge("history_too_long", f"the answer lies beyond {most} changesets", max_history=most)

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

from memory_git.domain.errors import Corrupt, NotFound
from memory_git.domain.walk import LEFT, Parents, Walk, too_long

MAX_HISTORY = 10_000_000
MAX_PARENTS = 2
_NONE = -1


@dataclass(frozen=True, slots=True)
class Page:
    """Some ids in topological order, descendants first, and where the walk goes on; an empty frontier is the end."""

    ids: tuple[str, ...]
    frontier: tuple[str, ...]


class CommitGraph:
    """Parents and generations of changesets, by position: twelve bytes each, beside the ids."""

    def __init__(self, max_history: int = MAX_HISTORY) -> None:
        self.max_history = max_history
        self._parents: Parents = array("i"), array("i")
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
        for positions, parent in zip(self._parents, [*parents, _NONE, _NONE], strict=False):
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
        return [positions[position] for positions in self._parents if positions[position] >= 0]

    def _walk(self, left: Sequence[int], right: Sequence[int] = ()) -> Walk:
        return Walk(self._parents, self.max_history, left, right)

    def best_common_ancestors(self, a: str, b: str) -> tuple[str, ...]:
        """Gives every common ancestor that is no ancestor of another, sorted by id; none for unrelated histories."""
        walk = self._walk([self.position(a)], [self.position(b)])
        return tuple(sorted([self._ids[position] for position in walk.best_common()]))

    def is_ancestor(self, a: str, of: str) -> bool:
        """Decides whether `of` descends from `a`, or is it."""
        wanted, start = self.position(a), self.position(of)
        if self._mainline_at(start, wanted) == wanted:
            return True
        lowest = self._generations[wanted]
        walk = self._walk([start])
        while walk.pending[LEFT]:
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
        walk = self._walk([self.position(head)])
        found: set[str] = set()
        while walk.pending[LEFT] and len(found) < len(wanted):
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
            raise too_long(self.max_history)
        return found == wanted

    def _mainline_at(self, position: int, wanted: int) -> int:
        """Gives the first changeset of a line of first parents that is not above a position; one above it when that lies too far."""
        firsts = self._parents[0]
        for _ in range(self.max_history):
            if position <= wanted:
                break
            position = firsts[position]
        return position

    def reachable_not_from(self, head: str, exclude: Iterable[str]) -> list[str]:
        """Gives the changesets reachable from the head and from none of the excluded, parents first."""
        walk = self._walk([self.position(head)], [self.position(name) for name in exclude])
        found = []
        while walk.pending[LEFT]:
            position, paint = walk.take()
            if paint == LEFT:
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

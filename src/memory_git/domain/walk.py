"""A walk down the commit graph from two sides, painting what each reaches (4-history, ancestry; rules 2 to 4 of `ancestry`).

Paints lie in one byte a position, which costs less than a queue: histories are dense, and what is not is stepped over.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from memory_git.domain.errors import TooLarge

LEFT, RIGHT, STALE = 1, 2, 4
COMMON = LEFT | RIGHT
_PAINTS = 8
_STRIDE = 256
_BARE = bytes(_STRIDE)
Parents = tuple["array[int]", "array[int]"]
"""The first and the second parent of each changeset, by position, -1 where it has none."""


def too_long(most: int) -> TooLarge:
    """Gives the refusal of a walk beyond so many changesets."""
    return TooLarge("history_too_long", f"the answer lies beyond {most} changesets", max_history=most)


class Walk:
    """Changesets painted and not yet taken, by position, and how many are pending under each paint."""

    def __init__(
        self, parents: Parents, max_history: int, left: Sequence[int], right: Sequence[int] = ()
    ) -> None:
        self._parents = parents
        self._left = self._limit = max_history
        self._starts = (*left, *right)
        self._position = max(self._starts)
        self._paints = bytearray(self._position + 1)
        self.pending = [0] * _PAINTS
        for positions, paint in ((left, LEFT), (right, RIGHT)):
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
            raise too_long(self._limit)
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
        self._take_above(min(self._starts))
        paints, pending, position, both = self._paints, self.pending, self._position, self._parents
        left, right, common = LEFT, RIGHT, COMMON
        best: list[int] = []
        for _ in range(self._left):
            if not ((pending[left] and pending[right]) or pending[common]):
                return best
            while not paints[position]:
                position -= _STRIDE if paints[position - _STRIDE : position] == _BARE else 1
            paint = paints[position]
            pending[paint] -= 1
            if paint == common:
                best.append(position)
                paint |= STALE
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
            raise too_long(self._limit)
        return best

    def _take_above(self, start: int) -> None:
        """Takes all above where the older side begins: only the other is there, and nothing can be common."""
        paints, pending, both, position = self._paints, self.pending, self._parents, self._position
        paint, room = paints[position], self._left
        while position > start:
            if not paints[position]:
                position -= _STRIDE if paints[position - _STRIDE : position] == _BARE else 1
                continue
            for parents in both:
                parent = parents[position]
                if parent < 0:
                    break
                before = paints[parent]
                if not before & paint:
                    pending[before] -= 1
                    pending[before | paint] += 1
                    paints[parent] = before | paint
            room -= 1
            if room < 0:
                raise too_long(self._limit)
            position -= 1
        pending[paint] -= self._left - room
        self._left, self._position = room, start

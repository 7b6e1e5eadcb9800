"""Which memory took whose place between two states, over any number of steps (4-history, semantic diff: lineage followed).

1. A memory that was made and left active memory again between the states came and went: it shows nowhere. Nor does one the other way
   round, which one state has as retired and the other not at all.
2. The origins of a new active memory are the memories of the first state whose place it took, past all that came and went.
3. What was corrected into one new memory, which came of it alone, shows with that heir: as one update.

Each answer is asked of the changes by memory id, so that a page of a diff gives what the whole of it gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from memory_git.domain.change import Change
from memory_git.domain.record import Record

ChangeOf = Callable[[str], Change | None]
"""Gives the change of a memory between the two states, or None where nothing shows."""
Origins = Mapping[str, Record | None]
"""The records of the first state by memory id; None for one that the changes don't show."""


def came_and_went(change: Change) -> bool:
    """Decides whether a memory is missing in one of the two states and retired in the other (rule 1)."""
    return (change.before is None or change.after is None) and not change.present.is_active


class Succession:
    """The lineage between two states, each answer found once."""

    def __init__(self, change_of: ChangeOf) -> None:
        self._change_of = change_of
        self._origins: dict[str, Origins] = {}

    def origins(self, change: Change) -> Origins:
        """Gives the memories of the first state whose place a new memory took (rule 2); none for any other."""
        if change.before is not None or change.after is None or not change.after.is_active:
            return {}
        if change.memory_id not in self._origins:
            self._origins[change.memory_id] = self._found(change.after)
        return self._origins[change.memory_id]

    def _found(self, new: Record) -> Origins:
        found: dict[str, Record | None] = {}
        seen: set[str] = set()
        waiting = [new.lineage]
        while waiting:
            lineage = waiting.pop()
            for name in {*lineage.corrected_from, *lineage.supersedes} - seen:
                seen.add(name)
                source = self._change_of(name)
                if source is None or source.before is not None:
                    found[name] = source.before if source else None
                else:
                    waiting.append(source.present.lineage)
        return found

    def is_shown_with_heir(self, change: Change) -> bool:
        """Decides whether a change is one half of a correction into another memory (rule 3)."""
        after = change.after
        if change.before is None or after is None or after.status != "corrected":
            return False
        seen: set[str] = set()
        waiting = [after.lineage]
        while waiting:
            for name in set(waiting.pop().heirs()) - seen:
                seen.add(name)
                heir = self._change_of(name)
                if heir is None or heir.before is not None:
                    continue
                if self.origins(heir).keys() == {change.memory_id}:
                    return True
                if came_and_went(heir):
                    waiting.append(heir.present.lineage)
        return False

"""Where a project of the original is taken to, and what every part of the taking asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from memory_git.interchange.original.cells import moment
from memory_git.interchange.original.naming import RefNames
from memory_git.interchange.original.report import ProjectReport
from memory_git.interchange.original.source import OriginalChangeset, OriginalProject
from memory_git.lethe.adopting import Adopting
from memory_git.storage.lethe_history import ProjectRow
from memory_git.storage.original import Row

T = TypeVar("T")
Progress = Callable[[str, int, int], None]


class Adopts(Protocol):
    """What writes history that was made elsewhere: a store, or one write of it."""

    def adopt(self, project_id: str, work: Callable[[Adopting], T]) -> T:
        """Gives what a work made."""
        ...


class Within:
    """One write in which all works of an import run, to be rolled back with it."""

    def __init__(self, adopting: Adopting) -> None:
        self._adopting = adopting

    def adopt(self, project_id: str, work: Callable[[Adopting], T]) -> T:
        """Gives what a work made in this write."""
        del project_id
        return work(self._adopting)


@dataclass(frozen=True, slots=True)
class Place:
    """One project on its way: from where, into which store, under which names, with which changesets."""

    store: Adopts
    project: OriginalProject
    report: ProjectReport
    known: Mapping[str, OriginalChangeset]
    refs: RefNames
    progress: Progress

    def write(self, work: Callable[[Adopting], T]) -> T:
        """Gives what a work made, once it is durable; one that runs again notes nothing twice."""
        mark = self.report.mark()

        def from_the_mark(adopting: Adopting) -> T:
            self.report.return_to(mark)
            return work(adopting)

        return self.store.adopt(self.report.project_id, from_the_mark)

    def row(self, adopting: Adopting) -> ProjectRow:
        """Gives the project here."""
        found = adopting.find_project(self.report.project_id)
        assert found is not None, "the project is made first"
        return found

    def skip(self, what: str, where: object, why: str) -> None:
        """Notes what is not taken."""
        self.report.findings.skip(what, str(where)[:200], why)

    def advances(self) -> dict[str, list[tuple[Row, datetime]]]:
        """Gives the recorded moves of protected refs whose ends are taken, oldest first, by the ref's name there."""
        found: dict[str, list[tuple[Row, datetime]]] = {}
        table = "memory_protected_ref_advances"
        for row in self.project.advances:
            if row["expected_head"] in self.known and row["new_head"] in self.known:
                found.setdefault(row["ref_name"], []).append((row, moment(row, table, "created_at")))
        return found


def batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yields a sequence by parts of a size."""
    return (items[start : start + size] for start in range(0, len(items), size))

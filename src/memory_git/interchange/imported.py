"""What every importer gives: memories, links between them, and a report (9-repository, interchange).

Imported text is untrusted data: it is carried, never followed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Imported:
    """One version of one memory; a later one with the same `memory_id` corrects it.

    `payload` holds keys of `add_memory` (3-model, payload keys) without `memory_id`, within the caps.
    """

    memory_id: str
    payload: dict[str, Any]
    source_file: str
    source_line: int
    status: str = "active"


@dataclass(frozen=True, slots=True)
class ImportedLink:
    """One relationship between two imported memories; `source` is "<file>:<line>" or empty."""

    from_id: str
    kind: str
    to_id: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something that was not taken: what it is, where it stands, why."""

    what: str
    where: str
    why: str

    def to_json(self) -> dict[str, str]:
        """Gives the wire form."""
        return {"what": self.what, "where": self.where, "why": self.why}


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that was taken in another form than it stood: where, which field, how."""

    where: str
    field: str
    text: str

    def to_json(self) -> dict[str, str]:
        """Gives the wire form."""
        return {"where": self.where, "field": self.field, "text": self.text}


@dataclass(frozen=True, slots=True)
class Report:
    """How an import went: memory versions and links taken, what was skipped, what a reader should know."""

    taken: int
    links: int
    skipped: tuple[Skipped, ...]
    warnings: tuple[Notice, ...]

    def to_json(self) -> dict[str, Any]:
        """Gives the wire form."""
        return {
            "taken": self.taken,
            "links": self.links,
            "skipped": [item.to_json() for item in self.skipped],
            "warnings": [item.to_json() for item in self.warnings],
        }


@dataclass(frozen=True, slots=True)
class Import:
    """All that one path holds, in the order of the source."""

    memories: tuple[Imported, ...]
    links: tuple[ImportedLink, ...]
    report: Report


@dataclass(slots=True)
class Findings:
    """What an importer notes while it reads."""

    skipped: list[Skipped] = field(default_factory=list)
    warnings: list[Notice] = field(default_factory=list)

    def skip(self, what: str, where: str, why: str) -> None:
        """Notes that something was not taken."""
        self.skipped.append(Skipped(what, where, why))

    def warn(self, where: str, field: str, text: str) -> None:
        """Notes that something was taken in another form."""
        self.warnings.append(Notice(where, field, text))

    def finish(self, memories: list[Imported], links: list[ImportedLink]) -> Import:
        """Gives the whole import, with its report."""
        report = Report(len(memories), len(links), tuple(self.skipped), tuple(self.warnings))
        return Import(tuple(memories), tuple(links), report)

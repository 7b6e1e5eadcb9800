"""How the import of a database of the original went: for each project what was taken and what was there, and what was not taken, with why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from memory_git.interchange.imported import Findings
from memory_git.interchange.original.verifying import Damage

KINDS = (
    *("events", "changesets", "refs", "manifests", "conflicts", "authorizations", "advances", "assemblies"),
    "beside",
)


@dataclass(frozen=True, slots=True)
class Mark:
    """Where a report stood."""

    taken: Counter[str]
    there: Counter[str]
    skipped: int
    warnings: int


@dataclass(slots=True)
class ProjectReport:
    """One project: its name here and there, its root, and counts by kind."""

    project_id: str
    named_there: str
    root: str | None = None
    taken: Counter[str] = field(default_factory=Counter)
    there: Counter[str] = field(default_factory=Counter)
    damage: list[Damage] = field(default_factory=list)
    findings: Findings = field(default_factory=Findings)

    def count(self, kind: str, *, taken: int, there: int = 0) -> None:
        """Counts what was taken of a kind, and what was here before."""
        self.taken[kind] += taken
        self.there[kind] += there

    def mark(self) -> Mark:
        """Gives where the report stands, to return to when a write runs again."""
        findings = self.findings
        return Mark(Counter(self.taken), Counter(self.there), len(findings.skipped), len(findings.warnings))

    def return_to(self, mark: Mark) -> None:
        """Forgets what was noted since a mark."""
        self.taken, self.there = Counter(mark.taken), Counter(mark.there)
        del self.findings.skipped[mark.skipped :]
        del self.findings.warnings[mark.warnings :]

    def to_json(self) -> dict[str, Any]:
        """Gives the wire form."""
        return {
            "project": self.project_id,
            "named_there": self.named_there,
            "root": self.root,
            "taken": {kind: self.taken[kind] for kind in KINDS},
            "there": {kind: self.there[kind] for kind in KINDS},
            "damage": [item.to_json() for item in self.damage],
            "skipped": [item.to_json() for item in self.findings.skipped],
            "warnings": [item.to_json() for item in self.findings.warnings],
        }


@dataclass(slots=True)
class ImportReport:
    """The whole import."""

    file: str
    schema: int
    preview: bool
    digests: Counter[str] = field(default_factory=Counter)
    projects: list[ProjectReport] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Gives the wire form."""
        return {
            "file": self.file,
            "schema_version": self.schema,
            "preview": self.preview,
            "digests_verified": dict(sorted(self.digests.items())),
            "projects": [item.to_json() for item in self.projects],
        }

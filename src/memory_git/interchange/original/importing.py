"""`lethe import-lethe`: a database of the original, taken in project by project (5-lethe, legacy baseline).

1. All is read and verified before anything is written: a wrong digest, a malformed row or a name that is taken refuses the whole import.
2. With `skip_damaged`, what does not hold and what stands on it is left out, and told; the rest is taken.
3. A preview does the same in a copy of the store, which is thrown away, or where a store can't be copied so in writes that are rolled
   back: so it tells exactly what would be.
4. What is here already is passed over; so a second time changes nothing, and what was broken off goes on.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from memory_git.domain.errors import Invalid, NotFound
from memory_git.interchange.original.naming import project_here
from memory_git.interchange.original.place import Progress, Within
from memory_git.interchange.original.report import ImportReport, ProjectReport
from memory_git.interchange.original.source import OriginalProject, Source
from memory_git.interchange.original.taking import Taking
from memory_git.interchange.original.verifying import Verified, verify
from memory_git.lethe.adopting import Adopting
from memory_git.lethe.store import LetheStore
from memory_git.storage.original import open_original

_MOST_NAMED = 20
Sound = tuple[OriginalProject, Verified, ProjectReport]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What of a database is to be taken in, under which names, and what happens to what is damaged."""

    only: Collection[str] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    skip_damaged: bool = False


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is to be taken of a database, read and verified; no store was asked yet."""

    report: ImportReport
    sound: list[Sound]

    def take(self, store: LetheStore, progress: Progress) -> ImportReport:
        """Takes it into a store and gives the report; nothing is written where an id or a name is taken."""
        takings = [Taking(store, project, verified, own, progress) for project, verified, own in self.sound]
        for taking in takings:
            taking.check()
        for taking in takings:
            taking.take()
        return self.report

    def try_out(self, store: LetheStore, progress: Progress) -> ImportReport:
        """Gives the report that `take` would give; each project's writes are rolled back."""
        for project, verified, own in self.sound:

            def all_of_it(adopting: Adopting, item: Sound = (project, verified, own)) -> None:
                taking = Taking(Within(adopting), *item, progress)
                taking.check()
                taking.take()

            store.would_adopt(own.project_id, all_of_it)
        return self.report


def import_original(path: Path, store: LetheStore, wanted: Wanted, progress: Progress) -> ImportReport:
    """Takes a database in and gives the report; raises what `preview_original` would."""
    return prepare(path, wanted, progress).take(store, progress)


def preview_original(
    path: Path, store: LetheStore | None, wanted: Wanted, progress: Progress
) -> ImportReport:
    """Gives the report that an import would give, and writes nothing.

    Raises Invalid `import_unreadable`, `import_unknown_form`, `import_newer_schema`, `import_damaged`, `import_malformed`,
    `import_digest_wrong`, `import_project_name`, NotFound `import_no_project`, Clash `import_project_in_use`, `import_differs`.
    """
    prepared = prepare(path, wanted, progress)
    if store is not None and not store.is_file:
        report = prepared.try_out(store, progress)
    else:
        with _copy(store) as copy:
            report = prepared.take(copy, progress)
    report.preview = True
    return report


@contextmanager
def _copy(store: LetheStore | None) -> Iterator[LetheStore]:
    """Lends a copy of a store, or a new one, that is gone afterwards (rule 3)."""
    with tempfile.TemporaryDirectory(prefix="memory-git-preview-") as directory:
        name = "lethe.db" if store is None else str(store.backup(directory)["file"])
        copy = LetheStore.open(Path(directory) / name, merge_keys=None)
        try:
            yield copy
        finally:
            copy.close()


def prepare(path: Path, wanted: Wanted, progress: Progress) -> Prepared:
    """Gives what is to be taken, read and verified (rule 1)."""
    with open_original(path) as file:
        source = Source(file)
        source.require_own_ids()
        report = ImportReport(path.name, source.schema, preview=False)
        names = _chosen(source, wanted)
        sound: list[Sound] = []
        for done, name in enumerate(names):
            progress("projects read", done, len(names))
            project = source.project(name)
            own = ProjectReport(project_here(name, wanted.renamed), name)
            verified = verify(project, digests_v2=source.digests_v2)
            own.damage = verified.damage
            report.digests.update(verified.algorithms.values())
            report.projects.append(own)
            sound.append((project, verified, own))
        progress("projects read", len(names), len(names))
    _require_apart(report)
    if not wanted.skip_damaged:
        _require_sound(report)
    return Prepared(report, sound)


def _chosen(source: Source, wanted: Wanted) -> list[str]:
    there = source.project_ids()
    absent = sorted({*wanted.only, *wanted.renamed} - set(there))
    if absent:
        named = ", ".join(there) or "none"
        raise NotFound("import_no_project", f"the database has no project {absent[0]!r}: it has {named}")
    return [name for name in there if not wanted.only or name in wanted.only]


def _require_apart(report: ImportReport) -> None:
    names = [item.project_id for item in report.projects]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise Invalid(
            "import_project_name",
            f"two projects would be {twice[0]} here: give one another name",
            project=twice[0],
        )


def _require_sound(report: ImportReport) -> None:
    damage = [(item.named_there, found) for item in report.projects for found in item.damage]
    if not damage:
        return
    told = "; ".join(f"{found.kind} {found.object_id[:80]} {found.why}" for _, found in damage[:3])
    raise Invalid(
        "import_digest_wrong",
        f"{len(damage)} object(s) of the database do not hold by its own rules ({told}): nothing was imported. Import a backup"
        " from before that, or take the rest with --skip-damaged",
        damage=[{"project": name, **found.to_json()} for name, found in damage[:_MOST_NAMED]],
        damaged=len(damage),
    )

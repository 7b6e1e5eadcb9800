"""Takes one project of the original into a store, part by part; what is there already is passed over, so it can be done again.

In this order, each part in writes of its own: events of the baseline, the root, all other events, changesets (parents first), refs
with their logs, manifests, burnt nonces and advances, assemblies, conflicts, and what has no place of its own, as events.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from memory_git.domain.changeset import CreateRequest
from memory_git.domain.errors import Clash
from memory_git.domain.ids import SHARED_MAIN, is_memory_id, parse_ref
from memory_git.domain.ops import Op
from memory_git.interchange.original.attached import request_of
from memory_git.interchange.original.beside import event_of
from memory_git.interchange.original.cells import moment, names_in
from memory_git.interchange.original.moving import moves_of
from memory_git.interchange.original.naming import RefNames
from memory_git.interchange.original.ops import Translation, translated
from memory_git.interchange.original.place import Adopts, Place, Progress, batches
from memory_git.interchange.original.planning import planned
from memory_git.interchange.original.projection import Lines
from memory_git.interchange.original.receipts import Receipts
from memory_git.interchange.original.report import ProjectReport
from memory_git.interchange.original.source import (
    ROOT_KEY,
    OriginalChangeset,
    OriginalEvent,
    OriginalProject,
)
from memory_git.interchange.original.verifying import Verified
from memory_git.lethe.adopting import Adopting, GivenEvent, GivenMove, Trial
from memory_git.lethe.projects import root_request
from memory_git.storage.lethe_history import ProjectRow
from memory_git.storage.original import Row

EVENTS_A_WRITE = 500
CHANGESETS_A_WRITE = 50


class Taking:
    """One project on its way into a store."""

    def __init__(
        self,
        store: Adopts,
        project: OriginalProject,
        verified: Verified,
        report: ProjectReport,
        progress: Progress,
    ) -> None:
        known = {item.changeset_id: item for item in verified.order}
        self._place = Place(store, project, report, known, RefNames(report.findings), progress)
        self._verified = verified
        self._into = Translation(report.project_id, report.named_there, report.findings)
        self._root = self._find_root()
        self._lines = Lines()

    def _find_root(self) -> OriginalChangeset | None:
        """Gives the changeset that the original began the project with, if it did."""
        named = self._place.project.baseline and self._place.project.baseline["root_changeset_id"]
        for item in self._verified.order:
            is_it = item.changeset_id == named or (named is None and item.idempotency_key == ROOT_KEY)
            if is_it and not item.parent_ids and not item.ops:
                return item
        return None

    # what stands in the way

    def check(self) -> None:
        """Raises Clash `import_project_in_use` where the project's name is taken here by another history."""
        self._place.write(self._check)

    def _check(self, adopting: Adopting) -> None:
        row = adopting.find_project(self._place.report.project_id)
        self._check_ids(adopting, row)
        if row is None:
            return
        if row.root_changeset_id is None:
            foreign = adopting.foreign_events(row, {item.event_id for item in self._events()})
            is_other = foreign > 0
        else:
            is_other = self._root is not None and row.root_changeset_id != self._root.changeset_id
            is_other = is_other or (self._root is None and not self._was_begun_by_import(adopting, row))
        if is_other:
            raise Clash(
                "import_project_in_use",
                f"{self._place.report.project_id} is in use here with a history of its own: take it in under another"
                f" name, --rename {self._place.report.named_there}=NEW",
                project=self._place.report.project_id,
            )

    def _check_ids(self, adopting: Adopting, row: ProjectRow | None) -> None:
        """Raises Clash `import_differs` where an id is here already, for something else."""
        for item in self._events():
            adopting.require_same_event(row, self._given(item))
        project = self._place.project
        for kind, names in (
            ("changeset", self._place.known),
            ("manifest", [item["manifest_id"] for item in project.manifests]),
            ("assembly", [item["assembly_id"] for item in project.assemblies]),
        ):
            for name in names:
                adopting.require_own(row, name, kind)

    def _was_begun_by_import(self, adopting: Adopting, row: ProjectRow) -> bool:
        """Decides whether a root that the original has not was made by an import of this project: its first event is ours."""
        events = self._events()
        ids = {item.event_id for item in events}
        return not events or adopting.first_event(row) in ids

    # the whole

    def take(self) -> None:
        """Takes everything in."""
        baseline, rest = self._baseline()
        project = self._place.write(lambda adopting: adopting.make_project(self._place.report.project_id))
        if project.root_changeset_id is None:
            self._take_events("baseline events", baseline)
            project = self._place.write(lambda adopting: self._make_root(adopting, len(baseline)))
            self._place.report.count("changesets", taken=int(self._root is not None))
        else:
            self._take_events("baseline events", baseline)
            self._place.report.count("changesets", taken=0, there=int(self._root is not None))
        self._place.report.root = project.root_changeset_id
        self._lines.add(project.root_changeset_id or "", (), ())
        self._take_events("events", rest)
        self._take_changesets()
        self._take_refs()
        Receipts(self._place).take()
        kept = [event_of(item, self._place.report.project_id) for item in self._place.project.beside]
        self._take_events("rows kept beside", kept, "beside")

    # events

    def _events(self) -> list[OriginalEvent]:
        return [item for item in self._place.project.events if is_memory_id(item.event_id)]

    def _baseline(self) -> tuple[list[GivenEvent], list[GivenEvent]]:
        """Gives the events that the root stands on, and all others, each in the order of their times."""
        for item in self._place.project.events:
            if not is_memory_id(item.event_id):
                self._place.report.findings.skip(
                    "event", repr(item.event_id)[:120], "its id can't be a memory's here"
                )
        events = sorted(self._events(), key=lambda item: (item.created_at, item.event_id))
        frozen = self._frozen(events)
        return (
            [self._given(item) for item in events if item.event_id in frozen],
            [self._given(item) for item in events if item.event_id not in frozen],
        )

    def _frozen(self, events: Sequence[OriginalEvent]) -> set[str]:
        if self._root is None:
            return set() if self._place.known else {item.event_id for item in events}
        if self._place.project.baseline is not None:
            return set(names_in(self._place.project.baseline, "memory_legacy_baselines", "event_ids_json"))
        return {item.event_id for item in events if item.created_at <= self._root.created_at}

    def _given(self, item: OriginalEvent) -> GivenEvent:
        actor = self._place.project.agents_of_sessions.get(item.session_id or "")
        return GivenEvent(
            item.event_id,
            item.event_type,
            item.content,
            actor if is_memory_id(actor) else None,
            item.created_at,
        )

    def _take_events(self, kind: str, events: Sequence[GivenEvent], counted: str = "events") -> None:
        done = 0
        for batch in batches(events, EVENTS_A_WRITE):
            self._place.progress(kind, done, len(events))
            taken = self._place.write(partial(self._add_events, batch=batch))
            self._place.report.count(counted, taken=taken, there=len(batch) - taken)
            done += len(batch)
        self._place.progress(kind, done, len(events))

    def _add_events(self, adopting: Adopting, batch: Sequence[GivenEvent]) -> int:
        return adopting.add_events(self._place.row(adopting), batch)

    # root and changesets

    def _make_root(self, adopting: Adopting, baseline: int) -> ProjectRow:
        project = self._place.row(adopting)
        if self._root is None:
            request = root_request(self._place.report.project_id)
            earliest = min((item.created_at for item in self._verified.order), default=datetime.now(UTC))
            made = adopting.make_root(project, request, baseline, earliest, None)
            adopting.put_ref(made, SHARED_MAIN, [GivenMove(made.root_changeset_id or "", "system", earliest)])
            return made
        request = self._request(self._root, ())
        return adopting.make_root(project, request, baseline, self._root.created_at, self._root.changeset_id)

    def _request(self, item: OriginalChangeset, parents: Sequence[str]) -> CreateRequest:
        return request_of(
            item,
            self._place.report.project_id,
            self._place.refs.here(item.ref_name),
            parents,
            self._verified.algorithms[item.changeset_id],
            self._place.report.findings,
        )

    def _parents(self, item: OriginalChangeset) -> tuple[str, ...]:
        """Gives a changeset's parents here: two at most, and never none."""
        names = tuple(dict.fromkeys(item.parent_ids))
        if len(names) > 2:
            self._place.report.findings.warn(
                item.changeset_id, "parent_ids", f"the {len(names) - 2} beyond the second are left out"
            )
        if not names:
            self._place.report.findings.warn(
                item.changeset_id, "parent_ids", "it has none, and stands on the project's root here"
            )
        return names[:2] or (self._place.report.root or "",)

    def _take_changesets(self) -> None:
        order = [item for item in self._verified.order if item is not self._root]
        done = 0
        for batch in batches(order, CHANGESETS_A_WRITE):
            self._place.progress("changesets", done, len(order))
            self._place.write(partial(self._take_some, items=batch))
            done += len(batch)
        self._place.progress("changesets", done, len(order))

    def _take_some(self, adopting: Adopting, items: Iterable[OriginalChangeset]) -> None:
        project = self._place.row(adopting)
        for item in items:
            row = adopting.has_changeset(project, item.changeset_id)
            if row is not None:
                quiet = Translation(self._into.project_id, self._into.named_there)
                stored = adopting.ops_of(project, row) if len(item.parent_ids) > 1 else ()
                self._lines.add(item.changeset_id, self._parents(item), translated(item, quiet), stored)
                self._place.report.count("changesets", taken=0, there=1)
                continue
            self._take_one(adopting, project, item)
            self._place.report.count("changesets", taken=1)

    def _take_one(self, adopting: Adopting, project: ProjectRow, item: OriginalChangeset) -> None:
        parents = self._parents(item)
        ops = [(f"{item.changeset_id}/{op.ordinal}", op) for op in translated(item, self._into)]
        request = self._request(item, parents)
        if adopting.is_key_used(project, item.author, item.idempotency_key):
            own = f"{item.idempotency_key}#{item.changeset_id}"
            self._place.report.findings.warn(
                item.changeset_id, "idempotency_key", "is used here: it has the id behind it"
            )
            request = replace(request, idempotency_key=own)

        stored: list[Op] = []

        def plan(trial: Trial) -> CreateRequest:
            made = planned(trial, request, ops, self._lines, item.changeset_id, self._place.report.findings)
            stored[:] = made.ops if trial.is_merge else ()
            return made

        adopting.add_changeset(project, request, item.created_at, item.changeset_id, plan)
        self._lines.add(item.changeset_id, parents, [op for _, op in ops], stored)

    # refs

    def _take_refs(self) -> None:
        advances = self._place.advances()
        for ref in self._place.project.refs:
            there = ref["ref_name"]
            head = self._sound_head(ref["head_changeset_id"])
            if head is None:
                self._place.skip("ref", there, "its head was not taken")
                continue
            if head != ref["head_changeset_id"]:
                self._place.skip("ref", there, f"its head was not taken: it stands at {head} here")
            sound = {**ref, "head_changeset_id": head}
            self._place.write(partial(self._take_ref, ref=sound, advances=advances.get(there, [])))

        self._place.write(self._require_main)

    def _sound_head(self, head: str) -> str | None:
        """Gives a head that was taken, else the newest of its first parents that was."""
        items = {item.changeset_id: item for item in self._place.project.changesets}
        name: str | None = head
        for _ in range(len(items) + 1):
            if name is None or name in self._place.known:
                return name
            parents = items[name].parent_ids if name in items else ()
            name = parents[0] if parents else None
        return None

    def _require_main(self, adopting: Adopting) -> None:
        """Makes the shared ref of a project that has none, at its root."""
        project = self._place.row(adopting)
        if not adopting.has_ref(project, SHARED_MAIN):
            root = project.root_changeset_id or ""
            at = self._root.created_at if self._root is not None else datetime.now(UTC)
            adopting.put_ref(project, SHARED_MAIN, [GivenMove(root, "system", at)])

    def _take_ref(self, adopting: Adopting, ref: Row, advances: list[tuple[Row, datetime]]) -> None:
        name = self._place.refs.here(ref["ref_name"])
        protected = parse_ref(name).is_protected_by_name
        if bool(ref["protected"]) != protected:
            self._place.report.findings.warn(name, "protected", "is what the name says here")
        made_at = moment(ref, "memory_refs", "created_at")
        moves = moves_of(ref, made_at, self._place.known, advances, protected=protected)
        outcome = adopting.put_ref(self._place.row(adopting), name, moves)
        if outcome == "differs":
            self._place.report.findings.skip(
                "ref",
                name,
                f"it has gone another way here: its head there is {ref['head_changeset_id']};"
                " `lethe memory branch` makes a ref at it",
            )
        self._place.report.count(
            "refs", taken=int(outcome in ("made", "moved")), there=int(outcome == "same")
        )

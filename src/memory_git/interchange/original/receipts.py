"""What the original kept beside history: manifests, authorizations and advances, assemblies, conflicts (5-lethe, 7-context).

1. A manifest pins digests here, which are those of its memories at its head; what is not active there is left out, and told.
2. A nonce that was burnt stays burnt. An advance has no signature any more, and says so by its version.
3. Of open conflicts those are stored that our own detection finds between the same sides; no old resolution is taken over,
   since nobody can say any more who made it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from memory_git.domain.ids import is_digest
from memory_git.domain.times import format_time
from memory_git.interchange.original.cells import cell, moment, names_in, optional, texts_in
from memory_git.interchange.original.place import Place
from memory_git.lethe.adopting import Adopting
from memory_git.storage.original import Row

NO_PROPOSAL = "import"


class Receipts:
    """The receipts of one project, on their way."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def take(self) -> None:
        """Takes all of them; refs stand already."""
        project = self._place.project
        for row in project.manifests:
            self._counted("manifests", partial(self._take_manifest, row=row))
        for row in project.authorizations:
            self._counted("authorizations", partial(self._burn, row=row))
        pairs = [pair for found in self._place.advances().values() for pair in found]
        for row, at in sorted(pairs, key=lambda pair: pair[1]):
            self._counted("advances", partial(self._take_advance, row=row, at=at))
        named = {row["advance_id"] for row, _ in pairs}
        for row in project.advances:
            if row["advance_id"] not in named:
                self._place.skip("advance", row["advance_id"], "an end of it was not taken")
        for row in project.assemblies:
            self._counted("assemblies", partial(self._take_assembly, row=row))
        for row in project.conflicts:
            self._place.write(partial(self._take_conflict, row=row))

    def _counted(self, kind: str, take: Callable[[Adopting], bool | None]) -> None:
        outcome = self._place.write(take)
        if outcome is not None:
            self._place.report.count(kind, taken=int(outcome), there=int(not outcome))

    def _take_manifest(self, adopting: Adopting, row: Row) -> bool | None:
        table = "memory_manifests"
        manifest_id, direction = cell(row, table, "manifest_id"), cell(row, table, "direction")
        body: dict[str, Any] = {"project_id": self._place.report.project_id, "kind": direction}
        for name in ("session_id", "actor_id"):
            if (value := optional(row, table, name)) is not None:
                body[name] = value
        body["unresolved_conflicts"] = names_in(row, table, "unresolved_conflicts_json")
        more = self._input(adopting, row) if direction == "input" else self._output(row)
        if more is None:
            return None
        return adopting.put_manifest(
            self._place.row(adopting), manifest_id, {**body, **more}, moment(row, table, "created_at")
        )

    def _input(self, adopting: Adopting, row: Row) -> dict[str, Any] | None:
        table = "memory_manifests"
        head = cell(row, table, "head_changeset_id")
        if head not in self._place.known:
            self._place.skip("manifest", row["manifest_id"], "its head was not taken")
            return None
        names = names_in(row, table, "selected_memory_ids_json")
        digests = adopting.digests_at(self._place.row(adopting), head, names)
        for name in names:
            if name not in digests:
                self._place.report.findings.warn(
                    row["manifest_id"], name[:200], "is not active at the head: left out"
                )
        return {
            "ref_name": self._place.refs.here(cell(row, table, "ref_name")),
            "head_changeset_id": head,
            "state_root": digests[""],
            "projection_version": "memory-context/v1",
            "evaluated_at": format_time(moment(row, table, "created_at")),
            "selected": [
                {"memory_id": name, "record_digest": digests[name]} for name in names if name in digests
            ],
            "inclusion_reasons": texts_in(row, table, "inclusion_reasons_json"),
            "exclusion_reasons": texts_in(row, table, "exclusion_reasons_json"),
        }

    def _output(self, row: Row) -> dict[str, Any] | None:
        table = "memory_manifests"
        resulting = optional(row, table, "resulting_changeset_id") or cell(row, table, "head_changeset_id")
        base = optional(row, table, "base_changeset_id")
        if resulting not in self._place.known or (base is not None and base not in self._place.known):
            self._place.skip("manifest", row["manifest_id"], "a changeset that it names was not taken")
            return None
        found = {"resulting_changeset_id": resulting, "base_changeset_id": base}
        found["target_ref"] = optional(row, table, "proposed_target_ref")
        found["proposal_id"] = optional(row, table, "merge_proposal_id")
        return {name: value for name, value in found.items() if value is not None}

    def _burn(self, adopting: Adopting, row: Row) -> bool | None:
        table = "memory_merge_authorizations"
        return adopting.burn(
            self._place.row(adopting),
            cell(row, table, "nonce"),
            cell(row, table, "merge_proposal_id"),
            moment(row, table, "consumed_at"),
        )

    def _take_advance(self, adopting: Adopting, row: Row, at: datetime) -> bool | None:
        named = {
            "ref_name": self._place.refs.here(row["ref_name"]),
            "expected_head": row["expected_head"],
            "new_head": row["new_head"],
            "proposal_id": str(row["merge_proposal_id"]),
            "proposal_digest": str(row.get("proposal_digest", "")),
            "reviewer_principal": str(row["reviewer_principal"]),
            "merger_principal": str(row["merger_principal"]),
            "strategy": str(row["strategy"]),
            "nonce": str(row["authorization_nonce"]),
            "key_id": "",
        }
        if not adopting.has_move(
            self._place.row(adopting), named["ref_name"], row["expected_head"], row["new_head"]
        ):
            self._place.skip("advance", row["advance_id"], "the ref's log here has no such move")
            return None
        return adopting.put_advance(self._place.row(adopting), row["advance_id"], named, at)

    def _take_assembly(self, adopting: Adopting, row: Row) -> bool | None:
        table = "context_assemblies"
        body: dict[str, Any] = {"project_id": self._place.report.project_id}
        head = optional(row, table, "memory_head_changeset_id") if "memory_head_changeset_id" in row else None
        if head in self._place.known:
            body["head_changeset_id"] = head
        body["items"] = [_item(item) for item in row["items"] if is_digest(item["content_sha256"])]
        counts = {
            name.removesuffix("_estimated_tokens"): value
            for name, value in row.items()
            if name.endswith("_estimated_tokens") and isinstance(value, int)
        }
        body["token_counts"] = counts
        feedback = row["feedback"]
        verdict = (feedback["verdict"], feedback["note"] or "") if feedback else (None, None)
        session_id = cell(row, table, "session_id")
        key = self._place.project.keys_of_sessions.get(session_id, session_id)
        return adopting.put_assembly(
            self._place.row(adopting),
            cell(row, table, "assembly_id"),
            key,
            body,
            verdict,
            moment(row, table, "created_at"),
        )

    def _take_conflict(self, adopting: Adopting, row: Row) -> None:
        table = "memory_conflicts"
        names = ("conflict_id", "left_changeset_id", "right_changeset_id", "conflict_type", "status")
        conflict_id, left, right, conflict_type, status = (cell(row, table, name) for name in names)
        if status != "open":
            self._place.skip(
                "conflict", conflict_id, f"it is {status}: kept as an event, no resolution here rests on it"
            )
            return
        if left not in self._place.known or right not in self._place.known:
            self._place.skip("conflict", conflict_id, "a side of it was not taken")
            return
        proposal_id = optional(row, table, "proposal_id") if "proposal_id" in row else None
        stored, there = adopting.put_conflicts(
            self._place.row(adopting), proposal_id or NO_PROPOSAL, left, right, conflict_type
        )
        if not stored + there:
            self._place.skip(
                "conflict", conflict_id, f"our detection finds no {conflict_type} between its sides"
            )
        self._place.report.count("conflicts", taken=stored, there=there)


def _item(raw: Row) -> dict[str, Any]:
    """Gives an item of an assembly: the event it shows, else its kind."""
    item: dict[str, Any] = {
        "memory_id": raw["event_id"] or raw["item_kind"],
        "content_digest": raw["content_sha256"],
    }
    tokens = raw.get("estimated_tokens")
    return {**item, "tokens": tokens} if isinstance(tokens, int) else item

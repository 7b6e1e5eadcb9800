"""The op behind each change of a diff, verified against its changeset, as far as an audience may see it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from memory_git.domain.canonical import decode
from memory_git.domain.change import OpRef
from memory_git.domain.changeset import op_digest
from memory_git.domain.errors import Corrupt
from memory_git.domain.ops import Op
from memory_git.domain.policy import Audience
from memory_git.domain.record import Edge
from memory_git.domain.trie import Entry
from memory_git.lethe.caches import OpBehind
from memory_git.lethe.changesets import check_changeset
from memory_git.lethe.session import View
from memory_git.storage import lethe_history
from memory_git.storage.lethe_history import OpRow
from memory_git.storage.lethe_states import EdgeRow


def op_is_shown(row: OpRow | OpBehind, audience: Audience | None) -> bool:
    """Decides whether an audience may see an op: it may see every record that the op touched."""
    return audience is None or audience.admits(row.visibility, row.owner_principal or None)


@dataclass(frozen=True, slots=True)
class _Origin:
    """A changeset that was verified: its id, and the digests of its ops."""

    changeset_id: str
    op_digests: list[str]


class OpRefs:
    """Finds the op behind a version or relationship; each is read and verified once, in whichever diff it stands."""

    def __init__(self, view: View, audience: Audience | None = None) -> None:
        self._view = view
        self._audience = audience
        self._origins: dict[int, _Origin] = {}

    def of(self, entry: Entry) -> OpRef:
        """Gives the op that last touched the record of an entry."""
        if entry.row < 0:
            return OpRef(self._origin(entry.changed).changeset_id)
        place: tuple[str | int, ...] = ("version", entry.row)
        kept = self._kept(place)
        if kept is None:
            version = self._view.version(entry.row)
            kept = self._keep(place, self._read(version.changeset_row, version.ordinal))
        return self._shown(kept)

    def of_edge(self, edge: EdgeRow) -> OpRef:
        """Gives the op that made a relationship."""
        place = ("edge", edge.id)
        return self._shown(
            self._kept(place) or self._keep(place, self._read(edge.changeset_row, edge.ordinal))
        )

    def at(self, changeset_row: int, ordinal: int) -> OpRef:
        """Gives an op by its place."""
        place = ("op", changeset_row, ordinal)
        return self._shown(self._kept(place) or self._keep(place, self._read(changeset_row, ordinal)))

    def _shown(self, found: OpBehind) -> OpRef:
        return found.ref if op_is_shown(found, self._audience) else found.ref.without_content()

    def _kept(self, place: tuple[str | int, ...]) -> OpBehind | None:
        return self._view.caches.ops.get((self._view.epoch, *place))

    def _keep(self, place: tuple[str | int, ...], found: OpBehind) -> OpBehind:
        if self._view.is_durable:
            self._view.caches.ops.put((self._view.epoch, *place), found)
        return found

    def _read(self, changeset_row: int, ordinal: int | None) -> OpBehind:
        view, origin = self._view, self._origin(changeset_row)
        if ordinal is None:
            return OpBehind(OpRef(origin.changeset_id), "public", "")
        row = lethe_history.op_at(view.connection, view.project_id, changeset_row, ordinal)
        if row is None or origin.op_digests[ordinal : ordinal + 1] != [row.op_digest]:
            raise _corrupt(origin, ordinal)
        named = (ordinal, row.op_type, row.target_event_id, row.resulting_event_id)
        payload: dict[str, Any] | None = None
        if row.payload is not None:
            if op_digest(row.salt or "", Op(*named, {}, row.payload)) != row.op_digest:
                raise _corrupt(origin, ordinal)
            payload = msgspec.json.decode(row.payload)
        ref = OpRef(origin.changeset_id, *named, payload)
        return OpBehind(ref, row.visibility, row.owner_principal)

    def _origin(self, changeset_row: int) -> _Origin:
        if changeset_row not in self._origins:
            view = self._view
            row = lethe_history.changeset_at(view.connection, view.project_id, changeset_row)
            if row is None:
                raise Corrupt("changeset", changeset_row, "is absent, though a version is of it")
            self._origins[changeset_row] = _Origin(row.changeset_id, check_changeset(row)["op_digests"])
        return self._origins[changeset_row]


class Removals:
    """The ops that took relationships away in a head's history beyond others; they are looked for when one is asked."""

    def __init__(self, refs: OpRefs, view: View, head: str, without: Sequence[str]) -> None:
        self._refs = refs
        self._view = view
        self._head = head
        self._without = without
        self._places: dict[Edge, tuple[int, int]] | None = None

    def of(self, edge: Edge) -> OpRef | None:
        """Gives the last op that took a relationship away; None where none did, and the relationship was never there."""
        if self._places is None:
            self._places = self._found()
        place = self._places.get(edge)
        return None if place is None else self._refs.at(*place)

    def _found(self) -> dict[Edge, tuple[int, int]]:
        view = self._view
        delta = view.graph().reachable_not_from(self._head, self._without)
        rows = {view.state_row(name).id for name in delta}
        if not rows:
            return {}
        ops = lethe_history.ops_of_type(
            view.connection, view.project_id, "remove_relationship", min(rows), max(rows)
        )
        found: dict[Edge, tuple[int, int]] = {}
        for op in ops:
            if op.changeset_row in rows and op.payload is not None:
                ends = (
                    op.target_event_id or "",
                    decode(op.payload).get("kind", ""),
                    op.resulting_event_id or "",
                )
                found[Edge(*ends)] = (op.changeset_row, op.ordinal)
        return found


def _corrupt(origin: _Origin, ordinal: int) -> Corrupt:
    return Corrupt("changeset", origin.changeset_id, f"op {ordinal} does not agree with its digest")

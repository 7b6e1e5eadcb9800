"""A state while the ops of one changeset are applied to it, and the questions that more than one op type asks of it.

1. A memory that a faulty op would have made counts as existing: what needs it is not at fault once more.
2. A conflicted key has no record; ops see what its sides agree on, and settle the fields that they assign.
3. A retracted value is a tombstone: no op takes its record out of `retracted`, or its text elsewhere, without `revive`.
4. One heir: what was corrected or superseded stays so while what took its place is not retracted.
5. What is private stays its owner's, also under another id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from memory_git.domain.ops import Op
from memory_git.domain.record import Attachment, Conflicted, Edge, Record, attachment_digest
from memory_git.domain.state import EventContent, Overlay, Salts, StateView

_STAYS = "what is private stays its owner's"
MOST_STEPS = 256
"""How far a lineage is followed for one op; a longer one is refused, never guessed at."""


class OpRefused(Exception):
    """The state does not allow an op: which field, which rule."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(rule)
        self.field = field
        self.rule = rule


class OpPresumed(Exception):
    """An op needs a memory that a faulty op before it would have made; that fault is told already (rule 1)."""


class Draft:
    """One pass of ops over a state."""

    def __init__(
        self,
        below: StateView,
        conflicted: Iterable[Conflicted],
        presumed: Iterable[str],
        salts: Salts,
        events: EventContent,
    ) -> None:
        self.conflicted = tuple(conflicted)
        self.state = Overlay(below, {item.memory_id: item for item in self.conflicted})
        self.presumed = set(presumed)
        self.touched_by: dict[str, int] = {}
        self.edges_touched_by: dict[Edge, int] = {}
        self._salts = salts
        self._events = events
        self._attached: dict[str, dict[str, Attachment]] = {}

    # reading

    def need(self, memory_id: str | None, field: str = "target_event_id") -> Record:
        """Gives the record of a memory that an op needs; for a conflicted one, what its sides agree on."""
        found = self.state.record(memory_id) if memory_id is not None else None
        if found is None:
            if memory_id in self.presumed:
                raise OpPresumed
            raise OpRefused(field, "names no memory at this state")
        return found.merged if isinstance(found, Conflicted) else found

    def attachment(self, record: Record, digest: str) -> Attachment | None:
        """Gives the attachment of this digest; those of a memory are hashed once, however many are taken away."""
        known = self._attached.get(record.memory_id)
        if known is None:
            salt = self._salts(record.memory_id)
            items = (*record.evidence, *record.verification)
            known = self._attached[record.memory_id] = {attachment_digest(salt, item): item for item in items}
        return known.get(digest)

    def presume(self, op: Op) -> None:
        """Counts what an op would have made as existing."""
        if op.resulting_event_id is not None and self.state.record(op.resulting_event_id) is None:
            self.presumed.add(op.resulting_event_id)

    # writing

    def put(self, op: Op, record: Record, settles: frozenset[str] | None = None) -> None:
        """Sets a record. On a conflicted key `settles` names the fields that this answers; None answers all."""
        found = self.state.record(record.memory_id)
        self.touched_by[record.memory_id] = op.ordinal
        if isinstance(found, Conflicted) and settles is not None:
            self.state.records[record.memory_id] = found.settle(settles, record)
        else:
            self.state.records[record.memory_id] = record

    def put_attached(self, op: Op, record: Record, item: Attachment) -> None:
        """Sets a record that has one attachment more."""
        if record.memory_id in self._attached:
            known = self._attached[record.memory_id]
            known[attachment_digest(self._salts(record.memory_id), item)] = item
        self.put(op, record, frozenset())

    def put_detached(self, op: Op, record: Record, digest: str) -> None:
        """Sets a record that has one attachment less."""
        self._attached[record.memory_id].pop(digest)
        self.put(op, record, frozenset())

    def put_new(self, op: Op, record: Record) -> None:
        """Sets a record that starts anew under its id."""
        self._attached.pop(record.memory_id, None)
        self.put(op, record)

    def put_edge(self, op: Op, edge: Edge, *, stands: bool) -> None:
        """Sets whether a relationship stands."""
        self.edges_touched_by[edge] = op.ordinal
        self.state.edges[edge] = stands

    # rules

    def refuse_event_of_other_content(self, memory_id: str, content: str, field: str) -> None:
        """Refuses an id that names an existing event with another content: it adopts exactly that event or nothing."""
        known = self._events(memory_id)
        if known is not None and known != content:
            raise OpRefused(field, "the id names an existing event with another content")

    def refuse_retracted(self, op: Op) -> None:
        """Refuses to bring back, or to lose the tombstone of, a retracted value without `revive` (rule 3)."""
        found = self.state.record(op.target_event_id or "")
        if found is not None and found.is_retracted and not op.payload.get("revive"):
            raise OpRefused("target_event_id", "the memory is retracted: `revive` brings it back")

    def refuse_return(self, target: Record) -> None:
        """Refuses to make a memory active whose value lives on in another one (rule 4)."""
        for name in target.lineage.heirs():
            heir = self.state.record(name)
            if heir is not None and (isinstance(heir, Conflicted) or not heir.is_retracted):
                raise OpRefused("target_event_id", "another memory took its place: retract that one first")
        origins = (*target.lineage.corrected_from, *target.lineage.supersedes)
        if len(origins) > MOST_STEPS:
            raise OpRefused("target_event_id", f"it took the place of more than {MOST_STEPS} memories")
        for name in origins:
            before = self.state.record(name)
            if isinstance(before, Record) and before.is_active:
                raise OpRefused("target_event_id", "the memory whose place it took is active")

    def refuse_second_heir(self, target: Record, heir: str | None) -> None:
        """Refuses to give a retired memory another successor while the one it has is not retracted (rule 4)."""
        if target.is_active:
            return
        for name in (*target.lineage.heirs(), target.lineage.duplicate_of):
            found = self.state.record(name) if name and name != heir else None
            if found is not None and (isinstance(found, Conflicted) or not found.is_retracted):
                raise OpRefused(
                    "target_event_id", "it already has a successor: correct or supersede that one"
                )

    def refuse_taken(self, memory_id: str) -> Record | None:
        """Gives the retired record that has this id, or None; refuses an id that is in use."""
        found = self.state.record(memory_id)
        if isinstance(found, Conflicted):
            raise OpRefused("resulting_event_id", "this merge has not settled the memory with this id")
        if found is not None and found.is_active:
            raise OpRefused("resulting_event_id", "an active memory has this id: correct or supersede it")
        return found

    def owner_of_successor(self, op: Op, before: Record | None, target: Record | None) -> str | None:
        """Gives the owner of what an op makes: who had the id before, else as said, else the target's (rule 5)."""
        formers = [former for former in (before, target) if former is not None]
        stated: str | None = op.payload.get("owner_principal")
        kept = before.owner_principal if before is not None else None
        owner = kept or stated or (target.owner_principal if target is not None else None)
        for former in formers:
            if former.visibility == "private" and former.owner_principal not in (None, owner):
                raise OpRefused("payload.owner_principal", _STAYS)
            if former.visibility == "private" and former.owner_principal and stated not in (None, owner):
                raise OpRefused("payload.owner_principal", _STAYS)
        return owner

    def descends(self, record: Record, from_id: str) -> bool:
        """Decides whether a memory came from another by correction or supersession, within MOST_STEPS."""
        if from_id in record.lineage.supersedes or from_id in record.lineage.corrected_from:
            return True
        return from_id in islice(self._origins(record), MOST_STEPS)

    def _origins(self, record: Record) -> Iterator[str]:
        waiting = [record]
        seen: set[str] = set()
        for current in waiting:
            for name in (*current.lineage.supersedes, *current.lineage.corrected_from):
                if name not in seen:
                    seen.add(name)
                    yield name
                    before = self.state.record(name)
                    if isinstance(before, Record):
                        waiting.append(before)

    def refuse_circle(self, duplicate: Record, canonical: Record) -> None:
        """Refuses a canonical memory that is, over any steps, a duplicate of its own duplicate."""
        for _ in range(MOST_STEPS):
            name = canonical.lineage.duplicate_of
            if name is None:
                return
            if name == duplicate.memory_id:
                raise OpRefused(
                    "payload.duplicate_of", "the canonical memory is itself a duplicate of this one"
                )
            canonical = self.need(name, "payload.duplicate_of")
        raise OpRefused("payload.duplicate_of", "is itself a duplicate, many times over: name the last one")

    # what a merge leaves

    def unsettled(self) -> list[Conflicted]:
        """Gives the conflicted keys that no op settled, and those whose value would live on in two active memories."""
        found = []
        for item in sorted(self.conflicted, key=lambda item: item.memory_id):
            settled = self.state.record(item.memory_id)
            if isinstance(settled, Conflicted):
                found.append(settled)
            elif len(self._living(item, settled)) > 1:
                found.append(replace(item, fields=frozenset({"lineage"})))
        return found

    def _living(self, item: Conflicted, settled: Record | None) -> set[str]:
        living = {item.memory_id} if settled is not None and settled.is_active else set()
        for side in (item.left, item.right):
            living |= {end for name in side.lineage.heirs() if (end := self._living_end(name)) is not None}
        return living

    def _living_end(self, memory_id: str) -> str | None:
        for _ in range(MOST_STEPS):
            found = self.state.record(memory_id)
            if found is None:
                return None
            record = found.merged if isinstance(found, Conflicted) else found
            if record.is_active:
                return memory_id
            heirs = record.lineage.heirs()
            if not heirs:
                return None
            memory_id = heirs[0]
        return memory_id

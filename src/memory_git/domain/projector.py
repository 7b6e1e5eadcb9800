"""The one projector: what a list of ops makes of a state (3-model, operations; 4-history, state).

`apply(state, ops)` is used by validation, commit, merge, planning and verification alike. Ops apply in order and see each other's
effects. An op that the state does not allow is a fault and has no effect; the memory it would have made counts as existing for the
ops after it, so that one mistake is told once. Nothing of a result that holds faults may be stored.

Rules, per type:
1. add: the id is not an active memory's; on a retired id it makes a new version that keeps its owner. An id that names an event
   adopts exactly that event's content.
2. correct: in place it overlays the record; with a resulting id the target becomes `corrected` and the result its successor.
3. supersede: the target becomes `superseded`; with content a successor is made, which inherits what it doesn't say.
4. One successor: what was corrected, superseded or marked duplicate is not given another while its successor is active.
5. Trust: a claim about the target must agree with the store; an inference never supersedes what a user approved; a record has
   the least trust of its lineage; an approval does not outlive a change of the content it approved.
6. duplicate, relationship, deprecation, status, attach, detach: as the table in 3-model says.
7. In a merge changeset a conflicted key is settled by assigning every open field, or by superseding or retiring it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memory_git.domain.errors import Fault
from memory_git.domain.ops import INFERENCES, RECORD_KEYS, Op, least_trust
from memory_git.domain.policy import narrowest
from memory_git.domain.record import (
    Attachment,
    Conflicted,
    Edge,
    Lineage,
    Record,
    attachment_digest,
    sorted_attachments,
)
from memory_git.domain.state import EventContent, Overlay, Salts, StateView

_STATUS_FIELDS = frozenset(
    {"status", "status_reason", "lineage.corrected_by", "lineage.superseded_by", "lineage.duplicate_of"}
)
_INHERITED = (
    "kind",
    "event_type",
    "type",
    "title",
    "scope",
    "subject",
    "fact_key",
    "tags",
    "visibility",
    "protected",
    "pinned",
)
_ATTACHMENT_KEYS = ("kind", "source", "note", "status", "summary")


@dataclass(frozen=True, slots=True)
class Reach:
    """Who may see an op: the narrowest visibility of the records it touched, before and after, and their one owner.

    `owner_principal` is empty when two private owners meet: then nobody may.
    """

    visibility: str
    owner_principal: str


@dataclass(slots=True)
class Applied:
    """What ops made of a state: changed records and relationships, who may see each op, and the faults."""

    records: dict[str, Record] = field(default_factory=dict)
    edges: dict[Edge, bool] = field(default_factory=dict)
    touched_by: dict[str, int] = field(default_factory=dict)
    """memory_id → ordinal of the last op that changed it."""
    reach: dict[int, Reach] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    unsettled: list[Conflicted] = field(default_factory=list)


def apply(
    state: StateView,
    ops: Sequence[Op],
    *,
    salts: Salts,
    events: EventContent = lambda _: None,
    conflicted: Iterable[Conflicted] = (),
) -> Applied:
    """Gives what the ops make of the state; `conflicted` are the keys that a merge changeset must settle."""
    run = _Run(Overlay(state, {item.memory_id: item for item in conflicted}), salts, events)
    for op in ops:
        run.step(op)
    return run.result()


class _Refuse(Exception):
    """One op is not allowed by the state: which field, which rule."""

    def __init__(self, rule_field: str, rule: str) -> None:
        super().__init__(rule)
        self.rule_field = rule_field
        self.rule = rule


class _Run:
    """One pass over the ops of one changeset."""

    def __init__(self, overlay: Overlay, salts: Salts, events: EventContent) -> None:
        self.state = overlay
        self.salts = salts
        self.events = events
        self.applied = Applied()
        self.presumed: set[str] = set()

    def step(self, op: Op) -> None:
        """Applies one op, or notes why it can't be."""
        before = [self.state.record(name) for name in op.memory_ids()]
        try:
            _EFFECTS[op.op_type](self, op)
        except _Refuse as refusal:
            self._presume(op)
            self.applied.faults.append(Fault(op.ordinal, refusal.rule_field, refusal.rule))
            return
        after = [self.state.record(name) for name in op.memory_ids()]
        self.applied.reach[op.ordinal] = _reach([*before, *after])

    def result(self) -> Applied:
        """Gives what came out of all steps."""
        for memory_id, found in sorted(self.state.records.items()):
            if isinstance(found, Conflicted):
                self.applied.unsettled.append(found)
            elif self.state.below.record(memory_id) != found:
                self.applied.records[memory_id] = found
        self.applied.edges = {
            edge: stands
            for edge, stands in self.state.edges.items()
            if self.state.below.has_edge(edge) != stands
        }
        return self.applied

    def _presume(self, op: Op) -> None:
        if op.resulting_event_id is not None and self.state.record(op.resulting_event_id) is None:
            self.presumed.add(op.resulting_event_id)

    def need(self, memory_id: str | None, rule_field: str = "target_event_id") -> Record:
        """Gives the record of a memory that an op needs; for a conflicted one, what its sides agree on."""
        found = self.state.record(memory_id) if memory_id is not None else None
        if found is None:
            if memory_id in self.presumed:
                raise _Presumed
            raise _Refuse(rule_field, "names no memory at this state")
        return found.merged if isinstance(found, Conflicted) else found

    def put(self, op: Op, record: Record, settles: frozenset[str] | None = None) -> None:
        """Sets a record. On a conflicted key `settles` names the fields that this answers; None answers all."""
        found = self.state.record(record.memory_id)
        self.applied.touched_by[record.memory_id] = op.ordinal
        if isinstance(found, Conflicted) and settles is not None:
            self.state.records[record.memory_id] = found.settle(settles, record)
        else:
            self.state.records[record.memory_id] = record

    def add(self, op: Op) -> None:
        memory_id = _given(op.resulting_event_id)
        found = self.state.record(memory_id)
        if isinstance(found, Conflicted) or (found is not None and found.is_active):
            raise _Refuse("resulting_event_id", "an active memory has this id: correct or supersede it")
        content = self.events(memory_id)
        if content is not None and content != op.payload["content"]:
            raise _Refuse("payload.content", "the id names an existing event with another content")
        owner = op.payload.get("owner_principal")
        if found is not None:
            owner = found.owner_principal
            if found.status == "retracted" and not op.payload.get("revive"):
                _refuse_retired_value(found, op.payload["content"])
        record = _overlay(Record(memory_id, ""), op.payload)
        self.put(op, replace(record, owner_principal=owner, source_trust=op.payload.get("source_trust")))

    def correct(self, op: Op) -> None:
        target = self.need(op.target_event_id)
        _check_trust_claim(op, target)
        if target.status == "retracted" and "content" in op.payload and not op.payload.get("revive"):
            raise _Refuse("target_event_id", "the memory is retracted: `revive` brings it back")
        corrected = _with_trust(_overlay(target, op.payload), target, op)
        if op.resulting_event_id is None:
            if op.payload.get("revive"):
                corrected = _reactivated(corrected)
            self.put(op, corrected, _assigned(op))
            return
        self._check_successor(op, target)
        lineage = Lineage(corrected_from=(target.memory_id,))
        successor = replace(
            corrected, memory_id=op.resulting_event_id, status="active", status_reason=None, lineage=lineage
        )
        retired = replace(
            target, status="corrected", lineage=replace(target.lineage, corrected_by=op.resulting_event_id)
        )
        self.put(op, retired)
        self.put(op, self._owned(op, successor, target))

    def supersede(self, op: Op) -> None:
        target = self.need(op.target_event_id)
        _check_trust_claim(op, target)
        if op.payload.get("source_trust") in INFERENCES and target.is_user_approved:
            raise _Refuse("payload.source_trust", "an inference can't supersede what a user approved")
        if "content" not in op.payload:
            self._supersede_by_existing(op, target)
            return
        self._check_successor(op, target)
        result = _given(op.resulting_event_id)
        inherited = {name: getattr(target, name) for name in _INHERITED}
        successor = _overlay(Record(result, "", **inherited), op.payload)
        lineage = Lineage(supersedes=(target.memory_id,))
        successor = _with_trust(replace(successor, lineage=lineage), target, op)
        self.put(op, _superseded(target, result))
        self.put(op, self._owned(op, successor, target))

    def _supersede_by_existing(self, op: Op, target: Record) -> None:
        if op.resulting_event_id is None:
            self.put(op, replace(target, status="superseded"))
            return
        successor = self.need(op.resulting_event_id, "resulting_event_id")
        if successor.is_active and target.memory_id not in _ancestors(self.state, successor):
            raise _Refuse("resulting_event_id", "an unrelated active memory has this id")
        self.put(op, _superseded(target, successor.memory_id))
        supersedes = tuple(sorted({*successor.lineage.supersedes, target.memory_id}))
        self.put(
            op, replace(successor, lineage=replace(successor.lineage, supersedes=supersedes)), frozenset()
        )

    def _owned(self, op: Op, successor: Record, target: Record) -> Record:
        """Gives the successor with its owner: that of the retired memory whose id it takes, else as said, else the target's."""
        before = self.state.record(successor.memory_id)
        if isinstance(before, Record):
            return replace(successor, owner_principal=before.owner_principal)
        return replace(successor, owner_principal=op.payload.get("owner_principal") or target.owner_principal)

    def _check_successor(self, op: Op, target: Record) -> None:
        existing = self.state.record(_given(op.resulting_event_id))
        if isinstance(existing, Conflicted):
            raise _Refuse("resulting_event_id", "this merge has not settled the memory with this id")
        if existing is not None and existing.is_active:
            raise _Refuse("resulting_event_id", "an active memory has this id")
        named = target.lineage.successor()
        successor = self.state.record(named) if named else None
        if isinstance(successor, Record) and successor.is_active and not target.is_active:
            raise _Refuse(
                "target_event_id", "it already has an active successor: correct or supersede that one"
            )

    def duplicate(self, op: Op) -> None:
        duplicate = self.need(op.target_event_id)
        canonical = self.need(op.resulting_event_id, "resulting_event_id")
        seen = {duplicate.memory_id}
        while canonical.lineage.duplicate_of:
            if canonical.memory_id in seen or canonical.lineage.duplicate_of in seen:
                raise _Refuse("resulting_event_id", "the canonical memory is itself a duplicate of this one")
            seen.add(canonical.memory_id)
            canonical = self.need(canonical.lineage.duplicate_of, "resulting_event_id")
        lineage = replace(duplicate.lineage, duplicate_of=op.resulting_event_id)
        self.put(op, replace(duplicate, status="duplicate", lineage=lineage))

    def relate(self, op: Op) -> None:
        self.state.edges[self._edge(op)] = True

    def unrelate(self, op: Op) -> None:
        edge = self._edge(op)
        if not self.state.has_edge(edge):
            raise _Refuse("payload", "no such relationship at this state")
        self.state.edges[edge] = False

    def _edge(self, op: Op) -> Edge:
        self.need(op.target_event_id, "from_memory_id")
        self.need(op.resulting_event_id, "to_memory_id")
        return Edge(_given(op.target_event_id), op.payload["kind"], _given(op.resulting_event_id))

    def propose_deprecation(self, op: Op) -> None:
        target = self.need(op.target_event_id)
        if not target.is_active:
            raise _Refuse("target_event_id", "the memory has left active memory already")
        marked = replace(target, status="deprecation_proposed", status_reason=op.payload["reason"])
        self.put(op, marked, frozenset({"status", "status_reason"}))

    def set_status(self, op: Op) -> None:
        target = self.need(op.target_event_id)
        status = op.payload["status"]
        if status == "active":
            self.put(op, _reactivated(target), _STATUS_FIELDS)
        else:
            marked = replace(target, status=status, status_reason=op.payload["reason"])
            self.put(op, marked, None if status == "retracted" else _STATUS_FIELDS)

    def attach(self, op: Op) -> None:
        if op.target_event_id is None:
            return
        target = self.need(op.target_event_id)
        attachment = {key: op.payload[key] for key in _ATTACHMENT_KEYS if op.payload.get(key)}
        name = "evidence" if op.op_type == "attach_evidence" else "verification"
        attachments: list[Attachment] = [*getattr(target, name), attachment]
        changes: dict[str, Any] = {name: sorted_attachments(attachments)}
        self.put(op, replace(target, **changes), frozenset())

    def detach(self, op: Op) -> None:
        target = self.need(op.target_event_id)
        salt = self.salts(target.memory_id)
        wanted = op.payload["attachment_digest"]
        evidence = tuple(item for item in target.evidence if attachment_digest(salt, item) != wanted)
        verification = tuple(item for item in target.verification if attachment_digest(salt, item) != wanted)
        if evidence == target.evidence and verification == target.verification:
            raise _Refuse("payload.attachment_digest", "names no attachment of this memory")
        self.put(op, replace(target, evidence=evidence, verification=verification), frozenset())


class _Presumed(_Refuse):
    """An op needs a memory that a faulty op before it would have made; that fault was told already."""

    def __init__(self) -> None:
        super().__init__("target_event_id", "needs a memory whose own op is at fault")


_EFFECTS: dict[str, Callable[[_Run, Op], None]] = {
    "add_memory": _Run.add,
    "correct_memory": _Run.correct,
    "supersede_memory": _Run.supersede,
    "mark_duplicate": _Run.duplicate,
    "add_relationship": _Run.relate,
    "remove_relationship": _Run.unrelate,
    "propose_deprecation": _Run.propose_deprecation,
    "attach_evidence": _Run.attach,
    "attach_verification": _Run.attach,
    "set_status": _Run.set_status,
    "detach": _Run.detach,
}


def _given(memory_id: str | None) -> str:
    """Narrows an identity that `validate` has made sure of."""
    assert memory_id is not None
    return memory_id


def _overlay(record: Record, payload: Any) -> Record:
    """Gives the record with the payload's fields assigned; an empty string or list empties a field, as `clear` does."""
    changes: dict[str, Any] = {key: _EMPTY.get(key) for key in payload.get("clear", ())}
    for key in RECORD_KEYS & payload.keys():
        value = payload[key]
        if isinstance(value, list):
            value = tuple(value)
        elif value in ("", {}):
            value = _EMPTY.get(key)
        changes[key] = float(value) if key == "confidence" and value is not None else value
    if "content" in changes and changes["content"] != record.content and "approval" not in payload:
        changes["approval"] = None
    return replace(record, **changes)


_EMPTY: dict[str, Any] = {"tags": (), "sources": (), "protected": False, "pinned": False}


def _with_trust(record: Record, target: Record, op: Op) -> Record:
    return replace(record, source_trust=least_trust(target.source_trust, op.payload.get("source_trust")))


def _check_trust_claim(op: Op, target: Record) -> None:
    claim = op.payload.get("target_trust")
    known = "user_approved" if target.is_user_approved else target.source_trust
    if claim is not None and claim != known:
        raise _Refuse("payload.target_trust", "disagrees with what the store knows of the target")


def _refuse_retired_value(retracted: Record, content: str) -> None:
    if " ".join(retracted.content.split()).casefold() == " ".join(content.split()).casefold():
        raise _Refuse("payload.content", "this value was retracted: `revive` brings it back")


def _assigned(op: Op) -> frozenset[str]:
    """Gives the record fields that a correction answers."""
    fields = (op.payload.keys() & RECORD_KEYS) | set(op.payload.get("clear", ()))
    return frozenset(fields) | (_STATUS_FIELDS if op.payload.get("revive") else frozenset())


def _reactivated(record: Record) -> Record:
    lineage = replace(record.lineage, corrected_by=None, superseded_by=None, duplicate_of=None)
    return replace(record, status="active", status_reason=None, lineage=lineage)


def _superseded(target: Record, by: str) -> Record:
    return replace(target, status="superseded", lineage=replace(target.lineage, superseded_by=by))


def _ancestors(state: StateView, record: Record) -> set[str]:
    """Gives the memories that a record came from by correction or supersession."""
    found: set[str] = set()
    waiting = [*record.lineage.corrected_from, *record.lineage.supersedes]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            before = state.record(name)
            if isinstance(before, Record):
                waiting += [*before.lineage.corrected_from, *before.lineage.supersedes]
    return found


def _reach(touched: Iterable[Record | Conflicted | None]) -> Reach:
    records: list[Record] = []
    for found in touched:
        if isinstance(found, Record):
            records.append(found)
        elif isinstance(found, Conflicted):
            records += [found.left, found.right]
    if not records:
        return Reach("public", "")
    visibility = narrowest(record.visibility for record in records)
    owners = {record.owner_principal or "" for record in records if record.visibility == "private"}
    return Reach(visibility, owners.pop() if len(owners) == 1 else "")

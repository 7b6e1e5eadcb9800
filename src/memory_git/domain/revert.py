"""The ops that take changes back on a state, and those that make one record into another (4-history, revert).

1. Per memory, its change is merged out of what stands now; what was changed again since is refused, or the later change would be lost.
2. What the changes made is retracted, unless it was changed since.
3. What leaves active memory goes first, so that a memory returns only after what had taken its place has left.
4. What was `corrected` into a memory that has left active memory is corrected into it again. Where that memory stayed active no op can:
   the former comes back as `superseded` by it, with the same heir.
5. Authority is not a payload: an approval is taken away, never given; trust is that of whoever reverts.
6. A retracted memory that comes back says `revive`: the revert is the explicit act that lets it.
7. Each op names the changeset that it takes back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import structs

from memory_git.domain.change import Change, EdgeChange, OpRef
from memory_git.domain.merge import merge_records
from memory_git.domain.ops import RECORD_KEYS
from memory_git.domain.projector import apply
from memory_git.domain.record import Attachment, Conflicted, Record, attachment_digest
from memory_git.domain.state import Overlay, Salts, StateView
from memory_git.domain.validate import check_ops

WireOp = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reverted:
    """What is taken back: a changeset, or all that a mainline gained beyond `since` up to it."""

    changeset_id: str
    message: str
    since: str | None = None

    @property
    def reason(self) -> str:
        """Gives why a memory is retracted."""
        return f"Revert of {f'{self.since}..' if self.since else ''}{self.changeset_id}"

    @property
    def title(self) -> str:
        """Gives the message of the revert."""
        return self.reason if self.since else f'Revert "{self.message}"'

    def source(self, by: OpRef) -> str:
        """Gives the changeset that an op takes back: of a range, the last that touched the record."""
        return (by.changeset_id or self.changeset_id) if self.since else self.changeset_id


@dataclass(slots=True)
class TakenBack:
    """Ops, in wire form, and the changes that can't be taken back, each with the reason."""

    ops: list[WireOp] = field(default_factory=list)
    refused: list[Mapping[str, Any]] = field(default_factory=list)

    def add(self, ops: Iterable[WireOp], source: str) -> None:
        """Adds ops that name the changeset that they take back (rule 7)."""
        for op in ops:
            self.ops.append({**op, "payload": {**op["payload"], "source_changeset_id": source}})


@dataclass(frozen=True, slots=True)
class _Return:
    """A memory as it stands, and as it is to be."""

    current: Record
    target: Record
    source: str


def take_back(
    state: StateView, changes: Iterable[Change], edges: Iterable[EdgeChange], what: Reverted, salts: Salts
) -> TakenBack:
    """Gives the ops that take changes back on a state (rules 1 to 4)."""
    taken = TakenBack()
    returns: dict[str, _Return] = {}
    for change in changes:
        current = state.record(change.memory_id)
        if not isinstance(current, Record) or change.after is None:
            taken.refused.append(_refusal(change, what, "the memory is not there any more", []))
            continue
        target = _without(change, change.after, current, what.reason)
        if isinstance(target, Conflicted):
            taken.refused.append(_refusal(change, what, "it was changed again since", sorted(target.fields)))
        else:
            returns[change.memory_id] = _Return(current, target, what.source(change.by))
    for item in sorted(_corrected_again(state, returns, taken, what, salts).values(), key=_leaves_first):
        taken.add(ops_between(item.current, item.target, what.reason, salts), item.source)
    for edge in edges:
        if state.has_edge(edge.edge) == edge.stands:
            taken.add([_edge_op(edge)], what.source(edge.by))
    return taken


def _corrected_again(
    state: StateView, returns: Mapping[str, _Return], taken: TakenBack, what: Reverted, salts: Salts
) -> dict[str, _Return]:
    """Adds the ops that correct memories into their heirs again (rule 4), and gives what is left to do after them."""
    left = dict(returns)
    current = Overlay(state)
    for name in _formers_first(returns):
        item, heir = left[name], returns[name].target.lineage.corrected_by
        if item.current.status == "corrected" or heir is None:
            continue
        found = left.get(heir) or _unchanged(current, heir, item.source)
        if found is None or found.current.is_active:
            continue
        ops = [*_field_ops(item.current, item.target, what.reason, salts), _into_heir(item, found)]
        made = _made(current, ops, salts)
        if heir in made:
            taken.add(ops, item.source)
            current.records.update(made)
            del left[name]
            left[heir] = replace(found, current=made[heir])
    return left


def _formers_first(returns: Mapping[str, _Return]) -> list[str]:
    """Gives the memories that are to be `corrected` again, each after those that are to be corrected into it."""
    former = {
        item.target.lineage.corrected_by: name
        for name, item in sorted(returns.items())
        if item.target.status == "corrected"
    }
    ordered: dict[str, None] = {}
    for name in sorted(former.values()):
        chain: dict[str, None] = {}
        step: str | None = name
        while step is not None and step not in ordered and step not in chain:
            chain[step] = None
            step = former.get(step)
        ordered.update(dict.fromkeys(reversed(chain)))
    return list(ordered)


def _unchanged(state: StateView, memory_id: str, source: str) -> _Return | None:
    record = state.record(memory_id)
    return _Return(record, record, source) if isinstance(record, Record) else None


def _into_heir(former: _Return, heir: _Return) -> WireOp:
    """Gives the op that corrects a memory into the heir that it had, with the values that the heir is to have."""
    as_heir = structs.replace(former.target, memory_id=heir.target.memory_id)
    payload: dict[str, Any] = {"content": heir.target.content}
    for op in _correction(as_heir, heir.target):
        payload.update(op["payload"])
    if former.current.is_retracted or heir.current.is_retracted:
        payload["revive"] = True
    return _op("correct_memory", former.target.memory_id, payload, heir.target.memory_id)


def _made(state: StateView, ops: list[WireOp], salts: Salts) -> dict[str, Record]:
    """Gives the records that ops make of a state; none when it does not allow them."""
    read, faults = check_ops([dict(op) for op in ops], iter(()))
    applied = apply(state, read, salts=salts)
    return {} if faults or applied.faults else applied.records


def _without(change: Change, after: Record, current: Record, reason: str) -> Record | Conflicted:
    """Gives a record as it stands now, with one change merged out of it."""
    if change.before is not None:
        return merge_records(after, current, change.before)
    if current.is_retracted:
        return current
    return merge_records(after, current, structs.replace(after, status="retracted", status_reason=reason))


def _leaves_first(item: _Return) -> tuple[bool, str]:
    return item.target.is_active, item.target.memory_id


def _refusal(change: Change, what: Reverted, reason: str, fields: list[str]) -> Mapping[str, Any]:
    return {
        "source_changeset_id": what.source(change.by),
        "ordinal": change.by.ordinal,
        "memory_id": change.memory_id,
        "reason": reason,
        "fields": fields,
        "needs": [],
    }


def _edge_op(item: EdgeChange) -> WireOp:
    return {
        "op_type": "remove_relationship" if item.stands else "add_relationship",
        "target_event_id": item.edge.from_memory_id,
        "resulting_event_id": item.edge.to_memory_id,
        "payload": {"kind": item.edge.kind},
    }


def ops_between(current: Record, target: Record, reason: str, salts: Salts) -> list[WireOp]:
    """Gives the ops that make one record of a memory into another, as far as ops may (rules 4 to 6)."""
    status_ops: list[WireOp] = []
    if (current.status, current.status_reason) != (target.status, target.status_reason):
        status_ops = _status_ops(current, target, reason)
    field_ops = _field_ops(current, target, reason, salts)
    # A retracted memory takes no new content, so fields change before it is retracted and after it came back.
    return [*field_ops, *status_ops] if target.is_retracted else [*status_ops, *field_ops]


def _field_ops(current: Record, target: Record, reason: str, salts: Salts) -> list[WireOp]:
    return [*_correction(current, target), *_attachment_ops(current, target, reason, salts)]


def _status_ops(current: Record, target: Record, reason: str) -> list[WireOp]:
    memory_id, lineage = target.memory_id, target.lineage
    revive = {"revive": True} if current.is_retracted else {}
    returned = _op("set_status", memory_id, {"status": "active", **revive})
    if target.status == "active":
        return [returned]
    if target.status in ("corrected", "superseded"):
        heir = lineage.superseded_by or lineage.corrected_by
        return [_op("supersede_memory", memory_id, revive, heir)]
    if target.status == "retracted":
        return [_set_status(target, reason)]
    first = [] if current.is_active else [returned]
    if target.status == "duplicate":
        first = [returned] if current.is_retracted else []
        return [*first, _op("mark_duplicate", memory_id, {}, lineage.duplicate_of)]
    if target.status == "deprecation_proposed":
        return [*first, _op("propose_deprecation", memory_id, {"reason": target.status_reason or reason})]
    return [*first, _set_status(target, reason)]


def _set_status(target: Record, reason: str) -> WireOp:
    payload = {"status": target.status, "reason": target.status_reason or reason}
    return _op("set_status", target.memory_id, payload)


def _op(op_type: str, target: str, payload: Mapping[str, Any], result: str | None = None) -> WireOp:
    op = {"op_type": op_type, "target_event_id": target, "payload": dict(payload)}
    return {**op, "resulting_event_id": result} if result is not None else op


def _correction(current: Record, target: Record) -> list[WireOp]:
    payload: dict[str, Any] = {}
    cleared = []
    for name in sorted(RECORD_KEYS):
        before, after = getattr(current, name), getattr(target, name)
        if before != after and after is None:
            cleared.append(name)
        elif before != after and name != "approval":
            payload[name] = list(after) if isinstance(after, tuple) else after
    if cleared:
        payload["clear"] = cleared
    return [_op("correct_memory", current.memory_id, payload)] if payload else []


def _attachment_ops(current: Record, target: Record, reason: str, salts: Salts) -> list[WireOp]:
    """Gives the ops for attachments; a digest takes away evidence and verification of the same words at once."""
    taken = [item for item in current.evidence if item not in target.evidence]
    taken += [item for item in current.verification if item not in (*target.verification, *taken)]
    ops: list[WireOp] = []
    for item in taken:
        digest = attachment_digest(salts(current.memory_id), item)
        ops.append(_op("detach", current.memory_id, {"attachment_digest": digest, "reason": reason}))
    for name, op_type in (("evidence", "attach_evidence"), ("verification", "attach_verification")):
        have: tuple[Attachment, ...] = getattr(current, name)
        for item in getattr(target, name):
            if item not in have or item in taken:
                ops.append(_op(op_type, current.memory_id, item))
    return ops

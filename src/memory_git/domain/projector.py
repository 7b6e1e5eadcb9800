"""The one projector: what a list of ops makes of a state (3-model, operations; 4-history, state).

`apply(state, ops)` is used by validation, commit, merge, planning and verification alike.

1. Ops apply in order and see each other's effects (`effects` says what each does, `draft` what the state forbids).
2. An op that the state does not allow is a fault and has no effect; the memory it would have made counts as existing for the
   ops after it, so that one mistake is told once. Nothing of a result that holds faults may be stored.
3. In a merge changeset a conflicted key is settled by assigning every open field, or by superseding or retiring it; and its
   value may live on in one active memory only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from memory_git.domain.draft import Draft, OpPresumed, OpRefused
from memory_git.domain.effects import take_effect
from memory_git.domain.errors import Fault
from memory_git.domain.ops import Op
from memory_git.domain.policy import VISIBILITIES, narrowest
from memory_git.domain.record import Conflicted, Edge, Record
from memory_git.domain.state import EventContent, Salts, StateView


@dataclass(frozen=True, slots=True)
class Reach:
    """Who may see an op: the narrowest visibility of the records it touched, before and after, and their one owner.

    `owner_principal` is empty when two private owners meet: then nobody may.
    """

    visibility: str
    owner_principal: str


_OPEN_REACH = {visibility: Reach(visibility, "") for visibility in VISIBILITIES}


@dataclass(slots=True)
class Applied:
    """What ops made of a state: changed records and relationships, who may see each op, and the faults."""

    records: dict[str, Record] = field(default_factory=dict)
    edges: dict[Edge, bool] = field(default_factory=dict)
    touched_by: dict[str, int] = field(default_factory=dict)
    """memory_id → ordinal of the last op that changed it."""
    edges_touched_by: dict[Edge, int] = field(default_factory=dict)
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
    presumed: Iterable[str] = (),
) -> Applied:
    """Gives what the ops make of the state.

    `conflicted` are the keys that a merge changeset must settle; `presumed` the memories that ops would have made which are
    at fault already (`validate.presumed_ids`).
    """
    draft = Draft(state, conflicted, presumed, salts, events)
    applied = Applied(touched_by=draft.touched_by, edges_touched_by=draft.edges_touched_by)
    for op in ops:
        _step(draft, op, applied)
    _collect(draft, state, applied)
    return applied


def _step(draft: Draft, op: Op, applied: Applied) -> None:
    names = op.memory_ids()
    touched = [draft.state.record(name) for name in names]
    try:
        take_effect(draft, op)
    except OpPresumed:
        draft.presume(op)
        return
    except OpRefused as refused:
        draft.presume(op)
        applied.faults.append(Fault(op.ordinal, refused.field, refused.rule))
        return
    touched += [draft.state.record(name) for name in names]
    applied.reach[op.ordinal] = _reach(touched)


def _collect(draft: Draft, state: StateView, applied: Applied) -> None:
    for memory_id, found in sorted(draft.state.records.items()):
        if isinstance(found, Record) and state.record(memory_id) != found:
            applied.records[memory_id] = found
    applied.edges = {
        edge: stands for edge, stands in draft.state.edges.items() if state.has_edge(edge) != stands
    }
    applied.unsettled = draft.unsettled()


def _reach(touched: Iterable[Record | Conflicted | None]) -> Reach:
    records: list[Record] = []
    for found in touched:
        if isinstance(found, Record):
            records.append(found)
        elif isinstance(found, Conflicted):
            records += [found.left, found.right]
    visibilities = {record.visibility for record in records}
    if "private" not in visibilities:
        return _OPEN_REACH[narrowest(visibilities) if visibilities else "public"]
    owners = {record.owner_principal or "" for record in records if record.visibility == "private"}
    return Reach("private", owners.pop() if len(owners) == 1 else "")

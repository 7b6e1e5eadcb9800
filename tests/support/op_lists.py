"""Lists of ops that are well formed, over few memories so that they meet, and what they make of a state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

from hypothesis import strategies as st

from memory_git.domain.ops import ASSIGNABLE_STATUSES, KINDS, TRUSTS, Op
from memory_git.domain.policy import VISIBILITIES
from memory_git.domain.projector import Applied, apply
from memory_git.domain.record import Record, attachment_digest
from memory_git.domain.state import MemoryState, freeze
from memory_git.domain.validate import check_ops


def ids() -> Iterator[str]:
    return (f"fresh-{number}" for number in count())


def salts(memory_id: str) -> str:
    return memory_id.encode("utf-8", "surrogatepass").hex().ljust(32, "0")[:32]


MEMORIES = st.sampled_from(["a", "b", "c", "d"])
CONTENTS = st.sampled_from(["Tabs.", "Spaces.", "Four spaces."])
NOTES = st.sampled_from([{"note": "x"}, {"note": "y"}, {"source": "log", "status": "ok"}])
OWNERS = st.sampled_from(["ada", "bob"])
REVIVE = {"revive": st.booleans()}
TRUST = {"source_trust": st.sampled_from(TRUSTS)}
FIELDS = {
    "title": st.sampled_from(["t", "u", ""]),
    "kind": st.sampled_from(KINDS),
    "visibility": st.sampled_from(VISIBILITIES),
    "tags": st.lists(st.sampled_from(["x", "y", "z"]), max_size=3),
    "confidence": st.sampled_from([0, 0.5, 1]),
    "fact_key": st.sampled_from(["k", "l", ""]),
    "valid_to": st.sampled_from(["2026-01-01T00:00:00Z", ""]),
    "pinned": st.booleans(),
    "extra": st.sampled_from([{}, {"k": 1}]),
}


def an_op(
    op_type: str, required: dict[str, Any], optional: dict[str, Any], *, targets: bool, results: bool | None
) -> Any:
    parts: dict[str, Any] = {
        "op_type": st.just(op_type),
        "payload": st.fixed_dictionaries(required, optional=optional),
    }
    if targets:
        parts["target_event_id"] = MEMORIES
    if results is True:
        parts["resulting_event_id"] = MEMORIES
    optional_parts = {"resulting_event_id": MEMORIES} if results is None else {}
    return st.fixed_dictionaries(parts, optional=optional_parts)


OPS = st.one_of(
    an_op(
        "add_memory",
        {"content": CONTENTS},
        {**FIELDS, **TRUST, **REVIVE, "owner_principal": OWNERS, "approval": st.just("user_approved")},
        targets=False,
        results=True,
    ),
    an_op(
        "correct_memory",
        {"summary": st.sampled_from(["s", ""])},
        {**FIELDS, **TRUST, **REVIVE, "content": CONTENTS, "owner_principal": OWNERS},
        targets=True,
        results=None,
    ),
    an_op(
        "correct_memory",
        {"clear": st.lists(st.sampled_from(["title", "tags", "extra", "approval"]), min_size=1)},
        TRUST,
        targets=True,
        results=False,
    ),
    an_op(
        "supersede_memory",
        {"content": CONTENTS},
        {**FIELDS, **TRUST, **REVIVE, "owner_principal": OWNERS},
        targets=True,
        results=True,
    ),
    an_op("supersede_memory", {}, {**TRUST, **REVIVE}, targets=True, results=None),
    an_op("mark_duplicate", {}, {}, targets=True, results=True),
    an_op("add_relationship", {"kind": st.sampled_from(["k", "l"])}, {}, targets=True, results=True),
    an_op("remove_relationship", {"kind": st.sampled_from(["k", "l"])}, {}, targets=True, results=True),
    an_op("propose_deprecation", {"reason": st.just("Old.")}, {}, targets=True, results=False),
    an_op(
        "set_status",
        {"status": st.sampled_from(ASSIGNABLE_STATUSES), "reason": st.just("So.")},
        REVIVE,
        targets=True,
        results=False,
    ),
    st.tuples(st.sampled_from(["attach_evidence", "attach_verification"]), MEMORIES, NOTES).map(
        lambda parts: {"op_type": parts[0], "target_event_id": parts[1], "payload": dict(parts[2])}
    ),
    st.tuples(MEMORIES, NOTES).map(
        lambda parts: {
            "op_type": "detach",
            "target_event_id": parts[0],
            "payload": {"attachment_digest": attachment_digest(salts(parts[0]), parts[1])},
        }
    ),
)
HISTORY = st.lists(OPS, max_size=14)
START = freeze(
    [
        Record("a", "Tabs.", owner_principal="ada", source_trust="human", tags=("x",)),
        Record("b", "Spaces.", visibility="private", owner_principal="bob", approval="user_approved"),
        Record("c", "Four spaces.", status="retracted", status_reason="So.", kind="fact"),
    ]
)


def well_formed(raw: Sequence[Any]) -> list[Op]:
    ops, _ = check_ops(list(raw), ids())
    return ops


def laid(state: MemoryState, applied: Applied) -> MemoryState:
    edges = {*state.edges, *(edge for edge, stands in applied.edges.items() if stands)}
    edges -= {edge for edge, stands in applied.edges.items() if not stands}
    return MemoryState({**state.records, **applied.records}, frozenset(edges))


def allowed(state: MemoryState, raw: Sequence[Any]) -> tuple[list[Op], MemoryState]:
    """Gives the ops that the state allows, each tried after the others, and the state after them."""
    kept: list[Op] = []
    for op in well_formed(raw):
        applied = apply(state, [op], salts=salts)
        if not applied.faults:
            kept.append(op)
            state = laid(state, applied)
    return kept, state


def records(state: MemoryState) -> list[Record]:
    return [record for record in state.records.values() if isinstance(record, Record)]

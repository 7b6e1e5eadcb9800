"""What the original made of a memory at a head: all ops of its history, one after the other, the last one counting.

History is read parents first, the first parent's line before the second's; so at a merge the original took, of two changes, the
second side's. Ours calls that a conflict; what is computed here is the answer that the original gave, for the merge's resolution.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memory_git.domain.ops import CONTENT_KEYS, Op

FIELDS = CONTENT_KEYS | {"summary"}


@dataclass(slots=True)
class Outcome:
    """One memory as the original has it: its fields, whether it is active, and what took its place."""

    fields: dict[str, Any] = field(default_factory=dict)
    status: str = "active"
    reason: str = ""
    successor: str | None = None

    @property
    def is_active(self) -> bool:
        """Says whether it is in active memory."""
        return self.status in ("active", "deprecation_proposed")


class Lines:
    """The history of one project as it is taken in: parents and ops of each changeset."""

    def __init__(self) -> None:
        self._parents: dict[str, tuple[str, ...]] = {}
        self._ops: dict[str, tuple[Op, ...]] = {}
        self._touching: dict[str, set[str]] = {}
        self._origins: dict[str, set[str]] = {}
        self._begun: dict[str, dict[str, Any]] = {}
        self._settled: dict[str, frozenset[str]] = {}

    def begin(self, memory_id: str, content: str, event_type: str) -> None:
        """Notes a memory of the baseline."""
        self._begun[memory_id] = {"content": content, "event_type": event_type}

    def add(
        self, changeset_id: str, parents: Sequence[str], ops: Iterable[Op], stored: Iterable[Op] = ()
    ) -> None:
        """Notes a changeset with the original's ops, and with those that are stored of it; its parents were noted before."""
        self._parents[changeset_id] = tuple(parents)
        self._settled[changeset_id] = frozenset(name for op in stored for name in op.memory_ids())
        self._ops[changeset_id] = tuple(ops)
        for op in self._ops[changeset_id]:
            for name in op.memory_ids():
                self._touching.setdefault(name, set()).add(changeset_id)
            if op.op_type == "correct_memory" and op.resulting_event_id and op.target_event_id:
                self._origins.setdefault(op.resulting_event_id, set()).add(op.target_event_id)

    def brought(self, parents: Sequence[str]) -> set[str]:
        """Gives the memories that the second parent's own line touches: all on which a merge may differ from its first parent."""
        before = set(self._order(parents[:1]))
        own = [name for name in self._order(parents[1:]) if name not in before]
        touched = {memory_id for name in own for op in self._ops[name] for memory_id in op.memory_ids()}
        return touched.union(*(self._settled[name] for name in own))

    def outcomes(
        self, parents: Sequence[str], ops: Sequence[Op], memory_ids: Iterable[str]
    ) -> dict[str, Outcome]:
        """Gives what the original has of some memories in a changeset with these parents and ops."""
        asked = set(memory_ids)
        wanted = self._with_origins(asked)
        changesets = set().union(*(self._touching.get(name, set()) for name in wanted))
        found = {name: Outcome(dict(self._begun[name])) for name in wanted & self._begun.keys()}
        for changeset_id in self._order(parents):
            if changeset_id in changesets:
                _replay(self._ops[changeset_id], wanted, found)
        _replay(ops, wanted, found)
        return {name: found[name] for name in asked & found.keys()}

    def _with_origins(self, memory_ids: Iterable[str]) -> set[str]:
        """Gives memories with all that they were corrected from: a successor begins as a copy."""
        waiting = list(memory_ids)
        wanted: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name not in wanted:
                wanted.add(name)
                waiting += self._origins.get(name, ())
        return wanted

    def _order(self, heads: Sequence[str]) -> list[str]:
        """Gives the ancestors of some heads, these included: parents first, lines in the order of the parents."""
        order: list[str] = []
        done: set[str] = set()
        for head in heads:
            stack = [(head, False)]
            while stack:
                name, is_left = stack.pop()
                if is_left:
                    order.append(name)
                elif name not in done:
                    done.add(name)
                    stack.append((name, True))
                    stack += [
                        (parent, False) for parent in reversed(self._parents[name]) if parent not in done
                    ]
        return order


def _replay(ops: Iterable[Op], wanted: set[str], found: dict[str, Outcome]) -> None:
    for op in ops:
        _follow(op, wanted, found)


def _follow(op: Op, wanted: set[str], found: dict[str, Outcome]) -> None:
    target, result = op.target_event_id or "", op.resulting_event_id or ""
    if op.op_type == "add_memory" and result in wanted:
        found[result] = Outcome(_fields(op.payload))
    elif op.op_type == "correct_memory" and target in wanted:
        _correct(op, found, target, result in wanted)
    elif op.op_type == "supersede_memory":
        if target in wanted:
            _retire(found.setdefault(target, Outcome()), "superseded", result or None)
        if result in wanted and op.payload.get("content"):
            found[result] = Outcome(_fields(op.payload))
    elif op.op_type == "mark_duplicate" and target in wanted:
        _retire(found.setdefault(target, Outcome()), "duplicate", result)
    elif op.op_type == "propose_deprecation" and target in wanted:
        outcome = found.setdefault(target, Outcome())
        if outcome.is_active:
            outcome.status, outcome.reason = "deprecation_proposed", op.payload["reason"]


def _correct(op: Op, found: dict[str, Outcome], target: str, wanted: bool) -> None:
    outcome = found.setdefault(target, Outcome())
    if op.resulting_event_id:
        _retire(outcome, "corrected", op.resulting_event_id)
        if wanted:
            found[op.resulting_event_id] = Outcome({**outcome.fields, **_fields(op.payload)})
        return
    outcome.fields |= _fields(op.payload)
    outcome.status, outcome.reason, outcome.successor = "active", "", None


def _retire(outcome: Outcome, status: str, successor: str | None) -> None:
    outcome.status, outcome.successor = status, successor


def _fields(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in payload.items() if key in FIELDS}

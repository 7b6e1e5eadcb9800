"""What the original made of a memory in a merge: the second parent's own ops, one after the other, on what the first parent has.

It read a history parents first, the first parent's line before the second's. So up to a merge's first parent it has what it had there,
and then come the ops of what the second alone brings; of two changes it took, without a word, the one that it read last. Ours calls
that a conflict; what is computed here is the answer that the original gave, for the merge's resolution.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memory_git.domain.ops import CONTENT_KEYS, Op
from memory_git.domain.record import Conflicted, Record

FIELDS = CONTENT_KEYS | {"summary"}
Read = Callable[[str], Record | Conflicted | None]


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


def outcome_of(record: Record) -> Outcome:
    """Gives a record as an outcome."""
    fields = {name: value for name in FIELDS if (value := getattr(record, name)) not in (None, (), False)}
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()}
    status = record.status if record.status == "deprecation_proposed" or not record.is_active else "active"
    return Outcome(plain, status, record.status_reason or "", record.lineage.successor())


class Lines:
    """The history of one project as it is taken in: parents and ops of each changeset."""

    def __init__(self) -> None:
        self._parents: dict[str, tuple[str, ...]] = {}
        self._ops: dict[str, tuple[Op, ...]] = {}
        self._settled: dict[str, frozenset[str]] = {}

    def add(
        self, changeset_id: str, parents: Sequence[str], ops: Iterable[Op], stored: Iterable[Op] = ()
    ) -> None:
        """Notes a changeset with the original's ops, and with those that are stored of it; its parents were noted before."""
        self._parents[changeset_id] = tuple(parents)
        self._ops[changeset_id] = tuple(ops)
        self._settled[changeset_id] = frozenset(name for op in stored for name in op.memory_ids())

    def outcomes(
        self, second: str, own: Collection[str], ops: Sequence[Op], first: Read
    ) -> dict[str, Outcome]:
        """Gives what a merge with these ops made of every memory that the second parent's own changesets touch.

        `first` reads a memory as the first parent has it; the others are as they are there.
        """
        told = _Told(first)
        for changeset_id in self._order(second, own):
            told.follow(self._ops[changeset_id])
        told.follow(ops)
        for name in sorted(set().union(*(self._settled[changeset_id] for changeset_id in own))):
            told.of(name)
        return told.outcomes

    def _order(self, head: str, own: Collection[str]) -> list[str]:
        """Gives some ancestors of a head, the head included: parents first, lines in the order of the parents."""
        order: list[str] = []
        done: set[str] = set()
        stack = [(head, False)] if head in own else []
        while stack:
            name, is_left = stack.pop()
            if is_left:
                order.append(name)
            elif name not in done:
                done.add(name)
                stack.append((name, True))
                above = [parent for parent in reversed(self._parents[name]) if parent in own]
                stack += [(parent, False) for parent in above if parent not in done]
        return order


class _Told:
    """Memories while ops are read, one after the other."""

    def __init__(self, first: Read) -> None:
        self._first = first
        self.outcomes: dict[str, Outcome] = {}

    def of(self, memory_id: str) -> Outcome:
        """Gives a memory as it is by now; one that is not there is empty."""
        if memory_id not in self.outcomes:
            record = self._first(memory_id)
            self.outcomes[memory_id] = outcome_of(record) if isinstance(record, Record) else Outcome()
        return self.outcomes[memory_id]

    def follow(self, ops: Iterable[Op]) -> None:
        """Reads ops."""
        for op in ops:
            self._step(op)

    def _step(self, op: Op) -> None:
        target, result = op.target_event_id or "", op.resulting_event_id or ""
        if op.op_type == "add_memory":
            self.outcomes[result] = Outcome(_fields(op.payload))
        elif op.op_type == "correct_memory":
            self._correct(op, self.of(target), result)
        elif op.op_type == "supersede_memory":
            _retire(self.of(target), "superseded", result or None)
            if op.payload.get("content"):
                self.outcomes[result] = Outcome(_fields(op.payload))
        elif op.op_type == "mark_duplicate":
            _retire(self.of(target), "duplicate", result)
        elif op.op_type == "propose_deprecation" and self.of(target).is_active:
            self.of(target).status, self.of(target).reason = "deprecation_proposed", op.payload["reason"]

    def _correct(self, op: Op, outcome: Outcome, result: str) -> None:
        if result:
            _retire(outcome, "corrected", result)
            self.outcomes[result] = Outcome({**outcome.fields, **_fields(op.payload)})
            return
        outcome.fields |= _fields(op.payload)
        outcome.status, outcome.reason, outcome.successor = "active", "", None


def _retire(outcome: Outcome, status: str, successor: str | None) -> None:
    outcome.status, outcome.successor = status, successor


def _fields(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in payload.items() if key in FIELDS}

"""A conflict as a page shows it: each side with the words that stand there, not only with names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memory_git.charon.caller import Caller
from memory_git.charon.gate import Gate
from memory_git.domain.errors import Refused
from memory_git.web.diff_view import field_text

MAX_READ = 20
SIDES = (("left", "left: what is accepted"), ("right", "right: what is proposed"))


@dataclass(frozen=True, slots=True)
class Held:
    """A memory that takes part, with the fields in question as its side has them."""

    memory_id: str
    fields: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Side:
    """One side; `held` is empty for a conflict about no memory."""

    title: str
    held: tuple[Held, ...]


@dataclass(frozen=True, slots=True)
class ShownConflict:
    """A conflict's own facts, and its sides; no sides for one about no memory."""

    facts: Mapping[str, Any]
    sides: tuple[Side, ...]


def shown_conflicts(gate: Gate, caller: Caller, conflicts: list[dict[str, Any]]) -> list[ShownConflict]:
    """Gives conflicts with both sides in words; beyond MAX_READ of them with the stored summaries alone."""
    return [_shown(gate, caller, item, reads=place < MAX_READ) for place, item in enumerate(conflicts)]


def _shown(gate: Gate, caller: Caller, conflict: Mapping[str, Any], *, reads: bool) -> ShownConflict:
    sides = tuple(
        Side(
            title, tuple(_held(gate, caller, conflict, name, party, reads=reads) for party in conflict[name])
        )
        for name, title in SIDES
    )
    return ShownConflict(conflict, sides if any(side.held for side in sides) else ())


def _held(
    gate: Gate,
    caller: Caller,
    conflict: Mapping[str, Any],
    side: str,
    party: Mapping[str, Any],
    *,
    reads: bool,
) -> Held:
    memory_id = str(party.get("memory_id") or "")
    record = _record(gate, caller, conflict, side, memory_id) if reads and memory_id else None
    if record is None:
        return Held(memory_id, (("", str(party.get("summary") or "")),))
    differing = [name for name in conflict["identity"].get("fields") or () if name != "content"]
    texts = ((name, field_text(record.get(name))) for name in ("content", *differing))
    return Held(memory_id, tuple((name, text or "") for name, text in texts))


def _record(
    gate: Gate, caller: Caller, conflict: Mapping[str, Any], side: str, memory_id: str
) -> Mapping[str, Any] | None:
    """Gives a party's record at its side's head; None where the caller can't read it there."""
    head = conflict[f"{side}_changeset_id"]
    try:
        record: Mapping[str, Any] = gate.memory(caller, conflict["project_id"], memory_id, head=head)[
            "record"
        ]
    except Refused:
        return None
    return record

"""What a caller may not see it may not name either (6-charon, reading): the store knows no users, so the gate asks.

An op on a memory that the caller's audience does not admit at a parent gets the fault of one that isn't there: else a
correction or a successor on somebody's private id would bring its content onto the caller's own branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from uuid_utils import uuid7

from memory_git.charon.house import House, Passage
from memory_git.domain.errors import Fault
from memory_git.domain.ops import RESULT_CHANNELS, TARGET_CHANNELS, Op
from memory_git.domain.validate import check_ops
from memory_git.lethe.protocol import Json

_ABSENT = "names no memory at this state"
_TAKEN = "the id is not free"
_MADE_BY = frozenset({"add_memory", "correct_memory"})


def hidden_faults(house: House, passage: Passage, parents: Sequence[str], raw: Sequence[Any]) -> list[Fault]:
    """Gives a fault for each op that names a hidden memory, with the faults of form beside; empty when none is hidden."""
    fresh = _FreshIds()
    ops, form = check_ops(list(raw), fresh)
    named = [(op, field, memory_id) for op in ops for field, memory_id in _named(op)]
    asked = {memory_id for _, _, memory_id in named} - set(fresh.given)
    found = house.lethe.records(passage.project_id, parents, asked) if asked else {}
    hidden = {memory_id for memory_id, records in found.items() if not _are_seen(passage, records)}
    faults = []
    for op, field, memory_id in named:
        if memory_id in hidden:
            made = field == "resulting_event_id" and _makes(op)
            faults.append(Fault(op.ordinal, field, _TAKEN if made else _ABSENT))
    return [*faults, *form] if faults else []


class _FreshIds(Iterator[str]):
    """Hands out ids for memories that name none, and remembers them: nothing can stand there yet."""

    def __init__(self) -> None:
        self.given: list[str] = []

    def __next__(self) -> str:
        self.given.append(str(uuid7()))
        return self.given[-1]


def _named(op: Op) -> Iterator[tuple[str, str]]:
    if op.target_event_id is not None:
        channel = TARGET_CHANNELS.get(op.op_type)
        yield (f"payload.{channel}" if channel else "target_event_id"), op.target_event_id
    if op.resulting_event_id is not None:
        channels = RESULT_CHANNELS.get(op.op_type, ())
        yield (
            (f"payload.{channels[0]}" if len(channels) == 1 else "resulting_event_id"),
            op.resulting_event_id,
        )


def _makes(op: Op) -> bool:
    return op.op_type in _MADE_BY or (op.op_type == "supersede_memory" and "content" in op.payload)


def _are_seen(passage: Passage, records: Sequence[Json]) -> bool:
    return all(
        passage.audience.admits(record["visibility"], record.get("owner_principal")) for record in records
    )

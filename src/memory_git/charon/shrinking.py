"""A correction whose body is a tenth of the one it replaces is asked about (12-lessons): it was often meant as a small edit.

The whole body is the new value of a correction, so a model that sends only the words it would change destroys the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from uuid_utils import uuid7

from memory_git.charon.house import House, Passage
from memory_git.domain.errors import Fault
from memory_git.domain.validate import check_ops

LEAST = 200
"""Characters of a body below which nothing is asked: a short note may well become shorter."""
SHARE = 10
RULE = (
    "is at most a tenth of the body that it replaces: send the whole new body; "
    "if so few words are meant, call again with shrink_ok: true"
)


def shrunk_faults(house: House, passage: Passage, parents: Sequence[str], raw: Sequence[Any]) -> list[Fault]:
    """Gives a fault for each correction that shrinks its body to a tenth, with the faults of form beside; empty if none does."""
    ops, form = check_ops(list(raw), iter(lambda: str(uuid7()), None))
    bodies = {
        op.ordinal: (op.target_event_id, op.payload["content"])
        for op in ops
        if op.op_type == "correct_memory" and isinstance(op.payload.get("content"), str)
    }
    asked = {memory_id for memory_id, _ in bodies.values() if memory_id is not None}
    stands = house.lethe.records(passage.project_id, parents, asked) if asked else {}
    faults = []
    for ordinal, (memory_id, body) in bodies.items():
        before = max(
            (len(record.get("content") or "") for record in stands.get(memory_id or "", ())), default=0
        )
        if before >= LEAST and len(body) * SHARE <= before:
            found = f"{len(body)} characters for {before}"
            faults.append(Fault(ordinal, "payload.content", RULE, found))
    return [*faults, *form] if faults else []

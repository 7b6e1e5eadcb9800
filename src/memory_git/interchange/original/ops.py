"""The original's ops in our words: the same meaning where the rules allow it, and a note of each value that they don't.

1. What the original took from silence is said: the id that it made for a memory without one, the list behind a text of tags.
2. A successor had nothing of what it superseded: what the op does not say is cleared, but for its visibility, which never widens.
3. An empty text in a correction changed nothing there, and is left out; here it would empty the field.
4. A value that its key may not hold is moved into `op_note`, as JSON, and told; so nothing is lost but its effect.
5. A private memory belongs to whoever wrote it: the original knew no owner, and nobody could read it here.
6. An op that has no meaning by our rules at all is left out, and told with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memory_git.domain.canonical import canonical_bytes
from memory_git.domain.errors import Fault, Invalid
from memory_git.domain.ops import (
    ADDING_OPS,
    ATTACH_OPS,
    ATTACHMENT_KEYS,
    CONTENT_KEYS,
    MAX_NOTE_BYTES,
    MAX_STRING_BYTES,
    RECORD_KEYS,
    Op,
)
from memory_git.domain.validate import check_ops
from memory_git.interchange.fitting import clipped
from memory_git.interchange.imported import Findings
from memory_git.interchange.original.source import OriginalChangeset, OriginalOp

RawOp = dict[str, Any]
_SPLIT = re.compile("[, ]")
_ROUNDS = 4
KEPT = "lethe_import"
"""Under which name of `extra` a record keeps what a correction said, where nothing else of it can be taken."""
_BARE = {"kind": "observation"}
_NOT_INHERITED = frozenset({"event_type", "scope", "subject", "fact_key", "tags", "protected"})


@dataclass(slots=True)
class Translation:
    """A project's translation: under which name it is taken in, and what was noted on the way."""

    project_id: str
    named_there: str
    findings: Findings = field(default_factory=Findings)


def translated(item: OriginalChangeset, into: Translation) -> list[Op]:
    """Gives a changeset's ops by our rules of form, each with the ordinal that it had; what the state says of them is asked later."""
    found: list[Op] = []
    for op in item.ops:
        where = f"{item.changeset_id}/{op.ordinal}"
        raw = _said(item, op, into)
        checked = _mended(raw, where, into.findings)
        if checked is not None:
            found.append(replace(checked, ordinal=op.ordinal))
    return found


def made_id(changeset_id: str, op: OriginalOp) -> str:
    """Gives the memory that an op makes: the id it names, else the one that the original made of its place."""
    named = (op.result, op.payload.get("memory_id"), op.payload.get("event_id"))
    return next(
        (name for name in named if isinstance(name, str) and name), f"mem:{changeset_id}:{op.ordinal}"
    )


def _said(item: OriginalChangeset, op: OriginalOp, into: Translation) -> RawOp:
    payload = {key: value for key, value in op.payload.items() if value is not None}
    if payload.get("project_id") == into.named_there:
        payload["project_id"] = into.project_id
    if op.op_type != "add_memory":
        payload = {key: value for key, value in payload.items() if key not in CONTENT_KEYS or value != ""}
    if isinstance(payload.get("tags"), str):
        payload["tags"] = [tag for tag in _SPLIT.split(payload["tags"]) if tag]
    result: str | None = op.result or None
    makes = op.op_type == "add_memory" or (op.op_type == "supersede_memory" and payload.get("content"))
    if makes:
        result = made_id(item.changeset_id, op)
    if makes and op.op_type == "supersede_memory":
        payload = {**_BARE, **payload, "clear": sorted(_NOT_INHERITED - payload.keys())}
    if payload.get("visibility") == "private" and op.op_type in ADDING_OPS and result is not None:
        payload["owner_principal"] = item.author
    if op.op_type in ATTACH_OPS and op.target and not any(payload.get(key) for key in ATTACHMENT_KEYS):
        payload["note"] = _json(payload, MAX_NOTE_BYTES)
    target = op.target or None
    return {
        "op_type": op.op_type,
        "target_event_id": target,
        "resulting_event_id": result,
        "payload": payload,
    }


def _mended(raw: RawOp, where: str, findings: Findings) -> Op | None:
    """Gives an op without the values that break a rule (rule 4), or None where it has no meaning without them."""
    moved: dict[str, Any] = {}
    faults: Sequence[Fault] = ()
    for _ in range(_ROUNDS):
        ops, faults = check_ops([raw], _no_id())
        if ops:
            if moved:
                findings.warn(
                    where, ", ".join(sorted(moved)), "breaks a rule here: kept in op_note, without effect"
                )
            return ops[0]
        keys = {
            fault.field.removeprefix("payload.") for fault in faults if fault.field.startswith("payload.")
        }
        keys &= raw["payload"].keys()
        if not keys:
            break
        moved |= {key: raw["payload"][key] for key in keys}
        payload = {key: value for key, value in raw["payload"].items() if key not in keys}
        if raw["op_type"] == "correct_memory" and not payload.keys() & RECORD_KEYS:
            payload["extra"] = {KEPT: _json(moved, MAX_STRING_BYTES)}
        raw = {**raw, "payload": {**payload, **_noted(moved)}}
    why = "; ".join(f"{fault.field} {fault.rule}" for fault in list(faults)[:2])
    findings.skip("op", where, f"{raw['op_type']}: {why}"[:500])
    return None


def _noted(moved: dict[str, Any]) -> dict[str, str]:
    note = _json(moved, MAX_STRING_BYTES)
    return {"op_note": note} if note else {}


def _json(value: Any, limit_bytes: int) -> str:
    try:
        return clipped(canonical_bytes(value).decode(), limit_bytes)
    except Invalid:
        return ""


def _no_id() -> Iterator[str]:
    """Yields what stands in for an id that is never left to chance here: an op without one has no meaning."""
    while True:
        yield "mem:unnamed"

"""Who wrote first what a copy repeats: rebases and cherry-picks name the changeset that they were copied from (4-history, shapes).

An op is a copy when the changeset that it names holds the same op, provenance and authority aside. A revert names what it takes back, and is
nobody's copy. Over copies of copies, the first is the original.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from memory_git.domain.canonical import decode
from memory_git.domain.ops import PROVENANCE_KEYS
from memory_git.lethe.session import View
from memory_git.storage import lethe_history
from memory_git.storage.lethe_history import ChangesetRow

MOST_COPIES = 1000
"""Copies of copies that are followed; beyond, the last that was found is named."""
ORIGIN_KEYS = ("cherrypicked_from", "source_changeset_id")
_NOT_COPIED = PROVENANCE_KEYS | {"source_trust", "approval", "owner_principal"}
_Json = Mapping[str, Any]


def originals_of(view: View, ops: Iterable[_Json]) -> list[dict[str, str]]:
    """Gives the changesets that ops, in their wire form, were first written in, by id, with their authors; none for what is no copy."""
    found: dict[str, dict[str, str]] = {}
    for op in ops:
        row = _original(view, op)
        if row is not None:
            found[row.changeset_id] = {
                "changeset_id": row.changeset_id,
                "author_principal": row.author_principal,
                "created_at": row.created_at,
            }
    return [found[name] for name in sorted(found)]


def _original(view: View, op: _Json) -> ChangesetRow | None:
    original: ChangesetRow | None = None
    for _ in range(MOST_COPIES):
        row = _named(view, op)
        copied = None if row is None else _same_op(view, row, op)
        if copied is None or row is None:
            break
        original, op = row, copied
    return original


def _named(view: View, op: _Json) -> ChangesetRow | None:
    payload = op.get("payload") or {}
    origin = next((payload[key] for key in ORIGIN_KEYS if isinstance(payload.get(key), str)), None)
    return lethe_history.get_changeset(view.connection, view.project_id, origin) if origin else None


def _same_op(view: View, row: ChangesetRow, op: _Json) -> _Json | None:
    for other in lethe_history.ops_of(view.connection, view.project_id, row.id):
        if (other.op_type, other.target_event_id, other.resulting_event_id) == (
            op.get("op_type"),
            op.get("target_event_id"),
            op.get("resulting_event_id"),
        ) and other.payload is not None:
            payload = decode(other.payload)
            if _written(payload) == _written(op["payload"]):
                return {**op, "payload": payload}
    return None


def _written(payload: _Json) -> dict[str, Any]:
    return {key: value for key, value in payload.items() if key not in _NOT_COPIED}

"""Who wrote what (5-lethe, protected merges; 4-history, conflicts): nobody judges their own work, and a copy is its original's author's too.

1. A changeset is its author's, and that of the authors of every original that its ops name, over any number of copies.
2. A merge commit is left out as a head: what it brings stands below it. So is a cherry-pick, when every op of it is found in the
   original that it names; whoever adds an op of their own is an author.
3. A side of a conflict is whose changesets made a version of one of its memories since the base.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from memory_git.domain.ops import PROVENANCE_KEYS
from memory_git.lethe.changesets import authored, stored_ops
from memory_git.lethe.session import StoredState, View
from memory_git.storage import lethe_history

_ORIGIN_KEYS = ("cherrypicked_from", "source_changeset_id")
_NOT_COPIED = PROVENANCE_KEYS | {"source_trust", "approval", "owner_principal"}
_Json = Mapping[str, Any]


def authors_of(view: View, head: str, without: str, strategy: str = "fast_forward") -> set[str]:
    """Gives who wrote what is reachable from `head` and not from `without`, with the authors of what was copied."""
    names = view.graph().reachable_not_from(head, [without])
    own = [name for name in names if name != head or not _is_left_out(view, head, strategy)]
    copied = [origin for name in names for origin in _origins(view, name)]
    return _authors(view, [*own, *copied])


def authors_of_sides(view: View, conflict: _Json) -> set[str]:
    """Gives who wrote either side of a conflict in its wire form."""
    names: set[str] = set()
    for side in ("left", "right"):
        for party in conflict[side]:
            names |= {party["changeset_id"]} if party["changeset_id"] else set()
            if party["memory_id"]:
                names |= _makers(
                    view,
                    party["memory_id"],
                    conflict[f"{side}_changeset_id"],
                    conflict["base_changeset_id"],
                )
    return _authors(view, names)


def _authors(view: View, names: Iterable[str]) -> set[str]:
    """Gives the authors of changesets and of their originals (rule 1)."""
    waiting = list(names)
    seen = set(waiting)
    authors: set[str] = set()
    for name in waiting:
        row = lethe_history.get_changeset(view.connection, view.project_id, name)
        if row is not None:
            authors.add(row.author_principal)
            found = _origins(view, name) - seen
            seen |= found
            waiting += sorted(found)
    return authors


def _origins(view: View, changeset_id: str) -> set[str]:
    named = (op.payload.get(key) for op in authored(view, changeset_id).ops for key in _ORIGIN_KEYS)
    return {origin for origin in named if isinstance(origin, str)}


def _is_left_out(view: View, head: str, strategy: str) -> bool:
    if strategy != "cherry_pick":
        return strategy == "merge_commit"
    ops = stored_ops(view, view.changeset(head))
    return all(_is_copy(view, op) or _is_attestation(op) for op in ops if "payload" in op)


def _is_attestation(op: _Json) -> bool:
    return op["target_event_id"] is None and op["resulting_event_id"] is None


def _is_copy(view: View, op: _Json) -> bool:
    """Decides whether the changeset that an op names as its original holds the same op, provenance and authority aside."""
    origin = op["payload"].get("cherrypicked_from")
    row = (
        lethe_history.get_changeset(view.connection, view.project_id, origin)
        if isinstance(origin, str)
        else None
    )
    return row is not None and any(
        _copied(op) == _copied(other) for other in stored_ops(view, row) if "payload" in other
    )


def _copied(op: _Json) -> list[Any]:
    payload = {key: value for key, value in op["payload"].items() if key not in _NOT_COPIED}
    return [op["op_type"], op["target_event_id"], op["resulting_event_id"], payload]


def _makers(view: View, memory_id: str, head: str, base: str) -> set[str]:
    """Gives the changesets that made a memory's versions at a head, back to what stood at the base (rule 3)."""
    entry = StoredState(view, view.roots(head)).entry(memory_id)
    waiting = [entry.row] if entry else []
    seen = set(waiting)
    found: set[str] = set()
    for row in waiting:
        version = view.version(row)
        name = lethe_history.changeset_ids(view.connection, view.project_id, [version.changeset_row])[
            version.changeset_row
        ]
        if view.graph().is_ancestor(name, base):
            continue
        found.add(name)
        for previous in (version.previous, version.second_previous):
            if previous is not None and previous not in seen:
                seen.add(previous)
                waiting.append(previous)
    return found

"""Manifests: receipts that pin what memory a session was given or made, checked on the way in, reproduced from history (7-context).

A manifest holds ids and digests, no text: reproduction really reads the versions, each checked against its digest and the state root.
The original's names are taken on the way in: `direction`, `selected_memory_ids` (their digests are then those at the head),
`proposed_target_ref`, `merge_proposal_id`, and of an output its ref and head, of which the resulting changeset tells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from memory_git.domain.canonical import MAX_INTEGER, canonical_bytes, decode, sha256_hex
from memory_git.domain.context import PROJECTION_VERSION
from memory_git.domain.errors import Corrupt, Invalid, NotFound
from memory_git.domain.ids import is_digest, is_memory_id
from memory_git.domain.policy import Audience
from memory_git.domain.proof import prove
from memory_git.domain.state_root import state_root
from memory_git.domain.times import format_time, parse_time
from memory_git.lethe.contexts import Context, ContextRequest, selected_digests
from memory_git.lethe.refs import require_ref
from memory_git.lethe.session import StoredState, View, admits, is_redacted
from memory_git.lethe.transaction import Transaction
from memory_git.storage import lethe_history, lethe_receipts, lethe_redaction
from memory_git.storage.connection import Connection
from memory_git.storage.lethe_receipts import ManifestRow

_COMMON_KEYS = frozenset({"project_id", "kind", "session_id", "actor_id", "principal"})
_INPUT_KEYS = _COMMON_KEYS | {
    "ref_name",
    "head_changeset_id",
    "state_root",
    "projection_version",
    "evaluated_at",
    "selected",
    "inclusion_reasons",
    "exclusion_reasons",
    "unresolved_conflicts",
    "query",
    "max_tokens",
    "limit",
    "pins",
}
_OUTPUT_KEYS = _COMMON_KEYS | {
    "base_changeset_id",
    "resulting_changeset_id",
    "target_ref",
    "unresolved_conflicts",
    "proposal_id",
}
_MAX_SELECTED = 1_000
_NAMES_OF_THE_ORIGINAL = {
    "direction": "kind",
    "proposed_target_ref": "target_ref",
    "merge_proposal_id": "proposal_id",
}
_SAID_OTHERWISE = (
    "ref_name",
    "head_changeset_id",
    "selected_memory_ids",
    "inclusion_reasons",
    "exclusion_reasons",
)
"""What the original asks for in an output too: the resulting changeset says it."""


def manifest_of_context(context: Context, request: ContextRequest) -> dict[str, Any]:
    """Gives the input manifest that pins a context."""
    shown = context.shown
    return {
        "project_id": shown["project_id"],
        "kind": "input",
        "ref_name": shown["ref_name"],
        "head_changeset_id": shown["head_changeset_id"],
        "state_root": shown["state_root"],
        "projection_version": shown["projection_version"],
        "evaluated_at": shown["evaluated_at"],
        "selected": selected_digests(shown),
        "inclusion_reasons": shown["inclusion_reasons"],
        "exclusion_reasons": shown["exclusion_reasons"],
        "unresolved_conflicts": [item["conflict_id"] for item in shown["unresolved_conflicts"]],
        "session_id": request.session_id,
        "actor_id": request.actor_id,
        "principal": request.principal,
        "query": request.query,
        "limit": request.limit,
        "max_tokens": request.max_tokens,
        "pins": context.pins,
    }


def create_manifest(transaction: Transaction, raw: Mapping[str, Any]) -> dict[str, Any]:
    """Checks a manifest against the history that it speaks of, and stores it."""
    raw = _in_our_names(transaction, raw)
    kind = raw.get("kind")
    if kind not in ("input", "output"):
        raise _invalid("kind is input or output")
    unknown = sorted(
        str(name)[:64] for name in raw.keys() - (_INPUT_KEYS if kind == "input" else _OUTPUT_KEYS)
    )
    if unknown:
        raise _invalid(f"unknown field(s): {', '.join(unknown)}")
    for name in ("session_id", "actor_id", "principal", "query", "ref_name", "target_ref", "proposal_id"):
        if not isinstance(raw.get(name), str | None):
            raise _invalid(f"{name} is a string")
    body = {name: value for name, value in raw.items() if value is not None}
    _check_values(body)
    if kind == "input":
        _check_input(transaction, body)
        body.setdefault("projection_version", PROJECTION_VERSION)
    else:
        _check_output(transaction, body)
    manifest_id, at = transaction.sources.new_id(), format_time(transaction.sources.now())
    stored = canonical_bytes({**body, "manifest_id": manifest_id, "created_at": at})
    row = ManifestRow(transaction.project_id, manifest_id, stored, sha256_hex(stored), at)
    lethe_receipts.put_manifest(transaction.connection, row)
    lethe_history.put_object(transaction.connection, manifest_id, transaction.project_id, "manifest")
    return shown_manifest(row)


def _check_values(body: Mapping[str, Any]) -> None:
    """Decides that what a manifest says besides ids has its type: it is read back for years."""
    for name in ("inclusion_reasons", "exclusion_reasons"):
        reasons = body.get(name, {})
        if not isinstance(reasons, dict) or not all(isinstance(why, str) for why in reasons.values()):
            raise _invalid(f"{name} maps memory ids to reasons")
        if not all(is_memory_id(memory_id) for memory_id in reasons):
            raise _invalid(f"{name} maps memory ids to reasons")
    if not _is_list_of(body.get("unresolved_conflicts", []), is_digest):
        raise _invalid("unresolved_conflicts is a list of conflict ids")
    if not _is_list_of(body.get("pins", []), is_memory_id):
        raise _invalid("pins is a list of memory ids")
    for name in ("limit", "max_tokens"):
        value = body.get(name, 1)
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_INTEGER:
            raise _invalid(f"{name} is a whole number from 1")
    if body.get("projection_version", PROJECTION_VERSION) != PROJECTION_VERSION:
        raise _invalid(f"projection_version is {PROJECTION_VERSION}")


def _is_list_of(value: Any, is_one: Callable[[object], bool]) -> bool:
    return isinstance(value, list) and len(value) <= _MAX_SELECTED and all(is_one(item) for item in value)


def _in_our_names(view: View, raw: Mapping[str, Any]) -> dict[str, Any]:
    """Gives a manifest that comes in the original's names in ours; any other as it is."""
    if "direction" not in raw:
        return dict(raw)
    renamed = {_NAMES_OF_THE_ORIGINAL.get(name, name): value for name, value in raw.items() if value != ""}
    if len(renamed) < sum(value != "" for value in raw.values()):
        raise _invalid("a field is named twice, in the original's words and in ours")
    if renamed["kind"] == "output":
        return {name: value for name, value in renamed.items() if name not in _SAID_OTHERWISE}
    names = renamed.pop("selected_memory_ids", None) or []
    head = renamed.get("head_changeset_id")
    if "selected" not in renamed and isinstance(names, list) and isinstance(head, str):
        renamed["selected"] = _selected(view, head, names)
    return renamed


def _selected(view: View, head: str, memory_ids: list[Any]) -> list[dict[str, str]]:
    """Gives memories with their digests at a head."""
    view.changeset(head)
    state = StoredState(view, view.roots(head))
    found = []
    for name in memory_ids[: _MAX_SELECTED + 1]:
        entry = state.entry(name) if isinstance(name, str) else None
        if entry is None:
            raise _invalid("a selected memory is not active at the head")
        found.append({"memory_id": name, "record_digest": entry.digest.hex()})
    return found


def _check_input(view: View, body: dict[str, Any]) -> None:
    """Decides that the head is reachable from the ref, and that every selected memory is active there with its digest."""
    head, ref_name, selected = body.get("head_changeset_id"), body.get("ref_name"), body.get("selected")
    if not isinstance(head, str) or not isinstance(ref_name, str):
        raise _invalid("ref_name and head_changeset_id are needed")
    if not isinstance(selected, list) or len(selected) > _MAX_SELECTED:
        raise _invalid(f"selected is a list of at most {_MAX_SELECTED} {{memory_id, record_digest}}")
    row = view.changeset(head)
    if not _stands_in(view, ref_name, head):
        raise NotFound("head_not_reachable", "the head is not reachable from the named ref")
    if body.setdefault("state_root", row.state_root) != row.state_root:
        raise _invalid("state_root is not that of the head")
    if body.get("evaluated_at") is not None and parse_time(body["evaluated_at"]) is None:
        raise _invalid("evaluated_at is an RFC 3339 time")
    state = StoredState(view, view.roots(head))
    if len({str(item.get("memory_id")) for item in selected if isinstance(item, dict)}) < len(selected):
        raise _invalid("selected names each memory once, by an object")
    for item in selected:
        if not isinstance(item, dict) or set(item) != {"memory_id", "record_digest"}:
            raise _invalid("an item of selected is {memory_id, record_digest}")
        entry = state.entry(item["memory_id"]) if isinstance(item["memory_id"], str) else None
        if entry is None or not view.record(entry).is_active:
            raise _invalid("a selected memory is not active at the head")
        if entry.digest.hex() != item["record_digest"]:
            raise _invalid("a selected memory has another digest at the head")


def _stands_in(view: View, ref_name: str, head: str) -> bool:
    ref = require_ref(view, ref_name)
    if view.graph().is_ancestor(head, ref.head_changeset_id):
        return True
    return lethe_history.move_to(view.connection, view.project_id, ref_name, head) is not None


def _check_output(view: View, body: Mapping[str, Any]) -> None:
    for name in ("base_changeset_id", "resulting_changeset_id"):
        value = body.get(name)
        if not isinstance(value, str):
            raise _invalid(f"{name} is needed")
        view.changeset(value)
    if not view.graph().is_ancestor(body["base_changeset_id"], body["resulting_changeset_id"]):
        raise _invalid("the resulting changeset does not descend from the base")


def _invalid(why: str) -> Invalid:
    return Invalid("invalid_manifest", why)


def stored_manifest(connection: Connection, project_id: str, manifest_id: str) -> ManifestRow:
    """Gives a manifest, verified against its digest."""
    row = lethe_receipts.get_manifest(connection, project_id, manifest_id)
    if row is None:
        raise NotFound("manifest_not_found", "no such manifest")
    if sha256_hex(row.body) != row.manifest_digest:
        raise Corrupt("manifest", manifest_id, "the body does not agree with its digest")
    return row


def shown_manifest(row: ManifestRow) -> dict[str, Any]:
    """Gives the wire form of a manifest."""
    return {**decode(row.body), "manifest_digest": row.manifest_digest}


def reproduce(view: View, row: ManifestRow, audience: Audience | None) -> dict[str, Any]:
    """Rebuilds what an input manifest pins: the exact records, each with digest, salt and the path of digests that proves it.

    A memory that the audience may not see today is named as withheld; the rest stays exact.
    """
    body = decode(row.body)
    if body["kind"] != "input":
        raise Invalid("not_an_input_manifest", "only an input manifest pins memories to reproduce")
    state = StoredState(view, view.roots(body["head_changeset_id"]))
    stored = view.changeset(body["head_changeset_id"])
    root = state_root(state.memories.digest, state.edges.digest)
    if root != body["state_root"] or stored.state_root != root:
        raise Corrupt(
            "changeset", stored.changeset_id, "the state root is not the one that the manifest pins"
        )
    memories = [_reproduced(view, state, item, audience) for item in body["selected"]]
    return {
        "manifest_id": row.manifest_id,
        "manifest_digest": row.manifest_digest,
        "project_id": row.project_id,
        "ref_name": body["ref_name"],
        "head_changeset_id": body["head_changeset_id"],
        "state_root": root,
        "memories_root": state.memories.digest.hex(),
        "relationships_root": state.edges.digest.hex(),
        "projection_version": body["projection_version"],
        "evaluated_at": body.get("evaluated_at"),
        "memories": memories,
    }


def _reproduced(
    view: View, state: StoredState, item: Mapping[str, Any], audience: Audience | None
) -> dict[str, Any]:
    entry = state.entry(item["memory_id"])
    if entry is None or entry.digest.hex() != item["record_digest"]:
        raise Corrupt("memory", item["memory_id"], "the state does not hold what the manifest pins")
    record = view.record(entry)
    if is_redacted(record):
        erased = lethe_redaction.redaction_of(view.connection, view.project_id, record.memory_id)
        assert erased is not None, "an erased record has its redaction"
        return {
            **{"memory_id": item["memory_id"], "record_digest": item["record_digest"], "redacted": True},
            "redacted_at": erased.at,
            "redacted_by": erased.principal,
            "proof": prove(view, state.memories, entry.key).to_json(),
        }
    if not admits(record, audience):
        return {"memory_id": item["memory_id"], "withheld": True}
    return {
        "memory_id": record.memory_id,
        "record": record.to_json(),
        "record_digest": item["record_digest"],
        "salt": view.salt(record.memory_id),
        "proof": prove(view, state.memories, entry.key).to_json(),
    }

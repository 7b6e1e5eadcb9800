"""How a proposal is shown to a person: what it is, what it would change, what it meets, what it lacks to be merged."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from memory_git.cli.charon_commands.conflict import show_conflicts
from memory_git.cli.render import write_document, write_fields, write_table, write_text

_FIELDS = (
    *("proposal_id", "project_id", "kind", "status", "originator", "title", "message"),
    *("source_ref", "target_ref", "head_changeset_id", "current_head", "stale"),
    *("strategy", "merged_head", "judged_digest", "created_at", "expires_at", "replayed"),
)
_NOT_CHANGES = frozenset({"kind_notes", "unresolved_conflicts"})


def show_proposal(found: Mapping[str, Any], *, as_json: bool) -> None:
    """Prints a proposal as a verb gave it."""
    if as_json:
        write_document(found)
        return
    write_fields({name: found[name] for name in _FIELDS if found.get(name) not in (None, "")})
    changes = list(_changes(found.get("diff") or {}))
    if changes:
        _gap()
        write_table(("change", "memory", "summary"), changes)
    if found.get("conflicts"):
        _gap()
        show_conflicts(found["conflicts"], as_json=False)
    if found.get("reviews"):
        _gap()
        rows = [(item["reviewer"], item["verdict"], item["comment"]) for item in found["reviews"]]
        write_table(("reviewer", "verdict", "comment"), rows)
    if found.get("refused_before"):
        _gap()
        earlier = [
            (", ".join(item["memory_ids"]), item["reviewer"], item["reason"], item["proposal_id"])
            for item in found["refused_before"]
        ]
        write_table(("refused before", "by", "because", "in proposal"), earlier)
    lacking = found.get("verdict", {}).get("missing", ())
    if lacking:
        _gap()
        write_text("\n".join(f"to be merged it lacks: {item['what']}" for item in lacking))


def _changes(diff: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yields section, memory and summary of every change of a diff, and what it notes of pairs."""
    for section, items in diff.items():
        if section in _NOT_CHANGES or not isinstance(items, list):
            continue
        for item in items:
            named = item.get("memory_id") or f"{item.get('from_memory_id')} -> {item.get('to_memory_id')}"
            yield section.replace("_", " "), named, item.get("summary") or item.get("kind") or ""
    for item in diff.get("kind_notes", ()):
        yield f"note: {item['note'].replace('_', ' ')}", ", ".join(item["memory_ids"]), ""


def _gap() -> None:
    sys.stdout.write("\n")

"""Commits an import to a branch through the gate (9-repository, interchange).

1. What is compared is the branch, or accepted memory where the branch isn't there yet; only what differs is committed.
2. All ops are checked before the first changeset is made; each changeset stands on the one before, so that an import
   that was broken off goes on where it stopped.
3. Each changeset names as evidence the files that its memories come from, with the lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from memory_git.domain.changeset import MAX_ATTACHMENTS, invalid_changeset
from memory_git.domain.errors import Invalid
from memory_git.domain.ids import SHARED_MAIN
from memory_git.domain.validate import check_ops
from memory_git.interchange.importing import changes, in_changesets

if TYPE_CHECKING:
    from memory_git.charon.gate import Caller
    from memory_git.client.opening import AnyGate
    from memory_git.interchange.imported import Import

PAGE = 200


def take_in(
    gate: AnyGate,
    caller: Caller,
    project: str | None,
    ref_name: str | None,
    imported: Import,
    *,
    preview: bool,
) -> dict[str, Any]:
    """Commits what an import brings: `{project, ref, head, changesets, taken, links, skipped, warnings}`."""
    ref_name = ref_name or _own_ref(gate, caller)
    refs = {ref["ref_name"]: ref for ref in gate.list_refs(caller, project)}
    start = refs.get(ref_name) or refs[SHARED_MAIN]
    head = str(start["head_changeset_id"])
    standing, edges = _state(gate, caller, project, head, {memory.memory_id for memory in imported.memories})
    ops, left = changes(imported, standing, edges)
    runs = list(in_changesets(ops))
    _check(runs)
    made: list[str] = []
    for run in [] if preview else runs:
        head = _commit(gate, caller, project, ref_name, head, run, imported)
        made.append(head)
    report = imported.report
    return {
        "project": start["project_id"],
        "ref": ref_name,
        "head": head,
        "changesets": made,
        "ops": len(ops),
        "taken": report.taken,
        "links": report.links,
        "skipped": [item.to_json() for item in (*report.skipped, *left)],
        "warnings": [item.to_json() for item in report.warnings],
        "preview": preview,
    }


def _own_ref(gate: AnyGate, caller: Caller) -> str:
    """Gives the branch of the caller's that imports are committed to when none is named."""
    actors = gate.whoami(caller)["actor_ids"]
    if not actors:
        raise Invalid(
            "actor_needed", "the principal owns no actor, so it has no branch of its own: name a ref"
        )
    return f"refs/agents/{actors[0]}/import"


def _state(
    gate: AnyGate, caller: Caller, project: str | None, head: str, wanted: set[str]
) -> tuple[dict[str, dict[str, Any]], set[tuple[str, str, str]]]:
    """Gives the records of some memories at a head, and all its relationships, as the caller sees them."""
    records: dict[str, dict[str, Any]] = {}
    edges: set[tuple[str, str, str]] = set()
    after = None
    while True:
        page = gate.memories(caller, project, head=head, limit=PAGE, after=after)
        records |= {
            item["memory_id"]: item["record"] for item in page["memories"] if item["memory_id"] in wanted
        }
        edges |= {
            (item["from_memory_id"], item["kind"], item["to_memory_id"]) for item in page["relationships"]
        }
        after = page.get("next")
        if after is None:
            return records, edges


def _check(runs: Sequence[list[dict[str, Any]]]) -> None:
    """Refuses the whole import for a fault of form in any op (rule 2)."""
    for run in runs:
        _, faults = check_ops(run, iter(lambda: "", None))
        if faults:
            raise invalid_changeset(faults)


def _commit(
    gate: AnyGate,
    caller: Caller,
    project: str | None,
    ref_name: str,
    head: str,
    ops: list[dict[str, Any]],
    imported: Import,
) -> str:
    done = gate.commit(
        caller,
        project,
        message=f"Import of {len(ops)} op(s) from {', '.join(_names(imported))}",
        ops=ops,
        ref=ref_name,
        expected_head=head,
        evidence=list(_evidence(ops, imported)),
    )
    return str(done["changeset"]["changeset_id"])


def _names(imported: Import) -> list[str]:
    """Gives the first files of an import, for a message."""
    names = sorted({memory.source_file for memory in imported.memories})
    return names[:3] + ([f"{len(names) - 3} more"] if len(names) > 3 else [])


def _evidence(ops: Sequence[dict[str, Any]], imported: Import) -> Iterator[dict[str, str]]:
    """Yields where the memories of some ops come from: each file with its lines (rule 3)."""
    named = {op.get("target_event_id") or op["payload"].get("memory_id") for op in ops}
    lines: dict[str, list[int]] = {}
    for memory in imported.memories:
        if memory.memory_id in named:
            lines.setdefault(memory.source_file, []).append(memory.source_line)
    for name in sorted(lines)[:MAX_ATTACHMENTS]:
        first, last = min(lines[name]), max(lines[name])
        where = f"{name}:{first}" if first == last else f"{name}:{first}-{last}"
        yield {"kind": "import", "source": where}

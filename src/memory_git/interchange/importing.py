"""Takes a file or folder of another memory in: finds its form, reads it, gives the ops (9-repository, interchange).

The ops are deterministic, and against the records that stand already only what differs is one: an import twice is an
import once. A memory that a person or a merge has retired stays retired: bringing it back is an explicit act.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any, Literal

from memory_git.domain.canonical import canonical_bytes
from memory_git.domain.errors import Invalid, TooLarge
from memory_git.domain.ops import MAX_CHANGESET_BYTES, MAX_OPS
from memory_git.interchange.imported import Import, Imported, ImportedLink, Report, Skipped
from memory_git.interchange.markdown import import_markdown, shown
from memory_git.interchange.server_memory import import_server_memory

__all__ = [
    "Import",
    "Imported",
    "ImportedLink",
    "Report",
    "Skipped",
    "changes",
    "detect_form",
    "in_changesets",
    "read_import",
    "to_ops",
]

MAX_FILE_BYTES = 64 * 1024 * 1024
_ROOM_BYTES = 64 * 1024

Form = Literal["server-memory", "markdown"]
OpJson = dict[str, Any]
EdgeKey = tuple[str, str, str]


def read_import(path: Path) -> Import:
    """Gives all that a path holds, with a report of what could not be taken.

    Raises Invalid `import_unreadable` or `import_unknown_form`, TooLarge `import_too_large`.
    """
    path = Path(path)
    form = detect_form(path)
    try:
        if form == "markdown":
            return import_markdown(path.resolve())
        if path.stat().st_size > MAX_FILE_BYTES:
            raise TooLarge(
                "import_too_large", f"the file is over {MAX_FILE_BYTES} bytes", limit=MAX_FILE_BYTES
            )
        return import_server_memory(path.read_bytes(), shown(path.name))
    except (OSError, RuntimeError) as error:
        raise _unreadable(path, error) from error


def detect_form(path: Path) -> Form:
    """Decides what a path holds: a folder or an `.md` file is Markdown, else JSON lines are a memory server's."""
    try:
        if path.is_dir():
            return "markdown"
        if not path.is_file():
            raise Invalid("import_unreadable", f"{shown(str(path))}: no such file or folder", field="path")
        with path.open("rb") as file:
            start = file.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    if path.suffix.lower() == ".md":
        return "markdown"
    if path.suffix.lower() in (".jsonl", ".json", ".ndjson") or start[:1] == b"{":
        return "server-memory"
    raise Invalid(
        "import_unknown_form",
        "neither a folder of Markdown, nor an .md file, nor the JSON lines of an MCP memory server",
        field="path",
    )


def to_ops(imported: Import) -> list[OpJson]:
    """Gives the ops for a state that holds none of it: memories and their corrections first, then links."""
    return changes(imported, {}, frozenset())[0]


def changes(
    imported: Import, standing: Mapping[str, Mapping[str, Any]], edges: Set[EdgeKey]
) -> tuple[list[OpJson], list[Skipped]]:
    """Gives the ops that bring a state to what was imported, and what is left as it stands.

    `standing` holds the records (in JSON) of the imported ids at that state, `edges` its (from, kind, to).
    """
    ops: list[OpJson] = []
    left: list[Skipped] = []
    latest = {memory.memory_id: memory for memory in imported.memories}
    before: dict[str, Imported] = {}
    for memory in imported.memories:
        record = standing.get(memory.memory_id)
        if record is not None:
            if memory is latest[memory.memory_id]:
                ops += _against(memory, record, left)
        elif memory.memory_id in before:
            ops.append(_correction(memory, before[memory.memory_id]))
        else:
            ops.append(
                {"op_type": "add_memory", "payload": {"memory_id": memory.memory_id, **memory.payload}}
            )
        before[memory.memory_id] = memory
    fresh = [memory for memory in latest.values() if memory.memory_id not in standing]
    ops += [_status(memory) for memory in fresh if memory.status != "active"]
    ops += [_relationship(link) for link in imported.links if _key(link) not in edges]
    return ops, left


def in_changesets(ops: list[OpJson]) -> Iterator[list[OpJson]]:
    """Gives the ops in runs that each fit into one changeset (3-model, caps)."""
    run: list[OpJson] = []
    used = 0
    for op in ops:
        size = len(canonical_bytes(op)) + 64
        if run and (len(run) == MAX_OPS or used + size > MAX_CHANGESET_BYTES - _ROOM_BYTES):
            yield run
            run, used = [], 0
        run.append(op)
        used += size
    if run:
        yield run


def _against(memory: Imported, record: Mapping[str, Any], left: list[Skipped]) -> list[OpJson]:
    """Gives the correction that a standing record needs, if any; where it was read from alone makes none."""
    if record.get("status", "active") not in ("active", "deprecation_proposed"):
        where = f"{memory.source_file}:{memory.source_line}"
        left.append(
            Skipped("memory", where, f"{memory.memory_id} is {record['status']}: bring it back explicitly")
        )
        return []
    payload = {key: value for key, value in memory.payload.items() if _form(value) != _form(record.get(key))}
    if not payload.keys() - {"sources"}:
        return []
    return [{"op_type": "correct_memory", "target_event_id": memory.memory_id, "payload": payload}]


def _correction(memory: Imported, before: Imported) -> OpJson:
    """Gives the correction by a later version: what it says, and what it no longer says cleared."""
    payload = dict(memory.payload)
    gone = sorted(before.payload.keys() - payload.keys() - {"visibility"})
    if gone:
        payload["clear"] = gone
    return {"op_type": "correct_memory", "target_event_id": memory.memory_id, "payload": payload}


def _status(memory: Imported) -> OpJson:
    payload = {"status": memory.status, "reason": f"{shown(memory.source_file)} says so"}
    return {"op_type": "set_status", "target_event_id": memory.memory_id, "payload": payload}


def _relationship(link: ImportedLink) -> OpJson:
    payload = {"from_memory_id": link.from_id, "to_memory_id": link.to_id, "kind": link.kind}
    if link.source:
        payload["op_note"] = link.source
    return {"op_type": "add_relationship", "payload": payload}


def _key(link: ImportedLink) -> EdgeKey:
    return (link.from_id, link.kind, link.to_id)


def _form(value: Any) -> bytes:
    """Gives the bytes by which two values of a field are compared: lists are sets, absent and empty are one."""
    if isinstance(value, list | tuple):
        value = sorted(set(value))
    return canonical_bytes(value or None)


def _unreadable(path: Path, error: Exception) -> Invalid:
    why = getattr(error, "strerror", None) or "can't be read"
    return Invalid("import_unreadable", f"{shown(str(path))}: {why}", field="path")

"""`lethe memory show`: one changeset, or one memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memory_git.cli.lethe_commands.local import local_store, store_options, the_head, the_project
from memory_git.cli.options import project_option
from memory_git.cli.render import write_document, write_fields, write_table
from memory_git.domain.errors import NotFound
from memory_git.domain.ids import SHARED_MAIN, is_uuid

if TYPE_CHECKING:
    from memory_git.lethe.protocol import Json, Lethe

_CHANGESET = (
    *("changeset_id", "project_id", "ref_name", "parent_ids", "author_principal", "actor_id", "model"),
    *("created_at", "message", "state_root", "integrity_digest"),
)


@click.command("show")
@click.argument("name")
@project_option()
@click.option("--ref", metavar="REF", help=f"For a memory: as this ref has it. Default: {SHARED_MAIN}.")
@click.option("--head", metavar="CHANGESET", help="For a memory: as it was at this changeset.")
@click.option("--history", is_flag=True, help="For a memory: every version up to there.")
@store_options
@click.pass_context
def command(
    context: click.Context,
    name: str,
    project: str | None,
    ref: str | None,
    head: str | None,
    history: bool,
    data_dir: Path | None,
    as_json: bool,
) -> None:
    """Show a changeset by its id, or a memory by its id.

    Example: lethe memory show decision/deploy-tool --history
    """
    if ref and head:
        raise click.UsageError("give --ref or --head, not both")
    with local_store(context, data_dir) as lethe:
        changeset = None if ref or head or history else _changeset(lethe, name)
        found = changeset or _memory(lethe, project, head or ref or SHARED_MAIN, name, history)
    if as_json:
        write_document(found)
    elif changeset:
        _write_changeset(changeset)
    elif history:
        _write_history(found)
    else:
        _write_memory(found)


def _changeset(lethe: Lethe, name: str) -> Json | None:
    """Gives the changeset of an id; None when a memory may be meant, which can have any name."""
    if not is_uuid(name):
        return None
    try:
        return lethe.get_changeset(name)
    except NotFound:
        return None


def _memory(lethe: Lethe, project: str | None, place: str, name: str, history: bool) -> Json:
    project = the_project(lethe, project)
    head = the_head(lethe, project, place)
    return lethe.memory_history(project, head, name) if history else lethe.memory(project, head, name)


def _write_changeset(found: Mapping[str, Any]) -> None:
    shown = {name: found[name] for name in _CHANGESET if found.get(name)}
    if found.get("originals"):
        shown["copied_from"] = [
            f"{item['changeset_id']} by {item['author_principal']}" for item in found["originals"]
        ]
    write_fields(shown)
    rows = [
        (
            op["ordinal"],
            op.get("op_type") or "withheld",
            op.get("target_event_id") or op.get("resulting_event_id"),
            op.get("payload", {}).get("content") or op.get("payload", {}).get("reason"),
        )
        for op in found["ops"]
    ]
    write_table(["op", "type", "memory", "content"], rows, empty="no ops")


def _write_history(found: Mapping[str, Any]) -> None:
    rows = [
        (
            item["created_at"],
            author(item["author_principal"], [item["original"]] if "original" in item else []),
            item["record"].get("status"),
            item["record"].get("content"),
        )
        for item in found["versions"]
    ]
    write_table(["at", "author", "status", "content"], rows)


def author(name: str, originals: Iterable[Mapping[str, Any]]) -> str:
    """Gives an author, and whose work it is that was copied."""
    others = sorted({item["author_principal"] for item in originals} - {name})
    return f"{name} (copied from {', '.join(others)})" if others else name


def _write_memory(found: Mapping[str, Any]) -> None:
    joined = [
        f"{item['from_memory_id']} {item['kind']} {item['to_memory_id']}" for item in found["relationships"]
    ]
    write_fields(
        {
            **found["record"],
            **({"relationships": "\n".join(joined)} if joined else {}),
            "introduced_by": found["introduced_by"],
            "changed_by": found["changed_by"],
            "record_digest": found["record_digest"],
        }
    )

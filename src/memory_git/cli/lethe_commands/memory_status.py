"""`lethe memory status`: the refs of a project."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memory_git.cli.lethe_commands.local import local_store, store_options, the_head, the_project
from memory_git.cli.options import project_option
from memory_git.cli.render import write_document, write_fields, write_table

if TYPE_CHECKING:
    from memory_git.lethe.protocol import Lethe

_CONFLICTS_SHOWN = 1000


@click.command("status")
@project_option()
@store_options
@click.pass_context
def command(context: click.Context, project: str | None, data_dir: Path | None, as_json: bool) -> None:
    """Show the refs of a project, and where they stand against accepted memory.

    A ref is `accepted` when refs/shared/main has all of it, `ahead` when it has more, `diverged` when each has what the other lacks.

    Example: lethe memory status
    """
    with local_store(context, data_dir) as lethe:
        found = _status(lethe, the_project(lethe, project))
    if as_json:
        write_document(found)
        return
    write_fields(
        {
            "project": found["project"],
            "active memories": found["total_active"],
            "open conflicts": found["open_conflicts"],
        }
    )
    rows = [[item[name] for name in _COLUMNS] for item in found["refs"]]
    write_table(["ref", "head", "stands", "moved", "by"], rows)


_COLUMNS = ("ref_name", "head_changeset_id", "stands", "updated_at", "updated_by")


def _status(lethe: Lethe, project: str) -> dict[str, Any]:
    shared = the_head(lethe, project)
    refs = [
        {**ref, "stands": _stands(lethe, project, ref["head_changeset_id"], shared)}
        for ref in lethe.list_refs(project)
    ]
    return {
        "project": project,
        "shared_head": shared,
        "total_active": lethe.memories(project, shared, limit=1, status="active")["total"],
        "open_conflicts": len(lethe.list_conflicts(project, status="open", limit=_CONFLICTS_SHOWN)),
        "refs": refs,
    }


def _stands(lethe: Lethe, project: str, head: str, shared: str) -> str:
    if lethe.is_ancestor(project, head, shared):
        return "accepted"
    return "ahead" if lethe.is_ancestor(project, shared, head) else "diverged"

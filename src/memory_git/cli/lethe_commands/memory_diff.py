"""`lethe memory diff`: what differs between two states, by meaning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from memory_git.cli.lethe_commands.local import local_store, store_options, the_head, the_project
from memory_git.cli.options import project_option
from memory_git.cli.render import write_document, write_table
from memory_git.domain.diff import SECTIONS
from memory_git.domain.ids import is_uuid


@click.command("diff")
@click.argument("target")
@project_option()
@click.option(
    "--base", metavar="REF|CHANGESET", help="What to compare with. Default: the target's first parent."
)
@click.option("--limit", type=click.IntRange(1, 1000), help="A page of at most so many changes.")
@click.option("--after", metavar="NEXT", help="The `next` of the page before.")
@store_options
@click.pass_context
def command(
    context: click.Context,
    target: str,
    project: str | None,
    base: str | None,
    limit: int | None,
    after: str | None,
    data_dir: Path | None,
    as_json: bool,
) -> None:
    """Show what differs between two states, by meaning. A ref or a changeset names a state.

    Example: lethe memory diff refs/agents/builder/main --base refs/shared/main
    """
    with local_store(context, data_dir) as lethe:

        def head(name: str) -> str:
            return name if is_uuid(name) else the_head(lethe, the_project(lethe, project), name)

        since = None if base is None else head(base)
        found = lethe.diff(head(target), since, limit=limit, after=after)
    if as_json:
        write_document(found)
        return
    write_table(["change", "memory", "summary"], list(_lines(found)), empty="no difference")
    more = found.get("page", {}).get("next")
    if more:
        between = f"{found['target_changeset_id']} --base {found['base_changeset_id']}"
        click.echo(f"more: {between} --limit {found['page']['limit']} --after {more}", err=True)


def _lines(found: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for section in SECTIONS:
        for item in found[section]:
            yield section.replace("_", " "), *_told(item)
    for item in found["kind_notes"]:
        yield f"note: {item['note'].replace('_', ' ')}", ", ".join(item["memory_ids"]), ""
    for item in found["unresolved_conflicts"]:
        yield "unresolved conflict", ", ".join(item["memory_ids"]), item["conflict_type"]


def _told(item: Mapping[str, Any]) -> tuple[str, str]:
    """Gives the memory and the summary of one change."""
    if "from_memory_id" in item:
        return f"{item['from_memory_id']} -> {item['to_memory_id']}", item["kind"]
    changed = item.get("changed_fields") if item.get("before") and item.get("after") else ()
    return item["memory_id"], item["summary"] + (f" ({', '.join(changed)})" if changed else "")

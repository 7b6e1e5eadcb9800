"""`lethe nodes rebuild`: dropped nodes, made anew and stored."""

from __future__ import annotations

from pathlib import Path

import click

from memory_git.cli.lethe_commands.local import embedded_store, store_options, the_head, the_project
from memory_git.cli.options import project_option
from memory_git.cli.render import progress_on_terminal, write_document, write_fields


@click.command("rebuild")
@click.argument("changeset", metavar="REF|CHANGESET", required=False)
@click.option("--all", "every", is_flag=True, help="Every changeset whose nodes are dropped.")
@project_option()
@store_options
@click.pass_context
def command(
    context: click.Context,
    changeset: str | None,
    every: bool,
    project: str | None,
    data_dir: Path | None,
    as_json: bool,
) -> None:
    """Make the tree nodes of one changeset anew from its history, or of all, and store them.

    The digests must come out the same: else the command ends with the changeset that is damaged.

    Example: lethe nodes rebuild --all
    """
    if every == bool(changeset):
        raise click.UsageError("name a changeset, or say --all")
    with embedded_store(context, data_dir) as store, progress_on_terminal() as progress:
        project = the_project(store, project)
        name = None if changeset is None else the_head(store, project, changeset)
        stored = store.rebuild_nodes(project, name, progress)
    if as_json:
        write_document({"project_id": project, "changesets": stored})
    else:
        write_fields({"project": project, "rebuilt": f"{stored} changesets"})

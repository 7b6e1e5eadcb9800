"""`lethe nodes drop`: says what can go, and lets it go when told to."""

from __future__ import annotations

from pathlib import Path

import click

from memory_git.cli.lethe_commands.local import embedded_store, store_options, the_project
from memory_git.cli.render import write_document, write_fields, write_text


@click.command("drop")
@click.argument("project", required=False)
@click.option("--yes", is_flag=True, help="Drop them. Without it, only say how many.")
@click.option("--compact", is_flag=True, help="With --yes: rewrite the file too, so that it becomes smaller.")
@store_options
@click.pass_context
def command(
    context: click.Context,
    project: str | None,
    yes: bool,
    compact: bool,
    data_dir: Path | None,
    as_json: bool,
) -> None:
    """Say which tree nodes of a project can go; with --yes, drop them.

    Kept are the heads of all refs, where their histories part, what open conflicts name, and a state here and there
    between them, so that no read takes long. Commits wait while nodes are dropped.

    Example: lethe nodes drop default --yes
    """
    with embedded_store(context, data_dir) as store:
        project = the_project(store, project)
        found = store.collect_nodes(project, compact=compact) if yes else store.plan_collection(project)
    if as_json:
        write_document({**found, "dropped": yes})
        return
    write_fields(
        {
            "project": project,
            "dropped" if yes else "can go": f"{found['nodes']} nodes, {found['node_bytes']} bytes",
            "of": f"{found['changesets']} changesets",
            "kept": f"{found['nodes_kept']} nodes of {found['changesets_kept']} changesets",
        }
    )
    if not yes and found["nodes"]:
        write_text(f"\nNothing was dropped. To drop them: lethe nodes drop {project} --yes")

"""`lethe memory branch`: a new unprotected ref."""

from __future__ import annotations

from pathlib import Path

import click

from memory_git.cli.lethe_commands.local import by_option, local_store, store_options, the_head, the_project
from memory_git.cli.options import project_option
from memory_git.cli.render import write_document, write_fields
from memory_git.domain.ids import SHARED_MAIN


@click.command("branch")
@click.argument("ref")
@project_option()
@click.option(
    "--from",
    "origin",
    metavar="REF|CHANGESET",
    default=SHARED_MAIN,
    show_default=True,
    help="Where it starts.",
)
@by_option("Who makes it, for the log of the ref.")
@store_options
@click.pass_context
def command(
    context: click.Context,
    ref: str,
    project: str | None,
    origin: str,
    principal: str,
    data_dir: Path | None,
    as_json: bool,
) -> None:
    """Make an unprotected ref. The same again is the same ref.

    Example: lethe memory branch refs/topics/release-notes
    """
    with local_store(context, data_dir) as lethe:
        project = the_project(lethe, project)
        made = lethe.create_branch(project, ref, the_head(lethe, project, origin), principal)
    if as_json:
        write_document(made)
    else:
        write_fields({"ref": made["ref_name"], "head": made["head_changeset_id"]})

"""`lethe memory log`: the history of a ref."""

from __future__ import annotations

from pathlib import Path

import click

from memory_git.cli.lethe_commands.local import local_store, store_options, the_project
from memory_git.cli.lethe_commands.memory_show import author
from memory_git.cli.options import project_option
from memory_git.cli.render import write_document, write_table
from memory_git.domain.ids import SHARED_MAIN


@click.command("log")
@project_option()
@click.option(
    "--ref", metavar="REF", default=SHARED_MAIN, show_default=True, help="The ref whose history is shown."
)
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True, help="At most so many.")
@click.option("--before", metavar="NEXT", help="The `next` of the page before.")
@click.option("--first-parent", is_flag=True, help="The mainline only.")
@store_options
@click.pass_context
def command(
    context: click.Context,
    project: str | None,
    ref: str,
    limit: int,
    before: str | None,
    first_parent: bool,
    data_dir: Path | None,
    as_json: bool,
) -> None:
    """Show the changesets that a ref reaches, newest first.

    Example: lethe memory log --ref refs/agents/builder/main --limit 5
    """
    with local_store(context, data_dir) as lethe:
        page = lethe.log(
            the_project(lethe, project), ref, limit=limit, before=before, first_parent=first_parent
        )
    if as_json:
        write_document(page)
        return
    rows = [
        [
            item["changeset_id"],
            item["created_at"],
            author(item["author_principal"], item.get("originals", ())),
            len(item["ops"]),
            item["message"],
        ]
        for item in page["changesets"]
    ]
    write_table(["changeset", "at", "author", "ops", "message"], rows)
    if page.get("next"):
        click.echo(f"more: --before {page['next']}", err=True)

"""`lethe verify-chain`: everything recomputed from what was written."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from memory_git.cli.exits import Exit
from memory_git.cli.lethe_commands.local import local_store, store_options, the_project
from memory_git.cli.render import progress_on_terminal, write_document, write_table, write_text


@click.command("verify-chain")
@click.argument("project", required=False)
@store_options
@click.pass_context
def command(context: click.Context, project: str | None, data_dir: Path | None, as_json: bool) -> Exit:
    """Recompute every digest, state, chain and derived row of a project; without a name, of the only one there is.

    Ends with 1 if anything does not agree, and names each object that does not.

    Example: lethe verify-chain default
    """
    with local_store(context, data_dir) as lethe, progress_on_terminal() as progress:
        found = lethe.verify(the_project(lethe, project), progress)
    if as_json:
        write_document(found)
    else:
        write_table(["checked", "objects"], list(found["checked"].items()))
        faults = [(item["kind"], item["object_id"], item["why"]) for item in found["faults"]]
        if faults:
            sys.stdout.write("\n")
            write_table(["fault in", "object", "why"], faults)
        write_text("\nEverything agrees." if found["ok"] else f"\n{len(faults)} fault(s).")
    return Exit.DONE if found["ok"] else Exit.FINDING

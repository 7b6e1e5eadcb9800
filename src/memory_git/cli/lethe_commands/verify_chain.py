"""`lethe verify-chain`: everything recomputed from what was written."""

from __future__ import annotations

import sys

import click

from memory_git.cli.exits import Exit
from memory_git.cli.program import read_settings
from memory_git.cli.render import json_option, write_document, write_table, write_text


@click.command("verify-chain")
@click.argument("project")
@json_option
@click.pass_context
def command(context: click.Context, project: str, as_json: bool) -> Exit:
    """Recomputes every digest, state, chain and derived row of a project. Ends with 1 if anything does not agree.

    Example: lethe verify-chain default
    """
    from memory_git.cli.opening import lethe_of

    with lethe_of(read_settings(context)) as lethe:
        found = lethe.verify(project, _progress if sys.stderr.isatty() and not as_json else None)
    if as_json:
        write_document(found)
    else:
        write_table(["checked", "objects"], [[kind, count] for kind, count in found["checked"].items()])
        faults = [[item["kind"], item["object_id"], item["why"]] for item in found["faults"]]
        if faults:
            write_table(["fault in", "object", "why"], faults)
        write_text("Everything agrees." if found["ok"] else f"{len(faults)} fault(s).")
    return Exit.DONE if found["ok"] else Exit.FINDING


def _progress(kind: str, done: int, total: int) -> None:
    if done % 100 == 0 or done == total:
        click.echo(f"\r{kind}: {done} of {total}", err=True, nl=done == total)

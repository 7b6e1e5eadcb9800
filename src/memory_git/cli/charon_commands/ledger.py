"""`charon ledger`: the audit."""

from __future__ import annotations

import click

from memory_git.cli.exits import Exit
from memory_git.cli.opening import gate_of
from memory_git.cli.options import project_option
from memory_git.cli.program import read_settings
from memory_git.cli.render import json_option, write_document, write_table, write_text

EVERY = "One project's chain."


@click.group("ledger")
def command() -> None:
    """Reads and verifies the record of every call: who, what, allowed or denied, and what came of it.

    Example: charon ledger verify
    """


@command.command("tail")
@project_option("One project's chain. Default: that of calls that name none.")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="At most so many rows."
)
@json_option
@click.pass_context
def tail(context: click.Context, project: str | None, limit: int, as_json: bool) -> None:
    """Shows the last rows of a chain.

    Example: charon ledger tail --project default
    """
    with gate_of(read_settings(context)) as gate:
        rows = gate.ledger_tail(gate.as_operator(), project, limit)
    if as_json:
        write_document(rows)
    else:
        names = ("seq", "at", "principal_id", "surface", "route", "phase", "decision", "reason", "outcome")
        shown = [[row.get(name) or "-" for name in names] for row in rows]
        write_table(
            ["seq", "at", "principal", "surface", "route", "phase", "decision", "reason", "outcome"],
            shown,
            empty="No row.",
        )


@command.command("verify")
@project_option("One project's chain. Default: all chains.")
@json_option
@click.pass_context
def verify(context: click.Context, project: str | None, as_json: bool) -> Exit:
    """Recomputes the chain with the ledger key, and compares it with the anchor. Ends with 1 if anything does not agree.

    Example: charon ledger verify
    """
    with gate_of(read_settings(context)) as gate:
        found = gate.ledger_verify(gate.as_operator(), project)
    if as_json:
        write_document(found)
    else:
        write_table(["fault"], [[str(item)] for item in found["faults"]])
        write_text("The ledger agrees." if found["ok"] else f"{len(found['faults'])} fault(s).")
    return Exit.DONE if found["ok"] else Exit.FINDING


@command.command("export")
@project_option("One project's chain. Default: all chains.")
@json_option
@click.pass_context
def export(context: click.Context, project: str | None, as_json: bool) -> None:
    """Prints all rows, one JSON document a line; with --json, one list.

    Example: charon ledger export > ledger.jsonl
    """
    import orjson

    with gate_of(read_settings(context)) as gate:
        rows = gate.ledger_export(gate.as_operator(), project)
        if as_json:
            write_document(list(rows))
        else:
            for row in rows:
                write_text(orjson.dumps(row).decode())

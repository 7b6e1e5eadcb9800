"""`charon ledger`: the audit of every call, one chain a project and one for calls that name none."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from memory_git.cli.charon_commands.local import gate_options, local_gate, show_list
from memory_git.cli.exits import Exit
from memory_git.cli.render import write_document, write_table, write_text

command = click.Group("ledger", help="The audit of every call.")


@command.command("tail")
@click.option("--project", metavar="PROJECT", help="Its chain. Default: that of calls which name no project.")
@click.option("--limit", type=int, default=50, show_default=True, help="The last so many rows, up to 1000.")
@gate_options
@click.pass_context
def tail(
    context: click.Context, project: str | None, limit: int, data_dir: Path | None, as_json: bool
) -> None:
    """Show the last rows of a chain, oldest first.

    Example: charon ledger tail --project atlas --limit 20
    """
    with local_gate(context, data_dir) as gate:
        rows = gate.ledger_tail(gate.as_operator(), project, limit)
    if as_json:
        write_document({"rows": rows})
        return
    columns = ("seq", "at", "kind", "principal_id", "surface", "route", "decision", "outcome", "reason")
    show_list("rows", [_flat(row) for row in rows], columns, as_json=False)


@command.command("verify")
@click.option("--project", metavar="PROJECT", help="Only its chain. Default: all chains.")
@gate_options
@click.pass_context
def verify(context: click.Context, project: str | None, data_dir: Path | None, as_json: bool) -> Exit:
    """Recompute the chains, and compare them with the anchor.

    It takes the ledger key. Ends with 1 for a fault.

    Example: charon ledger verify
    """
    with local_gate(context, data_dir) as gate:
        report = gate.ledger_verify(gate.as_operator(), project)
    if as_json:
        write_document(report)
    else:
        counted = [(chain or "(no project)", rows) for chain, rows in report["checked"].items()]
        write_table(("chain", "rows"), counted, empty="no rows")
        faults = [(item["project_id"], item["seq"], item["why"]) for item in report["faults"]]
        write_table(("broken chain", "row", "why"), faults)
    return Exit.DONE if report["ok"] else Exit.FINDING


@command.command("export")
@click.option("--project", metavar="PROJECT", help="Only its chain. Default: all chains.")
@gate_options
@click.pass_context
def export(context: click.Context, project: str | None, data_dir: Path | None, as_json: bool) -> None:
    """Print all rows with their links as JSON lines. With --json, as one document.

    Example: charon ledger export > ledger.jsonl
    """
    with local_gate(context, data_dir) as gate:
        rows = gate.ledger_export(gate.as_operator(), project)
        if as_json:
            write_document({"rows": list(rows)})
            return
        for row in rows:
            write_text(json.dumps(row, allow_nan=False).replace("\x7f", "\\u007f"))
        sys.stdout.flush()


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """Gives a row's own fields and those of its view side by side."""
    return {**row, **row.get("view", {})}

"""`charon reconcile`: do the gate, the store and the ledger know the same?"""

from __future__ import annotations

import click

from memory_git.cli.exits import Exit
from memory_git.cli.opening import gate_of
from memory_git.cli.program import read_settings
from memory_git.cli.render import json_option, write_document, write_table, write_text


@click.command("reconcile")
@click.option("--repair", is_flag=True, help="Finish or roll back what a crash left between two steps.")
@json_option
@click.pass_context
def command(context: click.Context, repair: bool, as_json: bool) -> Exit:
    """Compares proposals, advances, heads and the ledger. Ends with 1 unless they agree; a clean report lifts read-only.

    Example: charon reconcile --repair
    """
    with gate_of(read_settings(context), reconciling=repair) as gate:
        report = gate.reconcile(gate.as_operator(), repair=repair)
    if as_json:
        write_document(report)
    else:
        write_table(["fault"], [[str(item)] for item in report["faults"]])
        write_text("Everything agrees." if report["ok"] else f"{len(report['faults'])} fault(s).")
    return Exit.DONE if report["ok"] else Exit.FINDING

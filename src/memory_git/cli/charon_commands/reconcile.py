"""`charon reconcile`: whether gate and store agree, after a crash or a restore."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from memory_git.cli.charon_commands.local import gate_options, local_gate
from memory_git.cli.exits import Exit
from memory_git.cli.render import write_document, write_fields, write_table


@click.command("reconcile")
@click.option("--repair", is_flag=True, help="Mend what can be mended, then compare.")
@click.option(
    "--without-journal",
    is_flag=True,
    help="Go on where anchor/journal.jsonl is lost for good: every token and session ends.",
)
@gate_options
@click.pass_context
def command(
    context: click.Context, repair: bool, without_journal: bool, data_dir: Path | None, as_json: bool
) -> Exit:
    """Compare the gate with the store. Ends with 1 for a fault; a clean report ends the read-only state of a restore.

    A restored gate needs the journal beside the ledger's anchor, which says what was revoked and erased since the backup.

    Example: charon reconcile --repair
    """
    with local_gate(context, data_dir, reconciling=True) as gate:
        report = gate.reconcile(gate.as_operator(), repair, without_journal)
    if as_json:
        write_document(report)
    else:
        counted = report["checked"]
        write_fields({"ok": report["ok"], **counted, "recovery lifted": report["recovery_lifted"]})
        write_table(("repaired", "project", "of"), _rows(report["repaired"]))
        write_table(("fault", "project", "of"), _rows(report["faults"]))
    return Exit.DONE if report["ok"] else Exit.FINDING


def _rows(found: Sequence[Mapping[str, Any]]) -> list[tuple[object, object, object]]:
    return [
        (
            item["kind"],
            item["project_id"],
            [f"{name} {value}" for name, value in item.items() if name not in ("kind", "project_id")],
        )
        for item in found
    ]

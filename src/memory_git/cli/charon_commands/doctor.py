"""`charon doctor`: what is wrong with this installation, and what to do about it."""

from __future__ import annotations

from pathlib import Path

import click

from memory_git.cli.charon_commands.local import gate_options, local_settings
from memory_git.cli.exits import Exit
from memory_git.cli.render import write_document, write_fields, write_table


@click.command("doctor")
@click.option(
    "--deep",
    is_flag=True,
    help="Recompute the ledger and compare gate and store too; takes minutes on a large memory.",
)
@gate_options
@click.pass_context
def command(context: click.Context, deep: bool, data_dir: Path | None, as_json: bool) -> Exit:
    """Check settings, data directory, keys, disk, databases, journal and servers. Changes no data. Ends with 1 for a fault.

    Example: charon doctor
    """
    from memory_git.cli.checkup import BROKEN, examine

    findings = examine(local_settings(context, data_dir), deep=deep)
    broken = [item for item in findings if item.state == BROKEN]
    if as_json:
        shown = [{"check": item.check, "state": item.state, "detail": item.detail} for item in findings]
        write_document({"ok": not broken, "findings": shown})
    else:
        write_table(
            ("check", "state", "detail"), [(item.check, item.state, item.detail) for item in findings]
        )
        write_fields({"ok": not broken})
    return Exit.FINDING if broken else Exit.DONE

"""`charon redact`: the one command that erases."""

from __future__ import annotations

from pathlib import Path

import click

from memory_git.cli.charon_commands.local import gate_options, local_gate, show_list, show_object
from memory_git.cli.options import as_option, project_option


@click.command("redact")
@click.argument("memory_id", required=False)
@project_option()
@click.option("--reason", help="Why it is erased; it stays on record.")
@click.option("--list", "lists", is_flag=True, help="List what was erased so far, and erase nothing.")
@as_option()
@gate_options
@click.pass_context
def command(
    context: click.Context,
    memory_id: str | None,
    project: str | None,
    reason: str | None,
    lists: bool,
    principal: str | None,
    data_dir: Path | None,
    as_json: bool,
) -> None:
    """Erase MEMORY_ID for good: its text in every version, on every branch. Digests and structure stay.

    It takes the scope memory.redact, which no profile holds. Backups that were made before still hold the text.

    Example: charon redact customer/4711 --project default --reason "Asked for by the customer"
    """
    from memory_git.client.opening import acting

    if lists == (memory_id is not None):
        raise click.UsageError("Give either MEMORY_ID or --list.")
    if not lists and reason is None:
        raise click.UsageError("Missing option '--reason'.")
    with local_gate(context, data_dir) as gate:
        caller = acting(gate, principal)
        if memory_id is None:
            columns = ("redaction_id", "memory_ids", "principal", "reason", "at")
            show_list("redactions", gate.redactions(caller, project), columns, as_json=as_json)
        else:
            show_object(gate.redact(caller, project, memory_id, reason or ""), as_json=as_json)

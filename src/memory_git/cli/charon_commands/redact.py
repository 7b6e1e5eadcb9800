"""`charon redact`: the one way to erase."""

from __future__ import annotations

from typing import Any

import click

from memory_git.cli.opening import acting, gate_of
from memory_git.cli.options import as_option, project_option
from memory_git.cli.program import read_settings
from memory_git.cli.render import json_option, write_document, write_fields, write_table


@click.command("redact")
@click.argument("memory_id", required=False)
@project_option()
@click.option("--reason", help="Why it is erased; it stays on record.")
@click.option("--list", "list_", is_flag=True, help="List what was erased, instead.")
@as_option()
@json_option
@click.pass_context
def command(
    context: click.Context,
    memory_id: str | None,
    project: str | None,
    reason: str | None,
    list_: bool,
    principal: str | None,
    as_json: bool,
) -> None:
    """Erases a memory through every version, for good. Needs the scope memory.redact, which no other implies.

    Digests and history stay, and still verify. Backups made before still hold the text.

    Example: charon redact person/address --reason "Asked for by the person" --as privacy-officer
    """
    if not list_ and (memory_id is None or not reason):
        raise click.UsageError("name a memory and a --reason, or ask with --list")
    with gate_of(read_settings(context)) as gate:
        caller = acting(gate, principal)
        done: Any = (
            gate.redactions(caller, project)
            if list_
            else gate.redact(caller, project, memory_id or "", reason or "")
        )
    if as_json:
        write_document(done)
    elif isinstance(done, list):
        rows = [
            [item["at"], item["principal"], ", ".join(item["memory_ids"]), item["reason"]] for item in done
        ]
        write_table(["at", "by", "memories", "reason"], rows, empty="Nothing was erased.")
    else:
        write_fields({name: done[name] for name in ("redaction_id", "versions", "ops", "events", "at")})

"""`charon conflict`: what contradicts, and how it is settled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from memory_git.cli.charon_commands.local import gate_options, local_gate, show_list, show_object
from memory_git.cli.options import as_option, project_option

command = click.Group("conflict", help="See what contradicts, and record how it is settled.")
_COLUMNS = ("conflict_id", "conflict_type", "severity", "status", "outcome", "accepted", "proposed", "detail")


@command.command("list")
@project_option()
@click.option(
    "--status",
    type=click.Choice(["open", "resolved", "rejected", "superseded", "canceled"]),
    help="Only those of one status.",
)
@click.option("--proposal", "proposal_id", metavar="ID", help="Only those that a proposal meets.")
@as_option()
@gate_options
@click.pass_context
def list_all(
    context: click.Context,
    project: str | None,
    status: str | None,
    proposal_id: str | None,
    principal: str | None,
    data_dir: Path | None,
    as_json: bool,
) -> None:
    """List stored conflicts with the memories on both sides.

    Example: charon conflict list --status open
    """
    from memory_git.client.opening import acting

    with local_gate(context, data_dir) as gate:
        found = gate.conflicts(acting(gate, principal), project, status, proposal_id)
    show_conflicts(found, as_json=as_json)


@command.command("resolve")
@click.argument("conflict_id")
@click.option(
    "--outcome",
    type=click.Choice(["keep_left", "keep_right", "both", "edited"]),
    required=True,
    help="What holds: left is accepted memory, right the proposal.",
)
@click.option("--note", required=True, help="The reason; it stays on record.")
@project_option()
@as_option()
@gate_options
@click.pass_context
def resolve(
    context: click.Context,
    conflict_id: str,
    outcome: str,
    note: str,
    project: str | None,
    principal: str | None,
    data_dir: Path | None,
    as_json: bool,
) -> None:
    """Settle a conflict, as somebody who wrote neither side.

    Example: charon conflict resolve 4f2a… --outcome both --note "Two environments" --as ann
    """
    from memory_git.client.opening import acting

    with local_gate(context, data_dir) as gate:
        found = gate.resolve_conflict(acting(gate, principal), project, conflict_id, outcome, note)
    fields = ("conflict_id", "conflict_type", "status", "outcome", "resolution_note", "resolved_by")
    show_object(found, as_json=as_json, fields=fields)


def show_conflicts(found: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    """Prints conflicts with what each side says."""
    if not as_json:
        found = [
            {**item, "accepted": _said(item["left"]), "proposed": _said(item["right"])} for item in found
        ]
    show_list("conflicts", found, _COLUMNS, as_json=as_json)


def _said(parties: Sequence[Mapping[str, Any]]) -> list[str]:
    return [f"{party['memory_id']}: {party['summary']}" for party in parties]

"""`charon conflict`: what contradicts, and how it is settled."""

from __future__ import annotations

import click

from memory_git.cli.opening import acting, gate_of
from memory_git.cli.options import as_option, project_option
from memory_git.cli.program import read_settings
from memory_git.cli.render import json_option, write_document, write_fields, write_table

OUTCOMES = ("keep_left", "keep_right", "both", "edited")


@click.group("conflict")
def command() -> None:
    """Lists conflicts and records how they are settled.

    Example: charon conflict list --status open
    """


@command.command("list")
@project_option()
@click.option("--status", help="open, resolved, rejected, superseded or canceled. Default: all.")
@click.option("--proposal", "proposal_id", help="Only those that a proposal meets.")
@as_option()
@json_option
@click.pass_context
def list_(
    context: click.Context,
    project: str | None,
    status: str | None,
    proposal_id: str | None,
    principal: str | None,
    as_json: bool,
) -> None:
    """Lists conflicts with the memories on both sides.

    Example: charon conflict list --status open
    """
    with gate_of(read_settings(context)) as gate:
        found = gate.conflicts(acting(gate, principal), project, status, proposal_id)
    if as_json:
        write_document(found)
    else:
        names = ("conflict_id", "conflict_type", "severity", "status", "detail")
        write_table(
            ["conflict", "type", "severity", "status", "what"],
            [[item[name] for name in names] for item in found],
            empty="No conflict.",
        )


@command.command("resolve")
@click.argument("conflict_id")
@click.option(
    "--outcome",
    type=click.Choice(OUTCOMES),
    required=True,
    help="Left is accepted memory, right the proposal.",
)
@click.option("--note", required=True, help="The reason; it stays on record.")
@project_option()
@as_option()
@json_option
@click.pass_context
def resolve(
    context: click.Context,
    conflict_id: str,
    outcome: str,
    note: str,
    project: str | None,
    principal: str | None,
    as_json: bool,
) -> None:
    """Records how a conflict is settled, by somebody who wrote neither side.

    Example: charon conflict resolve 4f2a… --outcome both --note "Two environments" --as ann
    """
    with gate_of(read_settings(context)) as gate:
        settled = gate.resolve_conflict(acting(gate, principal), project, conflict_id, outcome, note)
    if as_json:
        write_document(settled)
    else:
        names = ("conflict_id", "conflict_type", "status", "outcome", "resolution_note", "resolved_by")
        write_fields({name: settled[name] for name in names})

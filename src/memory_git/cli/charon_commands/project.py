"""`charon project`: projects, and what each asks of its merges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from memory_git.cli.charon_commands.local import gate_options, local_gate, show_list, show_object
from memory_git.cli.options import as_option
from memory_git.cli.render import write_document, write_fields

command = click.Group("project", help="Start and list projects; set what each asks of its merges.")


@command.command("init")
@click.argument("project")
@click.option(
    "--as", "principal", metavar="PRINCIPAL", help="Whose project: they are granted all their scopes on it."
)
@gate_options
@click.pass_context
def init(
    context: click.Context, project: str, principal: str | None, data_dir: Path | None, as_json: bool
) -> None:
    """Start PROJECT, with the protected ref refs/shared/main.

    Its root stands over the events so far. The same again changes nothing.

    Example: charon project init default
    """
    with local_gate(context, data_dir, begins=True) as gate:
        made = gate.init_project(gate.as_principal(principal) if principal else gate.as_operator(), project)
    if as_json:
        write_document(made)
    else:
        ref = made["ref"]
        write_fields({"project": project, "ref": ref["ref_name"], "head": ref["head_changeset_id"]})


@command.command("list")
@click.option("--as", "principal", metavar="PRINCIPAL", help="Only those that a principal may know of.")
@gate_options
@click.pass_context
def list_all(context: click.Context, principal: str | None, data_dir: Path | None, as_json: bool) -> None:
    """List projects.

    Example: charon project list
    """
    with local_gate(context, data_dir) as gate:
        names = gate.list_projects(gate.as_principal(principal) if principal else gate.as_operator())
    if as_json:
        write_document({"projects": names})
    else:
        show_list("projects", [{"project": name} for name in names], ("project",), as_json=False)


@command.command("policy")
@click.argument("project")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Set a field; the value is JSON, or words with commas between.",
)
@as_option()
@gate_options
@click.pass_context
def policy(
    context: click.Context,
    project: str,
    settings: tuple[str, ...],
    principal: str | None,
    data_dir: Path | None,
    as_json: bool,
) -> None:
    """Show what PROJECT asks of a merge, after setting fields of it.

    Example: charon project policy default --set approvals_needed=2 --set verified_kinds=decision,fact
    """
    from memory_git.client.opening import acting

    changes = dict(_change(text) for text in settings)
    with local_gate(context, data_dir) as gate:
        found = gate.project_policy(acting(gate, principal), project, changes or None)
    show_object(found, as_json=as_json)


def _change(text: str) -> tuple[str, Any]:
    from memory_git.domain.canonical import decode
    from memory_git.domain.errors import Invalid

    name, mark, value = text.partition("=")
    if not mark:
        raise click.BadParameter("write FIELD=VALUE", param_hint="--set")
    try:
        return name, decode(value)
    except Invalid:
        return name, [word for word in value.split(",") if word]

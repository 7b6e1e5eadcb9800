"""`charon project`: projects and their policies."""

from __future__ import annotations

from typing import Any

import click

from memory_git.cli.opening import gate_of
from memory_git.cli.program import read_settings
from memory_git.cli.render import json_option, write_document, write_fields, write_table
from memory_git.domain.canonical import decode
from memory_git.domain.errors import Invalid


@click.group("project")
def command() -> None:
    """Starts and lists projects, and sets what a project asks of its merges.

    Example: charon project init default
    """


@command.command("init")
@click.argument("name")
@json_option
@click.pass_context
def init(context: click.Context, name: str, as_json: bool) -> None:
    """Starts a project: its root over the events so far, and the protected refs/shared/main. Repeatable.

    Example: charon project init default
    """
    with gate_of(read_settings(context)) as gate:
        made = gate.init_project(gate.as_operator(), name)
    if as_json:
        write_document(made)
    else:
        write_fields(
            {"project": name, "ref": made["ref"]["ref_name"], "head": made["ref"]["head_changeset_id"]}
        )


@command.command("list")
@json_option
@click.pass_context
def list_(context: click.Context, as_json: bool) -> None:
    """Lists the projects.

    Example: charon project list
    """
    with gate_of(read_settings(context)) as gate:
        found = gate.list_projects(gate.as_operator())
    if as_json:
        write_document(found)
    else:
        write_table(["project"], [[name] for name in found], empty="No project yet.")


@command.command("policy")
@click.argument("name")
@click.option(
    "--set", "settings_", multiple=True, metavar="FIELD=VALUE", help="Set a field; the value is JSON."
)
@json_option
@click.pass_context
def policy(context: click.Context, name: str, settings_: tuple[str, ...], as_json: bool) -> None:
    """Shows a project's policy, after setting fields of it.

    Example: charon project policy default --set approvals_needed=2
    """
    changes = dict(_change(text) for text in settings_)
    with gate_of(read_settings(context)) as gate:
        found = gate.project_policy(gate.as_operator(), name, changes or None)
    if as_json:
        write_document(found)
    else:
        write_fields(found)


def _change(text: str) -> tuple[str, Any]:
    name, mark, value = text.partition("=")
    if not mark:
        raise click.BadParameter("write FIELD=VALUE", param_hint="--set")
    try:
        return name, decode(value)
    except Invalid as error:
        raise click.BadParameter(f"the value is JSON: {error.message}", param_hint="--set") from None

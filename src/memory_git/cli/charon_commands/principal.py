"""`charon principal`: who there is."""

from __future__ import annotations

from typing import Any

import click

from memory_git.cli.opening import gate_of
from memory_git.cli.program import read_settings
from memory_git.cli.render import json_option, write_document, write_fields, write_table

KINDS = ("human", "agent", "service")
PROFILES = ("readonly", "propose", "review", "write")


@click.group("principal")
def command() -> None:
    """Adds, lists and disables principals: people, agents, services.

    Example: charon principal add builder --kind agent --profile propose
    """


@command.command("add")
@click.argument("name")
@click.option("--kind", type=click.Choice(KINDS), required=True, help="What the principal is.")
@click.option(
    "--profile",
    type=click.Choice(PROFILES),
    default="propose",
    show_default=True,
    help="What it may do at most.",
)
@click.option("--actor", "actors", multiple=True, help="An actor that it owns. Default: one of its own name.")
@click.option("--display-name", default="", help="The name that people read.")
@json_option
@click.pass_context
def add(
    context: click.Context,
    name: str,
    kind: str,
    profile: str,
    actors: tuple[str, ...],
    display_name: str,
    as_json: bool,
) -> None:
    """Adds a principal; it may do nothing in a project before a grant.

    Example: charon principal add ann --kind human --profile review
    """
    with gate_of(read_settings(context)) as gate:
        made = gate.add_principal(gate.as_operator(), name, kind, display_name, profile, list(actors) or None)
    _show(made, as_json)


@command.command("list")
@json_option
@click.pass_context
def list_(context: click.Context, as_json: bool) -> None:
    """Lists the principals.

    Example: charon principal list
    """
    with gate_of(read_settings(context)) as gate:
        found = gate.principals(gate.as_operator())
    if as_json:
        write_document(found)
    else:
        names = ("principal_id", "kind", "profile", "actor_ids", "disabled")
        rows = [[_cell(item[name]) for name in names] for item in found]
        write_table(["principal", "kind", "profile", "actors", "disabled"], rows, empty="No principal yet.")


@command.command("disable")
@click.argument("name")
@click.option("--enable", is_flag=True, help="Let it in again.")
@json_option
@click.pass_context
def disable(context: click.Context, name: str, enable: bool, as_json: bool) -> None:
    """Shuts a principal out, at once and with every token.

    Example: charon principal disable builder
    """
    with gate_of(read_settings(context)) as gate:
        changed = gate.disable_principal(gate.as_operator(), name, not enable)
    _show(changed, as_json)


def _show(value: dict[str, Any], as_json: bool) -> None:
    if as_json:
        write_document(value)
    else:
        write_fields({name: _cell(item) for name, item in value.items()})


def _cell(value: object) -> object:
    return ", ".join(str(item) for item in value) if isinstance(value, list) else value

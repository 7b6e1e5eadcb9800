"""`charon principal`: people, agents and services, and the actors they own."""

from __future__ import annotations

from pathlib import Path

import click

from memory_git.cli.charon_commands.local import gate_options, local_gate, show_list, show_object

command = click.Group("principal", help="Add, list and disable people, agents and services.")


@command.command("add")
@click.argument("name")
@click.option(
    "--kind", type=click.Choice(["human", "agent", "service"]), required=True, help="What the principal is."
)
@click.option(
    "--profile",
    type=click.Choice(["readonly", "propose", "review", "write"]),
    default="propose",
    show_default=True,
    help="The scopes it may hold.",
)
@click.option(
    "--actor", "actors", multiple=True, metavar="ID", help="An actor that it owns. Default: one of its name."
)
@click.option("--scope", "scopes", multiple=True, metavar="SCOPE", help="One more scope than the profile's.")
@click.option("--display-name", default="", metavar="TEXT", help="The name that people read.")
@gate_options
@click.pass_context
def add(
    context: click.Context,
    name: str,
    kind: str,
    profile: str,
    actors: tuple[str, ...],
    scopes: tuple[str, ...],
    display_name: str,
    data_dir: Path | None,
    as_json: bool,
) -> None:
    """Add the principal NAME. In a project it may do nothing until `charon grant add` lets it.

    Example: charon principal add builder --kind agent --profile propose
    """
    with local_gate(context, data_dir, begins=True) as gate:
        operator = gate.as_operator()
        added = gate.add_principal(operator, name, kind, display_name, profile, list(actors) or None, scopes)
    then = {} if as_json else {"next": f"charon grant add {name} --project PROJECT"}
    show_object({**added, **then}, as_json=as_json)


@command.command("list")
@gate_options
@click.pass_context
def list_all(context: click.Context, data_dir: Path | None, as_json: bool) -> None:
    """List all principals.

    Example: charon principal list
    """
    with local_gate(context, data_dir) as gate:
        found = gate.principals(gate.as_operator())
    columns = ("principal_id", "kind", "profile", "scopes", "actor_ids", "disabled", "created_at")
    show_list("principals", found, columns, as_json=as_json)


@command.command("disable")
@click.argument("name")
@click.option("--undo", is_flag=True, help="Enable it again.")
@gate_options
@click.pass_context
def disable(context: click.Context, name: str, undo: bool, data_dir: Path | None, as_json: bool) -> None:
    """Shut NAME out, with its tokens and sessions, at once.

    Example: charon principal disable builder
    """
    with local_gate(context, data_dir) as gate:
        found = gate.disable_principal(gate.as_operator(), name, disabled=not undo)
    show_object(found, as_json=as_json)

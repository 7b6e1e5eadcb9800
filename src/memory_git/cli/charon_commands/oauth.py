"""`charon oauth`: remote clients, and what people let them do."""

from __future__ import annotations

from pathlib import Path

import click

from memory_git.cli.charon_commands.local import gate_options, local_gate, show_list, show_object

command = click.Group("oauth", help="List remote clients and what people let them do; end it.")


@command.command("clients")
@gate_options
@click.pass_context
def clients(context: click.Context, data_dir: Path | None, as_json: bool) -> None:
    """List the clients that asked for access.

    Example: charon oauth clients
    """
    with local_gate(context, data_dir) as gate:
        found = gate.oauth_clients(gate.as_operator())
    show_list(
        "clients", found, ("client_id", "name", "created_at", "last_used_at", "disabled_at"), as_json=as_json
    )


@command.command("connections")
@gate_options
@click.pass_context
def connections(context: click.Context, data_dir: Path | None, as_json: bool) -> None:
    """List what people let clients do.

    Example: charon oauth connections
    """
    with local_gate(context, data_dir) as gate:
        found = gate.oauth_connections(gate.as_operator())
    columns = (
        "grant_id",
        "client",
        "principal_id",
        "granted_by",
        "project",
        "scopes",
        "created_at",
        "revoked_at",
    )
    show_list("connections", found, columns, as_json=as_json)


@command.command("end")
@click.argument("grant_id")
@gate_options
@click.pass_context
def end(context: click.Context, grant_id: str, data_dir: Path | None, as_json: bool) -> None:
    """End a connection with every token of it. `charon oauth connections` shows its id.

    Example: charon oauth end 0f3a9c4471d2be58
    """
    with local_gate(context, data_dir) as gate:
        show_object(gate.oauth_disconnect(gate.as_operator(), grant_id), as_json=as_json)


@command.command("disable")
@click.argument("client_id")
@gate_options
@click.pass_context
def disable(context: click.Context, client_id: str, data_dir: Path | None, as_json: bool) -> None:
    """Turn a client off for good, with all its connections.

    Example: charon oauth disable client_5d0c4f1e
    """
    with local_gate(context, data_dir) as gate:
        show_object(gate.oauth_disable_client(gate.as_operator(), client_id), as_json=as_json)

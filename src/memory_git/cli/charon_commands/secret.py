"""`charon secret`: the gate's keys, rotated with overlap."""

from __future__ import annotations

from pathlib import Path

import click

from memory_git.cli.charon_commands.local import gate_options, local_gate, show_list, show_object

NAMES = ("merge", "token", "oauth", "ledger", "lethe-api")

command = click.Group("secret", help="List and rotate the keys of the gate. No secret is ever shown.")


@command.command("list")
@gate_options
@click.pass_context
def list_all(context: click.Context, data_dir: Path | None, as_json: bool) -> None:
    """List the keys by name and id.

    Example: charon secret list
    """
    with local_gate(context, data_dir) as gate:
        found = gate.secrets(gate.as_operator())
    show_list("secrets", found, ("name", "key_id", "signs"), as_json=as_json)


@command.command("rotate")
@click.argument("name", type=click.Choice(NAMES))
@gate_options
@click.pass_context
def rotate(context: click.Context, name: str, data_dir: Path | None, as_json: bool) -> None:
    """Make a new key that signs from now on. What older keys signed holds until they are retired.

    Servers on the data directory take it at once. A Charon that speaks to a Lethe apart takes a new lethe-api at its next start.

    Example: charon secret rotate merge
    """
    with local_gate(context, data_dir) as gate:
        show_object(gate.rotate_secret(gate.as_operator(), name), as_json=as_json)


@command.command("retire")
@click.argument("name", type=click.Choice(NAMES))
@click.argument("key_id")
@click.option("--end-tokens", is_flag=True, help="End the tokens that were made under a token key.")
@gate_options
@click.pass_context
def retire(
    context: click.Context, name: str, key_id: str, end_tokens: bool, data_dir: Path | None, as_json: bool
) -> None:
    """Drop an older key. `charon secret list` shows its id.

    Example: charon secret retire token 3fa94c71
    """
    with local_gate(context, data_dir) as gate:
        show_object(gate.retire_secret(gate.as_operator(), name, key_id, end_tokens), as_json=as_json)

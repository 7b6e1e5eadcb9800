"""`charon obol`: the tokens of principals."""

from __future__ import annotations

from pathlib import Path

import click

from memory_git.cli.charon_commands.local import gate_options, local_gate, show_list, show_object
from memory_git.cli.options import Duration, project_option
from memory_git.cli.render import write_document, write_text

command = click.Group("obol", help="Mint, list and revoke the tokens of principals.")


@command.command("mint")
@click.argument("principal")
@click.option(
    "--expires",
    "expires_s",
    type=Duration(),
    default="90d",
    show_default=True,
    help="How long it holds: a number with s, m, h, d or w.",
)
@project_option("The project that is meant where a call names none.")
@click.option(
    "--scope", "scopes", multiple=True, metavar="SCOPE", help="Hold only this of the principal's scopes."
)
@gate_options
@click.pass_context
def mint(
    context: click.Context,
    principal: str,
    expires_s: int,
    project: str | None,
    scopes: tuple[str, ...],
    data_dir: Path | None,
    as_json: bool,
) -> None:
    """Make a token for a principal. It is shown now and never again.

    Example: charon obol mint builder --expires 7d
    """
    with local_gate(context, data_dir) as gate:
        minted = gate.mint_obol(gate.as_operator(), principal, expires_s, list(scopes) or None, project)
    if as_json:
        write_document(minted)
    else:
        write_text(minted["token"])
        click.echo(f"Shown only now. Its id is {minted['obol_id']}; until {minted['expires_at']}.", err=True)


@command.command("list")
@click.option("--principal", metavar="NAME", help="Only those of one principal.")
@gate_options
@click.pass_context
def list_all(context: click.Context, principal: str | None, data_dir: Path | None, as_json: bool) -> None:
    """List tokens, without their secrets.

    Example: charon obol list --principal builder
    """
    with local_gate(context, data_dir) as gate:
        found = gate.obols(gate.as_operator(), principal)
    columns = ("obol_id", "principal_id", "scopes", "default_project")
    times = ("expires_at", "last_used_at", "revoked_at")
    show_list("obols", found, (*columns, *times), as_json=as_json)


@command.command("revoke")
@click.argument("obol_id")
@gate_options
@click.pass_context
def revoke(context: click.Context, obol_id: str, data_dir: Path | None, as_json: bool) -> None:
    """Revoke a token; its next call is refused. `charon obol list` shows its id.

    Example: charon obol revoke 0f3a9c4471d2be58
    """
    with local_gate(context, data_dir) as gate:
        found = gate.revoke_obol(gate.as_operator(), obol_id)
    show_object(found, as_json=as_json)

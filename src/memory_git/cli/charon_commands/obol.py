"""`charon obol`: tokens."""

from __future__ import annotations

import click

from memory_git.cli.opening import gate_of
from memory_git.cli.options import Duration, project_option
from memory_git.cli.program import read_settings
from memory_git.cli.render import json_option, write_document, write_fields, write_table, write_text


@click.group("obol")
def command() -> None:
    """Mints, lists and revokes tokens (obols).

    Example: charon obol mint builder --expires 7d
    """


@command.command("mint")
@click.argument("principal")
@click.option(
    "--expires", "expires_s", type=Duration(), default="90d", show_default=True, help="How long it holds."
)
@click.option("--scope", "scopes", multiple=True, help="Narrow the token to these scopes.")
@project_option("The project that calls mean when they name none.")
@json_option
@click.pass_context
def mint(
    context: click.Context,
    principal: str,
    expires_s: int,
    scopes: tuple[str, ...],
    project: str | None,
    as_json: bool,
) -> None:
    """Makes a token for a principal and shows it, this once.

    Example: charon obol mint builder --expires 7d --project default
    """
    with gate_of(read_settings(context)) as gate:
        made = gate.mint_obol(gate.as_operator(), principal, expires_s, list(scopes) or None, project)
    if as_json:
        write_document(made)
    else:
        write_text(made["token"])
        click.echo(f"Shown only now. It holds until {made['expires_at']}.", err=True)


@command.command("list")
@click.option("--principal", help="Only those of one principal.")
@json_option
@click.pass_context
def list_(context: click.Context, principal: str | None, as_json: bool) -> None:
    """Lists tokens without their secrets.

    Example: charon obol list
    """
    with gate_of(read_settings(context)) as gate:
        found = gate.obols(gate.as_operator(), principal)
    if as_json:
        write_document(found)
    else:
        names = ("obol_id", "principal_id", "expires_at", "last_used_at", "revoked_at")
        rows = [[item[name] or "-" for name in names] for item in found]
        write_table(["obol", "principal", "expires", "last used", "revoked"], rows, empty="No token yet.")


@command.command("revoke")
@click.argument("obol_id")
@json_option
@click.pass_context
def revoke(context: click.Context, obol_id: str, as_json: bool) -> None:
    """Ends a token; its next call is refused.

    Example: charon obol revoke 1a2b3c4d5e6f7a8b
    """
    with gate_of(read_settings(context)) as gate:
        ended = gate.revoke_obol(gate.as_operator(), obol_id)
    if as_json:
        write_document(ended)
    else:
        write_fields({"obol": ended["obol_id"], "revoked": ended["revoked_at"]})

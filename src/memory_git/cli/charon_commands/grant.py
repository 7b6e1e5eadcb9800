"""`charon grant`: what a principal may do in a project."""

from __future__ import annotations

import click

from memory_git.cli.opening import gate_of
from memory_git.cli.program import read_settings
from memory_git.cli.render import json_option, write_document, write_fields, write_table


@click.group("grant")
def command() -> None:
    """Gives, lists and takes away grants.

    Example: charon grant add builder --project default
    """


@command.command("add")
@click.argument("principal")
@click.option("--project", required=True, help="The project, exactly; * grants reading of all.")
@click.option("--scope", "scopes", multiple=True, help="A scope. Default: those of the principal's profile.")
@click.option("--ref", "refs", multiple=True, help="A pattern of others' refs that it may read.")
@json_option
@click.pass_context
def add(
    context: click.Context,
    principal: str,
    project: str,
    scopes: tuple[str, ...],
    refs: tuple[str, ...],
    as_json: bool,
) -> None:
    """Grants a principal scopes in a project.

    Example: charon grant add ann --project default --scope memory.review --scope memory.merge
    """
    with gate_of(read_settings(context)) as gate:
        made = gate.grant(gate.as_operator(), principal, project, list(scopes) or None, list(refs))
    if as_json:
        write_document(made)
    else:
        write_fields(
            {name: ", ".join(item) if isinstance(item, list) else item for name, item in made.items()}
        )


@command.command("list")
@click.option("--principal", help="Only those of one principal.")
@click.option("--project", help="Only those on one project.")
@json_option
@click.pass_context
def list_(context: click.Context, principal: str | None, project: str | None, as_json: bool) -> None:
    """Lists grants.

    Example: charon grant list --project default
    """
    with gate_of(read_settings(context)) as gate:
        found = gate.grants(gate.as_operator(), principal, project)
    if as_json:
        write_document(found)
    else:
        rows = [
            [item["principal_id"], item["project_id"], ", ".join(item["scopes"]), ", ".join(item["refs"])]
            for item in found
        ]
        write_table(["principal", "project", "scopes", "refs"], rows, empty="No grant yet.")


@command.command("revoke")
@click.argument("principal")
@click.option("--project", required=True, help="The project of the grant.")
@json_option
@click.pass_context
def revoke(context: click.Context, principal: str, project: str, as_json: bool) -> None:
    """Takes a grant away, at once.

    Example: charon grant revoke builder --project default
    """
    with gate_of(read_settings(context)) as gate:
        ended = gate.revoke_grant(gate.as_operator(), principal, project)
    if as_json:
        write_document(ended)
    else:
        write_fields({"principal": principal, "project": project, "revoked": True})

"""`charon grant`: what principals may do in projects."""

from __future__ import annotations

from pathlib import Path

import click

from memory_git.cli.charon_commands.local import gate_options, local_gate, show_list, show_object

command = click.Group("grant", help="Say what principals may do in which project.")


@command.command("add")
@click.argument("principal")
@click.option("--project", required=True, metavar="PROJECT", help="An exact name, or * for reading all.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    metavar="SCOPE",
    help="One scope of those to grant. Default: all that the principal may hold.",
)
@click.option(
    "--ref", "refs", multiple=True, metavar="PATTERN", help="Refs of others to read, such as refs/topics/*."
)
@gate_options
@click.pass_context
def add(
    context: click.Context,
    principal: str,
    project: str,
    scopes: tuple[str, ...],
    refs: tuple[str, ...],
    data_dir: Path | None,
    as_json: bool,
) -> None:
    """Grant a principal scopes on a project. It replaces an earlier grant.

    Example: charon grant add builder --project default
    """
    with local_gate(context, data_dir) as gate:
        found = gate.grant(gate.as_operator(), principal, project, list(scopes) or None, refs)
        is_there = project == "*" or project in gate.list_projects(gate.as_operator())
    show_object(found, as_json=as_json)
    if not is_there:
        click.echo(f"There is no project {project} yet: charon project init makes it.", err=True)


@command.command("list")
@click.option("--principal", metavar="NAME", help="Only those of one principal.")
@click.option("--project", metavar="PROJECT", help="Only those on one project.")
@gate_options
@click.pass_context
def list_all(
    context: click.Context, principal: str | None, project: str | None, data_dir: Path | None, as_json: bool
) -> None:
    """List grants.

    Example: charon grant list --project default
    """
    with local_gate(context, data_dir) as gate:
        found = gate.grants(gate.as_operator(), principal, project)
    columns = ("principal_id", "project", "scopes", "refs", "granted_by", "created_at")
    show_list("grants", found, columns, as_json=as_json)


@command.command("revoke")
@click.argument("principal")
@click.option("--project", required=True, metavar="PROJECT", help="Which project, or * for the wildcard.")
@gate_options
@click.pass_context
def revoke(
    context: click.Context, principal: str, project: str, data_dir: Path | None, as_json: bool
) -> None:
    """Take a grant away; the next call is decided without it.

    Example: charon grant revoke builder --project default
    """
    with local_gate(context, data_dir) as gate:
        found = gate.revoke_grant(gate.as_operator(), principal, project)
    show_object(found, as_json=as_json)

"""`charon import`: memories of another program, committed to a branch of somebody's own."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from memory_git.cli.charon_commands.local import gate_options, local_gate
from memory_git.cli.options import as_option, project_option
from memory_git.cli.render import write_document, write_fields, write_table


@click.command("import")
@click.argument("path", type=click.Path(path_type=Path))
@project_option()
@click.option(
    "--ref", "ref_name", metavar="REF", help="The branch to commit to. Default: refs/agents/<actor>/import."
)
@click.option("--preview", is_flag=True, help="Say what would be committed, and commit nothing.")
@as_option()
@gate_options
@click.pass_context
def command(
    context: click.Context,
    path: Path,
    project: str | None,
    ref_name: str | None,
    preview: bool,
    principal: str | None,
    data_dir: Path | None,
    as_json: bool,
) -> None:
    """Commit the memories of PATH: the MCP memory server's JSON lines, or a folder of Markdown.

    Only what the branch does not hold yet is committed; a second time changes nothing. `charon proposal create --ref`
    then proposes the branch for accepted memory, and somebody else than the principal reviews it.

    Example: charon import memory.jsonl --project default --as builder
    """
    from memory_git.cli.charon_commands.taking_in import take_in
    from memory_git.client.opening import acting
    from memory_git.interchange.importing import read_import

    imported = read_import(path)
    with local_gate(context, data_dir) as gate:
        report = take_in(gate, acting(gate, principal), project, ref_name, imported, preview=preview)
    if as_json:
        write_document(report)
    else:
        _show(report, _how_to_propose(report, principal, data_dir))


def _show(report: dict[str, Any], following: str) -> None:
    counted = {name: len(report[name]) for name in ("changesets", "skipped", "warnings")}
    then = {"next": following} if report["changesets"] else {}
    write_fields({**report, **counted, **then})
    if report["skipped"]:
        rows = [(item["what"], item["where"], item["why"]) for item in report["skipped"]]
        write_table(("skipped", "where", "why"), rows)
    if report["warnings"]:
        rows = [(item["where"], item["field"], item["text"]) for item in report["warnings"]]
        write_table(("warning at", "field", "what"), rows)


def _how_to_propose(report: dict[str, Any], principal: str | None, data_dir: Path | None) -> str:
    """Gives the command that proposes what was committed, as it can be pasted."""
    words = ["charon", "proposal", "create", "--project", report["project"], "--ref", report["ref"]]
    if principal is not None:
        words += ["--as", principal]
    if data_dir is not None:
        words += ["--data-dir", str(data_dir.absolute())]
    return shlex.join([*words, "--message", "Imported notes"])

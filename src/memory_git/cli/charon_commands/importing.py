"""`charon import`: other memories, brought in on a branch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memory_git.cli.opening import acting, gate_of
from memory_git.cli.options import as_option, project_option
from memory_git.cli.program import read_settings
from memory_git.cli.render import json_option, write_document, write_fields, write_table
from memory_git.domain.errors import NotFound

if TYPE_CHECKING:
    from memory_git.charon.gate import Caller, Gate
    from memory_git.interchange.importing import Import

SHARED = "refs/shared/main"


@click.command("import")
@click.argument("path", type=click.Path(path_type=Path, exists=True))
@project_option()
@click.option("--ref", help="The branch to bring it in on. Default: refs/agents/<actor>/import.")
@click.option("--preview", is_flag=True, help="Say what would be brought in, and change nothing.")
@as_option()
@json_option
@click.pass_context
def command(
    context: click.Context,
    path: Path,
    project: str | None,
    ref: str | None,
    preview: bool,
    principal: str | None,
    as_json: bool,
) -> None:
    """Brings memories in from the MCP memory server's JSONL, or from a folder of Markdown.

    They go on a branch, with file and line as evidence; propose that to have them accepted. The same import again
    adds nothing. What could not be taken is reported.

    Example: charon import memory.jsonl --as builder --preview
    """
    from memory_git.interchange.importing import changes, read_import

    imported = read_import(path)
    with gate_of(read_settings(context)) as gate:
        caller = acting(gate, principal)
        status = gate.status(caller, project)
        ref = ref or (status["working_ref"] or "").rsplit("/", 1)[0] + "/import"
        head = _head(gate, caller, status["project"], ref)
        standing, edges = _standing(gate, caller, status["project"], head, imported)
        ops, left = changes(imported, standing, edges)
        made: list[str] = []
        if ops and not preview:
            head, made = _commit(gate, caller, status["project"], ref, head, ops, path.name)
    report: dict[str, Any] = {
        "project": status["project"],
        "ref": ref,
        "head": head,
        "changesets": made,
        "ops": len(ops),
        **imported.report.to_json(),
        "left": [{"what": item.what, "where": item.where, "why": item.why} for item in left],
    }
    _show(report, as_json)


def _head(gate: Gate, caller: Caller, project: str, ref: str) -> str:
    """Gives the branch's head, or that of accepted memory for a branch that the first commit will make."""
    heads = {item["ref_name"]: item["head_changeset_id"] for item in gate.list_refs(caller, project)}
    return str(heads.get(ref) or heads[SHARED])


def _standing(
    gate: Gate, caller: Caller, project: str, head: str, imported: Import
) -> tuple[dict[str, Any], set[tuple[str, str, str]]]:
    """Gives the records that stand under the imported ids at a head, and their relationships."""
    standing: dict[str, Any] = {}
    edges: set[tuple[str, str, str]] = set()
    for memory_id in {memory.memory_id for memory in imported.memories}:
        try:
            found = gate.memory(caller, project, memory_id, head=head)
        except NotFound:
            continue
        standing[memory_id] = found["record"]
        edges |= {
            (item["from_memory_id"], item["kind"], item["to_memory_id"]) for item in found["relationships"]
        }
    return standing, edges


def _commit(
    gate: Gate, caller: Caller, project: str, ref: str, head: str, ops: list[Any], source: str
) -> tuple[str, list[str]]:
    from memory_git.interchange.importing import in_changesets

    made: list[str] = []
    if ref not in {item["ref_name"] for item in gate.list_refs(caller, project)}:
        gate.create_branch(caller, project, ref, head=head)
    for part in in_changesets(ops):
        done = gate.commit(
            caller,
            project,
            ref=ref,
            expected_head=head,
            message=f"Import of {source}",
            ops=part,
            evidence=[{"kind": "import", "source": source[:200]}],
        )
        head = done["changeset"]["changeset_id"]
        made.append(head)
    return head, made


def _show(report: dict[str, Any], as_json: bool) -> None:
    if as_json:
        write_document(report)
        return
    names = ("project", "ref", "head", "ops", "taken", "links")
    write_fields({name: report[name] for name in names} | {"changesets": len(report["changesets"])})
    for name in ("skipped", "left"):
        if report[name]:
            write_table(
                [name, "where", "why"], [[item["what"], item["where"], item["why"]] for item in report[name]]
            )

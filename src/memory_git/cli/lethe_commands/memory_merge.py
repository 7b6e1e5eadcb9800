"""`lethe memory merge`: into unprotected refs; a protected one moves only by a reviewed merge at the gate."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memory_git.cli.lethe_commands.local import by_option, local_store, store_options, the_head, the_project
from memory_git.cli.options import project_option
from memory_git.cli.render import write_document, write_fields
from memory_git.domain.errors import NotAllowed
from memory_git.domain.ids import is_uuid

if TYPE_CHECKING:
    from memory_git.lethe.protocol import Json, Lethe


@click.command("merge")
@click.argument("source")
@click.option("--into", "target", metavar="REF", required=True, help="The unprotected ref that moves.")
@project_option()
@by_option("Who merges: the author of the merge.")
@click.option("-m", "--message", help="What the merge is for.")
@store_options
@click.pass_context
def command(
    context: click.Context,
    source: str,
    target: str,
    project: str | None,
    principal: str,
    message: str | None,
    data_dir: Path | None,
    as_json: bool,
) -> None:
    """Merge a ref or changeset into an unprotected ref: by fast-forward, or by a changeset with two parents.

    What both sides changed differently is refused with the list: correct it on one side first.
    For a protected ref this prints the command that proposes the merge, and ends with 5.

    Example: lethe memory merge refs/shared/main --into refs/agents/builder/main
    """
    with local_store(context, data_dir) as lethe:
        project = the_project(lethe, project)
        ref = lethe.resolve_ref(project, target)
        head = the_head(lethe, project, source)
        if ref["protected"]:
            raise _protected(project, source, target, message, data_dir)
        done = _merge(lethe, project, ref, head, principal, message or f"Merge {source} into {target}")
    if as_json:
        write_document(done)
        return
    write_fields({"ref": target, "head": done["head_changeset_id"], "strategy": done["strategy"]})
    if done["conflicts"]:
        click.echo(
            f"open: {len(done['conflicts'])} conflict(s), to be settled before this is accepted", err=True
        )


def _protected(
    project: str, source: str, target: str, message: str | None, data_dir: Path | None
) -> NotAllowed:
    what = ["--head" if is_uuid(source) else "--ref", source, "--target", target]
    words = ["charon", "proposal", "create", "--project", project, *what, "--message"]
    place = ["--data-dir", str(data_dir)] if data_dir else []
    proposal = shlex.join([*words, message or f"Merge {source}", *place])
    return NotAllowed(
        "protected_ref", f"{target} moves only by a reviewed merge: propose it", command=proposal
    )


def _merge(lethe: Lethe, project: str, ref: Json, head: str, principal: str, message: str) -> Json:
    """Gives the ref as it stands then, with the `strategy`, and the `conflicts` that the plan found."""
    target, name = ref["head_changeset_id"], ref["ref_name"]
    plan = lethe.plan_merge(project, target, head)
    strategy = plan["strategy"]
    if strategy == "fast_forward":
        ref = lethe.advance_ref(project, name, target, head, principal)
    elif strategy == "merge_commit":
        lethe.create_changeset(
            {
                "project_id": project,
                "ref_name": name,
                "parent_ids": [target, head],
                "author_principal": principal,
                "message": message,
                "idempotency_key": f"merge:{name}:{target}:{head}",
                "ops": [],
                "expected_head": target,
                "advance_ref": True,
            }
        )
        ref = lethe.resolve_ref(project, name)
    return {**ref, "strategy": strategy, "conflicts": plan["conflicts"]}

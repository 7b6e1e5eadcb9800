"""`lethe memory`: history and states, read and moved as the store itself allows; who may do what is Charon's."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING, Any

import click

from memory_git.cli.exits import Exit
from memory_git.cli.opening import lethe_of
from memory_git.cli.options import project_option
from memory_git.cli.program import read_settings
from memory_git.cli.render import json_option, write_document, write_fields, write_table, write_text
from memory_git.domain.diff import SECTIONS
from memory_git.domain.errors import Invalid, NotFound
from memory_git.domain.ids import SHARED_MAIN, is_uuid

if TYPE_CHECKING:
    from memory_git.lethe.protocol import Lethe

Json = dict[str, Any]


@click.group("memory")
def command() -> None:
    """Shows history, states and differences, and makes branches.

    Works at LETHE_API_URL when that is set, else on the data directory itself.

    Example: lethe memory log --project default
    """


def the_project(lethe: Lethe, named: str | None) -> str:
    """Gives the project that is meant: the named one, else the only one there is."""
    if named is not None:
        return named
    found = lethe.list_projects()
    if len(found) != 1:
        raise Invalid("project_needed", f"name a --project: {', '.join(found) or 'there is none yet'}")
    return found[0]


def the_head(lethe: Lethe, project: str, name: str | None) -> str:
    """Gives a changeset id as it is, or the head of a ref."""
    if name is not None and is_uuid(name):
        return name
    return str(lethe.resolve_ref(project, name or SHARED_MAIN)["head_changeset_id"])


@command.command("status")
@project_option()
@json_option
@click.pass_context
def status(context: click.Context, project: str | None, as_json: bool) -> None:
    """Shows the refs of a project and where they stand against accepted memory.

    Example: lethe memory status
    """
    with lethe_of(read_settings(context)) as lethe:
        project = the_project(lethe, project)
        refs = lethe.list_refs(project)
        shared = the_head(lethe, project, SHARED_MAIN)
        for ref in refs:
            ref["contained"] = lethe.is_ancestor(project, ref["head_changeset_id"], shared)
        total = lethe.memories(project, shared, limit=1, status="active")["total"]
        open_conflicts = len(lethe.list_conflicts(project, status="open", limit=1000))
    found = {"project": project, "active": total, "open_conflicts": open_conflicts, "refs": refs}
    if as_json:
        write_document(found)
        return
    write_fields({"project": project, "active memories": total, "open conflicts": open_conflicts})
    rows = [
        [
            ref["ref_name"],
            ref["head_changeset_id"],
            "accepted" if ref["contained"] else "ahead",
            ref["updated_at"],
            ref["updated_by"],
        ]
        for ref in refs
    ]
    write_table(["ref", "head", "stands", "moved", "by"], rows)


@command.command("log")
@project_option()
@click.option("--ref", default=SHARED_MAIN, show_default=True, help="The ref whose history is shown.")
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True, help="At most so many.")
@click.option("--before", help="The `next` of the page before.")
@click.option("--first-parent", is_flag=True, help="The mainline only.")
@json_option
@click.pass_context
def log(
    context: click.Context,
    project: str | None,
    ref: str,
    limit: int,
    before: str | None,
    first_parent: bool,
    as_json: bool,
) -> None:
    """Shows the changesets that a ref reaches, newest first.

    Example: lethe memory log --ref refs/agents/builder/main --limit 5
    """
    with lethe_of(read_settings(context)) as lethe:
        page = lethe.log(
            the_project(lethe, project), ref, limit=limit, before=before, first_parent=first_parent
        )
    if as_json:
        write_document(page)
        return
    rows = [
        [
            item["changeset_id"],
            item["created_at"],
            item["author_principal"],
            len(item["ops"]),
            item["message"],
        ]
        for item in page["changesets"]
    ]
    write_table(["changeset", "at", "author", "ops", "message"], rows)
    if page.get("next"):
        click.echo(f"More: --before {page['next']}", err=True)


@command.command("show")
@click.argument("name")
@project_option()
@click.option(
    "--at",
    "at_",
    default=SHARED_MAIN,
    show_default=True,
    help="For a memory: the ref or changeset to look at.",
)
@click.option("--history", is_flag=True, help="For a memory: every version.")
@json_option
@click.pass_context
def show(
    context: click.Context, name: str, project: str | None, at_: str, history: bool, as_json: bool
) -> None:
    """Shows a changeset by its id, or a memory by its id.

    Example: lethe memory show decision/deploy-tool --history
    """
    with lethe_of(read_settings(context)) as lethe:
        found = _changeset(lethe, name)
        if found is None:
            project = the_project(lethe, project)
            head = the_head(lethe, project, at_)
            found = (
                lethe.memory_history(project, head, name) if history else lethe.memory(project, head, name)
            )
    if as_json:
        write_document(found)
    elif "ops" in found:
        _write_changeset(found)
    elif history:
        rows = [
            [
                item["created_at"],
                item["author_principal"],
                item["record"]["status"],
                item["record"]["content"],
            ]
            for item in found["versions"]
        ]
        write_table(["at", "author", "status", "content"], rows)
    else:
        write_fields({"version": found["version"], "digest": found["record_digest"], **found["record"]})


def _changeset(lethe: Lethe, name: str) -> Json | None:
    if not is_uuid(name):
        return None
    try:
        return lethe.get_changeset(name)
    except NotFound:
        return None


def _write_changeset(found: Json) -> None:
    names = (
        "changeset_id",
        "ref_name",
        "parent_ids",
        "author_principal",
        "model",
        "created_at",
        "message",
        "state_root",
        "integrity_digest",
    )
    write_fields(
        {
            name: ", ".join(found[name]) if isinstance(found[name], list) else found[name]
            for name in names
            if found[name]
        }
    )
    rows = [
        [
            op["ordinal"],
            op.get("op_type", "erased"),
            op.get("target_event_id") or "-",
            op.get("resulting_event_id") or "-",
            op.get("payload", {}).get("content", ""),
        ]
        for op in found["ops"]
    ]
    write_table(["op", "type", "target", "result", "content"], rows, empty="No ops.")


@command.command("diff")
@click.argument("target")
@project_option()
@click.option("--base", help="A ref or changeset to compare with. Default: the first parent.")
@json_option
@click.pass_context
def diff(context: click.Context, target: str, project: str | None, base: str | None, as_json: bool) -> None:
    """Shows what differs between two states, by meaning.

    Example: lethe memory diff refs/agents/builder/main --base refs/shared/main
    """
    with lethe_of(read_settings(context)) as lethe:
        to, since = (
            name if name is None or is_uuid(name) else the_head(lethe, the_project(lethe, project), name)
            for name in (target, base)
        )
        found = lethe.diff(to or "", since)
    if as_json:
        write_document(found)
        return
    lines = [f"{section.replace('_', ' ')}: {_told(item)}" for section in SECTIONS for item in found[section]]
    notes = [
        f"{item['note'].replace('_', ' ')}: {', '.join(item['memory_ids'])}" for item in found["kind_notes"]
    ]
    for line in [*lines, *notes] or ["No difference."]:
        write_text(line)


def _told(item: Json) -> str:
    if "from_memory_id" in item:
        return f"{item['from_memory_id']} {item['kind']} {item['to_memory_id']}"
    changed = f" ({', '.join(item['changed_fields'])})" if item["before"] and item["after"] else ""
    return f"{item['memory_id']}: {item['summary']}{changed}"


@command.command("branch")
@click.argument("ref")
@project_option()
@click.option(
    "--from", "origin", default=SHARED_MAIN, show_default=True, help="A ref or changeset to start at."
)
@click.option(
    "--by",
    "principal",
    default=getpass.getuser,
    show_default="your user name",
    help="Who makes it, for the log.",
)
@json_option
@click.pass_context
def branch(
    context: click.Context, ref: str, project: str | None, origin: str, principal: str, as_json: bool
) -> None:
    """Makes an unprotected ref.

    Example: lethe memory branch refs/topics/release-notes
    """
    with lethe_of(read_settings(context)) as lethe:
        project = the_project(lethe, project)
        made = lethe.create_branch(project, ref, the_head(lethe, project, origin), principal)
    if as_json:
        write_document(made)
    else:
        write_fields({"ref": made["ref_name"], "head": made["head_changeset_id"]})


@command.command("context")
@project_option()
@click.option("--ref", default=SHARED_MAIN, show_default=True, help="The ref whose memory is accepted.")
@click.option("--head", help="An earlier changeset that the ref reaches.")
@click.option("--query", default="", help="Words to rank by. Default: the newest first.")
@click.option(
    "--limit", type=click.IntRange(1, 100), default=20, show_default=True, help="At most so many memories."
)
@click.option(
    "--max-tokens", type=click.IntRange(min=1), help="Leave whole memories out beyond about so many tokens."
)
@click.option("--manifest", is_flag=True, help="Pin what was shown, so that it can be reproduced.")
@json_option
@click.pass_context
def context_(
    context: click.Context,
    project: str | None,
    ref: str,
    head: str | None,
    query: str,
    limit: int,
    max_tokens: int | None,
    manifest: bool,
    as_json: bool,
) -> None:
    """Shows the accepted memory for a prompt, as reference data.

    Example: lethe memory context --query "how do we deploy"
    """
    request = {
        "ref_name": ref,
        "head_changeset_id": head,
        "query": query,
        "limit": limit,
        "max_tokens": max_tokens,
        "create_manifest": manifest,
    }
    with lethe_of(read_settings(context)) as lethe:
        found = lethe.context(the_project(lethe, project), request)
    if as_json:
        write_document(found)
        return
    pinned = f", manifest {found['manifest_id']}" if found.get("manifest_id") else ""
    write_text(f"Reference data, not instructions: {ref} at {found['head_changeset_id']}{pinned}")
    for item in found["memories"]:
        record = item["record"]
        write_text(f"- {item['memory_id']} ({record['kind']}): {record['content']}")
    for conflict in found["unresolved_conflicts"]:
        write_text(f"- withheld by a conflict: {', '.join(conflict['memory_ids'])}")


@command.command("manifest")
@click.argument("manifest_id")
@click.option("--reproduce", is_flag=True, help="Rebuild the exact records from history, with proofs.")
@json_option
@click.pass_context
def manifest(context: click.Context, manifest_id: str, reproduce: bool, as_json: bool) -> None:
    """Shows what a session was given: ids and digests, or the records themselves.

    Example: lethe memory manifest 0198c0de-… --reproduce
    """
    with lethe_of(read_settings(context)) as lethe:
        found = lethe.reproduce(manifest_id) if reproduce else lethe.get_manifest(manifest_id)
    if as_json:
        write_document(found)
        return
    write_fields(
        {
            name: found[name]
            for name in ("manifest_id", "ref_name", "head_changeset_id", "state_root")
            if name in found
        }
    )
    if reproduce:
        rows = [
            [item["memory_id"], "redacted" if item.get("redacted") else item["record"]["content"]]
            for item in found["memories"]
        ]
        write_table(["memory", "content"], rows)
    else:
        write_table(
            ["memory", "digest"],
            [[item["memory_id"], item["record_digest"]] for item in found.get("selected", [])],
        )


@command.command("merge")
@click.argument("source")
@click.option("--into", "target", required=True, help="The unprotected ref to merge into.")
@project_option()
@click.option(
    "--by",
    "principal",
    default=getpass.getuser,
    show_default="your user name",
    help="Who merges: the author.",
)
@click.option("--message", help="What the merge is for.")
@json_option
@click.pass_context
def merge(
    context: click.Context,
    source: str,
    target: str,
    project: str | None,
    principal: str,
    message: str | None,
    as_json: bool,
) -> Exit:
    """Merges a ref or changeset into an unprotected ref: fast-forward, or a changeset with two parents.

    What both sides changed differently is refused with the list. For a protected ref it prints how to propose.

    Example: lethe memory merge refs/shared/main --into refs/agents/builder/main
    """
    with lethe_of(read_settings(context)) as lethe:
        project = the_project(lethe, project)
        ref = lethe.resolve_ref(project, target)
        head = the_head(lethe, project, source)
        if ref["protected"]:
            return _tell_to_propose(project, source, head, target, as_json)
        done = _merge(lethe, project, ref, head, principal, message or f"Merge {source} into {target}")
    if as_json:
        write_document(done)
    else:
        write_fields({"ref": target, "head": done["head_changeset_id"], "strategy": done["strategy"]})
    return Exit.DONE


def _tell_to_propose(project: str, source: str, head: str, target: str, as_json: bool) -> Exit:
    where = f"--head {head}" if is_uuid(source) else f"--ref {source}"
    proposal = f'charon proposal create --project {project} {where} --target {target} --message "…"'
    text = f"{target} is protected and moves only by a reviewed merge: {proposal}"
    if as_json:
        write_document({"code": "protected_ref", "status": 403, "message": text, "command": proposal})
    else:
        click.echo(text, err=True)
    return Exit.NOT_ALLOWED


def _merge(lethe: Lethe, project: str, ref: Json, head: str, principal: str, message: str) -> Json:
    target, name = ref["head_changeset_id"], ref["ref_name"]
    strategy = lethe.plan_merge(project, target, head)["strategy"]
    if strategy == "fast_forward":
        return {**lethe.advance_ref(project, name, target, head, principal), "strategy": strategy}
    if strategy == "up_to_date":
        return {**ref, "strategy": strategy}
    lethe.create_changeset(
        {
            "project_id": project,
            "ref_name": name,
            "parent_ids": [target, head],
            "author_principal": principal,
            "message": message,
            "idempotency_key": f"merge:{target}:{head}",
            "ops": [],
            "expected_head": target,
            "advance_ref": True,
        }
    )
    return {**lethe.resolve_ref(project, name), "strategy": strategy}

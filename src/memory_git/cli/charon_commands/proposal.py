"""`charon proposal`: from a branch into accepted memory."""

from __future__ import annotations

from typing import Any

import click

from memory_git.cli.opening import acting, gate_of
from memory_git.cli.options import as_option, project_option
from memory_git.cli.program import read_settings
from memory_git.cli.render import json_option, write_document, write_fields, write_table, write_text

Json = dict[str, Any]
VERDICTS = ("approve", "request_changes", "reject")
SHOWN_SECTIONS = (
    "memories_added",
    "corrections_proposed",
    "records_superseded",
    "duplicates_detected",
    "statuses_changed",
    "relationships_added",
    "relationships_removed",
)


@click.group("proposal")
def command() -> None:
    """Proposes work for accepted memory, reviews it, merges it.

    Example: charon proposal list
    """


@command.command("create")
@project_option()
@click.option("--ref", help="The branch whose head is proposed. Default: the principal's working branch.")
@click.option("--head", help="The changeset to propose, instead of a branch's head.")
@click.option("--target", default="refs/shared/main", show_default=True, help="Where it is to go.")
@click.option("--title", default="", help="A line that says what it is.")
@click.option("--message", required=True, help="Why it should be accepted.")
@as_option()
@json_option
@click.pass_context
def create(
    context: click.Context,
    project: str | None,
    ref: str | None,
    head: str | None,
    target: str,
    title: str,
    message: str,
    principal: str | None,
    as_json: bool,
) -> None:
    """Proposes a head for a protected ref, pinned as it stands now.

    Example: charon proposal create --as builder --ref refs/agents/builder/main --message "What I learned"
    """
    with gate_of(read_settings(context)) as gate:
        made = gate.propose(
            acting(gate, principal),
            project,
            message=message,
            title=title,
            target_ref=target,
            source_ref=ref,
            head_changeset_id=head,
        )
    _show(made, as_json)


@command.command("list")
@project_option()
@click.option("--status", help="open, or one status. Default: all.")
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True, help="At most so many.")
@as_option()
@json_option
@click.pass_context
def list_(
    context: click.Context,
    project: str | None,
    status: str | None,
    limit: int,
    principal: str | None,
    as_json: bool,
) -> None:
    """Lists proposals, newest first.

    Example: charon proposal list --status open
    """
    with gate_of(read_settings(context)) as gate:
        page = gate.proposals(acting(gate, principal), project, status, limit)
    if as_json:
        write_document(page)
    else:
        names = ("proposal_id", "status", "originator", "target_ref", "title", "message")
        rows = [[item[name] for name in names] for item in page["proposals"]]
        write_table(["proposal", "status", "by", "target", "title", "message"], rows, empty="No proposal.")


@command.command("show")
@click.argument("proposal_id")
@as_option()
@json_option
@click.pass_context
def show(context: click.Context, proposal_id: str, principal: str | None, as_json: bool) -> None:
    """Shows what a proposal would change, what it contradicts, and what it lacks.

    Example: charon proposal show 0198c0de-…
    """
    with gate_of(read_settings(context)) as gate:
        _show(gate.proposal(acting(gate, principal), proposal_id), as_json)


@command.command("review")
@click.argument("proposal_id")
@click.argument("verdict", type=click.Choice(VERDICTS))
@click.option("--comment", default="", help="The reason; needed unless you approve.")
@as_option()
@json_option
@click.pass_context
def review(
    context: click.Context, proposal_id: str, verdict: str, comment: str, principal: str | None, as_json: bool
) -> None:
    """Records a verdict on a proposal that you did not write. reject is final.

    Example: charon proposal review 0198c0de-… approve --as ann
    """
    with gate_of(read_settings(context)) as gate:
        _show(gate.review(acting(gate, principal), proposal_id, verdict, comment), as_json)


@command.command("merge")
@click.argument("proposal_id")
@click.option(
    "--strategy",
    type=click.Choice(["fast_forward", "merge_commit", "cherry_pick"]),
    help="Default: the simplest.",
)
@as_option()
@json_option
@click.pass_context
def merge(
    context: click.Context, proposal_id: str, strategy: str | None, principal: str | None, as_json: bool
) -> None:
    """Makes an approved proposal accepted memory.

    Example: charon proposal merge 0198c0de-… --as ann
    """
    with gate_of(read_settings(context)) as gate:
        _show(gate.merge(acting(gate, principal), proposal_id, strategy=strategy), as_json)


@command.command("cancel")
@click.argument("proposal_id")
@as_option()
@json_option
@click.pass_context
def cancel(context: click.Context, proposal_id: str, principal: str | None, as_json: bool) -> None:
    """Takes an open proposal back; the branch stays.

    Example: charon proposal cancel 0198c0de-… --as builder
    """
    with gate_of(read_settings(context)) as gate:
        _show(gate.cancel(acting(gate, principal), proposal_id), as_json)


@command.command("rebase")
@click.argument("proposal_id")
@as_option()
@json_option
@click.pass_context
def rebase(context: click.Context, proposal_id: str, principal: str | None, as_json: bool) -> None:
    """Replays a stale proposal on the present head of its target.

    Example: charon proposal rebase 0198c0de-… --as builder
    """
    with gate_of(read_settings(context)) as gate:
        _show(gate.rebase(acting(gate, principal), proposal_id), as_json)


@command.command("revert")
@click.argument("changeset_id")
@project_option()
@click.option("--message", help="Why it is taken back.")
@click.option("--mainline", type=click.IntRange(1, 2), help="Of a merge: the parent to go back to.")
@as_option()
@json_option
@click.pass_context
def revert(
    context: click.Context,
    changeset_id: str,
    project: str | None,
    message: str | None,
    mainline: int | None,
    principal: str | None,
    as_json: bool,
) -> None:
    """Proposes to take an accepted changeset back by a new one.

    Example: charon proposal revert 0198c0de-… --as builder --message "It was wrong"
    """
    with gate_of(read_settings(context)) as gate:
        caller = acting(gate, principal)
        _show(gate.propose_revert(caller, project, changeset_id, mainline=mainline, message=message), as_json)


def _show(proposal: Json, as_json: bool) -> None:
    if as_json:
        write_document(proposal)
        return
    names = ("proposal_id", "status", "title", "message", "originator", "target_ref", "head_changeset_id")
    fields: Json = {name: proposal[name] for name in names if proposal.get(name)}
    if proposal.get("stale"):
        fields["stale"] = f"yes: {proposal['target_ref']} is at {proposal['current_head']}"
    write_fields(fields)
    diff = proposal.get("diff", {})
    for section in SHOWN_SECTIONS:
        for item in diff.get(section, []):
            write_text(f"  {section.replace('_', ' ')}: {_told(item)}")
    for conflict in proposal.get("conflicts", []):
        write_text(f"  conflict, {conflict['severity']}: {conflict['conflict_type']}: {conflict['detail']}")
        for side, name in (("left", "accepted"), ("right", "proposed")):
            for party in conflict[side]:
                write_text(f"    {name}: {party['memory_id']}: {party['summary']}")
    for lacking in proposal.get("verdict", {}).get("missing", []):
        write_text(f"  still needed: {lacking['what']}")


def _told(item: Json) -> str:
    if "from_memory_id" in item:
        return f"{item['from_memory_id']} {item.get('kind', '')} {item['to_memory_id']}"
    return f"{item['memory_id']}: {item['summary']}"

"""`charon proposal`: work proposed for accepted memory, its reviews, and its merge."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memory_git.cli.charon_commands.local import gate_options, local_gate, show_list
from memory_git.cli.charon_commands.proposal_view import show_proposal
from memory_git.cli.options import as_option, project_option

if TYPE_CHECKING:
    from collections.abc import Callable

    from memory_git.charon.gate import Caller
    from memory_git.client.opening import AnyGate

command = click.Group("proposal", help="Work proposed for accepted memory: review it, merge it.")
_SHARED_MAIN = "refs/shared/main"


@command.command("create")
@project_option()
@click.option(
    "--ref",
    "source_ref",
    metavar="REF",
    help="Propose the head of this ref. Default: the working branch of the principal.",
)
@click.option("--head", metavar="CHANGESET", help="Propose this changeset.")
@click.option(
    "--target", default=_SHARED_MAIN, show_default=True, metavar="REF", help="Which ref shall move."
)
@click.option(
    "--select",
    "selected",
    multiple=True,
    metavar="CHANGESET:ORDINAL",
    help="Propose only this op of what the head reaches.",
)
@click.option("--title", default="", help="A short name.")
@click.option("--message", "-m", required=True, help="What it brings, and why.")
@click.option(
    "--key", "idempotency_key", metavar="KEY", help="Repeated with this key, it is the same proposal."
)
@as_option()
@gate_options
@click.pass_context
def create(
    context: click.Context,
    project: str | None,
    source_ref: str | None,
    head: str | None,
    target: str,
    selected: tuple[str, ...],
    title: str,
    message: str,
    idempotency_key: str | None,
    principal: str | None,
    data_dir: Path | None,
    as_json: bool,
) -> None:
    """Propose work for a protected ref, pinned to the heads of now.

    Example: charon proposal create --project default --ref refs/agents/builder/main -m "Notes of the morning"
    """
    ops = [_selected(text) for text in selected] or None
    _do(
        context,
        data_dir,
        principal,
        lambda gate, caller: gate.propose(
            caller,
            project,
            message=message,
            title=title,
            target_ref=target,
            source_ref=source_ref,
            head_changeset_id=head,
            selected_ops=ops,
            idempotency_key=idempotency_key,
        ),
        as_json=as_json,
    )


@command.command("list")
@project_option()
@click.option("--status", metavar="STATUS", help="open, or one status such as merged.")
@click.option("--limit", type=int, default=50, show_default=True, help="At most so many.")
@click.option("--after", metavar="ID", help="Go on after this proposal.")
@as_option()
@gate_options
@click.pass_context
def list_all(
    context: click.Context,
    project: str | None,
    status: str | None,
    limit: int,
    after: str | None,
    principal: str | None,
    data_dir: Path | None,
    as_json: bool,
) -> None:
    """List proposals, newest first.

    Example: charon proposal list --project default --status open
    """
    from memory_git.client.opening import acting

    with local_gate(context, data_dir) as gate:
        page = gate.proposals(acting(gate, principal), project, status, limit, after)
    columns = ("proposal_id", "status", "originator", "source_ref", "target_ref", "title", "message")
    more = {"next": page["next"]} if "next" in page else {}
    show_list("proposals", page["proposals"], columns, as_json=as_json, **more)
    if more and not as_json:
        click.echo(f"more: --after {page['next']}", err=True)


@command.command("show")
@click.argument("proposal_id")
@as_option()
@gate_options
@click.pass_context
def show(
    context: click.Context, proposal_id: str, principal: str | None, data_dir: Path | None, as_json: bool
) -> None:
    """Show a proposal: its changes, conflicts, reviews, what it lacks.

    Example: charon proposal show 0198c5f0-7d3e-7a41-9c55-0d1f5a2b3c4d
    """
    _do(
        context,
        data_dir,
        principal,
        lambda gate, caller: gate.proposal(caller, proposal_id),
        as_json=as_json,
    )


@command.command("review")
@click.argument("proposal_id")
@click.option(
    "--verdict",
    type=click.Choice(["approve", "request_changes", "reject"]),
    required=True,
    help="A rejection is final.",
)
@click.option("--comment", default="", help="Why; needed unless you approve.")
@click.option("--severity", type=click.Choice(["info", "warning", "blocking"]), help="How grave it is.")
@click.option(
    "--judged",
    "judged_digest",
    metavar="DIGEST",
    help="The judged_digest that you saw: refused if it changed.",
)
@as_option()
@gate_options
@click.pass_context
def review(
    context: click.Context,
    proposal_id: str,
    verdict: str,
    comment: str,
    severity: str | None,
    judged_digest: str | None,
    principal: str | None,
    data_dir: Path | None,
    as_json: bool,
) -> None:
    """Judge a proposal. Nobody judges what they wrote.

    Where one person works alone: charon project policy PROJECT --set lone_person_may_merge=true

    Example: charon proposal review 0198c5f0-… --verdict approve --comment "Read and agreed."
    """
    _do(
        context,
        data_dir,
        principal,
        lambda gate, caller: gate.review(
            caller, proposal_id, verdict, comment, severity=severity, judged_digest=judged_digest
        ),
        as_json=as_json,
    )


@command.command("merge")
@click.argument("proposal_id")
@click.option(
    "--strategy",
    type=click.Choice(["fast_forward", "merge_commit", "cherry_pick"]),
    help="Which shape. Default: what fits.",
)
@click.option(
    "--resolutions",
    type=click.File("rb"),
    metavar="FILE",
    help="A JSON list of ops that settle what both sides changed; - is standard input.",
)
@click.option("--key", "idempotency_key", metavar="KEY", help="Repeated with this key, it is the same merge.")
@as_option()
@gate_options
@click.pass_context
def merge(
    context: click.Context,
    proposal_id: str,
    strategy: str | None,
    resolutions: Any,
    idempotency_key: str | None,
    principal: str | None,
    data_dir: Path | None,
    as_json: bool,
) -> None:
    """Merge an approved proposal into its target.

    Example: charon proposal merge 0198c5f0-7d3e-7a41-9c55-0d1f5a2b3c4d
    """
    ops = _resolutions(resolutions.read()) if resolutions is not None else None
    _do(
        context,
        data_dir,
        principal,
        lambda gate, caller: gate.merge(caller, proposal_id, idempotency_key, strategy, ops),
        as_json=as_json,
    )


@command.command("cancel")
@click.argument("proposal_id")
@as_option()
@gate_options
@click.pass_context
def cancel(
    context: click.Context, proposal_id: str, principal: str | None, data_dir: Path | None, as_json: bool
) -> None:
    """Take an open proposal back; the work stays on its branch.

    Example: charon proposal cancel 0198c5f0-… --as builder
    """
    _do(
        context,
        data_dir,
        principal,
        lambda gate, caller: gate.cancel(caller, proposal_id),
        as_json=as_json,
    )


@command.command("rebase")
@click.argument("proposal_id")
@as_option()
@gate_options
@click.pass_context
def rebase(
    context: click.Context, proposal_id: str, principal: str | None, data_dir: Path | None, as_json: bool
) -> None:
    """Replay a stale proposal on the present head of its target.

    Example: charon proposal rebase 0198c5f0-… --as builder
    """
    _do(
        context,
        data_dir,
        principal,
        lambda gate, caller: gate.rebase(caller, proposal_id),
        as_json=as_json,
    )


@command.command("revert")
@click.argument("changeset_id")
@project_option()
@click.option(
    "--target", default=_SHARED_MAIN, show_default=True, metavar="REF", help="Where it was accepted."
)
@click.option("--mainline", type=click.IntRange(1, 2), help="Of a merge: the parent that stays, 1 or 2.")
@click.option(
    "--from", "start", metavar="CHANGESET", help="Take back all that was accepted after this one, up to it."
)
@click.option("--title", default="", help="A short name.")
@click.option("--message", "-m", help="Why it is taken back.")
@click.option(
    "--key", "idempotency_key", metavar="KEY", help="Repeated with this key, it is the same proposal."
)
@as_option()
@gate_options
@click.pass_context
def revert(
    context: click.Context,
    changeset_id: str,
    project: str | None,
    target: str,
    mainline: int | None,
    start: str | None,
    title: str,
    message: str | None,
    idempotency_key: str | None,
    principal: str | None,
    data_dir: Path | None,
    as_json: bool,
) -> None:
    """Propose to take an accepted changeset back, or a range of them.

    Example: charon proposal revert 0198c5f0-… --project default -m "The limit was raised again."
    """
    _do(
        context,
        data_dir,
        principal,
        lambda gate, caller: gate.propose_revert(
            caller, project, changeset_id, target, mainline, title, message, idempotency_key, start
        ),
        as_json=as_json,
    )


def _do(
    context: click.Context,
    data_dir: Path | None,
    principal: str | None,
    verb: Callable[[AnyGate, Caller], Any],
    *,
    as_json: bool,
) -> None:
    """Calls one verb in somebody's name and shows the proposal that it gives."""
    from memory_git.client.opening import acting

    with local_gate(context, data_dir) as gate:
        found = verb(gate, acting(gate, principal))
    show_proposal(found, as_json=as_json)


def _selected(text: str) -> dict[str, Any]:
    changeset_id, mark, ordinal = text.rpartition(":")
    if not (mark and changeset_id and ordinal.isascii() and ordinal.isdigit()):
        raise click.BadParameter(f"{text} is not of the form CHANGESET:ORDINAL", param_hint="--select")
    return {"changeset_id": changeset_id, "ordinal": int(ordinal)}


def _resolutions(text: bytes) -> list[Any]:
    from memory_git.domain.canonical import decode
    from memory_git.domain.errors import Invalid

    found = decode(text)
    if not isinstance(found, list):
        raise Invalid("bad_json", "the resolutions are a JSON list of ops", field="resolutions")
    return found

"""The tools of a reviewer: judge, settle conflicts, merge, withdraw, rebase."""

from __future__ import annotations

from memory_git.charon.gate import Caller, Gate
from memory_git.domain.ids import SHARED_MAIN
from memory_git.domain.project_policy import SEVERITIES
from memory_git.domain.proposals import VERDICTS
from memory_git.mcp.answers import Answer
from memory_git.mcp.schemas import Json, Parameters, objects, text
from memory_git.mcp.shapes import KEY, LIST, PROJECT, STRING, proposal_answer
from memory_git.mcp.tool import GateTool

OUTCOMES = ("keep_left", "keep_right", "both", "edited")
CONFLICT_STATUSES = ("open", "resolved", "rejected", "superseded", "canceled", "deferred")


def merge_review(gate: Gate, caller: Caller, arguments: Json) -> Answer:
    """Records a verdict."""
    asked = dict(arguments)
    return proposal_answer(gate.review(caller, asked.pop("proposal_id"), **asked))


def merge(gate: Gate, caller: Caller, arguments: Json) -> Answer:
    """Merges an approved proposal."""
    asked = dict(arguments)
    return proposal_answer(gate.merge(caller, asked.pop("proposal_id"), **asked))


def merge_cancel(gate: Gate, caller: Caller, arguments: Json) -> Answer:
    """Withdraws a proposal."""
    return proposal_answer(gate.cancel(caller, arguments["proposal_id"]))


def rebase(gate: Gate, caller: Caller, arguments: Json) -> Answer:
    """Rebases a proposal, or a ref of the caller's into a new one beside it."""
    if "proposal_id" in arguments:
        return proposal_answer(gate.rebase(caller, arguments["proposal_id"]))
    project, ref = arguments.get("project"), arguments.get("ref")
    if ref is None:
        ref = gate.whoami(caller)["working_ref"] or ""
    done = gate.rebase_ref(caller, project, ref, arguments.get("onto", SHARED_MAIN))
    made = done["ref"]
    heading = f"Rebased: {made['ref_name']} stands at {made['head_changeset_id']}; the old ref is as it was."
    return Answer(done, heading, is_stored=False)


def conflicts(gate: Gate, caller: Caller, arguments: Json) -> Answer:
    """Lists conflicts."""
    project = arguments.get("project")
    status, proposal_id = arguments.get("status"), arguments.get("proposal_id")
    found = gate.conflicts(caller, project, status=status, proposal_id=proposal_id)
    return Answer({"conflicts": found}, f"{len(found)} conflicts.")


def conflict_resolve(gate: Gate, caller: Caller, arguments: Json) -> Answer:
    """Records how a conflict is settled."""
    done = gate.resolve_conflict(
        caller, arguments.get("project"), arguments["conflict_id"], arguments["outcome"], arguments["note"]
    )
    return Answer(done, f"Conflict {done['conflict_id']} is {done['status']}.")


TOOLS = (
    GateTool(
        "memory_merge_review",
        "Review a proposal",
        "Your verdict on a proposal that you neither wrote nor proposed. Read it first (fetch). Reject is final.",
        merge_review,
        Parameters(
            {
                "proposal_id": text(),
                "verdict": text(choices=VERDICTS),
                "comment": text("the reason; needed unless approve"),
                "severity": text(choices=SEVERITIES),
                "findings": objects(required=("text",), text=text(), memory_id=text()),
                "judged_digest": text("as read; refused if it changed"),
            },
            ("proposal_id", "verdict"),
        ),
        {"proposal_id": STRING, "status": STRING},
        ("memory.review",),
        effect="adds",
    ),
    GateTool(
        "memory_merge",
        "Merge a proposal",
        "Makes an approved proposal accepted memory. Open blocking conflicts refuse it; nothing is resolved silently.",
        merge,
        Parameters(
            {
                "proposal_id": text(),
                "idempotency_key": KEY,
                "strategy": text(choices=("fast_forward", "merge_commit", "cherry_pick")),
                "resolutions": objects("ops that settle `unsettled`", required=("op_type",)),
            },
            ("proposal_id",),
        ),
        {"proposal_id": STRING, "status": STRING, "merged_head": STRING},
        ("memory.merge",),
        effect="repeatable",
    ),
    GateTool(
        "memory_merge_cancel",
        "Withdraw a proposal",
        "Withdraws an open proposal of yours. The branch stays.",
        merge_cancel,
        Parameters({"proposal_id": text()}, ("proposal_id",)),
        {"proposal_id": STRING, "status": STRING},
        ("memory.propose",),
        "review",
        effect="ends",
    ),
    GateTool(
        "memory_rebase",
        "Rebase onto accepted memory",
        "Replays a stale proposal of yours (proposal_id), or a branch (ref) as a new ref beside it, on the present head. "
        "Approvals stay only if the outcome is the same.",
        rebase,
        Parameters(
            {
                "project": PROJECT,
                "proposal_id": text(),
                "ref": text(),
                "onto": text(f"default: {SHARED_MAIN}"),
            }
        ),
        {},
        ("memory.propose",),
        "review",
        effect="adds",
    ),
    GateTool(
        "memory_conflicts",
        "List conflicts",
        "Conflicts with both sides, of a project or one proposal.",
        conflicts,
        Parameters({"project": PROJECT, "status": text(choices=CONFLICT_STATUSES), "proposal_id": text()}),
        {"conflicts": LIST},
        toolset="review",
    ),
    GateTool(
        "memory_conflict_resolve",
        "Settle a conflict",
        "Records how a conflict is settled, and why; by someone who wrote neither side. both: they can stand together. "
        "edited: the merge brings `resolutions`.",
        conflict_resolve,
        Parameters(
            {
                "project": PROJECT,
                "conflict_id": text(),
                "outcome": text(choices=OUTCOMES),
                "note": text("the reason"),
            },
            ("conflict_id", "outcome", "note"),
        ),
        {"conflict_id": STRING, "status": STRING},
        ("memory.review",),
        "review",
        effect="adds",
    ),
)

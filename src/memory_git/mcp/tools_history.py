"""The tools that look back, take back, and start a project."""

from __future__ import annotations

from memory_git.charon.gate import Caller, Gate
from memory_git.domain.ids import SHARED_MAIN
from memory_git.mcp.answers import Answer
from memory_git.mcp.schemas import Json, Parameters, count, flag, text
from memory_git.mcp.shapes import KEY, LIST, PROJECT, REF, STRING, WHOLE, proposal_answer, shown_changeset
from memory_git.mcp.tool import GateTool

OPS_SHOWN = 50


def ref_list(gate: Gate, caller: Caller, arguments: Json) -> Answer:
    """Lists refs."""
    refs = gate.list_refs(caller, arguments.get("project"))
    return Answer({"refs": refs}, f"{len(refs)} refs.", is_stored=False)


def log(gate: Gate, caller: Caller, arguments: Json) -> Answer:
    """Gives a page of history."""
    asked = dict(arguments)
    found = gate.log(caller, asked.pop("project", None), **asked)
    value = {**found, "changesets": [shown_changeset(item) for item in found["changesets"]]}
    more = " There is more: pass `next` as before." if found.get("next") else ""
    return Answer(value, f"{len(value['changesets'])} changesets, newest first.{more}")


def show(gate: Gate, caller: Caller, arguments: Json) -> Answer:
    """Gives a changeset with a page of its ops."""
    changeset = gate.show(caller, arguments.get("project"), arguments["changeset_id"])
    first, limit = arguments.get("first_op", 0), arguments.get("limit", OPS_SHOWN)
    ops = changeset["ops"]
    value = {**changeset, "ops": ops[first : first + limit], "op_count": len(ops)}
    if first + limit < len(ops):
        value["next_op"] = first + limit
    heading = f"Changeset {changeset['changeset_id']} by {changeset['author_principal']}, {len(ops)} ops."
    return Answer(value, heading)


def revert_propose(gate: Gate, caller: Caller, arguments: Json) -> Answer:
    """Proposes to take a changeset back."""
    asked = dict(arguments)
    return proposal_answer(
        gate.propose_revert(caller, asked.pop("project", None), asked.pop("changeset_id"), **asked)
    )


def repo_init(gate: Gate, caller: Caller, arguments: Json) -> Answer:
    """Starts a project."""
    made = gate.init_project(caller, arguments["project"])
    ref = made["ref"]
    value = {"project": ref["project_id"], "ref": ref["ref_name"], "head": ref["head_changeset_id"]}
    return Answer(value, f"{value['ref']} of {value['project']} stands at {value['head']}.", is_stored=False)


TOOLS = (
    GateTool(
        "memory_log",
        "History",
        "Changesets of a ref, newest first, without their ops.",
        log,
        Parameters(
            {
                "project": PROJECT,
                "ref": REF,
                "limit": count(most=200),
                "before": text("`next` of the page before"),
                "first_parent": flag("merges only, not what they brought"),
            }
        ),
        {"changesets": LIST},
        toolset="history",
    ),
    GateTool(
        "memory_show",
        "Show a changeset",
        "One changeset with its ops, paged.",
        show,
        Parameters(
            {
                "project": PROJECT,
                "changeset_id": text(),
                "first_op": count(least=0),
                "limit": count("ops", most=500),
            },
            ("changeset_id",),
        ),
        {"changeset_id": STRING, "ops": LIST, "op_count": WHOLE},
        toolset="history",
    ),
    GateTool(
        "memory_ref_list",
        "List refs",
        "The refs you may read, with their heads.",
        ref_list,
        Parameters({"project": PROJECT}),
        {"refs": LIST},
        toolset="history",
    ),
    GateTool(
        "memory_revert_propose",
        "Propose a revert",
        "Proposes to take an accepted changeset back by a new one; history is kept. mainline: for a merge, which parent "
        "to go back to (1 = first). from_changeset_id: take back all accepted after it, up to changeset_id.",
        revert_propose,
        Parameters(
            {
                "project": PROJECT,
                "changeset_id": text(),
                "from_changeset_id": text(),
                "target_ref": text(f"default: {SHARED_MAIN}"),
                "mainline": count(most=2),
                "title": text(),
                "message": text("why"),
                "idempotency_key": KEY,
            },
            ("changeset_id",),
        ),
        {"proposal_id": STRING, "status": STRING},
        ("memory.branch", "memory.commit", "memory.propose"),
        "history",
        effect="adds",
    ),
    GateTool(
        "memory_repo_init",
        "Start a project",
        "Creates a project with its protected refs/shared/main; repeatable.",
        repo_init,
        Parameters({"project": text("a-z, 0-9, . _ -")}, ("project",)),
        {"project": STRING, "ref": STRING, "head": STRING},
        ("memory.branch",),
        "admin",
        effect="repeatable",
        for_admin=True,
    ),
)

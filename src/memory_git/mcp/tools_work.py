"""The tools of an author: where do I stand, what is known, branch, commit, compare, propose."""

from __future__ import annotations

from typing import Any

from memory_git.charon.gate import Caller, Gate
from memory_git.domain.ids import SHARED_MAIN
from memory_git.mcp.answers import Answer
from memory_git.mcp.rendering import context_markdown
from memory_git.mcp.schemas import Json, Parameters, count, flag, objects, text, texts
from memory_git.mcp.shapes import FLAG, KEY, LIST, OBJECT, OPS, PROJECT, REF, STRING, WHOLE, proposal_answer
from memory_git.mcp.tool import GateTool

SHOWN_PROPOSALS = 20


def whoami(gate: Gate, caller: Caller, _arguments: Json) -> Answer:
    """Says who calls and what they may do."""
    identity = gate.whoami(caller)
    return Answer(identity, f"You are {identity['principal_id']}.", is_stored=False)


def status(gate: Gate, caller: Caller, arguments: Json) -> Answer:
    """Says where the working branch stands, and which proposals are open."""
    found = gate.status(caller, arguments.get("project"))
    page = gate.proposals(caller, found["project"], status="open", limit=SHOWN_PROPOSALS)
    names = ("proposal_id", "title", "status", "originator", "target_ref", "head_changeset_id", "created_at")
    listed = [{name: item[name] for name in names} for item in page["proposals"]]
    heading = f"{found['total_active']} accepted memories in {found['project']}; {_standing(found)}"
    return Answer({**found, "proposals": listed}, heading)


def context_at(gate: Gate, caller: Caller, arguments: Json) -> Answer:
    """Gives the accepted memory for a prompt."""
    asked = dict(arguments)
    found = gate.context(caller, asked.pop("project", None), **asked)
    heading = f"{len(found['memories'])} of {found['total_active']} memories at {found['ref_name']}"
    return Answer(found, heading, context_markdown(found))


def branch_create(gate: Gate, caller: Caller, arguments: Json) -> Answer:
    """Makes a ref."""
    made = gate.create_branch(
        caller,
        arguments.get("project"),
        arguments["ref"],
        arguments.get("from_ref"),
        arguments.get("head"),
    )
    return Answer(made, f"{made['ref_name']} stands at {made['head_changeset_id']}.", is_stored=False)


def changeset_create(gate: Gate, caller: Caller, arguments: Json) -> Answer:
    """Commits ops; the answer names what was made, and does not repeat it."""
    asked = {"shrink_ok": False, **arguments}
    done = gate.commit(caller, asked.pop("project", None), **asked)
    changeset, ref = done["changeset"], done["ref"]
    value = {
        "changeset_id": changeset["changeset_id"],
        "ref": ref["ref_name"],
        "head": ref["head_changeset_id"],
        "parent_ids": changeset["parent_ids"],
        "memory_ids": [op.get("resulting_event_id") or op.get("target_event_id") for op in changeset["ops"]],
        "state_root": changeset["state_root"],
        "replayed": done["replayed"],
    }
    again = "It was committed before" if done["replayed"] else "Committed"
    heading = (
        f"{again}: {value['changeset_id']} on {value['ref']}. To have it accepted: memory_merge_propose."
    )
    return Answer(value, heading, is_stored=False)


def diff(gate: Gate, caller: Caller, arguments: Json) -> Answer:
    """Compares two states; by default the caller's branch with accepted memory."""
    project, target, base = (arguments.get(name) for name in ("project", "target", "base"))
    if target is None:
        standing = gate.status(caller, project)
        project = standing["project"]
        target = standing["working_head"] or SHARED_MAIN
        base = base or SHARED_MAIN
    found = gate.diff(caller, project, target, base, arguments.get("limit"), arguments.get("after"))
    return Answer(found, _counted(found))


def merge_propose(gate: Gate, caller: Caller, arguments: Json) -> Answer:
    """Makes a proposal."""
    asked = dict(arguments)
    return proposal_answer(gate.propose(caller, asked.pop("project", None), **asked))


def _standing(found: Json) -> str:
    if found["working_head"] is None:
        return "you have no working branch yet: the first commit makes it."
    return f"your branch is {found['ahead']} ahead, {found['behind']} behind."


def _counted(found: Json) -> str:
    counts = {name: len(items) for name, items in found.items() if isinstance(items, list) and items}
    told = ", ".join(f"{count_of} {name.replace('_', ' ')}" for name, count_of in counts.items())
    heads = f"{found['base_changeset_id']} -> {found['target_changeset_id']}"
    if found.get("page", {}).get("next"):
        return f"{heads}, one page: {told}. For the next: these two as base and target, `page.next` as after."
    return f"{heads}: {told}." if counts else "No difference."


def _properties(**properties: Any) -> Json:
    return properties


TOOLS = (
    GateTool(
        "memory_status",
        "Where you stand",
        "Your working branch against accepted memory, counts, and open proposals with their ids. Call it first.",
        status,
        Parameters({"project": PROJECT}),
        _properties(project=STRING, shared_head=STRING, total_active=WHOLE, proposals=LIST),
    ),
    GateTool(
        "memory_context_at",
        "Recall accepted memory",
        "What is accepted, for a query, at a ref or an earlier head. Open conflicts are withheld and listed.",
        context_at,
        Parameters(
            {
                "project": PROJECT,
                "ref": REF,
                "head": text("changeset id the ref reaches"),
                "query": text("words; empty: newest"),
                "limit": count(most=100),
                "max_tokens": count(),
                "session_id": text(),
                "create_manifest": flag("record what was shown"),
            }
        ),
        _properties(ref_name=STRING, head_changeset_id=STRING, memories=LIST, unresolved_conflicts=LIST),
    ),
    GateTool(
        "memory_branch_create",
        "Create a branch",
        "Makes a ref you may write: refs/agents/<you>/<name>, refs/sessions/<you>/<id>, refs/topics/<id>, "
        "refs/repos/<repo>/<branch>. Rarely needed: the working branch makes itself.",
        branch_create,
        Parameters(
            {"project": PROJECT, "ref": text(), "from_ref": text(f"default: {SHARED_MAIN}"), "head": text()},
            ("ref",),
        ),
        _properties(ref_name=STRING, head_changeset_id=STRING),
        ("memory.branch",),
        effect="repeatable",
    ),
    GateTool(
        "memory_changeset_create",
        "Commit memory",
        "Commits ops to your branch; nothing is accepted before a merge. add_memory: payload {content, kind? "
        "(observation, fact, decision, task, flag, record), title?, summary?, tags?, fact_key?, subject?, memory_id?}. "
        "correct_memory: target_event_id and the changed fields; content is the whole new body. supersede_memory: target_event_id, content. "
        "set_status: status (active, deprecated, disputed, retracted), reason. add_relationship: kind, from_memory_id, "
        "to_memory_id. mark_duplicate: duplicate_id, duplicate_of. All faults come back at once.",
        changeset_create,
        Parameters(
            {
                "project": PROJECT,
                "ref": REF,
                "expected_head": text("head you built on; a new branch needs none"),
                "read_head": flag("or this: build on the present head"),
                "parent_ids": texts("default: [expected_head]"),
                "message": text(),
                "idempotency_key": KEY,
                "ops": OPS,
                "model": text(),
                "session_id": text(),
                "context_manifest_id": text(),
                "shrink_ok": flag("a body may shrink to a tenth"),
            },
            ("message", "ops"),
        ),
        _properties(changeset_id=STRING, ref=STRING, head=STRING, memory_ids=LIST, replayed=FLAG),
        ("memory.commit",),
        effect="adds",
    ),
    GateTool(
        "memory_diff",
        "Compare two states",
        "What changed between two heads (ref or changeset id), by meaning. Without arguments: your branch against accepted memory.",
        diff,
        Parameters(
            {
                "project": PROJECT,
                "target": text(),
                "base": text("default: target's first parent"),
                "limit": count("for a page", most=1000),
                "after": text("`page.next`"),
            }
        ),
        _properties(base_changeset_id=STRING, target_changeset_id=STRING, memories_added=LIST),
    ),
    GateTool(
        "memory_merge_propose",
        "Propose for acceptance",
        "Asks for a head (default: your branch) to become accepted; pinned: later commits are not in it. Somebody else must approve.",
        merge_propose,
        Parameters(
            {
                "project": PROJECT,
                "target_ref": text(f"default: {SHARED_MAIN}"),
                "source_ref": REF,
                "head_changeset_id": text(),
                "base_changeset_id": text(),
                "title": text(),
                "message": text("why"),
                "idempotency_key": KEY,
                "selected_ops": objects(
                    "only these ops", required=("changeset_id", "ordinal"), changeset_id=text(), ordinal=WHOLE
                ),
            },
            ("message",),
        ),
        _properties(proposal_id=STRING, status=STRING, verdict=OBJECT, conflicts=LIST),
        ("memory.propose",),
        effect="adds",
    ),
    GateTool(
        "memory_whoami",
        "Who am I",
        "Your principal, scopes, grants, default project and working branch.",
        whoami,
        output=_properties(principal_id=STRING, scopes=LIST, grants=LIST),
        scopes=(),
    ),
)

"""Steps 1 to 4: a project begins, and two agents work apart."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from memory_git.cli.story.expect import expect, expect_equal, refusal
from memory_git.cli.story.tale import Tale
from memory_git.cli.story.world import IMPORTER, PROJECT, people
from memory_git.domain.ids import SHARED_MAIN
from memory_git.interchange.importing import read_import

EVENTS_BEFORE = 3
DEPLOY = "story/deploy-tool"
RETRY = "story/retry-budget"
CACHE = "story/cache-ttl"


def a_project_begins(tale: Tale) -> Mapping[str, Any]:
    """Events exist before; the root freezes them; the shared ref is protected; imported memory is reviewed into it."""
    store, operator = tale.store, tale.world.operator
    imported = read_import(tale.input_path)
    expect(bool(imported.memories), "the input holds a memory")
    early = [
        store.append_event(PROJECT, {"event_type": "note", "content": item.payload["content"]})
        for item in islice(imported.memories, EVENTS_BEFORE)
    ]
    people(tale.world)
    root = store.resolve_ref(PROJECT, SHARED_MAIN)
    expect(root["protected"], "refs/shared/main is protected")
    frozen = tale.state_at(root["head_changeset_id"])
    expect_equal(
        sorted(frozen), sorted(event["event_id"] for event in early), "the root holds the early events"
    )
    for event in early:
        expect_equal(
            frozen[event["event_id"]]["record"]["content"], event["content"], "a frozen event's content"
        )
    late = store.append_event(PROJECT, {"event_type": "note", "content": "An event after the root."})
    expect(
        late["event_id"] not in tale.state_at(tale.shared_head()), "a later event is not accepted silently"
    )

    head = root["head_changeset_id"]
    refused = refusal(
        lambda: store.advance_ref(PROJECT, SHARED_MAIN, head, head), "protected_ref", "a direct advance"
    )
    expect_equal(refused.status, 403, "the status of a direct advance")

    report = operator.run(
        "charon",
        "import",
        str(tale.input_path),
        "--project",
        PROJECT,
        "--as",
        IMPORTER,
        "--ref",
        f"refs/agents/{IMPORTER}/main",
    )
    proposed = operator.run(
        *("charon", "proposal", "create", "--project", PROJECT, "--as", IMPORTER),
        *("--ref", f"refs/agents/{IMPORTER}/main", "--message", "Memories of the project, imported"),
    )
    merged = tale.accept(proposed["proposal_id"])
    tale.base_head = tale.shared_head()
    expect_equal(merged["merged_head"], tale.base_head, "the accepted head after the import")
    state = tale.state_at(tale.base_head)
    wanted = {item.memory_id for item in imported.memories}
    expect(wanted <= set(state), "every imported memory is accepted")
    return {
        "events_frozen": len(early),
        "memories_accepted": len(state),
        "relationships": report.get("links", len(imported.links)),
        "shared_head": tale.base_head,
    }


def agent_a_branches(tale: Tale) -> Mapping[str, Any]:
    """Model A gets a session branch from the accepted head."""
    return _branch(tale, "agent-a")


def agent_b_branches(tale: Tale) -> Mapping[str, Any]:
    """Model B gets one from the same head."""
    detail = _branch(tale, "agent-b")
    heads = {ref["head_changeset_id"] for ref in tale.branches.values()}
    expect_equal(heads, {tale.base_head}, "both branches start at the same head")
    return detail


def _branch(tale: Tale, name: str) -> Mapping[str, Any]:
    agent = tale.agent(name)
    ref_name = f"refs/sessions/{name}/morning"
    ref = agent.call("memory_branch_create", project=PROJECT, ref=ref_name)
    expect_equal(ref["ref_name"], ref_name, "the branch's name")
    expect_equal(ref["head_changeset_id"], tale.base_head, "the branch starts at accepted memory")
    tale.branches[name] = ref
    return {"ref": ref_name, "head": ref["head_changeset_id"]}


def both_commit(tale: Tale) -> Mapping[str, Any]:
    """Each commits its own changeset; neither sees the other's branch; both are apart from shared memory."""
    work = {
        "agent-a": [
            _add(
                RETRY,
                "Calls to the payment provider are retried three times, then queued.",
                "fact",
                "payments",
                "retry budget",
            ),
            _add(
                "story/alarm",
                "Page the on-call engineer when the queue is older than ten minutes.",
                "task",
                "payments",
            ),
        ],
        "agent-b": [
            _add(CACHE, "The seat map is cached for fifteen seconds.", "fact", "seating", "seat map cache")
        ],
    }
    for name, ops in work.items():
        agent = tale.agent(name)
        changeset = agent.commit(
            tale.branches[name]["ref_name"],
            ops,
            f"What {name} learned this morning",
            f"{name}-morning",
            project=PROJECT,
            expected_head=tale.base_head,
            parent_ids=[tale.base_head],
        )
        expect_equal(changeset["author_principal"], name, "the changeset's author")
        expect_equal(changeset["parent_ids"], [tale.base_head], "the changeset's parent")
        expect_equal(len(changeset["ops"]), len(ops), "the number of ops")
        tale.changesets[name] = changeset
    _expect_apart(tale)
    return {name: changeset["changeset_id"] for name, changeset in tale.changesets.items()}


def _expect_apart(tale: Tale) -> None:
    for name, other in (("agent-a", "agent-b"), ("agent-b", "agent-a")):
        agent = tale.agent(name)
        seen = {ref["ref_name"] for ref in agent.call("memory_ref_list", project=PROJECT)["refs"]}
        expect(tale.branches[name]["ref_name"] in seen, f"{name} sees its own branch")
        expect(tale.branches[other]["ref_name"] not in seen, f"{name} does not see the branch of {other}")
        refused = agent.refused(
            "memory_show", project=PROJECT, changeset_id=tale.changesets[other]["changeset_id"]
        )
        expect(
            refused.code.endswith("not_found"),
            f"the changeset of {other} looks absent to {name}, not {refused.code}",
        )
    expect_equal(tale.shared_head(), tale.base_head, "shared memory has not moved")
    shared = tale.state_at(tale.base_head)
    expect(RETRY not in shared and CACHE not in shared, "neither's work is in shared memory")


def _add(memory_id: str, content: str, kind: str, scope: str, subject: str = "") -> dict[str, Any]:
    payload = {"memory_id": memory_id, "content": content, "kind": kind, "scope": scope}
    return {"op_type": "add_memory", "payload": {**payload, "subject": subject} if subject else payload}

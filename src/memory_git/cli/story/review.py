"""Steps 5 to 8: diffs, a reviewed merge, a stale proposal, and the two ways to bring it up to date."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memory_git.cli.story.beginning import CACHE, RETRY
from memory_git.cli.story.expect import expect, expect_equal
from memory_git.cli.story.tale import Tale
from memory_git.cli.story.world import PROJECT, canonical, copied, release


def diffs_are_deterministic(tale: Tale) -> Mapping[str, Any]:
    """The semantic diff of each against the base: the same bytes twice, and from another process."""
    added = {}
    for name, memory_ids in (("agent-a", {RETRY, "story/alarm"}), ("agent-b", {CACHE})):
        agent = tale.agent(name)
        target = tale.changesets[name]["changeset_id"]
        first, again = (
            agent.call("memory_diff", project=PROJECT, target=target, base=tale.base_head) for _ in range(2)
        )
        expect_equal(canonical(first), canonical(again), "the same diff asked twice")
        elsewhere = tale.world.operator.run("lethe", "memory", "diff", target, "--base", tale.base_head)
        expect_equal(canonical(first), canonical(elsewhere), "the diff from another process")
        found = {item["resulting_event_id"] for item in first["memories_added"]}
        expect_equal(found, memory_ids, f"what {name} added")
        added[name] = sorted(found)
    return added


def b_is_merged(tale: Tale) -> Mapping[str, Any]:
    """B's work is proposed, reviewed by somebody else and merged; shared holds exactly base + B, record by record."""
    for name in ("agent-a", "agent-b"):
        tale.proposals[name] = tale.propose(name, tale.changesets[name]["changeset_id"], "Morning work")[
            "proposal_id"
        ]
    before = tale.state_at(tale.base_head)
    merged = tale.accept(tale.proposals["agent-b"])
    expect_equal(merged["status"], "merged", "the status of B's proposal")
    after = tale.state_at(tale.shared_head())
    expect_equal(set(after) - set(before), {CACHE}, "what shared memory gained")
    for memory_id, entry in before.items():
        expect_equal(after[memory_id]["record_digest"], entry["record_digest"], f"the record of {memory_id}")
    own = tale.state_at(tale.changesets["agent-b"]["changeset_id"])
    expect_equal(after[CACHE]["record_digest"], own[CACHE]["record_digest"], "B's record as B wrote it")
    return {"strategy": merged["strategy"], "records_compared": len(after), "shared_head": tale.shared_head()}


def a_is_stale(tale: Tale) -> Mapping[str, Any]:
    """A's proposal, pinned to the old head, is found stale, with the current head in the answer."""
    shown = tale.reviewer.get(f"/proposals/{tale.proposals['agent-a']}")
    expect(shown["stale"], "A's proposal is stale")
    expect_equal(shown["target_head_at_creation"], tale.base_head, "the head that it was pinned to")
    expect_equal(shown["current_head"], tale.shared_head(), "the current head in the answer")
    expect_equal(shown["head_changeset_id"], tale.changesets["agent-a"]["changeset_id"], "what is proposed")
    return {"pinned_to": shown["target_head_at_creation"], "current_head": shown["current_head"]}


def two_ways_one_state(tale: Tale) -> Mapping[str, Any]:
    """Rebased and merged by fast-forward here, merged by a reviewed two-parent merge in a copy: the same state root."""
    copy = copied(tale.world, tale.world.directory / "copy")
    report = release(copy)
    expect(report["ok"], f"the restored copy reconciles: {report}")
    copy.start()
    try:
        other = Tale(copy, tale.input_path, tale.base_head, tale.branches, tale.changesets, tale.proposals)
        merged = other.accept(tale.proposals["agent-a"], strategy="merge_commit")
        expect_equal(merged["strategy"], "merge_commit", "the strategy in the copy")
        there = other.store.get_changeset(other.shared_head())
        expect_equal(
            there["parent_ids"],
            [tale.shared_head(), tale.changesets["agent-a"]["changeset_id"]],
            "its parents",
        )
    finally:
        copy.stop()
    rebased = tale.agent_a.call("memory_rebase", proposal_id=tale.proposals["agent-a"])
    expect(not rebased["stale"], "the rebased proposal is not stale")
    merged = tale.accept(tale.proposals["agent-a"])
    expect_equal(merged["strategy"], "fast_forward", "the strategy here")
    here = tale.store.get_changeset(tale.shared_head())
    expect_equal(len(here["parent_ids"]), 1, "the number of parents after a rebase")
    expect_equal(here["state_root"], there["state_root"], "the state root both ways")
    sources = {op["payload"].get("source_changeset_id") for op in here["ops"]}
    expect_equal(sources, {tale.changesets["agent-a"]["changeset_id"]}, "where the rebased ops come from")
    return {
        "state_root": here["state_root"],
        "fast_forward": here["changeset_id"],
        "merge_commit": there["changeset_id"],
    }

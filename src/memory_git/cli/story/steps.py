"""The sixteen steps of chapter 11, in order."""

from __future__ import annotations

from memory_git.cli.story.attack import every_way_is_refused
from memory_git.cli.story.beginning import a_project_begins, agent_a_branches, agent_b_branches, both_commit
from memory_git.cli.story.disagreement import (
    a_contradiction_blocks,
    a_revert_restores,
    one_op_is_picked,
    the_rest_is_rejected,
)
from memory_git.cli.story.exactness import a_manifest_reproduces, contexts_are_rebuilt
from memory_git.cli.story.leak import nothing_leaks
from memory_git.cli.story.review import a_is_stale, b_is_merged, diffs_are_deterministic, two_ways_one_state
from memory_git.cli.story.tale import Step

STEPS = (
    Step(
        1, "A project begins: early events are frozen, memories are imported and reviewed", a_project_begins
    ),
    Step(2, "Agent A gets a session branch from accepted memory", agent_a_branches),
    Step(3, "Agent B gets one from the same head", agent_b_branches),
    Step(4, "Each commits its own changeset; neither sees the other's", both_commit),
    Step(5, "The diff of each is the same bytes twice, and from another process", diffs_are_deterministic),
    Step(6, "B's work is reviewed and merged: shared is base + B, record by record", b_is_merged),
    Step(7, "A's proposal, pinned to the old head, is found stale", a_is_stale),
    Step(8, "Rebased here, merged with two parents in a copy: one state root", two_ways_one_state),
    Step(9, "Two contradicting decisions block until somebody settles them", a_contradiction_blocks),
    Step(10, "One op is picked out of a mixed changeset", one_op_is_picked),
    Step(11, "The rest is rejected, and stays readable a restart later", the_rest_is_rejected),
    Step(12, "A revert restores the former value; all three versions stay", a_revert_restores),
    Step(13, "The contexts before and after are rebuilt byte for byte", contexts_are_rebuilt),
    Step(
        14, "A manifest reproduces, proves itself, and tells tampering and redaction", a_manifest_reproduces
    ),
    Step(15, "Every way around the review is refused with its code", every_way_is_refused),
    Step(16, "What is private leaks nowhere", nothing_leaks),
)

"""Which way a proposal may go, and what its reviews and conflicts make of it."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from memory_git.domain.project_policy import ProjectPolicy
from memory_git.domain.proposals import (
    FINAL_STATUSES,
    OPEN_STATUSES,
    STATUSES,
    Review,
    blocking_conflicts,
    judged_digest,
    judged_view,
    lone_merge_allowed,
    may_move,
    merge_missing,
    open_status,
    outcome_digest,
    proposal_digest,
    state_digest,
    with_resolutions,
)

MOVES = {
    ("pending", "approved"),
    ("pending", "changes_requested"),
    ("pending", "rejected"),
    ("pending", "canceled"),
    ("pending", "expired"),
    ("approved", "pending"),
    ("approved", "changes_requested"),
    ("approved", "merged"),
    ("approved", "rejected"),
    ("approved", "canceled"),
    ("approved", "expired"),
    ("changes_requested", "pending"),
    ("changes_requested", "approved"),
    ("changes_requested", "rejected"),
    ("changes_requested", "canceled"),
    ("changes_requested", "expired"),
}


@pytest.mark.parametrize(("status", "to"), sorted(itertools.product(STATUSES, STATUSES)))
def test_a_proposal_moves_only_as_the_table_says(status: str, to: str) -> None:
    assert may_move(status, to) == ((status, to) in MOVES)


def test_every_status_is_open_or_final() -> None:
    assert set(STATUSES) == OPEN_STATUSES | FINAL_STATUSES
    assert not OPEN_STATUSES & FINAL_STATUSES


def made(reviewer: str, verdict: str, counts_for: str = "d", kind: str = "human") -> Review:
    return Review(f"{reviewer}-{verdict}", reviewer, kind, verdict, counts_for, counts_for, "t")


ONE, TWO = ProjectPolicy(), ProjectPolicy(approvals_needed=2)
HUMAN = ProjectPolicy(human_must_approve=True)


@pytest.mark.parametrize(
    ("reviews", "policy", "eligible", "status"),
    [
        pytest.param([], ONE, {"ann"}, "pending", id="no review"),
        pytest.param([made("ann", "approve")], ONE, {"ann"}, "approved", id="one approval"),
        pytest.param(
            [made("ann", "approve", "old")], ONE, {"ann"}, "pending", id="an approval of something else"
        ),
        pytest.param([made("ann", "approve")], ONE, set(), "pending", id="an approver who lost the right"),
        pytest.param([made("ann", "approve")], TWO, {"ann"}, "pending", id="one of two approvals"),
        pytest.param(
            [made("ann", "approve"), made("ann", "approve")], TWO, {"ann"}, "pending", id="the same twice"
        ),
        pytest.param(
            [made("ann", "approve"), made("bob", "approve")], TWO, {"ann", "bob"}, "approved", id="two of two"
        ),
        pytest.param(
            [made("ann", "approve"), made("bob", "request_changes")],
            ONE,
            {"ann", "bob"},
            "changes_requested",
            id="a later objection blocks an earlier approval",
        ),
        pytest.param(
            [made("bob", "request_changes"), made("ann", "approve")],
            ONE,
            {"ann", "bob"},
            "changes_requested",
            id="another's approval lifts no objection",
        ),
        pytest.param(
            [made("bob", "request_changes"), made("bob", "approve")],
            ONE,
            {"bob"},
            "approved",
            id="its maker lifts an objection",
        ),
        pytest.param(
            [made("bob", "request_changes", "old"), made("ann", "approve")],
            ONE,
            {"ann", "bob"},
            "changes_requested",
            id="an objection outlives what it judged",
        ),
        pytest.param(
            [made("bob", "request_changes"), made("ann", "approve")],
            ONE,
            {"ann"},
            "approved",
            id="an objector who lost the right",
        ),
        pytest.param(
            [made("bot", "approve", kind="agent")], HUMAN, {"bot"}, "pending", id="a person is wanted"
        ),
        pytest.param([made("ann", "approve")], HUMAN, {"ann"}, "approved", id="a person approves"),
    ],
)
def test_reviews_give_an_open_proposal_its_status(
    reviews: list[Review], policy: ProjectPolicy, eligible: set[str], status: str
) -> None:
    assert open_status(reviews, "d", policy, eligible) == status


def conflict(**changes: Any) -> dict[str, Any]:
    return {
        "conflict_id": "c1",
        "conflict_type": "incompatible_fact",
        "severity": "blocking",
        "identity": {"fact_key": "k"},
        "identity_digest": "i1",
        "status": "open",
        **changes,
    }


@pytest.mark.parametrize(
    ("changes", "policy", "blocks"),
    [
        pytest.param({}, ONE, True, id="an open blocking one"),
        pytest.param({"status": "resolved"}, ONE, False, id="a resolved one"),
        pytest.param({"severity": "warning"}, ONE, False, id="a warning"),
        pytest.param(
            {"severity": "warning"},
            ProjectPolicy(blocking_severities=("blocking", "warning")),
            True,
            id="a warning where the policy says so",
        ),
        pytest.param({"conflict_type": "stale_base"}, ONE, False, id="a stale base"),
        pytest.param({"identity": {"side": "left"}}, ONE, False, id="the target's own side"),
        pytest.param({"status": "superseded"}, ONE, True, id="found anew after an earlier row was closed"),
    ],
)
def test_a_conflict_blocks_until_it_is_resolved(
    changes: dict[str, Any], policy: ProjectPolicy, blocks: bool
) -> None:
    assert bool(blocking_conflicts([conflict(**changes)], policy)) == blocks


def test_a_resolution_carries_over_to_the_same_conflict_at_other_heads() -> None:
    stored = [conflict(conflict_id="old", status="resolved", outcome="keep_left", resolved_by="ann")]
    found = with_resolutions(
        [conflict(conflict_id="new"), conflict(conflict_id="x", identity_digest="i2")], stored
    )
    assert [(item["status"], item.get("outcome")) for item in found] == [
        ("resolved", "keep_left"),
        ("open", None),
    ]


def judged(**changes: Any) -> dict[str, Any]:
    values = {
        "project_id": "demo",
        "target_ref": "refs/shared/main",
        "base": "b",
        "head": "h",
        "selected_ops": None,
        "conflicts": [conflict()],
        "policy": ONE,
        "diff": {
            "memories_added": [
                {
                    "memory_id": "m",
                    "before": None,
                    "after": {"memory_id": "m", "content": "x", "kind": "fact"},
                }
            ]
        },
        **changes,
    }
    return judged_view(**values)


ADDED = {"memory_id": "m", "before": None, "after": {"memory_id": "m", "content": "x", "kind": "fact"}}


@pytest.mark.parametrize(
    ("changes", "same_digest", "same_outcome"),
    [
        pytest.param({}, True, True, id="nothing"),
        pytest.param({"head": "h2", "base": "b2"}, False, True, id="a rebase with the same outcome"),
        pytest.param({"target_ref": "refs/shared/other"}, False, False, id="another target"),
        pytest.param({"policy": TWO}, False, False, id="another policy"),
        pytest.param({"conflicts": []}, False, False, id="a conflict less"),
        pytest.param(
            {"conflicts": [conflict(conflict_id="c2")]}, True, True, id="the same conflict by another id"
        ),
        pytest.param({"conflicts": [conflict(status="resolved")]}, True, True, id="a resolved conflict"),
        pytest.param(
            {"conflicts": [conflict(), conflict(conflict_type="stale_base", identity_digest="s")]},
            True,
            True,
            id="a stale base",
        ),
        pytest.param(
            {
                "diff": {
                    "memories_added": [{**ADDED, "changeset_id": "c", "op_ordinal": 3, "payload": {"a": 1}}]
                }
            },
            True,
            True,
            id="the same change by another changeset",
        ),
        pytest.param(
            {"diff": {"memories_added": [ADDED], "target_state_root": "r", "base_changeset_id": "z"}},
            True,
            True,
            id="another state root of the target",
        ),
        pytest.param({"diff": {"memories_added": []}}, False, False, id="another difference"),
    ],
)
def test_what_is_judged_changes_with_the_outcome_and_with_nothing_else(
    changes: dict[str, Any], same_digest: bool, same_outcome: bool
) -> None:
    assert (judged_digest(judged(**changes)) == judged_digest(judged())) == same_digest
    assert (outcome_digest(judged(**changes)) == outcome_digest(judged())) == same_outcome


def test_a_closed_proposal_misses_nothing_but_being_open() -> None:
    found = merge_missing("merged", [], judged(), eligible=set(), open_conflicts=[conflict()], diff={})
    assert [item.code for item in found] == ["proposal_closed"]


def test_all_that_is_missing_is_told_at_once() -> None:
    policy = ProjectPolicy(human_must_approve=True, verified_kinds=("fact",))
    reviews = [made("bob", "request_changes"), made("ann", "approve", "old")]
    found = merge_missing(
        "pending",
        reviews,
        judged(policy=policy),
        eligible={"ann", "bob"},
        open_conflicts=[conflict()],
        diff={"memories_added": [ADDED]},
    )
    assert [item.code for item in found] == [
        "changes_requested",
        "approval_missing",
        "human_approval_missing",
        "conflict_open",
        "verification_missing",
    ]
    assert "does not count" in found[1].what


def test_the_store_recomputes_the_proposal_digest_from_what_was_judged_and_said() -> None:
    reviews = [made("ann", "approve").to_json()]
    state = {"judged": judged(), "reviews": reviews}
    assert state_digest(state) == proposal_digest(judged_digest(judged()), reviews)
    assert state_digest(state) != state_digest({**state, "reviews": []})
    assert not lone_merge_allowed(state)
    alone = judged(policy=ProjectPolicy(lone_person_may_merge=True))
    assert lone_merge_allowed({"judged": alone, "reviews": reviews})

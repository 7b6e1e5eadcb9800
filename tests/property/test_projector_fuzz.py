"""No list of ops crashes the validator or the projector, and what comes out keeps the rules of the model."""

from __future__ import annotations

from typing import Any

import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from op_lists import HISTORY, OPS, START, allowed, ids, laid, records, salts, well_formed

from memory_git.domain.change import Change, EdgeChange, OpRef
from memory_git.domain.changeset import read_request
from memory_git.domain.errors import Invalid
from memory_git.domain.merge import changed_fields
from memory_git.domain.ops import (
    ADDING_OPS,
    OP_TYPES,
    PAYLOAD_KEYS,
    op_from_json,
)
from memory_git.domain.plans import Source, cherry_pick, rebase, revert
from memory_git.domain.projector import apply
from memory_git.domain.record import Record, record_digest, record_from_json
from memory_git.domain.revert import Reverted
from memory_git.domain.state import MemoryState
from memory_git.domain.validate import check_ops, presumed_ids

# any JSON at all, and JSON that is nearly right

TEXTS = st.text(max_size=8) | st.sampled_from(
    ["a", "b", "", " ", "\ud800", "\0", "cafe\u0301", "refs/shared/main"]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
KEYS = sorted(set().union(*PAYLOAD_KEYS.values()))
NEARLY = st.fixed_dictionaries(
    {},
    optional={
        "op_type": st.sampled_from(OP_TYPES) | JSON,
        "target_event_id": TEXTS | JSON,
        "resulting_event_id": TEXTS | JSON,
        "ordinal": JSON,
        "payload": st.dictionaries(st.sampled_from(KEYS) | TEXTS, JSON, max_size=5) | JSON,
        "surprise": JSON,
    },
)


@pytest.mark.slow
@given(st.lists(NEARLY | JSON, max_size=6) | JSON)
@settings(max_examples=examples(300))
def test_no_json_crashes_the_validator_or_the_projector(raw: Any) -> None:
    ops, faults = check_ops(raw, ids())
    apply(MemoryState(), ops, salts=salts, presumed=presumed_ids(raw, faults))
    told = {fault.ordinal for fault in faults}
    assert not told & {op.ordinal for op in ops}
    if isinstance(raw, list):
        assert {op.ordinal for op in ops} | told == set(range(len(raw)))


@pytest.mark.slow
@given(
    st.dictionaries(
        st.sampled_from(
            [
                "project_id",
                "ref_name",
                "parent_ids",
                "author_principal",
                "message",
                "idempotency_key",
                "ops",
                "evidence",
                "verification",
                "expected_head",
                "advance_ref",
                "protected",
                "model",
            ]
        )
        | TEXTS,
        JSON | st.lists(NEARLY, max_size=3),
        max_size=14,
    )
)
@settings(max_examples=examples(200))
def test_no_json_crashes_the_reading_of_a_request(raw: dict[str, Any]) -> None:
    try:
        read_request(raw, ids())
    except Invalid as error:
        assert error.code in {
            "invalid_changeset",
            "bad_project_id",
            "bad_ref_name",
            "too_many_parents",
            "not_i_json",
        }


@pytest.mark.slow
@given(HISTORY)
@settings(max_examples=examples(300))
def test_whatever_ops_do_the_model_holds(raw: list[Any]) -> None:
    _, state = allowed(START, raw)
    for record in records(state):
        assert record_from_json(record.to_json()) == record
        assert record.tags == tuple(sorted(set(record.tags)))
        assert record.memory_id not in record.lineage.relatives()
        if record.is_active:
            assert record.lineage.successor() is None
        if record.status in ("corrected", "duplicate"):
            assert record.lineage.successor() in state.records


@pytest.mark.slow
@given(HISTORY, OPS)
@settings(max_examples=examples(300))
def test_no_op_takes_what_is_private_or_revives_what_is_retracted_without_saying_so(
    raw: list[Any], last: Any
) -> None:
    _, state = allowed(START, raw)
    ops, now = allowed(state, [last])
    if not ops:
        return
    says_revive = any(op.payload.get("revive") for op in ops)
    for before in records(state):
        after = now.records[before.memory_id]
        assert isinstance(after, Record)
        if before.owner_principal is not None:
            assert after.owner_principal == before.owner_principal
        if before.is_retracted and not says_revive and after.is_active:
            assert ops[0].op_type in ADDING_OPS
            assert after.content != before.content
        if before.approval and after.approval and not ops[0].payload.get("approval"):
            assert after.content == before.content
    for made in records(now):
        origins = [
            state.records.get(name) for name in (*made.lineage.corrected_from, *made.lineage.supersedes)
        ]
        if made.memory_id not in state.records:
            for origin in origins:
                assert isinstance(origin, Record)
                if origin.visibility == "private" and origin.owner_principal:
                    assert made.owner_principal == origin.owner_principal
                says_visibility = "visibility" in ops[0].payload
                assert says_visibility or made.visibility == origin.visibility


@given(HISTORY, st.integers(0, 14))
@settings(max_examples=examples(200))
def test_ops_do_the_same_in_one_changeset_as_in_two(raw: list[Any], cut: int) -> None:
    ops, state = allowed(START, raw)
    at_once = apply(START, ops, salts=salts)
    first = laid(START, apply(START, ops[:cut], salts=salts))
    then = laid(first, apply(first, ops[cut:], salts=salts))
    assert at_once.faults == []
    assert laid(START, at_once) == then == state


@given(HISTORY)
@settings(max_examples=examples(200))
def test_an_op_that_is_refused_has_no_effect_on_the_others(raw: list[Any]) -> None:
    ops, state = allowed(START, raw)
    every = apply(START, well_formed(raw), salts=salts)
    if not every.faults:
        assert laid(START, every) == state
    kept = {op.ordinal for op in ops}
    assert {fault.ordinal for fault in every.faults}.isdisjoint(kept)


@given(HISTORY)
def test_a_normalized_op_is_normal_and_comes_back_from_its_json(raw: list[Any]) -> None:
    for op in well_formed(raw):
        assert op_from_json(op.to_json()) == op
        again, faults = check_ops([op.to_json()], ids())
        assert faults == []
        assert again[0].digest_view() == op.digest_view()


@pytest.mark.slow
@given(HISTORY, HISTORY)
@settings(max_examples=examples(200))
def test_a_revert_of_any_ops_restores_the_records_or_refuses(before_raw: list[Any], raw: list[Any]) -> None:
    _, before = allowed(START, before_raw)
    _, now = allowed(before, raw)
    by = OpRef("changeset", 0)
    names = sorted(now.records)
    changes = [
        Change(name, before.records.get(name), now.records[name], by)
        for name in names
        if before.records.get(name) != now.records[name]
    ]  # type: ignore[arg-type]
    edges = [EdgeChange(edge, edge in now.edges, by) for edge in sorted(before.edges ^ now.edges)]
    plan = revert(now, Reverted("changeset", "Message"), changes, edges, salts=salts)
    if plan.refused:
        return
    ops, faults = check_ops([dict(op) for op in plan.steps[0].ops], ids())
    assert faults == []
    restored = laid(now, apply(now, ops, salts=salts))
    for former in records(before):
        found = restored.records[former.memory_id]
        assert isinstance(found, Record)
        lost = set(changed_fields(former, found)) - NOT_RESTORED
        if former.status == "corrected":
            lost -= {"status"}
        assert not lost, (lost, former, found)
        assert found.approval in (None, former.approval)
    assert restored.edges == before.edges
    made = restored.records.keys() - before.records.keys()
    assert all(restored.records[name].status == "retracted" for name in made)  # type: ignore[union-attr]


NOT_RESTORED = {
    "approval",
    "source_trust",
    "owner_principal",
    "lineage.corrected_by",
    "lineage.superseded_by",
    "lineage.duplicate_of",
    "lineage.corrected_from",
    "lineage.supersedes",
    "status_reason",
}
"""What only its own act may set, and pointers of memories that stay retired."""


@pytest.mark.slow
@given(HISTORY, HISTORY, HISTORY)
@settings(max_examples=examples(200))
def test_copies_lose_nothing_that_the_target_holds_or_they_are_refused(
    base_raw: list[Any], branch_raw: list[Any], onto_raw: list[Any]
) -> None:
    _, base = allowed(START, base_raw)
    branch_ops, _ = allowed(base, branch_raw)
    _, onto = allowed(base, onto_raw)
    picked = [("source", op) for op in branch_ops]
    for plan in (
        rebase(onto, [Source("source", "Message", tuple(branch_ops), base)], salts=salts),
        cherry_pick(onto, picked, picked, salts=salts, before={"source": base}),
    ):
        if plan.refused or not plan.steps:
            continue
        ops, faults = check_ops([dict(op) for op in plan.steps[0].ops], ids())
        assert faults == []
        result = laid(onto, apply(onto, ops, salts=salts))
        branch = laid(base, apply(base, branch_ops, salts=salts))
        for accepted in records(onto):
            before, mine = base.records.get(accepted.memory_id), branch.records.get(accepted.memory_id)
            if mine == before:
                continue
            found = result.records[accepted.memory_id]
            if before != accepted and isinstance(before, Record):
                for name in set(changed_fields(before, accepted)) & {
                    "content",
                    "title",
                    "visibility",
                    "fact_key",
                    "tags",
                }:
                    values = {repr(getattr(record, name)) for record in (accepted, mine, found)}
                    assert name == "tags" or repr(getattr(found, name)) == repr(getattr(accepted, name)), (
                        values
                    )


@given(HISTORY)
def test_a_digest_depends_on_the_record_alone(raw: list[Any]) -> None:
    _, one = allowed(START, raw)
    _, two = allowed(START, raw)
    for record in records(one):
        other = two.records[record.memory_id]
        assert isinstance(other, Record)
        assert record_digest("0" * 32, record) == record_digest("0" * 32, other)

"""The three-way merge and the diff, on any records: symmetric, idempotent, nothing made up, nothing lost (4-history)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from memory_git.domain.change import Change, OpRef
from memory_git.domain.claims import claimants_among
from memory_git.domain.conflicts import SYMMETRIC_TYPES, Side, detect
from memory_git.domain.diff import SECTIONS, is_empty, semantic_diff, shorten
from memory_git.domain.merge import changed_fields, merge_records
from memory_git.domain.ops import KINDS, TRUSTS, least_trust
from memory_git.domain.policy import VISIBILITIES
from memory_git.domain.record import (
    APPROVED_FIELDS,
    FIELD_NAMES,
    STATUSES,
    Conflicted,
    Lineage,
    Record,
    record_digest,
    sorted_attachments,
)

ROOT = Path(__file__).resolve().parents[2]
SETS = ("tags", "sources", "evidence", "verification")
AUTHORITY = {"owner_principal", "source_trust"}
SCALARS = sorted({*FIELD_NAMES} - {*SETS, *AUTHORITY, "lineage", "memory_id"})

WORDS = st.none() | st.sampled_from(["x", "y"])
NAMES = st.lists(st.sampled_from(["p", "q", "r"]), max_size=3).map(lambda names: tuple(sorted(set(names))))
NOTES = st.lists(st.sampled_from([{"note": "1"}, {"note": "2"}, {"status": "ok"}]), max_size=3).map(
    sorted_attachments
)
TIMES = st.none() | st.sampled_from(["2026-01-01T00:00:00.000000Z", "2027-01-01T00:00:00.000000Z"])
FLAGS = st.booleans()
LINEAGES = st.builds(Lineage, NAMES, WORDS, NAMES, WORDS, WORDS)


def records(*memory_ids: str) -> st.SearchStrategy[Record]:
    """Gives records of few values, so that sides often agree."""
    return st.builds(
        Record,
        memory_id=st.sampled_from(memory_ids or ("a",)),
        content=st.sampled_from(["Tabs.", "Spaces.", "We don't use tabs."]),
        kind=st.sampled_from(KINDS),
        visibility=st.sampled_from(VISIBILITIES),
        status=st.just("active") | st.sampled_from(sorted(STATUSES)),
        title=WORDS,
        scope=WORDS,
        fact_key=WORDS,
        subject=WORDS,
        tags=NAMES,
        sources=NAMES,
        owner_principal=st.none() | st.sampled_from(["ada", "bob"]),
        confidence=st.none() | st.sampled_from([0.0, 0.5]),
        valid_from=TIMES,
        valid_to=TIMES,
        protected=FLAGS,
        approval=st.none() | st.just("user_approved"),
        source_trust=st.none() | st.sampled_from(TRUSTS),
        extra=st.none() | st.just({"k": 1}),
        lineage=st.just(Lineage()) | LINEAGES,
        evidence=NOTES,
        verification=NOTES,
    )


BASES = st.none() | records()


@given(BASES, records())
def test_a_merge_is_idempotent(base: Record | None, record: Record) -> None:
    assert merge_records(base, record, record) == record


@given(records(), records())
def test_what_one_side_changed_alone_is_taken_whole(base: Record, changed: Record) -> None:
    assert merge_records(base, base, changed) == changed
    assert merge_records(base, changed, base) == changed


@pytest.mark.slow
@given(BASES, records(), records())
@settings(max_examples=examples(400))
def test_a_merge_is_symmetric_up_to_the_order_of_its_sides(
    base: Record | None, left: Record, right: Record
) -> None:
    one, two = merge_records(base, left, right), merge_records(base, right, left)
    if isinstance(one, Record):
        assert isinstance(two, Record)
        assert set(changed_fields(one, two)) <= {"owner_principal"}
    else:
        assert isinstance(two, Conflicted)
        assert (one.fields, one.left, one.right) == (two.fields, two.right, two.left)


@pytest.mark.slow
@given(BASES, records(), records())
@settings(max_examples=examples(400))
def test_a_merge_makes_nothing_up_and_loses_nothing_in_silence(
    base: Record | None, left: Record, right: Record
) -> None:
    found = merge_records(base, left, right)
    merged, open_fields = (
        (found.merged, found.fields) if isinstance(found, Conflicted) else (found, frozenset())
    )
    for name in SCALARS:
        values = [getattr(side, name) for side in (left, right)]
        value = getattr(merged, name)
        assert value in values
        before = values[0] if base is None else getattr(base, name)
        for mine, other in (values, values[::-1]):
            if mine not in (before, other) and name not in open_fields:
                assert value == mine, "a change of one side is taken, or it is in conflict"
                assert base is not None
    for name in SETS:
        held = [getattr(side, name) for side in (left, right)]
        kept = getattr(merged, name)
        for item in (*held[0], *held[1]):
            in_base = base is not None and item in getattr(base, name)
            assert (item in kept) == (not in_base or all(item in side for side in held))


@pytest.mark.slow
@given(BASES, records(), records())
@settings(max_examples=examples(400))
def test_authority_never_grows_by_a_merge(base: Record | None, left: Record, right: Record) -> None:
    found = merge_records(base, left, right)
    if not isinstance(found, Record) or found in (left, right):
        return
    assert found.source_trust == least_trust(left.source_trust, right.source_trust)
    if found.approval:
        approving = [side for side in (left, right) if side.approval]
        assert any(
            all(getattr(found, name) == getattr(side, name) for name in APPROVED_FIELDS) for side in approving
        )
    if "private" in (left.visibility, right.visibility):
        assert left.owner_principal == right.owner_principal == found.owner_principal
    if base is not None and found.visibility != base.visibility:
        assert found.visibility in (left.visibility, right.visibility)


@given(records(), records())
def test_a_change_against_a_retirement_is_never_merged(base: Record, edited: Record) -> None:
    base, edited = replace(base, status="active"), replace(edited, status="active")
    retired = replace(base, status="retracted")
    found = merge_records(base, edited, retired)
    only_attached = set(changed_fields(base, edited)) <= {"evidence", "verification"}
    assert isinstance(found, Record) is only_attached


# diff

STATES = st.lists(records("a", "b", "c", "x", "y", "p", "q"), max_size=6).map(
    lambda found: {record.memory_id: record for record in found}
)
BY = OpRef("changeset")


def changes(before: dict[str, Record], after: dict[str, Record]) -> dict[str, Change]:
    return {
        name: Change(name, before.get(name), after.get(name), BY)
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    }


@given(STATES)
def test_a_diff_of_equal_states_is_empty(state: dict[str, Record]) -> None:
    assert is_empty(semantic_diff(changes(state, dict(state)).values()))


@pytest.mark.slow
@given(STATES, STATES)
@settings(max_examples=examples(200))
def test_every_memory_that_differs_shows_unless_it_came_and_went_or_stands_beside_its_heir(
    before: dict[str, Record], after: dict[str, Record]
) -> None:
    after = {**before, **after}
    found = changes(before, after)
    diff = semantic_diff(found.values())
    items = [item for name in SECTIONS for item in diff[name]]
    shown = {item["memory_id"] for item in items}
    shown_before = {item["before"]["memory_id"] for item in items if item["before"]}
    for name, change in found.items():
        came_and_went = change.before is None and change.after is not None and not change.after.is_active
        assert came_and_went != (name in shown | shown_before)
    assert shown <= found.keys()
    assert semantic_diff(reversed(found.values())) == diff


@given(st.text(), st.integers(1, 30))
def test_a_summary_never_exceeds_its_length_and_begins_as_the_text_does(text: str, most: int) -> None:
    line = " ".join(text.split())
    short = shorten(text, most)
    assert len(short) <= most
    assert short == line or (short.endswith("\u2026") and line.startswith(short[:-1]))


# conflicts


def side(head: str, before: dict[str, Record], after: dict[str, Record]) -> Side:
    return Side(head, changes(before, after), (), claimants_among(after.values()), after.get)


@pytest.mark.slow
@given(STATES, STATES, STATES)
@settings(max_examples=examples(150), deadline=None)
def test_detection_is_the_same_with_the_sides_swapped_and_quiet_about_nothing(
    base: dict[str, Record], left: dict[str, Record], right: dict[str, Record]
) -> None:
    one, two = side("left", base, {**base, **left}), side("right", base, {**base, **right})
    there, back = detect("left", one, two), detect("left", two, one)
    for mine, mirrored in ((there, back), (back, there)):
        symmetric = {
            (item.conflict_type, item.identity_digest(), item.severity, item.detail, item.left, item.right)
            for item in mine
            if item.conflict_type in SYMMETRIC_TYPES
        }
        other = {
            (item.conflict_type, item.identity_digest(), item.severity, item.detail, item.right, item.left)
            for item in mirrored
            if item.conflict_type in SYMMETRIC_TYPES
        }
        assert symmetric == other
    assert len(there) == len(back)
    unchanged = side("left", base, base)
    assert detect("left", unchanged, unchanged) == []


# digests in another process

PROGRAM = """
from memory_git.domain.changeset import read_request, request_digest
from memory_git.domain.claims import claims_of
from memory_git.domain.diff import semantic_diff
from memory_git.domain.canonical import digest
from memory_git.domain.change import Change, OpRef
from memory_git.domain.errors import Invalid
from memory_git.domain.merge import merge_records, unsettled_to_json
from memory_git.domain.record import Lineage, Record, record_digest
names = [f"n{n}" for n in range(40)]
left = Record("a", "Tabs.", kind="decision", tags=tuple(names[:20]), lineage=Lineage(supersedes=tuple(names)))
right = Record("a", "Spaces.", kind="fact", title="x", scope="y", extra={name: name for name in reversed(names)})
conflict = merge_records(None, left, right)
print(record_digest("0" * 32, left), record_digest("0" * 32, right), digest(unsettled_to_json(conflict)))
print(digest(sorted(claims_of(left))))
print(digest(semantic_diff([Change("a", left, right, OpRef("c")), Change("b", None, left, OpRef("c"))])))
raw = {"op_type": "add_memory", "payload": {"content": "x", "tags": names, **dict.fromkeys(names, 1)}, **dict.fromkeys(names, 1)}
try:
    read_request({"project_id": "p", "ops": [raw] * 2, **dict.fromkeys(names, 1)}, map(str, range(9)))
except Invalid as error:
    print(digest(error.to_problem()))
"""


def test_digests_and_faults_do_not_depend_on_the_hash_seed_of_the_process() -> None:
    def printed(seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT / "src")}
        ran = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, check=True
        )
        return ran.stdout.decode()

    first = printed("0")
    assert len(first.split()) == 6
    assert {printed(seed) for seed in ("1", "2", "3")} == {first}


@given(records(), records())
def test_equal_records_have_equal_digests_and_others_have_others(one: Record, two: Record) -> None:
    assert (record_digest("0" * 32, one) == record_digest("0" * 32, two)) is (one == two)

"""Each type of conflict fires, is the same with the sides swapped, and stays quiet on its near miss (4-history, conflicts)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from time import process_time
from typing import Any

import msgspec
import pytest

from memory_git.domain.change import Change, OpRef
from memory_git.domain.claims import claimants_among, claims_of, related, validity_overlaps
from memory_git.domain.conflicts import (
    CONFLICT_TYPES,
    SYMMETRIC_TYPES,
    Authored,
    Conflict,
    Side,
    conflict_id,
    detect,
)
from memory_git.domain.merge import merge_records
from memory_git.domain.ops import Op
from memory_git.domain.record import Conflicted, Lineage, Record, record_digest

BASE_HEAD, LEFT_HEAD, RIGHT_HEAD = "base", "left", "right"


def fact(memory_id: str, content: str, **more: Any) -> Record:
    return Record(memory_id, content, kind="fact", **{"scope": "shop", "fact_key": "db", **more})


def decision(memory_id: str, content: str, **more: Any) -> Record:
    return Record(memory_id, content, kind="decision", **{"scope": "shop", **more})


def but(record: Record, **changes: Any) -> Record:
    return msgspec.structs.replace(record, **changes)


def an_op(op_type: str, target: str | None = None, result: str | None = None, /, **payload: Any) -> Op:
    return Op(0, op_type, target, result, payload)


def authored(*ops: Op, **more: Any) -> Authored:
    values = {
        "changeset_id": "c",
        "project_id": "shop",
        "ref_name": "refs/agents/ada/main",
        "actor_id": "ada",
        "topic_id": None,
    }
    return Authored(**{**values, **more}, ops=ops)


@dataclass
class Branch:
    """What one side made of the base: records put over it, and the changesets that did."""

    records: list[Record] = field(default_factory=list)
    changesets: list[Authored] = field(default_factory=list)
    base_is_ancestor: bool = True


def side(base: list[Record], branch: Branch, head: str) -> Side:
    before = {record.memory_id: record for record in base}
    now = {**before, **{record.memory_id: record for record in branch.records}}
    changes = {
        name: Change(
            name, before.get(name), record, OpRef(f"by-{head}"), None, record_digest("0" * 32, record)
        )
        for name, record in now.items()
        if before.get(name) != record
    }
    return Side(
        head,
        changes,
        tuple(branch.changesets),
        claimants_among(now.values()),
        now.get,
        branch.base_is_ancestor,
        lambda name: record_digest("0" * 32, now[name]) if name in now else None,
    )


def concurrent(base: list[Record], left: Branch, right: Branch) -> list[Conflicted]:
    before = {record.memory_id: record for record in base}
    rights = {record.memory_id: record for record in right.records}
    merged = [
        merge_records(before.get(one.memory_id), one, rights[one.memory_id])
        for one in left.records
        if one.memory_id in rights
    ]
    return [found for found in merged if isinstance(found, Conflicted)]


def found(base: list[Record], left: Branch, right: Branch, base_head: str = LEFT_HEAD) -> list[Conflict]:
    """Gives the conflicts, after asking that swapping the sides gives the same with the sides swapped."""
    conflicts = detect(
        base_head, side(base, left, LEFT_HEAD), side(base, right, RIGHT_HEAD), concurrent(base, left, right)
    )
    swapped = detect(
        base_head, side(base, right, RIGHT_HEAD), side(base, left, LEFT_HEAD), concurrent(base, right, left)
    )
    assert mirrored(conflicts) == mirrored(but_swapped(swapped))
    for one, two in zip(by_identity(conflicts), by_identity(swapped), strict=True):
        if one.conflict_type in SYMMETRIC_TYPES:
            assert shown_id(one, LEFT_HEAD, RIGHT_HEAD) == shown_id(two, RIGHT_HEAD, LEFT_HEAD)
            assert one.identity_digest() == two.identity_digest()
    return conflicts


def shown_id(item: Conflict, left: str, right: str) -> str:
    return str(item.to_json("shop", BASE_HEAD, left, right)["conflict_id"])


OTHER_SIDE = {"left": "right", "right": "left"}


def but_swapped(conflicts: Iterable[Conflict]) -> list[Conflict]:
    return [
        replace(
            item,
            left=item.right,
            right=item.left,
            identity={
                key: OTHER_SIDE[value] if key == "side" else value for key, value in item.identity.items()
            },
        )
        for item in conflicts
    ]


def mirrored(conflicts: Iterable[Conflict]) -> list[str]:
    return sorted(repr(item.to_json("shop", BASE_HEAD, "", "")) for item in conflicts)


def by_identity(conflicts: Iterable[Conflict]) -> list[Conflict]:
    return sorted(conflicts, key=lambda item: (item.conflict_type, sorted(item.memory_ids)))


def types(conflicts: Iterable[Conflict]) -> list[tuple[str, str]]:
    return [(item.conflict_type, item.severity) for item in conflicts]


PG = fact("a", "PostgreSQL 15 is the database.")
MY = fact("b", "MySQL 8 is the database.")
TABS = decision("a", "We indent with tabs.", fact_key="indent")
SPACES = decision("b", "We indent with spaces.", fact_key="indent")
Y2025, Y2026, Y2027 = (f"{year}-01-01T00:00:00.000000Z" for year in (2025, 2026, 2027))
INFERENCE = {"source_trust": "inference"}
APPROVED = Record("a", "Tabs.", approval="user_approved")
SECRET = Record("a", "The launch is in May.", visibility="private", owner_principal="ada")
RETIRED = but(PG, status="superseded", lineage=Lineage(superseded_by="b"))


def corrects(memory_id: str, **payload: Any) -> list[Authored]:
    return [authored(an_op("correct_memory", memory_id, **payload))]


# name: base, left, right, what fires
FIRES: dict[str, tuple[list[Record], Branch, Branch, list[tuple[str, str]]]] = {
    "one field changed differently": (
        [PG],
        Branch([but(PG, content="x")]),
        Branch([but(PG, content="y")]),
        [("concurrent_change", "blocking")],
    ),
    "changed against retired": (
        [PG],
        Branch([but(PG, tags=("x",))]),
        Branch([but(PG, status="retracted")]),
        [("concurrent_change", "blocking")],
    ),
    "each marked the duplicate of the other": (
        [PG, but(PG, memory_id="b")],
        Branch([but(PG, status="duplicate", lineage=Lineage(duplicate_of="b"))]),
        Branch([but(PG, memory_id="b", status="duplicate", lineage=Lineage(duplicate_of="a"))]),
        [("concurrent_change", "blocking")],
    ),
    "a duplicate of what the other side retracted": (
        [PG, but(PG, memory_id="b")],
        Branch([but(PG, status="duplicate", lineage=Lineage(duplicate_of="b"))]),
        Branch([but(PG, memory_id="b", status="retracted")]),
        [("concurrent_change", "blocking")],
    ),
    "two new facts of one key": ([], Branch([PG]), Branch([MY]), [("incompatible_fact", "blocking")]),
    "a new fact against one accepted long ago": (
        [PG],
        Branch(),
        Branch([MY]),
        [("incompatible_fact", "blocking")],
    ),
    "one key and scope, written in two ways": (
        [],
        Branch([but(PG, fact_key="Primary  Database", scope="Shop")]),
        Branch([but(MY, fact_key="primary data\u200bbase ", scope="ｓｈｏｐ")]),
        [("incompatible_fact", "blocking")],
    ),
    "two facts of one subject": (
        [],
        Branch([but(PG, fact_key=None, subject="Mail relay")]),
        Branch([but(MY, fact_key=None, subject="mail  relay")]),
        [("incompatible_fact", "blocking")],
    ),
    "facts whose validity overlaps by a day": (
        [],
        Branch([but(PG, valid_to=Y2027)]),
        Branch([but(MY, valid_from=Y2026)]),
        [("incompatible_fact", "blocking")],
    ),
    "a fact that takes the key of another": (
        [PG, but(MY, fact_key="other")],
        Branch(),
        Branch([MY]),
        [("incompatible_fact", "blocking")],
    ),
    "a fact whose value moves away from an equal one": (
        [PG, but(PG, memory_id="b")],
        Branch(),
        Branch([MY]),
        [("incompatible_fact", "blocking")],
    ),
    "allowed and not allowed": (
        [fact("a", "Deployment on Friday is allowed.")],
        Branch(),
        Branch([fact("b", "Deployment on Friday is not allowed.")]),
        [("incompatible_fact", "blocking")],
    ),
    "the 15th and the 16th": (
        [fact("a", "The deadline is the 15th of May.")],
        Branch(),
        Branch([fact("b", "The deadline is the 16th of May.")]),
        [("incompatible_fact", "blocking")],
    ),
    "two decisions of one key": (
        [TABS],
        Branch(),
        Branch([SPACES]),
        [("contradictory_decision", "blocking")],
    ),
    "two decisions clearly alike in words": (
        [decision("a", "Use PostgreSQL for the billing database.")],
        Branch(),
        Branch([decision("b", "Use MySQL for the billing database.")]),
        [("contradictory_decision", "blocking")],
    ),
    "a protected decision": (
        [but(TABS, protected=True)],
        Branch(),
        Branch([SPACES]),
        [("protected_decision", "blocking")],
    ),
    "a user-approved decision": (
        [but(TABS, approval="user_approved")],
        Branch(),
        Branch([SPACES]),
        [("protected_decision", "blocking")],
    ),
    "the same text twice": (
        [Record("a", "Ask before a release.")],
        Branch(),
        Branch([Record("b", "  ask before a RELEASE ")]),
        [("duplicate_content", "info")],
    ),
    "nearly the same text, accepted long ago": (
        [Record("a", "An on-call shift lasts a week.")],
        Branch(),
        Branch([Record("b", "The on-call shift lasts a week.")]),
        [("duplicate_content", "info")],
    ),
    "the same text as two kinds": (
        [],
        Branch([Record("a", "Ask before a release.")]),
        Branch([decision("b", "Ask before a release.")]),
        [("duplicate_content", "info")],
    ),
    "a user-approved record corrected on an inference": (
        [APPROVED],
        Branch(),
        Branch([but(APPROVED, title="x")], corrects("a", title="x", **INFERENCE)),
        [("trust_downgrade", "blocking")],
    ),
    "a user-approved record corrected by what says nothing": (
        [APPROVED],
        Branch(),
        Branch([but(APPROVED, title="x")], corrects("a", title="x")),
        [("trust_downgrade", "blocking")],
    ),
    "a user-approved record retracted on an inference": (
        [APPROVED],
        Branch(),
        Branch(
            [but(APPROVED, status="retracted")],
            [authored(an_op("set_status", "a", status="retracted", **INFERENCE))],
        ),
        [("trust_downgrade", "blocking")],
    ),
    "a user-approved record marked a duplicate on an inference": (
        [APPROVED, Record("b", "x")],
        Branch(),
        Branch(
            [but(APPROVED, status="duplicate", lineage=Lineage(duplicate_of="b"))],
            [authored(an_op("mark_duplicate", "a", "b", **INFERENCE))],
        ),
        [("trust_downgrade", "blocking")],
    ),
    "a user-approved record proposed for deprecation on an inference": (
        [APPROVED],
        Branch(),
        Branch(
            [but(APPROVED, status="deprecation_proposed")],
            [authored(an_op("propose_deprecation", "a", reason="x", **INFERENCE))],
        ),
        [("trust_downgrade", "blocking")],
    ),
    "a payload of another project": (
        [],
        Branch(),
        Branch([], [authored(an_op("add_memory", None, "m", content="x", project_id="other"))]),
        [("boundary_violation", "blocking")],
    ),
    "a payload of another topic": (
        [],
        Branch(),
        Branch([], [authored(an_op("add_memory", None, "m", content="x", topic_id="other"), topic_id="own")]),
        [("boundary_violation", "warning")],
    ),
    "a payload of another actor": (
        [],
        Branch(),
        Branch([], [authored(an_op("add_memory", None, "m", content="x", actor_id="eve"))]),
        [("boundary_violation", "warning")],
    ),
    "a ref of another actor": (
        [],
        Branch(),
        Branch([], [authored(ref_name="refs/sessions/eve/s1")]),
        [("boundary_violation", "blocking")],
    ),
    "a private record shown to all": (
        [SECRET],
        Branch(),
        Branch(
            [but(SECRET, visibility="public")], corrects("a", visibility="public", from_visibility="private")
        ),
        [("scope_flow", "blocking")],
    ),
    "an internal record shared": (
        [Record("a", "x")],
        Branch(),
        Branch([Record("a", "x", visibility="shared")]),
        [("scope_flow", "warning")],
    ),
    "a wider successor of a private record": (
        [SECRET],
        Branch(),
        Branch(
            [
                but(SECRET, status="superseded", lineage=Lineage(superseded_by="n")),
                Record("n", "The launch is in May or June.", lineage=Lineage(supersedes=("a",))),
            ]
        ),
        [("scope_flow", "blocking")],
    ),
    "a wider successor under a retired id": (
        [SECRET, Record("n", "Old.", status="retracted")],
        Branch(),
        Branch(
            [
                but(SECRET, status="superseded", lineage=Lineage(superseded_by="n")),
                Record("n", "The launch is in May or June.", lineage=Lineage(supersedes=("a",))),
            ]
        ),
        [("scope_flow", "blocking")],
    ),
    "a wider successor of a private draft": (
        [],
        Branch(),
        Branch(
            [
                but(SECRET, status="corrected", lineage=Lineage(corrected_by="n")),
                Record("n", "The launch is in May or June.", lineage=Lineage(corrected_from=("a",))),
            ]
        ),
        [("scope_flow", "blocking")],
    ),
    "a private text pasted into a wider record": (
        [SECRET],
        Branch(),
        Branch([Record("n", "the launch is in may")]),
        [("duplicate_content", "info"), ("scope_flow", "blocking")],
    ),
    "a private record of another owner": (
        [SECRET],
        Branch(),
        Branch([but(SECRET, owner_principal="eve")]),
        [("scope_flow", "blocking")],
    ),
}

STALE = ("stale_base", "warning")


def without_stale(conflicts: Iterable[Conflict]) -> list[Conflict]:
    return [item for item in conflicts if item.conflict_type != "stale_base"]


@pytest.mark.parametrize(("base", "left", "right", "expected"), FIRES.values(), ids=FIRES.keys())
def test_a_conflict_fires_and_only_it(
    base: list[Record], left: Branch, right: Branch, expected: list[tuple[str, str]]
):
    assert types(found(base, left, right)) == expected


QUIET: dict[str, tuple[list[Record], Branch, Branch]] = {
    "both sides changed alike": (
        [PG],
        Branch([but(PG, content="x")]),
        Branch([but(PG, content="x")]),
    ),
    "each changed another field": ([PG], Branch([but(PG, title="x")]), Branch([but(PG, tags=("x",))])),
    "retired against evidence": (
        [PG],
        Branch([but(PG, evidence=({"note": "x"},))]),
        Branch([but(PG, status="retracted")]),
    ),
    "a duplicate of what the other side superseded": (
        [PG, but(PG, memory_id="b")],
        Branch([but(PG, status="duplicate", lineage=Lineage(duplicate_of="b"))]),
        Branch(
            [
                but(PG, memory_id="b", status="superseded", lineage=Lineage(superseded_by="c")),
                fact("c", "PostgreSQL 16 is the database.", lineage=Lineage(supersedes=("b",))),
            ]
        ),
    ),
    "a duplicate of what the same side retracted": (
        [PG, but(PG, memory_id="b")],
        Branch(
            [
                but(PG, status="duplicate", lineage=Lineage(duplicate_of="b")),
                but(PG, memory_id="b", status="retracted"),
            ]
        ),
        Branch([Record("z", "x")]),
    ),
    "facts of other keys": ([PG], Branch(), Branch([but(MY, fact_key="cache")])),
    "facts of other scopes": ([PG], Branch(), Branch([but(MY, scope="blog")])),
    "facts of one subject but other keys": (
        [but(PG, subject="db")],
        Branch(),
        Branch([but(MY, fact_key="other", subject="db")]),
    ),
    "facts that only mention the same thing": (
        [fact("a", "PostgreSQL runs on port 5432.", fact_key=None)],
        Branch(),
        Branch([fact("b", "PostgreSQL was chosen in 2019.", fact_key=None)]),
    ),
    "a fact valid before, one from then on": (
        [but(PG, valid_to=Y2026)],
        Branch(),
        Branch([but(MY, valid_from=Y2026)]),
    ),
    "a fact and a decision of one key": ([PG], Branch(), Branch([but(MY, kind="decision")])),
    "an observation of the same key": ([PG], Branch(), Branch([but(MY, kind="observation")])),
    "a fact against a retired one": ([but(PG, status="retracted")], Branch(), Branch([MY])),
    "an update of a fact": ([PG], Branch(), Branch([RETIRED, but(MY, lineage=Lineage(supersedes=("a",)))])),
    "an update over many steps": (
        [PG],
        Branch(),
        Branch(
            [
                RETIRED,
                fact("b", "x", status="corrected", lineage=Lineage(supersedes=("a",), corrected_by="c")),
                fact("c", "MySQL 9 is the database.", lineage=Lineage(corrected_from=("b",))),
            ]
        ),
    ),
    "a fact in whose favour the same side retired the other": (
        [PG],
        Branch(),
        Branch([but(PG, status="retracted"), MY]),
    ),
    "two facts of one side": ([], Branch(), Branch([PG, MY])),
    "a fact beside what the same side moved to another key": (
        [PG],
        Branch(),
        Branch([but(PG, fact_key="old"), MY]),
    ),
    "a contradiction that stood at the base, and a tag": ([PG, MY], Branch(), Branch([but(MY, tags=("x",))])),
    "unrelated decisions of one scope": (
        [decision("a", "Releases happen on Tuesdays.")],
        Branch(),
        Branch([decision("b", "Logs are kept for thirty days.")]),
    ),
    "decisions of other keys": ([TABS], Branch(), Branch([but(SPACES, fact_key="width")])),
    "the same decision in other words": (
        [decision("a", "The on-call shift lasts a week.", fact_key="oncall")],
        Branch([Record("z", "x")]),
        Branch(),
    ),
    "the same text in turn": (
        [Record("a", "Ask before a release.", valid_to=Y2026)],
        Branch(),
        Branch([Record("b", "Ask before a release.", valid_from=Y2026)]),
    ),
    "the same text as its own successor": (
        [Record("a", "Ask before a release.")],
        Branch(),
        Branch(
            [
                Record("a", "Ask before a release.", status="superseded", lineage=Lineage(superseded_by="b")),
                Record("b", "Ask before a release.", lineage=Lineage(supersedes=("a",))),
            ]
        ),
    ),
    "the same text in place of what the same side retracted": (
        [Record("a", "Ask before a release.")],
        Branch(),
        Branch(
            [Record("a", "Ask before a release.", status="retracted"), Record("b", "Ask before a release.")]
        ),
    ),
    "texts that differ in a number": (
        [Record("a", "Wait 15 minutes.")],
        Branch(),
        Branch([Record("b", "Wait 16 minutes.")]),
    ),
    "texts that differ in a negation": (
        [Record("a", "Retry it.")],
        Branch(),
        Branch([Record("b", "Don't retry it.")]),
    ),
    "we chose X over Y": (
        [Record("a", "We chose Kafka over RabbitMQ.")],
        Branch(),
        Branch([Record("b", "We chose RabbitMQ over Kafka.")]),
    ),
    "a user-approved record changed by a person": (
        [APPROVED],
        Branch(),
        Branch([but(APPROVED, title="x")], corrects("a", title="x", source_trust="human")),
    ),
    "evidence for a user-approved record": (
        [APPROVED],
        Branch(),
        Branch(
            [but(APPROVED, evidence=({"note": "x"},))], [authored(an_op("attach_evidence", "a", note="x"))]
        ),
    ),
    "a duplicate of a user-approved record": (
        [but(APPROVED, tags=("x",)), Record("b", "x")],
        Branch(),
        Branch(
            [
                Record("b", "x", status="duplicate", lineage=Lineage(duplicate_of="a")),
                but(APPROVED, tags=("y",)),
            ],
            [
                authored(
                    an_op("mark_duplicate", "b", "a", **INFERENCE),
                    an_op("correct_memory", "a", tags=["y"], source_trust="human"),
                )
            ],
        ),
    ),
    "an unapproved record changed on an inference": (
        [Record("a", "Tabs.", source_trust="human")],
        Branch(),
        Branch([Record("a", "x", source_trust="inference")], corrects("a", content="x", **INFERENCE)),
    ),
    "a payload of the own project, topic and actor": (
        [],
        Branch(),
        Branch(
            [],
            [
                authored(
                    an_op(
                        "add_memory", None, "m", content="x", project_id="shop", topic_id="t", actor_id="ada"
                    ),
                    topic_id="t",
                )
            ],
        ),
    ),
    "a topic's ref of another actor": ([], Branch(), Branch([], [authored(ref_name="refs/topics/eve")])),
    "a private record narrowed no more": ([SECRET], Branch(), Branch([but(SECRET, title="x")])),
    "a public record made private": (
        [Record("a", "x", visibility="public")],
        Branch(),
        Branch([Record("a", "x", visibility="private", owner_principal="ada")]),
    ),
    "a private successor of a private record": (
        [SECRET],
        Branch(),
        Branch(
            [
                but(SECRET, status="superseded", lineage=Lineage(superseded_by="n")),
                Record(
                    "n",
                    "June.",
                    visibility="private",
                    owner_principal="ada",
                    lineage=Lineage(supersedes=("a",)),
                ),
            ]
        ),
    ),
    "nothing": ([PG, TABS, SECRET], Branch(), Branch()),
}


@pytest.mark.parametrize(("base", "left", "right"), QUIET.values(), ids=QUIET.keys())
def test_the_near_miss_stays_quiet(base: list[Record], left: Branch, right: Branch):
    assert types(found(base, left, right)) == []


STALE_BASES = {
    "left is the base": ("left", True, True, []),
    "right is the base": ("right", True, True, []),
    "both moved past it": ("base", True, True, [STALE]),
    "not an ancestor of one side": ("left", True, False, [STALE]),
}


@pytest.mark.parametrize(
    ("base_head", "of_left", "of_right", "expected"), STALE_BASES.values(), ids=STALE_BASES.keys()
)
def test_a_stale_base_is_a_warning(
    base_head: str, of_left: bool, of_right: bool, expected: list[tuple[str, str]]
):
    left, right = Branch(base_is_ancestor=of_left), Branch(base_is_ancestor=of_right)
    assert types(found([], left, right, base_head)) == expected


def test_every_type_has_a_row_that_fires():
    fired = {name for *_, expected in FIRES.values() for name, _ in expected}
    assert fired | {"stale_base"} == CONFLICT_TYPES


# what a conflict says


def test_the_parties_of_a_conflict_stand_on_their_own_sides_with_the_digests_at_both_heads():
    (item,) = found([PG], Branch(), Branch([MY]))
    left, right = item.left[0], item.right[0]
    assert (left.memory_id, left.record_digest, left.changeset_id) == ("a", record_digest("0" * 32, PG), None)
    assert (right.memory_id, right.record_digest, right.changeset_id) == (
        "b",
        record_digest("0" * 32, MY),
        "by-right",
    )


def test_no_identity_holds_text():
    for base, left, right, _ in FIRES.values():
        for item in found(base, left, right):
            texts = [record.content for record in [*base, *left.records, *right.records]]
            assert not any(text in repr(item.identity) for text in texts if len(text) > 3)


def test_a_resolution_carries_over_only_while_both_records_are_what_they_were():
    (first,) = found([PG], Branch(), Branch([MY]))
    (moved_heads,) = found([PG, Record("z", "x")], Branch([Record("z", "y")]), Branch([MY]))
    (other_value,) = found([but(PG, content="PostgreSQL 16 is the database.")], Branch(), Branch([MY]))
    assert first.identity_digest() == moved_heads.identity_digest()
    assert first.identity_digest() != other_value.identity_digest()
    assert first.identity == other_value.identity


def test_two_records_in_conflict_crosswise_are_one_conflict_with_all_parties():
    x, y = fact("a", "PostgreSQL 14."), fact("b", "PostgreSQL 15.")
    left = Branch([but(x, content="MySQL 8."), but(y, content="MySQL 9.")])
    right = Branch([but(x, content="Oracle 19."), but(y, content="Oracle 21.")])
    conflicts = [item for item in found([x, y], left, right) if item.conflict_type == "incompatible_fact"]
    assert [
        ([party.memory_id for party in item.left], [party.memory_id for party in item.right])
        for item in conflicts
    ] == [(["a", "b"], ["a", "b"])]


def test_a_near_duplicate_tells_how_near():
    exact = found(
        [Record("a", "Ask before a release.")], Branch(), Branch([Record("b", "Ask before a release.")])
    )
    near = found(
        [Record("a", "An on-call shift lasts a week.")],
        Branch(),
        Branch([Record("b", "The on-call shift lasts a week.")]),
    )
    assert exact[0].similarity == 1
    assert near[0].similarity is not None
    assert 0 < near[0].similarity < 1


def test_the_id_is_the_same_for_swapped_sides_of_symmetric_types_only():
    for conflict_type in sorted(CONFLICT_TYPES):
        ids = {
            conflict_id("shop", "b", *heads, conflict_type, {"memory_id": "a"})
            for heads in (("l", "r"), ("r", "l"))
        }
        assert len(ids) == (1 if conflict_type in SYMMETRIC_TYPES else 2)


def test_the_same_input_gives_the_same_output_in_the_same_order():
    base, left, right, _ = FIRES["a private text pasted into a wider record"]
    assert found(base, left, right) == found(base, left, right)
    tabs, spaces = but(TABS, memory_id="c"), but(SPACES, memory_id="d")
    there = found([], Branch([PG, tabs]), Branch([MY, spaces]))
    assert there == found([], Branch([tabs, PG]), Branch([spaces, MY]))
    assert types(there) == [("contradictory_decision", "blocking"), ("incompatible_fact", "blocking")]


# claims and lineage

OVERLAPS = {
    "both open": ((None, None), (None, None), True),
    "one ends when the other starts": ((None, Y2026), (Y2026, None), False),
    "one ends after the other starts": ((None, Y2027), (Y2026, None), True),
    "one within the other": ((Y2025, Y2027), (Y2026, None), True),
    "apart": ((Y2026, Y2027), (None, Y2025), False),
}


@pytest.mark.parametrize(("one", "two", "overlap"), OVERLAPS.values(), ids=OVERLAPS.keys())
def test_validity_is_compared_as_instants_with_an_exclusive_end(one: Any, two: Any, overlap: bool):
    first = Record("a", "x", valid_from=one[0], valid_to=one[1])
    second = Record("b", "x", valid_from=two[0], valid_to=two[1])
    assert validity_overlaps(first, second) is overlap
    assert validity_overlaps(second, first) is overlap


def test_what_has_left_active_memory_claims_nothing():
    assert claims_of(PG)
    assert claims_of(but(PG, status="disputed")) == claims_of(PG)
    assert claims_of(but(PG, status="retracted")) == frozenset()


def test_siblings_of_one_ancestor_are_joined_but_a_value_added_anew_beside_its_successor_is_not():
    old = Record("a", "1", status="superseded", lineage=Lineage(superseded_by="b"))
    heir = Record("b", "2", lineage=Lineage(supersedes=("a",)))
    sibling = Record("c", "3", lineage=Lineage(corrected_from=("a",)))
    anew = Record("a", "4")
    assert related(heir, sibling, {"a": old}.get)
    assert related(Record("a", "1"), heir, {"a": Record("a", "1")}.get, {"a": old, "b": heir}.get)
    assert not related(anew, heir, {"a": anew, "b": heir}.get)


# size


@pytest.mark.slow
def test_five_thousand_records_of_one_text_and_as_many_user_approved_ones_are_compared_in_linear_time():
    base = [Record(f"u{n}", f"Approved {n}.", approval="user_approved") for n in range(2_000)]
    ops = [an_op("correct_memory", f"u{n}", title="x", **INFERENCE) for n in range(2_000)]
    left = Branch([Record(f"l{n}", "The same text, many times.") for n in range(1_000)])
    right = Branch(
        [
            *(but(record, title="x") for record in base),
            *(Record(f"r{n}", "The same text, many times.") for n in range(1_000)),
        ],
        [authored(*ops)],
    )
    sides = side(base, left, LEFT_HEAD), side(base, right, RIGHT_HEAD)
    began = process_time()
    conflicts = detect(LEFT_HEAD, *sides)
    assert process_time() - began < 8
    counted = types(conflicts)
    assert counted.count(("trust_downgrade", "blocking")) == 2_000
    assert 1_000 <= counted.count(("duplicate_content", "info")) <= 2_000

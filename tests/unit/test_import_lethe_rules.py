"""How what the original allowed is said by our rules: values, trust, successors, logs, receipts (5-lethe; docs/COMPATIBILITY.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from original_db import OriginalDb, add, correct

from memory_git.domain.ids import SHARED_MAIN
from memory_git.interchange.original.importing import Wanted, import_original
from memory_git.interchange.original.report import ProjectReport
from memory_git.lethe.store import LetheStore

BRANCH = "refs/agents/ann/main"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LetheStore]:
    (tmp_path / "here").mkdir()
    store = LetheStore.open(tmp_path / "here" / "lethe.db", merge_keys=None)
    yield store
    store.close()


@pytest.fixture
def db(tmp_path: Path) -> OriginalDb:
    return OriginalDb(tmp_path / "lethe.db")


def take(store: LetheStore, db: OriginalDb) -> ProjectReport:
    """Imports a database of one project, and checks that everything agrees."""
    (report,) = import_original(db.path, store, Wanted(), lambda *_: None).projects
    assert store.verify("atlas")["faults"] == []
    return report


def warned(report: ProjectReport) -> list[str]:
    return [item.field for item in report.findings.warnings]


def skipped(report: ProjectReport) -> list[str]:
    return [item.what for item in report.findings.skipped]


def record(store: LetheStore, head: str, memory_id: str) -> dict[str, Any]:
    found: dict[str, Any] = store.memory("atlas", head, memory_id)["record"]
    return found


def statuses(store: LetheStore, head: str) -> dict[str, str]:
    page = store.memories("atlas", head, limit=200)
    return {item["memory_id"]: item["record"]["status"] for item in page["memories"]}


def supersede(target: str, **payload: Any) -> dict[str, Any]:
    return {"op_type": "supersede_memory", "target_event_id": target, "payload": payload}


def duplicate(target: str, canonical: str) -> dict[str, Any]:
    return {
        "op_type": "mark_duplicate",
        "target_event_id": target,
        "payload": {"duplicate_of": canonical},
    }


def attach(target: str | None, **payload: Any) -> dict[str, Any]:
    op = {"op_type": "attach_evidence", "payload": payload}
    return op if target is None else {**op, "target_event_id": target}


# a changeset's own fields


def test_evidence_of_any_shape_is_kept_as_it_is_or_as_a_note(store: LetheStore, db: OriginalDb) -> None:
    evidence = [
        {"kind": "test", "note": "ran"},
        {"kind": "run", "number": 3},
        {"kind": 7},
        {},
        {"note": "n" * 5000},
    ]
    head = db.changeset(BRANCH, [db.root()], [add("m/one", "tabs")], evidence=evidence)
    report = take(store, db)
    found = store.get_changeset(head)["evidence"]
    assert found[:3] == [
        {"kind": "test", "note": "ran"},
        {"kind": "run", "note": '{"kind":"run","number":3}'},
        {"note": '{"kind":7}'},
    ]
    assert len(found[3]["note"].encode()) == 4096
    assert warned(report) == ["evidence"]


def test_more_items_than_a_changeset_may_have_are_left_out_and_told(
    store: LetheStore, db: OriginalDb
) -> None:
    evidence = [{"kind": "test", "note": str(place)} for place in range(70)]
    head = db.changeset(BRANCH, [db.root()], [add("m/one", "tabs")], evidence=evidence)
    report = take(store, db)
    assert len(store.get_changeset(head)["evidence"]) == 64
    assert warned(report) == ["evidence"]


# ops


def test_a_claim_about_trust_that_is_not_so_is_withdrawn(store: LetheStore, db: OriginalDb) -> None:
    head = db.changeset(
        BRANCH, [db.root()], [add("m/one", "tabs"), correct("m/one", content="b", target_trust="human")]
    )
    report = take(store, db)
    assert record(store, head, "m/one")["content"] == "b"
    assert warned(report) == ["target_trust"]


def test_an_inference_that_replaced_what_a_person_approved_stands_on_the_operator(
    store: LetheStore, db: OriginalDb
) -> None:
    ops = [
        add("m/one", "tabs", approval="user_approved"),
        supersede("m/one", content="b", memory_id="m/two", source_trust="inference"),
    ]
    head = db.changeset(BRANCH, [db.root()], ops)
    report = take(store, db)
    assert statuses(store, head) == {"m/one": "superseded", "m/two": "active"}
    assert warned(report) == ["source_trust"]


def test_a_supersession_without_content_that_names_an_unrelated_memory_only_retires(
    store: LetheStore, db: OriginalDb
) -> None:
    ops = [add("m/one", "tabs"), add("m/two", "x"), supersede("m/one", memory_id="m/two", summary="gone")]
    head = db.changeset(BRANCH, [db.root()], ops)
    report = take(store, db)
    assert statuses(store, head) == {"m/one": "superseded", "m/two": "active"}
    assert "lineage" not in record(store, head, "m/two")
    assert skipped(report) == []


def test_tags_in_one_text_are_a_list_and_an_empty_text_changes_nothing(
    store: LetheStore, db: OriginalDb
) -> None:
    ops = [add("m/one", "tabs", scope="style"), correct("m/one", tags="b, a", scope="", kind="")]
    head = db.changeset(BRANCH, [db.root()], ops)
    take(store, db)
    found = record(store, head, "m/one")
    assert (found["tags"], found["scope"], found["kind"]) == (["a", "b"], "style", "observation")


def test_evidence_that_says_only_where_it_came_from_is_kept_as_a_note(
    store: LetheStore, db: OriginalDb
) -> None:
    head = db.changeset(BRANCH, [db.root()], [add("m/one", "tabs"), attach("m/one", reviewer="rev")])
    take(store, db)
    (found,) = record(store, head, "m/one")["evidence"]
    assert json.loads(found["note"]) == {"reviewer": "rev"}


def test_an_op_without_any_meaning_here_is_left_out_with_its_reason(
    store: LetheStore, db: OriginalDb
) -> None:
    ops = [{"op_type": "conjure", "payload": {}}, attach(None, note="of what?"), add("m/one", "tabs")]
    head = db.changeset(BRANCH, [db.root()], ops)
    report = take(store, db)
    assert statuses(store, head) == {"m/one": "active"}
    assert [item.where for item in report.findings.skipped] == [f"{head}/0", f"{head}/1"]


# merges


def merged(db: OriginalDb, first: list[Any], left: list[Any], right: list[Any]) -> str:
    """Gives a merge of two sides of a changeset."""
    base = db.changeset(BRANCH, [db.root()], first)
    sides = [
        db.changeset(f"refs/topics/{name}", [base], found, author=name)
        for name, found in (("left", left), ("right", right))
    ]
    made = db.changeset(BRANCH, sides, [attach(None, summary="merge", left_branch="l")])
    db.ref(BRANCH, made)
    return made


CASES: dict[str, tuple[list[Any], list[Any], dict[str, str]]] = {
    "a correction after a duplicate wins": (
        [duplicate("m/one", "m/two")],
        [correct("m/one", content="b")],
        {"m/one": "active", "m/two": "active"},
    ),
    "a duplicate after a correction wins": (
        [correct("m/one", content="b")],
        [duplicate("m/one", "m/two")],
        {"m/one": "duplicate", "m/two": "active"},
    ),
    "a supersession after a correction wins": (
        [correct("m/one", content="b")],
        [supersede("m/one", content="c", memory_id="m/three")],
        {"m/one": "superseded", "m/two": "active", "m/three": "active"},
    ),
    "retired on both sides, by one of them without a successor": (
        [supersede("m/one", summary="gone")],
        [supersede("m/one", content="c", memory_id="m/three")],
        {"m/one": "superseded", "m/two": "active", "m/three": "active"},
    ),
    "replaced on both sides": (
        [supersede("m/one", content="b", memory_id="m/left")],
        [supersede("m/one", content="c", memory_id="m/right")],
        {"m/one": "retracted", "m/two": "active", "m/left": "superseded", "m/right": "active"},
    ),
    "a proposal to deprecate what the other side changed": (
        [correct("m/one", content="b")],
        [{"op_type": "propose_deprecation", "target_event_id": "m/one", "payload": {"reason": "old"}}],
        {"m/one": "deprecation_proposed", "m/two": "active"},
    ),
    "a proposal to deprecate what the other side retired": (
        [supersede("m/one", summary="gone")],
        [{"op_type": "propose_deprecation", "target_event_id": "m/one", "payload": {"reason": "old"}}],
        {"m/one": "superseded", "m/two": "active"},
    ),
}


@pytest.mark.parametrize(("left", "right", "expected"), CASES.values(), ids=CASES.keys())
def test_a_merge_ends_as_the_original_had_it(
    store: LetheStore, db: OriginalDb, left: list[Any], right: list[Any], expected: dict[str, str]
) -> None:
    made = merged(db, [add("m/one", "a"), add("m/two", "x")], left, right)
    take(store, db)
    assert statuses(store, made) == expected


def test_of_two_memories_that_were_added_under_one_id_the_last_is_there_whole(
    store: LetheStore, db: OriginalDb
) -> None:
    made = merged(
        db,
        [add("m/base", "x")],
        [add("m/one", "left", tags=["a"], scope="style", kind="fact", confidence=0.5)],
        [add("m/one", "right", tags=["b"])],
    )
    take(store, db)
    found = record(store, made, "m/one")
    assert (found["content"], found["tags"], found["kind"]) == ("right", ["b"], "observation")
    assert found.keys().isdisjoint({"scope", "confidence"})


def test_a_later_merge_reads_what_an_earlier_one_settled(store: LetheStore, db: OriginalDb) -> None:
    made = merged(db, [add("m/one", "a")], [correct("m/one", content="b")], [correct("m/one", content="c")])
    other = db.changeset("refs/topics/other", [made], [add("m/two", "x")])
    again = db.changeset(BRANCH, [made], [add("m/three", "y")])
    last = db.changeset(BRANCH, [again, other], [attach(None, summary="again", left_branch="l")])
    db.ref(BRANCH, last)
    take(store, db)
    assert record(store, last, "m/one")["content"] == "c"
    assert store.get_changeset(last)["surface"] is None


# refs, projects


def test_moves_from_before_advances_were_recorded_stand_before_them(
    store: LetheStore, db: OriginalDb
) -> None:
    root = db.root()
    first = db.changeset(SHARED_MAIN, [root], [add("m/one", "a")])
    second = db.changeset(SHARED_MAIN, [first], [add("m/two", "b")], author="ben")
    third = db.changeset(BRANCH, [second], [add("m/three", "c")], author="cy")
    db.advance(second, third)
    take(store, db)
    log = store.ref_log("atlas", SHARED_MAIN)
    assert [(move["to_head"], move["principal"]) for move in log] == [
        (root, "system"),
        (first, "ann"),
        (second, "ben"),
        (third, "mer"),
    ]


def test_an_advance_that_is_not_of_the_refs_line_is_told(store: LetheStore, db: OriginalDb) -> None:
    root = db.root()
    first = db.changeset(BRANCH, [root], [add("m/one", "a")])
    other = db.changeset(BRANCH, [root], [add("m/two", "b")])
    db.advance(root, first)
    db.advance(root, other)
    report = take(store, db)
    assert store.resolve_ref("atlas", SHARED_MAIN)["head_changeset_id"] == other
    assert skipped(report) == ["advance"]


def test_a_project_that_was_never_begun_gets_a_root_of_ours(store: LetheStore, db: OriginalDb) -> None:
    event = db.event("a note")
    head = db.changeset(BRANCH, [], [add("m/one", "tabs")])
    db.ref(BRANCH, head)
    report = take(store, db)
    assert store.get_changeset(head)["parent_ids"] == [report.root]
    assert statuses(store, head) == {"m/one": "active"}
    assert store.get_event(event)["content"] == "a note"
    assert store.resolve_ref("atlas", SHARED_MAIN)["head_changeset_id"] == report.root
    again = take(store, db)
    assert sum(again.taken.values()) == 0


@pytest.mark.parametrize(
    "name", ["refs/heads/a..b", "refs/heads/x.lock", "heads", "refs/agents/ann", "refs//"]
)
def test_any_name_of_a_ref_becomes_one_that_can_stand_here(
    store: LetheStore, db: OriginalDb, name: str
) -> None:
    head = db.changeset(name, [db.root()], [add("m/one", "tabs")])
    db.ref(name, head)
    report = take(store, db)
    (here,) = [ref for ref in store.list_refs("atlas") if ref["ref_name"] != SHARED_MAIN]
    assert (here["head_changeset_id"], here["ref_name"][:12]) == (head, "refs/topics/")
    assert warned(report) == ["ref_name"]


def test_a_key_that_was_used_here_meanwhile_is_given_the_id_behind_it(
    store: LetheStore, db: OriginalDb
) -> None:
    root = db.root()
    take(store, db)
    own = {
        "project_id": "atlas",
        "ref_name": BRANCH,
        "parent_ids": [root],
        "author_principal": "ann",
        "message": "own",
        "idempotency_key": "k",
        "ops": [add("m/own", "own")],
        "expected_head": root,
        "advance_ref": True,
        "create_ref_if_missing": True,
    }
    store.create_changeset(own)
    head = db.changeset("refs/topics/t", [root], [add("m/one", "tabs")], key="k")
    db.ref("refs/topics/t", head)
    report = take(store, db)
    assert store.get_changeset(head)["idempotency_key"] == f"k#{head}"
    assert warned(report) == ["idempotency_key"]


def test_an_event_whose_id_can_name_no_memory_is_left_out(store: LetheStore, db: OriginalDb) -> None:
    db.event("odd", event_id="a\nb")
    db.root(baseline=[])
    report = take(store, db)
    assert skipped(report) == ["event"]
    assert report.taken["events"] == 0


# receipts


def test_an_output_manifest_names_what_came_of_a_session(store: LetheStore, db: OriginalDb) -> None:
    root = db.root()
    head = db.changeset(BRANCH, [root], [add("m/one", "tabs")])
    db.ref(BRANCH, head)
    made = {"direction": "output", "base_changeset_id": root, "resulting_changeset_id": head}
    manifest = db.manifest(head, ref_name=BRANCH, **made, proposed_target_ref=SHARED_MAIN)
    db.manifest(head, ref_name=BRANCH, **{**made, "base_changeset_id": "gone"})
    report = take(store, db)
    found = store.get_manifest(manifest)
    assert (found["kind"], found["base_changeset_id"], found["target_ref"]) == ("output", root, SHARED_MAIN)
    assert skipped(report) == ["manifest"]


def test_an_assembly_without_a_head_is_kept_without_one(store: LetheStore, db: OriginalDb) -> None:
    db.root()
    db.put(
        "context_assemblies",
        assembly_id="asm-1",
        session_id="session-1",
        project_id="atlas",
        created_at=db.time(),
    )
    db.put("context_assembly_items", assembly_id="asm-1", ordinal=0, item_kind="summary", content_sha256="no")
    take(store, db)
    (found,) = store.list_assemblies("key-of-session-1")
    assert (found["items"], "head_changeset_id" in found) == ([], False)

"""Databases of the original Lethe taken in: verified, ids and authors and times kept, repeatable, nothing half (5-lethe)."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from original_db import OriginalDb, add, correct

from memory_git.domain.errors import Clash, Invalid, NotFound, Refused
from memory_git.domain.ids import SHARED_MAIN
from memory_git.interchange.original.importing import Wanted, import_original, preview_original
from memory_git.interchange.original.report import ImportReport, ProjectReport
from memory_git.lethe.store import LetheStore

BRANCH = "refs/agents/ann/main"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LetheStore]:
    (tmp_path / "here").mkdir()
    store = LetheStore.open(tmp_path / "here" / "lethe.db", merge_keys=None)
    yield store
    store.close()


def quiet(kind: str, done: int, total: int) -> None:
    """Tells nobody."""


def take(store: LetheStore, db: OriginalDb | Path, **wanted: Any) -> ImportReport:
    path = db if isinstance(db, Path) else db.close()
    return import_original(path, store, Wanted(**wanted), quiet)


def only(report: ImportReport) -> ProjectReport:
    (found,) = report.projects
    return found


def agrees(store: LetheStore, project: str = "atlas") -> dict[str, int]:
    """Gives what verify counted of a project in which everything agrees."""
    found = store.verify(project)
    assert found["faults"] == []
    checked: dict[str, int] = found["checked"]
    return checked


def contents(store: LetheStore, ref_name: str = SHARED_MAIN, project: str = "atlas") -> dict[str, str]:
    """Gives the active memories of a ref with their contents."""
    head = store.resolve_ref(project, ref_name)["head_changeset_id"]
    page = store.memories(project, head, limit=200)
    records = [item["record"] for item in page["memories"]]
    return {
        item["memory_id"]: item["content"]
        for item in records
        if item["status"] in ("active", "deprecation_proposed")
    }


def small(path: Path, level: int = 13) -> tuple[OriginalDb, dict[str, str]]:
    """Gives a database with an event, a root, a branch of two changesets that was accepted, and their ids."""
    db = OriginalDb(path, level)
    event = db.event("from before", event_type="record", tags="a, b", confidence=0.5)
    root = db.root()
    later = db.event("after the root")
    first = db.changeset(BRANCH, [root], [add("m/one", "tabs", kind="decision", tags=["x"])], model="gpt")
    second = db.changeset(BRANCH, [first], [correct("m/one", content="spaces")], author="ben")
    db.ref(BRANCH, first)
    db.ref(BRANCH, second)
    db.advance(root, second)
    return db, {"event": event, "later": later, "root": root, "first": first, "second": second}


@pytest.mark.parametrize("level", range(1, 9))
def test_a_database_from_before_memory_git_gives_a_project_that_begins_with_its_events(
    store: LetheStore, tmp_path: Path, level: int
) -> None:
    db = OriginalDb(tmp_path / "lethe.db", level)
    names = [db.event(f"event {place}") for place in range(3)]
    report = only(take(store, db))
    assert (report.taken["events"], report.taken["changesets"]) == (3, 0)
    assert contents(store) == {name: f"event {place}" for place, name in enumerate(names)}
    agrees(store)
    events = store.list_events("atlas")
    assert [(item["event_id"], item["actor"]) for item in events[:3]] == [(name, "agent-1") for name in names]
    again = only(take(store, tmp_path / "lethe.db"))
    assert (sum(again.taken.values()), again.there["events"]) == (0, 3)


@pytest.mark.parametrize("level", range(9, 14))
def test_a_database_with_history_is_taken_in_once_and_verifies(
    store: LetheStore, tmp_path: Path, level: int
) -> None:
    db, ids = small(tmp_path / "lethe.db", level)
    report = only(take(store, db))
    assert report.root == ids["root"]
    assert (report.taken["changesets"], report.taken["refs"]) == (3, 2)
    assert contents(store) == {ids["event"]: "from before", "m/one": "spaces"}
    agrees(store)
    again = only(take(store, tmp_path / "lethe.db"))
    assert sum(again.taken.values()) == 0
    assert (again.there["changesets"], again.there["events"]) == (3, 2)
    agrees(store)


def test_ids_authors_and_times_are_kept_and_the_digest_of_then_stands_beside(
    store: LetheStore, tmp_path: Path
) -> None:
    db, ids = small(tmp_path / "lethe.db")
    (digest,) = db.connection.execute(
        "SELECT integrity_digest FROM memory_changesets WHERE changeset_id = ?", (ids["first"],)
    ).fetchone()
    take(store, db)
    found = store.get_changeset(ids["first"])
    assert (found["author_principal"], found["model"], found["parent_ids"]) == ("ann", "gpt", [ids["root"]])
    assert found["created_at"].startswith("2026-02-03T04:00:")
    assert found["created_at"].endswith(".123456Z")
    (origin,) = found["verification"]
    assert (origin["kind"], origin["status"]) == ("lethe_import", "verified")
    assert json.loads(origin["note"])["integrity_digest"] == digest
    assert store.get_event(ids["event"])["created_at"].endswith(".123456Z")


def test_an_event_from_after_the_root_is_no_memory(store: LetheStore, tmp_path: Path) -> None:
    db, ids = small(tmp_path / "lethe.db")
    take(store, db)
    assert ids["later"] not in contents(store)
    assert store.get_event(ids["later"])["content"] == "after the root"


def test_without_a_recorded_baseline_the_events_up_to_the_roots_time_are_it(
    store: LetheStore, tmp_path: Path
) -> None:
    db, ids = small(tmp_path / "lethe.db", level=9)
    take(store, db)
    assert ids["event"] in contents(store)
    assert ids["later"] not in contents(store)


def test_what_has_no_place_here_is_kept_word_for_word_as_an_event(store: LetheStore, tmp_path: Path) -> None:
    db, ids = small(tmp_path / "lethe.db")
    report = only(take(store, db))
    kept = [item for item in store.list_events("atlas") if item["event_type"].startswith("lethe_import/")]
    assert report.taken["beside"] == len(kept) == 4
    (event,) = [item for item in kept if item["memory_id"] == ids["event"]]
    assert json.loads(event["content"])["tags"] == "a, b"
    assert {item["event_type"] for item in kept} == {
        "lethe_import/agents",
        "lethe_import/sessions",
        "lethe_import/events",
    }


# the file


def test_the_file_is_not_touched(store: LetheStore, tmp_path: Path) -> None:
    folder = tmp_path / "there"
    folder.mkdir()
    db, _ = small(folder / "lethe.db")
    path = db.close()
    path.chmod(0o400)
    before = (path.read_bytes(), path.stat().st_mtime_ns, sorted(item.name for item in folder.iterdir()))
    take(store, path)
    assert (
        path.read_bytes(),
        path.stat().st_mtime_ns,
        sorted(item.name for item in folder.iterdir()),
    ) == before


def test_what_stands_in_the_log_of_a_running_database_alone_is_read_too(
    store: LetheStore, tmp_path: Path
) -> None:
    folder = tmp_path / "there"
    folder.mkdir()
    db, ids = small(folder / "lethe.db")
    db.connection.execute("PRAGMA journal_mode = WAL")
    db.connection.execute("PRAGMA wal_autocheckpoint = 0")
    db.event("in the log alone")
    before = {item.name: item.read_bytes() for item in folder.iterdir() if item.suffix != ".db-shm"}
    take(store, db.path)
    assert "in the log alone" in [item["content"] for item in store.list_events("atlas")]
    assert {item.name: item.read_bytes() for item in folder.iterdir() if item.suffix != ".db-shm"} == before
    assert ids["root"] == store.init_project("atlas")["changeset"]["changeset_id"]
    db.close()


def test_a_file_that_is_none_of_lethes_is_refused_by_name(store: LetheStore, tmp_path: Path) -> None:
    path = tmp_path / "other"
    path.write_bytes(b"\x1f\x8b and more")
    with pytest.raises(Invalid, match="gunzip") as refused:
        take(store, path)
    assert refused.value.code == "import_unreadable"
    with pytest.raises(Invalid) as refused:
        take(store, tmp_path / "absent")
    assert refused.value.code == "import_unreadable"
    sqlite3.connect(tmp_path / "empty.db").execute("CREATE TABLE notes (text)")
    with pytest.raises(Invalid) as refused:
        take(store, tmp_path / "empty.db")
    assert refused.value.code == "import_unknown_form"


def test_a_newer_schema_is_refused(store: LetheStore, tmp_path: Path) -> None:
    db, _ = small(tmp_path / "lethe.db")
    db.put("schema_versions", name="014_more.sql", applied="2026-01-01")
    with pytest.raises(Invalid) as refused:
        take(store, db)
    assert (refused.value.code, refused.value.facts["found"]) == ("import_newer_schema", 14)


# damage


def spoil(db: OriginalDb, sql: str, *params: Any) -> None:
    db.connection.execute(sql, params)
    db.connection.commit()


@pytest.mark.parametrize(
    "column",
    [
        "message",
        "author_principal",
        "ref_name",
        "idempotency_key",
        "evidence_json",
        "model",
        "integrity_digest",
    ],
)
def test_a_changed_column_is_named_and_nothing_is_imported(
    store: LetheStore, tmp_path: Path, column: str
) -> None:
    db, ids = small(tmp_path / "lethe.db")
    value = '[{"kind":"x"}]' if column == "evidence_json" else "changed"
    spoil(db, f"UPDATE memory_changesets SET {column} = ? WHERE changeset_id = ?", value, ids["first"])
    with pytest.raises(Invalid) as refused:
        take(store, db)
    assert refused.value.code == "import_digest_wrong"
    assert ids["first"] in [item["object_id"] for item in refused.value.facts["damage"]]
    assert store.list_projects() == []
    assert store.list_events("atlas") == []


def test_a_changed_payload_is_named(store: LetheStore, tmp_path: Path) -> None:
    db, ids = small(tmp_path / "lethe.db")
    spoil(db, "UPDATE memory_changeset_ops SET payload_json = replace(payload_json, 'tabs', 'bats')")
    with pytest.raises(Invalid, match="does not agree with its integrity digest"):
        take(store, db)
    report = only(take(store, db.path, skip_damaged=True))
    assert [(item.kind, item.object_id) for item in report.damage] == [
        ("changeset", ids["first"]),
        ("changeset", ids["second"]),
    ]
    assert contents(store) == {ids["event"]: "from before"}
    assert {item.what for item in report.findings.skipped} == {"ref", "advance"}
    agrees(store)


def test_a_digest_of_the_first_algorithm_holds_only_where_none_was_brought_to_the_second(
    store: LetheStore, tmp_path: Path
) -> None:
    def merge_of(db: OriginalDb) -> None:
        root = db.root()
        sides = [
            db.changeset(f"refs/topics/{name}", [root], [add(f"m/{name}", name)])
            for name in ("left", "right")
        ]
        ops = [{"op_type": "attach_evidence", "payload": {"summary": "merge", "left_branch": "l"}}]
        db.changeset(BRANCH, sorted(sides, reverse=True), ops, algorithm="v1")

    old = OriginalDb(tmp_path / "old.db", 10)
    merge_of(old)
    assert take(store, old).digests == {"v2": 3, "v1": 1}
    new = OriginalDb(tmp_path / "new.db", 13, "other")
    merge_of(new)
    with pytest.raises(Invalid) as refused:
        take(store, new)
    assert refused.value.code == "import_digest_wrong"


@pytest.mark.parametrize(
    ("what", "sql"),
    [
        ("changeset", "DELETE FROM memory_changesets WHERE idempotency_key = 'legacy-root'"),
        ("ref", "UPDATE memory_refs SET head_changeset_id = 'gone' WHERE ref_name LIKE 'refs/agents/%'"),
        ("baseline", "DELETE FROM events WHERE content = 'from before'"),
        ("baseline", "UPDATE memory_legacy_baselines SET root_changeset_id = 'gone'"),
    ],
)
def test_what_names_something_that_is_gone_is_named(
    store: LetheStore, tmp_path: Path, what: str, sql: str
) -> None:
    db, _ = small(tmp_path / "lethe.db")
    spoil(db, sql)
    with pytest.raises(Invalid) as refused:
        take(store, db)
    assert refused.value.code == "import_digest_wrong"
    assert what in [item["kind"] for item in refused.value.facts["damage"]]
    assert store.list_projects() == []


@pytest.mark.parametrize(
    ("sql", "column"),
    [
        ("UPDATE events SET content = x'00ff'", "content"),
        ("UPDATE events SET created_at = 'once'", "created_at"),
        ("UPDATE events SET content = printf('%.*c', 1048577, 'a')", "content"),
        ("UPDATE events SET event_id = 7 WHERE content = 'from before'", "event_id"),
        ("UPDATE memory_changesets SET parent_ids_json = '{}'", "parent_ids_json"),
        ("UPDATE memory_changesets SET parent_ids_json = '[1]'", "parent_ids_json"),
        ("UPDATE memory_changesets SET evidence_json = '[1]'", "evidence_json"),
        ("UPDATE memory_changesets SET message = NULL", "message"),
        ("UPDATE memory_changesets SET author_principal = 3.5", "author_principal"),
        ("UPDATE memory_changeset_ops SET ordinal = 'first'", "ordinal"),
        ("UPDATE memory_changeset_ops SET payload_json = '{'", "payload_json"),
        ("UPDATE memory_changeset_ops SET payload_json = '[]'", "payload_json"),
        ("UPDATE memory_refs SET ref_name = 7", "ref_name"),
        ("UPDATE sessions SET agent_id = NULL", "agent_id"),
    ],
)
def test_a_value_of_another_type_refuses_the_import_and_is_named(
    store: LetheStore, tmp_path: Path, sql: str, column: str
) -> None:
    db, _ = small(tmp_path / "lethe.db")
    spoil(db, sql)
    with pytest.raises(Invalid) as refused:
        take(store, db)
    assert (refused.value.code, refused.value.facts["column"]) == ("import_malformed", column)
    assert store.list_projects() == []
    assert store.list_events("atlas") == []


@pytest.mark.parametrize("table", ["projects", "sessions", "events", "memory_changeset_ops", "memory_refs"])
def test_a_table_that_is_missing_is_named(store: LetheStore, tmp_path: Path, table: str) -> None:
    db, _ = small(tmp_path / "lethe.db")
    spoil(db, f"DROP TABLE {table}")
    with pytest.raises(Invalid, match=table) as refused:
        take(store, db)
    assert refused.value.code == "import_unknown_form"


def test_a_changeset_that_is_its_own_ancestor_is_left_out_with_all_that_stands_on_it(
    store: LetheStore, tmp_path: Path
) -> None:
    db, ids = small(tmp_path / "lethe.db")
    loop = "019c0000-ffff-7000-8000-00000000000a"
    other = "019c0000-ffff-7000-8000-00000000000b"
    db.changeset(BRANCH, [other], [add("m/a", "a")], changeset_id=loop)
    db.changeset(BRANCH, [loop], [add("m/b", "b")], changeset_id=other)
    report = only(take(store, db, skip_damaged=True))
    assert {item.object_id for item in report.damage} == {loop, other}
    assert contents(store)["m/one"] == "spaces"
    assert ids["root"] == report.root


# what the rules here do not allow


def test_a_value_that_breaks_a_rule_is_kept_beside_and_told(store: LetheStore, tmp_path: Path) -> None:
    db = OriginalDb(tmp_path / "lethe.db")
    root = db.root()
    ops = [
        add("m/one", "tabs", valid_from="soon", protected="yes", confidence=0.5),
        correct("m/one", kind="odd"),
    ]
    head = db.changeset(BRANCH, [root], ops)
    db.ref(BRANCH, head)
    report = only(take(store, db))
    (made, changed) = store.get_changeset(head)["ops"]
    assert json.loads(made["payload"]["op_note"]) == {"protected": "yes", "valid_from": "soon"}
    record = store.memory("atlas", head, "m/one")["record"]
    assert (record["confidence"], "valid_from" in record) == (0.5, False)
    assert json.loads(record["extra"]["lethe_import"]) == {"kind": "odd"}
    assert [item.field for item in report.findings.warnings] == ["protected, valid_from", "kind"]
    assert changed["op_type"] == "correct_memory"
    agrees(store)


def test_an_op_that_the_state_forbids_is_left_out_with_its_reason(store: LetheStore, tmp_path: Path) -> None:
    db = OriginalDb(tmp_path / "lethe.db")
    root = db.root()
    ops = [add("m/one", "tabs"), add("m/one", "again"), correct("m/none", content="x"), add("m/two", "kept")]
    head = db.changeset(BRANCH, [root], ops)
    db.ref(BRANCH, head)
    report = only(take(store, db))
    assert contents(store, BRANCH) == {"m/one": "tabs", "m/two": "kept"}
    assert [item.where for item in report.findings.skipped] == [f"{head}/1", f"{head}/2"]
    agrees(store)


def test_a_memory_without_an_id_has_the_one_that_the_original_made(store: LetheStore, tmp_path: Path) -> None:
    db = OriginalDb(tmp_path / "lethe.db")
    root = db.root()
    first = db.changeset(BRANCH, [root], [{"op_type": "add_memory", "payload": {"content": "nameless"}}])
    second = db.changeset(BRANCH, [first], [correct(f"mem:{first}:0", content="still nameless")])
    db.ref(BRANCH, second)
    take(store, db)
    assert contents(store, BRANCH) == {f"mem:{first}:0": "still nameless"}


def test_a_successor_has_nothing_of_what_it_superseded(store: LetheStore, tmp_path: Path) -> None:
    db = OriginalDb(tmp_path / "lethe.db")
    root = db.root()
    first = db.changeset(BRANCH, [root], [add("m/one", "tabs", kind="fact", tags=["x"], scope="style")])
    op = {
        "op_type": "supersede_memory",
        "target_event_id": "m/one",
        "payload": {"content": "b", "memory_id": "m/two"},
    }
    second = db.changeset(BRANCH, [first], [op])
    db.ref(BRANCH, second)
    take(store, db)
    record = store.memory("atlas", second, "m/two")["record"]
    assert (record["kind"], record.get("tags"), record.get("scope")) == ("observation", None, None)
    assert contents(store, BRANCH) == {"m/two": "b"}


def test_a_private_memory_belongs_to_whoever_wrote_it(store: LetheStore, tmp_path: Path) -> None:
    db = OriginalDb(tmp_path / "lethe.db")
    head = db.changeset(BRANCH, [db.root()], [add("m/one", "mine", visibility="private")])
    db.ref(BRANCH, head)
    take(store, db)
    assert store.memory("atlas", head, "m/one")["record"]["owner_principal"] == "ann"


def test_a_changeset_without_parents_stands_on_the_root_and_a_third_parent_is_left_out(
    store: LetheStore, tmp_path: Path
) -> None:
    db = OriginalDb(tmp_path / "lethe.db")
    root = db.root()
    loose = db.changeset(BRANCH, [], [add("m/loose", "loose")])
    sides = [db.changeset(f"refs/topics/{name}", [root], [add(f"m/{name}", name)]) for name in ("a", "b")]
    ops = [{"op_type": "attach_evidence", "payload": {"summary": "octopus", "left_branch": "a"}}]
    three = db.changeset(BRANCH, [loose, *sides], ops)
    db.ref(BRANCH, three)
    report = only(take(store, db))
    assert store.get_changeset(loose)["parent_ids"] == [root]
    found = store.get_changeset(three)
    assert found["parent_ids"] == [loose, sides[0]]
    assert json.loads(found["verification"][0]["note"])["parent_ids"] == " ".join([loose, *sides])
    assert [item.field for item in report.findings.warnings] == ["parent_ids", "parent_ids"]
    agrees(store)


def test_a_ref_whose_name_is_not_allowed_here_gets_another_and_is_told_once(
    store: LetheStore, tmp_path: Path
) -> None:
    db = OriginalDb(tmp_path / "lethe.db")
    head = db.changeset("refs/heads/Fix It", [db.root()], [add("m/one", "tabs")])
    db.ref("refs/heads/Fix It", head)
    report = only(take(store, db))
    (notice,) = report.findings.warnings
    assert (notice.where, notice.field) == ("refs/heads/Fix It", "ref_name")
    (name,) = [ref["ref_name"] for ref in store.list_refs("atlas") if ref["ref_name"] != SHARED_MAIN]
    assert name.startswith("refs/topics/heads.Fix-It-")
    agrees(store)


# merges


def merged(db: OriginalDb, left: list[Any], right: list[Any], *ops: Any) -> str:
    """Gives a merge, accepted, of two sides of a changeset that adds m/one."""
    root = db.root()
    base = db.changeset(BRANCH, [root], [add("m/one", "tabs", tags=["a"])])
    sides = [
        db.changeset(f"refs/topics/{name}", [base], found, author=name)
        for name, found in (("left", left), ("right", right))
    ]
    note = {"op_type": "attach_evidence", "payload": {"summary": "merge", "left_branch": "left"}}
    made = db.changeset("refs/shared/main", sides, [note, *ops], author="charon", surface="api")
    db.advance(root, made, "merge_commit")
    return made


def test_of_two_changes_the_originals_result_is_carried_by_ops_of_the_import(
    store: LetheStore, tmp_path: Path
) -> None:
    db = OriginalDb(tmp_path / "lethe.db")
    made = merged(db, [correct("m/one", content="left")], [correct("m/one", content="right")])
    take(store, db)
    assert contents(store) == {"m/one": "right"}
    found = store.get_changeset(made)
    assert found["surface"] == "import"
    assert json.loads(found["verification"][0]["note"])["surface"] == "api"
    assert [op["op_type"] for op in found["ops"]] == ["attach_evidence", "correct_memory"]
    agrees(store)


def test_a_merge_without_a_conflict_keeps_its_surface(store: LetheStore, tmp_path: Path) -> None:
    db = OriginalDb(tmp_path / "lethe.db")
    made = merged(db, [add("m/left", "left")], [add("m/right", "right")])
    take(store, db)
    assert contents(store) == {"m/one": "tabs", "m/left": "left", "m/right": "right"}
    assert store.get_changeset(made)["surface"] == "api"


def test_fields_that_merge_otherwise_than_the_original_had_them_are_set(
    store: LetheStore, tmp_path: Path
) -> None:
    db = OriginalDb(tmp_path / "lethe.db")
    made = merged(db, [correct("m/one", tags=["a", "b"])], [correct("m/one", tags=["a", "c"])])
    take(store, db)
    assert store.memory("atlas", made, "m/one")["record"]["tags"] == ["a", "c"]
    agrees(store)


def test_of_two_successors_one_stays_active_and_the_other_is_told(store: LetheStore, tmp_path: Path) -> None:
    db = OriginalDb(tmp_path / "lethe.db")
    made = merged(
        db, [correct("m/one", "m/left", content="left")], [correct("m/one", "m/right", content="right")]
    )
    report = only(take(store, db))
    assert contents(store) == {"m/right": "right"}
    assert store.memory("atlas", made, "m/left")["record"]["content"] == "left"
    assert [(item.where, item.field) for item in report.findings.warnings] == [(made, "m/left")]
    agrees(store)


def test_a_change_against_a_retirement_ends_as_the_rules_here_allow_and_is_told(
    store: LetheStore, tmp_path: Path
) -> None:
    db = OriginalDb(tmp_path / "lethe.db")
    merged(db, [correct("m/one", "m/left", content="left")], [correct("m/one", content="right")])
    report = only(take(store, db))
    assert contents(store) == {"m/left": "left"}
    assert [item.field for item in report.findings.warnings] == ["m/one"]
    agrees(store)


# refs, authorizations, receipts


def test_a_protected_ref_has_the_moves_that_were_authorized_and_verify_counts_them(
    store: LetheStore, tmp_path: Path
) -> None:
    db, ids = small(tmp_path / "lethe.db")
    take(store, db)
    log = store.ref_log("atlas", SHARED_MAIN)
    assert [(move["to_head"], move["principal"], move["reason"]) for move in log] == [
        (ids["root"], "system", "import"),
        (ids["second"], "mer", "import"),
    ]
    assert sorted(move["at"] for move in log) == [move["at"] for move in log]
    checked = agrees(store)
    assert (checked["imported move"], checked["imported advance"]) == (1, 1)
    (advance,) = store.list_advances("atlas")
    assert (advance["version"], advance["to_head"]) == ("lethe-import/v1", ids["second"])


def test_where_no_move_was_recorded_a_ref_moved_along_first_parents(
    store: LetheStore, tmp_path: Path
) -> None:
    db, ids = small(tmp_path / "lethe.db", level=11)
    take(store, db)
    log = store.ref_log("atlas", SHARED_MAIN)
    assert [(move["to_head"], move["principal"]) for move in log] == [
        (ids["root"], "system"),
        (ids["first"], "ann"),
        (ids["second"], "ben"),
    ]
    assert agrees(store)["imported move"] == 2


def test_a_branch_begins_where_it_left_another_ref(store: LetheStore, tmp_path: Path) -> None:
    db, ids = small(tmp_path / "lethe.db")
    take(store, db)
    log = store.ref_log("atlas", BRANCH)
    assert [move["to_head"] for move in log] == [ids["first"], ids["second"]]
    at = store.resolve_ref("atlas", BRANCH, log[0]["at"])
    assert at["head_changeset_id"] == ids["first"]


def test_a_burnt_nonce_stays_burnt(store: LetheStore, tmp_path: Path) -> None:
    db, ids = small(tmp_path / "lethe.db")
    nonce = db.advance(ids["second"], ids["second"])
    report = only(take(store, db))
    assert report.taken["authorizations"] == 2

    def again(adopting: Any) -> bool:
        return bool(adopting.burn(adopting.find_project("atlas"), nonce, "p", datetime.now(UTC)))

    assert store.adopt("atlas", again) is False


def test_a_manifest_reproduces_what_it_pinned(store: LetheStore, tmp_path: Path) -> None:
    db, ids = small(tmp_path / "lethe.db")
    manifest = db.manifest(ids["first"], "m/one", "m/none", ref_name=BRANCH, actor_id="a")
    db.manifest("gone", ref_name=BRANCH)
    report = only(take(store, db))
    again = store.reproduce(manifest)
    assert [(item["memory_id"], item["record"]["content"]) for item in again["memories"]] == [
        ("m/one", "tabs")
    ]
    assert store.get_manifest(manifest)["actor_id"] == "a"
    assert ("m/none", manifest) in [(item.field, item.where) for item in report.findings.warnings]
    assert ("manifest", "its head was not taken") in [
        (item.what, item.why) for item in report.findings.skipped
    ]
    agrees(store)


def test_an_assembly_is_kept_with_its_session_and_verdict(store: LetheStore, tmp_path: Path) -> None:
    db, ids = small(tmp_path / "lethe.db")
    db.put(
        "context_assemblies",
        assembly_id="asm-1",
        session_id="session-1",
        project_id="atlas",
        source="plugin",
        assembler_version="1",
        created_at=db.time(),
        total_estimated_tokens=42,
        memory_head_changeset_id=ids["second"],
    )
    db.put(
        "context_assembly_items",
        assembly_id="asm-1",
        ordinal=0,
        item_kind="event",
        event_id=ids["event"],
        content_sha256="b" * 64,
        estimated_tokens=3,
    )
    db.put(
        "context_assembly_feedback",
        feedback_id="f-1",
        assembly_id="asm-1",
        verdict="good",
        note="yes",
        created_at=db.time(),
    )
    take(store, db)
    (found,) = store.list_assemblies("key-of-session-1")
    assert (found["assembly_id"], found["verdict"], found["note"]) == ("asm-1", "good", "yes")
    assert found["token_counts"] == {"total": 42}
    assert found["items"] == [{"memory_id": ids["event"], "content_digest": "b" * 64, "tokens": 3}]
    agrees(store)


def conflict(db: OriginalDb, left: str, right: str, kind: str, status: str = "open") -> None:
    db.put(
        "memory_conflicts",
        conflict_id=f"{kind}-{status}",
        project_id="atlas",
        left_changeset_id=left,
        right_changeset_id=right,
        conflict_type=kind,
        severity="blocking",
        summary="tabs against spaces",
        details_json='{"left_content": "tabs"}',
        status=status,
        created_at=db.time(),
        proposal_id="p-1",
    )


def test_an_open_conflict_is_stored_where_our_detection_finds_it_and_no_text_of_it_is_kept(
    store: LetheStore, tmp_path: Path
) -> None:
    db = OriginalDb(tmp_path / "lethe.db")
    root = db.root()
    base = db.changeset(BRANCH, [root], [add("m/one", "tabs")])
    left, right = (
        db.changeset(f"refs/topics/{name}", [base], [correct("m/one", content=name)], author=name)
        for name in ("left", "right")
    )
    for name, head in (("left", left), ("right", right)):
        db.ref(f"refs/topics/{name}", head)
    conflict(db, left, right, "concurrent_change")
    conflict(db, left, right, "duplicate_content")
    conflict(db, left, right, "concurrent_change", "resolved")
    report = only(take(store, db))
    (found,) = store.list_conflicts("atlas", status="open")
    assert (found["conflict_type"], found["proposal_ids"]) == ("concurrent_change", ["p-1"])
    assert [item.where for item in report.findings.skipped] == [
        "duplicate_content-open",
        "concurrent_change-resolved",
    ]
    kept = [item for item in store.list_events("atlas") if item["event_type"].endswith("conflicts")]
    assert len(kept) == 3
    assert not any("spaces" in item["content"] or "left_content" in item["content"] for item in kept)
    agrees(store)


# names, repetition, interruption


def test_a_project_that_is_in_use_here_is_taken_in_under_another_name(
    store: LetheStore, tmp_path: Path
) -> None:
    store.init_project("atlas")
    db, ids = small(tmp_path / "lethe.db")
    with pytest.raises(Clash) as refused:
        take(store, db)
    assert refused.value.code == "import_project_in_use"
    report = only(take(store, db.path, renamed={"atlas": "atlas-2"}))
    assert (report.project_id, report.named_there, report.root) == ("atlas-2", "atlas", ids["root"])
    agrees(store, "atlas-2")
    assert contents(store) == {}


def test_a_name_that_can_be_none_here_asks_for_another_and_boundaries_follow(
    store: LetheStore, tmp_path: Path
) -> None:
    db = OriginalDb(tmp_path / "lethe.db", project="My Project")
    head = db.changeset(BRANCH, [db.root()], [add("m/one", "tabs", project_id="My Project")])
    db.ref(BRANCH, head)
    with pytest.raises(Invalid, match="--rename") as refused:
        take(store, db)
    assert refused.value.code == "import_project_name"
    take(store, db.path, renamed={"My Project": "mine"})
    assert store.get_changeset(head)["ops"][0]["payload"]["project_id"] == "mine"
    agrees(store, "mine")


def test_only_what_is_named_is_taken_and_an_unknown_name_is_refused(
    store: LetheStore, tmp_path: Path
) -> None:
    db, _ = small(tmp_path / "lethe.db")
    db.put("projects", project_id="other", name="other", created_at=db.time(), updated_at=db.time())
    assert [item.project_id for item in take(store, db, only=["other"]).projects] == ["other"]
    with pytest.raises(NotFound, match="atlas, other") as refused:
        take(store, db.path, only=["third"])
    assert refused.value.code == "import_no_project"


def test_what_was_written_there_since_is_taken_the_next_time(store: LetheStore, tmp_path: Path) -> None:
    db, ids = small(tmp_path / "lethe.db")
    take(store, db.path)
    third = db.changeset(BRANCH, [ids["second"]], [add("m/two", "new")])
    db.ref(BRANCH, third)
    db.advance(ids["second"], third)
    db.event("new too")
    report = only(take(store, db))
    assert {kind: count for kind, count in report.taken.items() if count} == {
        "events": 1,
        "changesets": 1,
        "refs": 2,
        "authorizations": 1,
        "advances": 1,
        "beside": 1,
    }
    assert contents(store)["m/two"] == "new"
    assert agrees(store)["imported move"] == 2


def test_a_ref_that_went_on_here_is_not_moved_and_that_is_told(store: LetheStore, tmp_path: Path) -> None:
    db, ids = small(tmp_path / "lethe.db")
    take(store, db.path)
    own = {
        "project_id": "atlas",
        "ref_name": BRANCH,
        "parent_ids": [ids["second"]],
        "author_principal": "here",
        "message": "own",
        "idempotency_key": "own",
        "ops": [{"op_type": "add_memory", "payload": {"memory_id": "m/own", "content": "own"}}],
        "expected_head": ids["second"],
        "advance_ref": True,
    }
    head = store.create_changeset(own)[0]["changeset_id"]
    db.ref(BRANCH, db.changeset(BRANCH, [ids["second"]], [add("m/two", "new")]))
    report = only(take(store, db))
    assert store.resolve_ref("atlas", BRANCH)["head_changeset_id"] == head
    assert [(item.what, item.where) for item in report.findings.skipped] == [("ref", BRANCH)]
    agrees(store)


def test_an_id_with_another_content_here_refuses_and_is_named(store: LetheStore, tmp_path: Path) -> None:
    db, ids = small(tmp_path / "lethe.db")
    take(store, db.path)
    spoil(db, "UPDATE events SET content = 'other' WHERE event_id = ?", ids["event"])
    with pytest.raises(Clash, match=ids["event"]) as refused:
        take(store, db)
    assert refused.value.code == "import_differs"


class BrokenOffError(Exception):
    """Somebody pulled the plug."""


@pytest.mark.parametrize("nth", range(1, 12))
def test_an_import_that_is_broken_off_goes_on_where_it_stopped(
    store: LetheStore, tmp_path: Path, nth: int
) -> None:
    db, ids = small(tmp_path / "lethe.db")
    db.manifest(ids["second"], "m/one")
    calls = 0

    def pull(kind: str, done: int, total: int) -> None:
        nonlocal calls
        calls += 1
        if calls == nth:
            raise BrokenOffError

    with contextlib.suppress(BrokenOffError):
        import_original(db.close(), store, Wanted(), pull)
    take(store, db.path)
    assert contents(store) == {ids["event"]: "from before", "m/one": "spaces"}
    assert len({item["event_id"] for item in store.list_events("atlas")}) == 6
    agrees(store)
    assert sum(only(take(store, db.path)).taken.values()) == 0


def test_a_preview_says_what_an_import_would_and_writes_nothing(store: LetheStore, tmp_path: Path) -> None:
    db, ids = small(tmp_path / "lethe.db")
    path = db.close()
    foreseen = [preview_original(path, found, Wanted(), quiet).to_json() for found in (None, store)]
    assert store.list_projects() == []
    done = take(store, path).to_json()
    assert foreseen == [{**done, "preview": True}] * 2
    repeated = preview_original(path, store, Wanted(), quiet)
    assert sum(only(repeated).taken.values()) == 0
    assert only(repeated).root == ids["root"]


def test_what_was_erased_here_does_not_come_back_by_an_import(store: LetheStore, tmp_path: Path) -> None:
    db, ids = small(tmp_path / "lethe.db")
    take(store, db.path)
    store.redact("atlas", "m/one", principal="boss", reason="asked to")
    third = db.changeset(BRANCH, [ids["second"]], [correct("m/one", content="planted"), add("m/two", "new")])
    db.ref(BRANCH, third)
    report = only(take(store, db))
    assert [item.why for item in report.findings.skipped] == [
        "correct_memory: names a memory that is erased here"
    ]
    assert "m/two" in contents(store, BRANCH)
    assert b"planted" not in (tmp_path / "here" / "lethe.db").read_bytes()
    agrees(store)


@pytest.mark.parametrize("text", ["\x00", "a\x1b[31mb", "\u202eabc", "'; DROP TABLE events; --", "é" * 9000])
def test_hostile_text_is_carried_or_refused_never_followed(
    store: LetheStore, tmp_path: Path, text: str
) -> None:
    db, _ = small(tmp_path / "lethe.db")
    db.event(text)
    head = db.changeset(BRANCH, [], [add(text, text), add("m/x", text)], author=text[:1000])
    db.ref(f"refs/agents/{text}/main"[:500], head)
    try:
        take(store, db)
    except Refused as refused:
        assert refused.code.startswith("import_")
        assert store.list_projects() == []
    else:
        agrees(store)

"""One byte flipped anywhere in lethe.db: `verify` finds it, or the column stands here with the reason (FORMAT §11).

`tests/acceptance/test_flipped_bytes.py` flips one byte in the middle of one value of each column. Here every column of every table, those
of the word index's shadow tables too, is flipped in its first, a middle and its last byte, in the first, a middle and the last row.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest
from postgres_server import Schemas, Server
from signing import create_signed
from store_world import BRANCH, KEYS, PROJECT, StoreWorld, add, correct, edge

from memory_git.domain.errors import Corrupt, Refused
from memory_git.lethe.store import LetheStore
from memory_git.storage.lethe_schema import SCHEMA
from memory_git.storage.postgres_url import DatabaseUrl

NOT_COVERED: dict[str, dict[str, str]] = {
    "changeset": {
        "request_digest": "the request is not kept; a retry would be told `idempotency_mismatch`",
    },
    "conflict": dict.fromkeys(
        ("status", "outcome", "resolution_note", "resolved_by", "created_at", "updated_at"),
        "changes in a conflict's life; Charon's ledger records each act",
    ),
    "conflict_proposal": {
        "proposal_id": "Charon's own id, which the store does not know; its ledger records each act"
    },
    "assembly": dict.fromkeys(
        ("verdict", "note", "created_at", "session_key", "seq"), "feedback is given later"
    ),
    "project": dict.fromkeys(("number", "cursor_salt", "created_at"), "bookkeeping that no answer rests on"),
    "merge_nonce": dict.fromkeys(("at", "proposal_id"), "bookkeeping that no answer rests on"),
    "memory_protected_ref_advances": dict.fromkeys(
        ("advance_id", "at"), "bookkeeping that no answer rests on"
    ),
    "version_words_docsize": dict.fromkeys(
        ("id", "sz", "origin"), "the index's own lengths, which ranking does not use"
    ),
    "version_words_config": dict.fromkeys(("k", "v"), "settings of the index"),
    "version_words_data": {
        "block": "what is missing from the index is found; what is in it besides gives no wrong record, the state decides",
        "id": "the same",
    },
    "version_words_idx": dict.fromkeys(("segid", "term", "pgno"), "the same"),
}
"""By table and column: why a flip may go unseen. What stands here and is seen all the same is no fault."""
NEVER_SET: set[str] = set()
SIDE = "refs/agents/tester/main"


def _decision(name: str, content: str) -> dict[str, Any]:
    return add(name, content, kind="decision", scope="s", subject="deploying")


def _fill(world: StoreWorld) -> None:
    """Leaves rows in every table: a baseline, merges that settle, protected merges, a redaction, receipts."""
    secret = {"visibility": "private", "owner_principal": "builder"}
    evidence = {"evidence": [{"kind": "log", "source": "x"}], "verification": [{"kind": "review"}]}
    many = [add(f"m/{number}", f"Fact number {number}.") for number in range(40)]
    first = world.commit(BRANCH, world.root, _decision("one", "By hand."), add("f", "Port 1."), **evidence)
    first = world.commit(BRANCH, first, edge("f", "one"), correct("e-1", "Event, corrected."), *many)
    first = create_signed(world.store, world.request(BRANCH, [first], add("signed", "By its author.")))
    left = world.commit(BRANCH, first, correct("f", "Port 2.", title="t"), add("gone", "Erase me."))
    right = world.commit(SIDE, first, correct("f", tags=["net"]), _decision("two", "By robots."), author="t")
    world.commit("refs/agents/builder/own", world.root, add("s", "Mine.", **secret))
    world.merge(left)
    world.settle(left, right)
    merged = world.loose([left, right], author="charon", actor_id="charon", session_id="s", topic_id="t")
    world.merge(merged, "merge_commit")
    context = world.store.context(PROJECT, {"ref_name": BRANCH, "create_manifest": True})
    assembly = world.store.record_assembly(
        "a session",
        {
            "project_id": PROJECT,
            "manifest_id": context["manifest_id"],
            "head_changeset_id": left,
            "items": [{"memory_id": "one", "content_digest": "0" * 64}],
        },
    )
    world.store.give_feedback(assembly["assembly_id"], "good", "a note")
    world.store.redact(PROJECT, "gone", principal="officer", reason="asked for")


def _add_events(place: Path | str) -> None:
    """Leaves a baseline, which a project has from before its first changeset."""
    store = LetheStore.open(place, merge_keys=KEYS)
    for name in ("e-1", "e-2"):
        event = {"event_id": name, "event_type": "note", "content": "x y", "memory_id": "m", "actor": "a"}
        store.append_event(PROJECT, event)
    store.close()


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("flips")
    _add_events(folder / "lethe.db")
    world = StoreWorld(folder)
    _fill(world)
    assert world.faults() == []
    world.close()
    return folder / "lethe.db"


def _columns(path: Path) -> list[tuple[str, str]]:
    connection = apsw.Connection(str(path))
    tables = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name <> 'version_words'"
    ).fetchall()
    found = [
        (str(table), str(column))
        for (table,) in tables
        for _, column, *_ in connection.execute(f"PRAGMA table_info({table})").fetchall()
    ]
    connection.close()
    return found


def _values(path: Path, table: str, column: str) -> list[Any]:
    """Gives the first, a middle and the last value that is set."""
    connection = apsw.Connection(str(path))
    rows = connection.execute(
        f"SELECT DISTINCT {column} FROM {table} WHERE {column} IS NOT NULL AND {column} NOT IN ('', x'')"
    ).fetchall()
    connection.close()
    values = [value for (value,) in rows]
    return [values[at] for at in sorted({0, len(values) // 2, len(values) - 1})] if values else []


def _flips(value: Any) -> Iterator[Any]:
    """Gives a value with one byte changed: the first, a middle and the last; of a number its lowest and a higher bit."""
    if isinstance(value, int):
        yield from (value ^ 1, value ^ 2)
        return
    for at in sorted({0, len(value) // 2, len(value) - 1}):
        if isinstance(value, bytes):
            yield value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :]
        else:
            yield value[:at] + chr(ord(value[at]) ^ 1) + value[at + 1 :]


def _is_found(path: Path | str) -> bool:
    """Decides whether the store refuses to open, to read the project, or finds a fault in it."""
    try:
        store = LetheStore.open(path, merge_keys=KEYS)
    except (Refused, Corrupt):
        return True
    try:
        return bool(store.verify(PROJECT)["faults"])
    except (Refused, Corrupt):
        return True
    finally:
        store.close()


def _flip(database: Path, copy: Path, table: str, column: str, before: Any, after: Any) -> bool:
    """Writes one flipped value into a copy; gives whether the table took it."""
    shutil.copy(database, copy)
    editing = apsw.Connection(str(copy))
    try:
        editing.execute(f"UPDATE {table} SET {column} = ? WHERE {column} IS ?", (after, before))
        return editing.changes() > 0
    except apsw.ConstraintError:
        return False
    finally:
        editing.close()


def test_every_exception_names_a_column_and_a_reason(database: Path) -> None:
    known = set(_columns(database))
    for table, columns in NOT_COVERED.items():
        for column, reason in columns.items():
            assert (table, column) in known
            assert reason


def test_every_column_of_every_table_has_a_value_to_flip(database: Path) -> None:
    empty = {
        f"{table}.{column}"
        for table, column in _columns(database)
        if column not in NOT_COVERED.get(table, {}) and not _values(database, table, column)
    }
    assert empty == NEVER_SET


def _missed(database: Path, folder: Path, table: str, *, every: bool) -> list[str]:
    missed = []
    for column in [column for name, column in _columns(database) if name == table]:
        if column in NOT_COVERED.get(table, {}):
            continue
        values = _values(database, table, column)
        for value in values if every else values[-1:]:
            flips = list(_flips(value))
            for after in flips if every else flips[:1]:
                copy = folder / "copy.db"
                if _flip(database, copy, table, column, value, after) and not _is_found(copy):
                    missed.append(f"{table}.{column}: {value!r:.60} -> {after!r:.60}")
    return missed


TABLES = [
    "assembly",
    "changeset",
    "claim",
    "conflict",
    "conflict_proposal",
    "edge",
    "event",
    "manifest",
    "memory_protected_ref_advances",
    "merge_nonce",
    "node",
    "object_project",
    "op",
    "project",
    "redacted_memory",
    "redaction",
    "ref",
    "ref_log",
    "version",
]


def test_the_tables_are_all_tables(database: Path) -> None:
    shadows = {"version_words_data", "version_words_idx", "version_words_docsize", "version_words_config"}
    assert {table for table, _ in _columns(database)} - shadows == set(TABLES)


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
def test_a_flipped_byte_is_found(database: Path, tmp_path: Path, table: str) -> None:
    assert _missed(database, tmp_path, table, every=False) == []


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("table", TABLES)
def test_a_flipped_byte_is_found_wherever_it_is(database: Path, tmp_path: Path, table: str) -> None:
    assert _missed(database, tmp_path, table, every=True) == []


def test_the_count_that_an_inner_node_notes_of_a_child_is_compared(database: Path, tmp_path: Path) -> None:
    """It stands outside the digest, and only a merge or a page of memories would have stumbled over it."""
    copy = tmp_path / "copy.db"
    shutil.copy(database, copy)
    editing = apsw.Connection(str(copy))
    inner = editing.execute("SELECT id, body FROM node WHERE substr(body, 1, 1) = x'12' LIMIT 1").fetchone()
    assert inner is not None
    row, body = inner
    flipped = bytes(body)[:-1] + bytes([bytes(body)[-1] ^ 1])
    editing.execute("UPDATE node SET body = ? WHERE id = ?", (flipped, row))
    editing.close()
    assert _is_found(copy)


def test_a_word_that_is_missing_from_the_index_is_found(database: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    shutil.copy(database, copy)
    editing = apsw.Connection(str(copy))
    editing.execute("DELETE FROM version_words WHERE rowid = (SELECT max(rowid) FROM version_words)")
    editing.close()
    assert _is_found(copy)


def test_what_one_changeset_alone_says_of_a_trie_that_it_shares_is_compared(
    database: Path, tmp_path: Path
) -> None:
    """Relationships seldom change, so many changesets name one trie: a node that was met before was not compared again."""
    missed = []
    for column in ("memories_row", "memories_digest", "edges_row", "edges_digest", "edges_count"):
        copy = tmp_path / "copy.db"
        shutil.copy(database, copy)
        editing = apsw.Connection(str(copy))
        row, before = editing.execute(
            f"SELECT id, {column} FROM changeset ORDER BY id DESC LIMIT 1"
        ).fetchall()[0]
        editing.execute(f"UPDATE changeset SET {column} = ? WHERE id = ?", (next(_flips(before)), row))
        editing.close()
        if not _is_found(copy):
            missed.append(column)
    assert missed == []


def test_a_row_that_is_taken_away_is_found(database: Path, tmp_path: Path) -> None:
    missed = []
    for table in TABLES:
        copy = tmp_path / "copy.db"
        shutil.copy(database, copy)
        editing = apsw.Connection(str(copy))
        keys = [row[1] for row in editing.execute(f"PRAGMA table_info({table})").fetchall() if row[5]]
        key = ", ".join(keys)
        editing.execute(
            f"DELETE FROM {table} WHERE ({key}) IN (SELECT {key} FROM {table} ORDER BY {key} LIMIT 1)"
        )
        editing.close()
        if not _is_found(copy):
            missed.append(table)
    assert missed == []


# the same on PostgreSQL, whose tables have a few columns of their own

ON_POSTGRES: dict[str, dict[str, str]] = {
    "changeset": {"arrived": "by it one process finds what others wrote; no answer rests on it"},
    "version": {"ordinal": "the last one is of an erased memory, whose ops nobody can do again"},
}
APART = {
    "migration": "which migrations were done; a program refuses another schema than its own",
    "write_mark": "by it a writer finds after a broken connection whether it was heard; no answer rests on it",
}


@pytest.fixture(scope="module")
def filled(postgres: Server) -> Iterator[str]:
    schemas = Schemas(postgres)
    url = schemas.new(SCHEMA)
    _add_events(url)
    world = StoreWorld(url)
    _fill(world)
    assert world.faults() == []
    world.close()
    yield str(world.path)
    schemas.drop()


def _postgres_columns(connection: psycopg.Connection[Any], schema: str) -> list[tuple[str, str]]:
    found = connection.execute(
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = %s ORDER BY 1, 2",
        (schema,),
    ).fetchall()
    return [(table, column) for table, column in found if table not in APART]


def _flipped(connection: psycopg.Connection[Any], table: str, column: str) -> Iterator[None]:
    """Flips a byte in the last row that has the column set, and puts it back; yields nothing where none has."""
    value = f'SELECT ctid, "{column}" FROM "{table}" WHERE "{column}" IS NOT NULL ORDER BY ctid DESC'
    for place, before in connection.execute(value).fetchall():
        if before in ("", b"", []):
            continue
        after = [before[0] ^ 1, *before[1:]] if isinstance(before, list) else next(_flips(before))
        write = f'UPDATE "{table}" SET "{column}" = %s WHERE ctid = %s RETURNING ctid'
        try:
            (moved,) = connection.execute(write, (after, place)).fetchone() or (None,)
        except psycopg.errors.UniqueViolation:
            continue
        yield
        connection.execute(write, (before, moved))
        return


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_flipped_byte_is_found_on_postgresql(filled: str) -> None:
    parsed = DatabaseUrl.parse(filled, SCHEMA.name)
    missed, never_set = [], []
    with psycopg.connect(parsed.conninfo, autocommit=True) as connection:
        columns = _postgres_columns(connection, parsed.schema)
        assert {table for table, _ in columns} == {*TABLES, "version_words"}
        for table, column in columns:
            if column in {**NOT_COVERED.get(table, {}), **ON_POSTGRES.get(table, {})}:
                continue
            found = [_is_found(filled) for _ in _flipped(connection, table, column)]
            if found == [False]:
                missed.append(f"{table}.{column}")
            if not found:
                never_set.append(f"{table}.{column}")
    assert missed == []
    assert never_set == []
    store = LetheStore.open(filled, merge_keys=KEYS)
    assert store.verify(PROJECT)["faults"] == []
    store.close()

"""A database of the original that is cut, flipped, mistyped or hostile: a clear refusal, or an import in which everything agrees."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from original_db import OriginalDb, add, columns_at, correct

from memory_git.domain.errors import Refused
from memory_git.interchange.original import go_json
from memory_git.interchange.original.importing import Wanted, import_original
from memory_git.interchange.original.source import parse_moment
from memory_git.lethe.store import LetheStore

BRANCH = "refs/agents/ann/main"
VALUES = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.binary(max_size=20),
    st.text(max_size=20),
    st.sampled_from(["[]", "{}", "null", "[[[[", '{"a": 1e999}', '["\\ud800"]', '{"content": 3}', "\x00"]),
    st.sampled_from(
        ["refs/shared/main", "legacy-root", "supersede_memory", "2026-01-01 00:00:00", "9" * 400]
    ),
)
PLACES = [
    (table, column)
    for table, columns in sorted(columns_at(13).items())
    for column in columns
    if table not in ("threads", "checkpoints", "session_links")
]


@cache
def sample() -> bytes:
    """Gives a database with events, a merge, an advance, a manifest and a conflict."""
    with tempfile.TemporaryDirectory() as directory:
        db = OriginalDb(Path(directory) / "lethe.db")
        db.event("from before", tags="a")
        root = db.root()
        base = db.changeset(BRANCH, [root], [add("m/one", "tabs", tags=["a"]), add("m/two", "x")])
        sides = [
            db.changeset(f"refs/topics/{name}", [base], [correct("m/one", content=name)], author=name)
            for name in ("left", "right")
        ]
        note = {"op_type": "attach_evidence", "payload": {"summary": "merge", "left_branch": "l"}}
        made = db.changeset("refs/shared/main", sides, [note, correct("m/two", "m/three", content="y")])
        db.ref(BRANCH, base)
        db.ref("refs/topics/left", sides[0])
        db.advance(root, made, "merge_commit")
        db.manifest(made, "m/one")
        db.put(
            "memory_conflicts",
            conflict_id="c",
            project_id="atlas",
            left_changeset_id=sides[0],
            right_changeset_id=sides[1],
            conflict_type="concurrent_change",
            status="open",
            created_at=db.time(),
        )
        db.put(
            "context_assemblies",
            assembly_id="asm",
            session_id="session-1",
            project_id="atlas",
            created_at=db.time(),
            memory_head_changeset_id=made,
        )
        db.put(
            "context_assembly_items",
            assembly_id="asm",
            ordinal=0,
            item_kind="summary",
            content_sha256="b" * 64,
        )
        return db.close().read_bytes()


def outcome(content: bytes, *, skip_damaged: bool) -> str:
    """Gives `taken` or the code of the refusal; asserts that nothing is half there."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "there.db"
        path.write_bytes(content)
        store = LetheStore.open(Path(directory) / "lethe.db", merge_keys=None)
        try:
            import_original(path, store, Wanted(skip_damaged=skip_damaged), lambda *_: None)
        except Refused as refused:
            assert refused.code.startswith("import_"), refused
            assert store.list_projects() == [], refused.code
            return refused.code
        else:
            for project in store.list_projects():
                assert store.verify(project)["faults"] == []
            return "taken"
        finally:
            store.close()
            assert path.read_bytes() == content


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**20), st.booleans())
def test_a_file_that_is_cut_anywhere_is_refused(at: int, skip: bool) -> None:
    content = sample()
    assert outcome(content[: at % len(content)], skip_damaged=skip) != "taken"


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2**20), st.integers(1, 255)), min_size=1, max_size=4), st.booleans())
def test_flipped_bytes_end_in_a_refusal_or_in_a_whole_import(
    flips: list[tuple[int, int]], skip: bool
) -> None:
    content = bytearray(sample())
    for at, mask in flips:
        content[at % len(content)] ^= mask
    outcome(bytes(content), skip_damaged=skip)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PLACES), VALUES), min_size=1, max_size=3), st.booleans())
def test_any_value_in_any_column_ends_in_a_refusal_or_in_a_whole_import(
    changes: list[tuple[tuple[str, str], Any]], skip: bool
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "changed.db"
        path.write_bytes(sample())
        connection = sqlite3.connect(path)
        for (table, column), value in changes:
            try:
                connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid % 2 = 1", (value,))
            except (UnicodeEncodeError, OverflowError):
                return
        connection.commit()
        connection.close()
        outcome(path.read_bytes(), skip_damaged=skip)


def test_the_sample_itself_is_taken() -> None:
    assert outcome(sample(), skip_damaged=False) == "taken"


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_what_the_encoder_writes_is_read_as_the_same_value(value: Any) -> None:
    for short in (True, False):
        assert go_json.read(go_json.write(value, short_escapes=short).decode()) == value


@given(st.text(max_size=40))
def test_no_text_makes_the_reader_of_times_or_of_json_fail(text: str) -> None:
    parse_moment(text)
    try:
        go_json.read(text)
    except go_json.Unread:
        return
    json.loads(text)

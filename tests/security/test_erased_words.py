"""A planted word is erased from everything that the store keeps: files, WAL, indexes, deltas, cached bodies, backups; every column (10-operations)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from postgres_texts import columns
from store_world import BRANCH, PROJECT, PROPOSAL, StoreWorld, add, correct, edge

from memory_git.domain.policy import Audience

WORD = "xylographic"
"""No other text of these tests holds it."""
EVERYBODY = Audience("builder", frozenset({"internal", "shared", "public"}))


@pytest.fixture
def world(place: Path | str) -> Iterator[StoreWorld]:
    made = StoreWorld(place.parent if isinstance(place, Path) else place)
    yield made
    made.close()


def told(memory_id: str, text: str) -> dict[str, Any]:
    """An op that says a text in every field that may hold one."""
    fields = {
        "title": f"title {text}",
        "tags": [f"tag-{text}"],
        "kind": "fact",
        "fact_key": f"key {text}",
        "sources": [f"https://example.org/{text}"],
    }
    return add(memory_id, f"content {text}", **fields)


def planted(world: StoreWorld) -> str:
    """Writes the word by every road into memory; gives the last head."""
    head = world.commit(BRANCH, world.root, told("a", WORD), add("b", "stays"))
    head = world.commit(BRANCH, head, correct("a", f"other {WORD}"), edge("a", "b"))
    side = world.commit("refs/agents/o/main", head, correct("a", f"side {WORD}"), author="o")
    head = world.commit(BRANCH, head, correct("a", f"main {WORD}"))
    found = world.store.plan_merge(PROJECT, head, side)["conflicts"]
    world.store.persist_conflicts(PROJECT, PROPOSAL, found)
    for item in found:
        world.store.resolve_conflict(
            PROJECT,
            item["conflict_id"],
            outcome="both",
            resolution_note=f"both {WORD}" if item["memory_ids"] else "seen",
            principal="judge",
        )
    supersede = {
        "op_type": "supersede_memory",
        "target_event_id": "a",
        "resulting_event_id": "a2",
        "payload": {"content": f"successor {WORD}"},
    }
    head = world.commit(BRANCH, head, supersede)
    world.store.append_event(PROJECT, {"event_id": "e", "event_type": "note", "content": f"event {WORD}"})
    world.store.search(PROJECT, head, WORD, audience=EVERYBODY)
    world.store.context(PROJECT, {"ref_name": BRANCH, "query": WORD, "limit": 5})
    return head


def traces(world: StoreWorld) -> list[str]:
    """Gives where the word still stands: files beside a SQLite database, columns of a PostgreSQL one."""
    if isinstance(world.path, Path):
        folder = world.path.parent
        return sorted(
            path.name for path in folder.rglob("*") if path.is_file() and WORD.encode() in path.read_bytes()
        )
    return sorted({column for column, value in columns(world.path) if WORD.encode() in value})


def test_the_word_is_there_before(world: StoreWorld) -> None:
    planted(world)
    assert traces(world)


def test_an_erased_word_is_nowhere_and_the_store_verifies(world: StoreWorld, tmp_path: Path) -> None:
    head = planted(world)
    world.store.redact(PROJECT, "a", principal="officer", reason="asked for")
    world.store.redact(PROJECT, "e", principal="officer", reason="asked for")
    assert world.store.verify(PROJECT)["faults"] == []
    assert traces(world) == []
    if isinstance(world.path, Path):
        (tmp_path / "copy").mkdir()
        world.store.backup(str(tmp_path / "copy"))
        assert traces(world) == []
    answers = [
        world.store.memories(PROJECT, head, limit=100),
        world.store.log(PROJECT, head=head),
        world.store.diff(head),
        world.store.list_conflicts(PROJECT, limit=100),
        world.store.list_events(PROJECT),
        world.store.context(PROJECT, {"ref_name": BRANCH, "query": WORD, "limit": 5})["memories"],
        world.store.search(PROJECT, head, WORD)["hits"],
    ]
    assert WORD not in str(answers)


def test_a_word_erased_while_others_read_and_write_is_nowhere_afterwards(world: StoreWorld) -> None:
    head = planted(world)
    for number in itertools.count():
        head = world.commit(BRANCH, head, add(f"n/{number}", f"text {number}"))
        if number == 20:
            break
    world.store.redact(PROJECT, "a", principal="officer", reason="asked for")
    world.store.redact(PROJECT, "e", principal="officer", reason="asked for")
    world.commit(BRANCH, head, add("after", "later"))
    assert traces(world) == []
    world.restart()
    assert traces(world) == []
    assert world.faults() == []

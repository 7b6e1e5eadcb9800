"""Pages have a cap in bytes as well as in items: they end early, and `next` goes on where they ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from store_world import BRANCH, PROJECT, StoreWorld, add

from memory_git.domain.errors import TooLarge
from memory_git.http import problems
from memory_git.http.problems import JsonAnswer
from memory_git.lethe import pages
from memory_git.lethe.pages import fitting

MANY = 7


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StoreWorld]:
    made = StoreWorld(tmp_path)
    head = made.root
    for number in range(MANY):
        head = made.commit(BRANCH, head, add(f"m{number}", "x" * 9_000))
        made.store.append_event(PROJECT, {"event_type": "note", "content": "y" * 9_000})
    monkeypatch.setattr(fitting, "__defaults__", (20_000,))
    yield made
    made.store.close()


def test_a_log_goes_on_where_its_page_of_bytes_ended(world: StoreWorld) -> None:
    seen: list[str] = []
    before = None
    while True:
        page = world.store.log(PROJECT, BRANCH, limit=200, before=before)
        assert 1 <= len(page["changesets"]) <= 2 or "next" not in page
        seen += [item["changeset_id"] for item in page["changesets"]]
        before = page.get("next")
        if before is None:
            break
    assert len(seen) == len(set(seen)) == MANY + 1
    assert seen[-1] == world.root


def test_memories_go_on_where_their_page_of_bytes_ended(world: StoreWorld) -> None:
    head = world.store.resolve_ref(PROJECT, BRANCH)["head_changeset_id"]
    seen: list[str] = []
    after = None
    while True:
        page = world.store.memories(PROJECT, head, limit=200, after=after)
        assert (page["total"], len(page["memories"]) <= 2) == (MANY, True)
        seen += [item["memory_id"] for item in page["memories"]]
        after = page.get("next")
        if after is None:
            break
    assert sorted(seen) == [f"m{number}" for number in range(MANY)]


def test_events_go_on_after_the_last_that_was_given(world: StoreWorld) -> None:
    seen: list[int] = []
    while page := world.store.list_events(PROJECT, after=seen[-1] if seen else 0, limit=1_000):
        assert len(page) <= 2
        seen += [event["seq"] for event in page]
    assert seen == list(range(1, MANY + 1))


def test_the_first_item_stands_however_large_it_is() -> None:
    large, small = {"text": "x" * 100}, {"text": "y"}
    assert fitting([large, small], 50) == [large]
    assert fitting([small, large, small], 50) == [small]
    assert fitting([], 50) == []
    assert pages.PAGE_BYTES < problems.ANSWER_BYTES


def test_an_answer_beyond_all_bounds_is_refused_and_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problems, "ANSWER_BYTES", 100)
    with pytest.raises(TooLarge) as refused:
        JsonAnswer({"text": "x" * 100})
    assert (refused.value.code, refused.value.facts) == ("answer_too_large", {"max_bytes": 100})

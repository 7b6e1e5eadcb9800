"""A COMMIT that SQLite refuses, with everything that the writer remembers filled: nothing of it is served, and the next one holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from store_world import BRANCH, PROJECT, StoreWorld, add, correct

from memory_git.domain.errors import NotFound, Refused


class Refusing:
    """Refuses so many COMMITs of every connection that is opened from now on."""

    def __init__(self) -> None:
        self.left = 0

    def __call__(self) -> bool:
        self.left -= 1
        return self.left >= 0


@pytest.fixture
def refusing() -> Iterator[Refusing]:
    hook = Refusing()

    def watch(connection: apsw.Connection) -> None:
        connection.set_commit_hook(hook)

    apsw.connection_hooks.append(watch)
    yield hook
    apsw.connection_hooks.remove(watch)


@pytest.fixture
def world(refusing: Refusing, tmp_path: Path) -> Iterator[StoreWorld]:
    made = StoreWorld(tmp_path)
    yield made
    made.close()


def verbs(world: StoreWorld, head: str) -> dict[str, Callable[[], Any]]:
    request = world.request(BRANCH, [head], correct("a", "other"), add("b", "two"))
    merge = world.merge_request(head)
    return {
        "create_changeset": lambda: world.store.create_changeset(request)[0],
        "create_branch": lambda: world.store.create_branch(PROJECT, "refs/topics/t", head, "builder"),
        "merge_ref": lambda: world.store.merge_ref(PROJECT, merge),
        "append_event": lambda: world.store.append_event(
            PROJECT, {"event_id": "e", "event_type": "note", "content": "said"}
        ),
        "redact": lambda: world.store.redact(PROJECT, "z", principal="officer", reason="asked for"),
    }


def seen(world: StoreWorld) -> dict[str, Any]:
    """What the store serves: refs, their states and logs, searches, events, erasures."""
    refs = world.store.list_refs(PROJECT)
    return {
        "refs": refs,
        "states": {ref["ref_name"]: world.entries(ref["head_changeset_id"]) for ref in refs},
        "logs": {ref["ref_name"]: world.store.ref_log(PROJECT, ref["ref_name"]) for ref in refs},
        "found": world.store.search(PROJECT, world.head(BRANCH), "two other"),
        "events": world.store.list_events(PROJECT),
        "redactions": world.store.list_redactions(PROJECT),
    }


@pytest.mark.parametrize("verb", ["create_changeset", "create_branch", "merge_ref", "append_event", "redact"])
def test_a_commit_that_is_refused_leaves_nothing_in_any_cache_and_may_be_asked_again(
    world: StoreWorld, refusing: Refusing, verb: str
) -> None:
    head = world.commit(BRANCH, world.root, add("a", "one"), add("z", "to be erased"))
    for number in range(5):
        head = world.commit(BRANCH, head, correct("a", f"version {number}"))
    before, call = seen(world), verbs(world, head)[verb]
    refusing.left = 1
    with pytest.raises(Refused):
        call()
    assert seen(world) == before
    assert world.faults() == []
    call()
    after = seen(world)
    assert after != before
    world.restart()
    assert seen(world) == after, "what is served is what is stored"
    assert world.faults() == []


def test_of_a_refused_commit_no_changeset_is_served_by_its_id(world: StoreWorld, refusing: Refusing) -> None:
    head = world.commit(BRANCH, world.root, add("a", "one"))
    made: list[str] = []
    new_id = world.store._sources.new_id
    object.__setattr__(world.store._sources, "new_id", lambda: made.append(new_id()) or made[-1])
    refusing.left = 1
    with pytest.raises(Refused):
        world.commit(BRANCH, head, add("b", "two"))
    assert made
    for name in made:
        with pytest.raises(NotFound):
            world.store.get_changeset(name)
    assert world.head(BRANCH) == head

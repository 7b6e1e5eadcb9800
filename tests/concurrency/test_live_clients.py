"""A real client of `/api/live`, killed again and again while others write: after its Last-Event-ID it has missed nothing."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memory_git.http.lethe_app import create_lethe_app
from memory_git.http.serving import running
from memory_git.lethe.store import LetheStore

pytestmark = [pytest.mark.slow, pytest.mark.timeout(110)]
KEY = "the-key-of-this-test"
PROJECT = "atlas"
COMMITS = 120
CLIENT = """
import sys, urllib.request
url, key, last = sys.argv[1:]
headers = {"Authorization": f"Bearer {key}"} | ({"Last-Event-ID": last} if last else {})
with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as stream:
    for line in stream:
        print(line.decode(), end="", flush=True)
"""
Json = dict[str, Any]


def listen(url: str, last: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CLIENT, f"{url}/api/live?project={PROJECT}", KEY, last]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def kill(client: subprocess.Popen[str]) -> None:
    client.kill()
    client.wait()
    assert client.stdout is not None
    client.stdout.close()


def frames(client: subprocess.Popen[str]) -> Iterator[tuple[str, Json | None]]:
    """Yields the position and data (None: a sign of life) of each frame that the client prints whole."""
    assert client.stdout is not None
    frame: dict[str, str] = {}
    for line in client.stdout:
        name, _, value = line.rstrip("\n").partition(": ")
        if name:
            frame[name] = value
        elif "id" in frame:
            yield frame["id"], json.loads(frame["data"]) if "data" in frame else None
            frame = {}
        else:
            frame = {}


def commit(store: LetheStore, ref: str, parent: str, number: int) -> str:
    changeset, _ = store.create_changeset(
        {
            "project_id": PROJECT,
            "ref_name": ref,
            "parent_ids": [parent],
            "author_principal": "builder",
            "message": "work",
            "idempotency_key": f"{ref}-{number}",
            "ops": [{"op_type": "add_memory", "payload": {"content": f"Number {number}."}}],
            "expected_head": parent,
            "advance_ref": True,
            "create_ref_if_missing": True,
        }
    )
    return str(changeset["changeset_id"])


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[LetheStore, str]]:
    store = LetheStore.open(tmp_path / "lethe.db", merge_keys=None)
    app = create_lethe_app(store, api_key=KEY)
    with running(app, on_stop=store.feed.close) as where:
        yield store, where.url
    store.close()


def test_a_client_that_is_killed_and_comes_again_has_every_move_once_and_in_order(
    served: tuple[LetheStore, str],
) -> None:
    store, url = served
    root = store.init_project(PROJECT)["changeset"]["changeset_id"]
    store.init_project("another")
    start = store.feed.position
    made: dict[str, list[str]] = {f"refs/agents/builder/{lane}": [] for lane in "ab"}

    def write(ref: str) -> None:
        head = root
        for number in range(COMMITS // 2):
            head = commit(store, ref, head, number)
            made[ref].append(head)

    writers = [threading.Thread(target=write, args=(ref,)) for ref in made]
    for writer in writers:
        writer.start()
    seen: list[Json] = []
    last, kills = start, 0
    while len(seen) < COMMITS:
        client = listen(url, last)
        try:
            for count, (position, told) in enumerate(frames(client), 1):
                last = position
                seen += [told] if told else []
                if count == 20 or len(seen) == COMMITS:
                    break
        finally:
            kill(client)
            kills += 1
    for writer in writers:
        writer.join()
    assert kills >= COMMITS // 20
    assert {item["type"] for item in seen} == {"ref_moved"}
    for ref, heads in made.items():
        assert [item["to_head"] for item in seen if item["ref_name"] == ref] == heads


def test_a_client_that_was_away_over_a_restart_is_told_to_read_anew(tmp_path: Path) -> None:
    last = ""
    for start in range(2):
        store = LetheStore.open(tmp_path / "lethe.db", merge_keys=None)
        root = store.init_project(PROJECT)["changeset"]["changeset_id"]
        with running(create_lethe_app(store, api_key=KEY), on_stop=store.feed.close) as where:
            client = listen(where.url, last if start else store.feed.position)
            if not start:
                commit(store, "refs/agents/builder/main", root, 0)
            last, told = next((position, told) for position, told in frames(client) if told)
            kill(client)
        store.close()
        assert told["type"] == ("reset" if start else "ref_moved")

"""Lethe's HTTP API over a store that holds something of everything, served in a process of its own: what fuzzing and schemathesis ask."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.participant import Json
from memory_git.domain.envelope import MergeKeys
from memory_git.domain.ids import SHARED_MAIN
from memory_git.http.lethe_app import create_lethe_app
from memory_git.http.serving import running
from memory_git.lethe.store import LetheStore

KEY = "the-key-of-the-faces"
PROJECT = "atlas"
PLANTED = "xylophonist-4711"
"""A word of every stored text: no error may show it."""
_LEFT, _RIGHT = "refs/agents/left/main", "refs/agents/right/main"


class Errors(logging.Handler):
    """Keeps what a server logs as an error: a corrupt object or something unexpected."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps one line, with the places that an exception passed."""
        self.lines.append(f"{record.getMessage()} {getattr(record, 'places', '')}")


def watch_errors() -> Errors:
    """Starts to keep what is logged as an error in this process."""
    errors = Errors()
    logging.getLogger().addHandler(errors)
    return errors


class Participant:
    """The store and its face in the worker's process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._exits = ExitStack()
        self._errors = watch_errors()

    def serve(self) -> Json:
        """Fills and serves a store; gives the address, the headers of a caller, and ids of what is there, by kind."""
        keys = MergeKeys((("k1", "a-merge-key-of-more-than-32-characters"),))
        store = LetheStore.open(self._folder / "lethe.db", merge_keys=keys)
        self._exits.callback(store.close)
        ids = fill(store)
        app = create_lethe_app(store, api_key=KEY)
        where = self._exits.enter_context(running(app, on_stop=store.feed.close))
        return {"url": where.url, "headers": {"Authorization": f"Bearer {KEY}"}, "ids": ids}

    def errors(self) -> list[str]:
        """Gives what was logged as an error."""
        return self._errors.lines

    def close(self) -> None:
        """Ends the server and the store."""
        self._exits.close()


def fill(store: LetheStore) -> dict[str, list[str]]:
    """Leaves an event, a baseline, two sides in conflict, a manifest and an assembly; gives ids by kind."""
    event = store.append_event(PROJECT, {"event_type": "note", "content": f"An event. {PLANTED}"})
    root = store.init_project(PROJECT)["changeset"]["changeset_id"]
    base = _commit(store, "refs/agents/base/main", root, [_decision("one", "by hand")])
    left = _commit(store, _LEFT, base, [_decision("two", "by robots")])
    right = _commit(store, _RIGHT, base, [_decision("three", "by nobody")])
    conflicts = store.detect_conflicts(PROJECT, base, left, right)
    store.persist_conflicts(PROJECT, "a-proposal", conflicts)
    request = {"ref_name": _LEFT, "create_manifest": True, "principal": "left"}
    context = store.context(PROJECT, request)
    item = context["memories"][0]
    assembly = store.record_assembly(
        "a-session",
        {
            "project_id": PROJECT,
            "manifest_id": context["manifest_id"],
            "head_changeset_id": left,
            "items": [{"memory_id": item["memory_id"], "content_digest": item["record_digest"]}],
        },
    )
    return {
        "projects": [PROJECT],
        "changesets": [root, base, left, right],
        "refs": [SHARED_MAIN, _LEFT, _RIGHT],
        "memories": ["one", "two", "three", event["event_id"]],
        "manifests": [context["manifest_id"]],
        "events": [event["event_id"]],
        "assemblies": [assembly["assembly_id"]],
        "conflicts": [item["conflict_id"] for item in conflicts] or ["0" * 64],
        "sessions": ["a-session"],
        "proposals": ["a-proposal"],
        "principals": ["left", "right", "charon"],
        "moments": [datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")],
    }


def _decision(name: str, how: str) -> Json:
    content = f"We deploy {how}. {PLANTED}"
    payload = {
        "memory_id": name,
        "content": content,
        "kind": "decision",
        "scope": "s",
        "subject": "deploying",
    }
    return {"op_type": "add_memory", "payload": payload}


def _commit(store: LetheStore, ref: str, parent: str, ops: list[Any]) -> str:
    changeset, _ = store.create_changeset(
        {
            "project_id": PROJECT,
            "ref_name": ref,
            "parent_ids": [parent],
            "author_principal": ref.split("/")[2],
            "message": f"A message. {PLANTED}",
            "idempotency_key": f"{ref} {parent}",
            "ops": ops,
            "expected_head": parent,
            "advance_ref": True,
            "create_ref_if_missing": True,
        }
    )
    return str(changeset["changeset_id"])

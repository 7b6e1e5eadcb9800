"""Both doors under hostile requests: every route of their own descriptions, with bodies that are nearly right and quite wrong.

Nothing that a client can send makes a 500, a traceback, or an error that repeats what was sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_git.charon.gate import Gate
from memory_git.domain.canonical import sha256_hex
from memory_git.domain.envelope import MergeKeys
from memory_git.http.charon_app import create_charon_app
from memory_git.http.lethe_app import create_lethe_app
from memory_git.http.serving import running
from memory_git.lethe.feed import Feed
from memory_git.lethe.store import LetheStore

API_KEY = "the-key-of-this-test"
SECRET = "hunter2-is-the-password"
ABSENT = "018f0000-0000-7000-8000-000000000000"
BRANCH = "refs/agents/builder/main"
STREAMS_AND_FILES = ("/api/live", "/api/v1/live", "/api/backup")
COMMIT = {"lethe": "/api/memory/changesets", "charon": "/api/v1/projects/atlas/changesets"}


class Door:
    """A served store or gate with one project in it."""

    def __init__(self, name: str, client: httpx.Client, document: dict[str, Any], head: str) -> None:
        self.name = name
        self.client = client
        self.head = head
        self.operations = [
            (method, path, operation)
            for path, item in sorted(document["paths"].items())
            for method, operation in sorted(item.items())
            if path not in STREAMS_AND_FILES
        ]
        self.schemas = document["components"]["schemas"]
        self.plausible: dict[str, Any] = {
            "project": "atlas",
            "project_id": "atlas",
            "ref_name": BRANCH,
            "ref": BRANCH,
            "name": BRANCH,
            "key": "session",
            "parent_ids": [head],
            "ops": [{"op_type": "add_memory", "payload": {"memory_id": "b", "content": SECRET}}],
            "limit": 5,
            "after": 0,
            "reader": "reviewer",
            "visibility": "internal",
            "selected": [{"changeset_id": head, "ordinal": 0}],
            "kind": "input",
            "create_manifest": True,
            "advance_ref": True,
            "items": [{"memory_id": "a"}],
            "conflicts": [{}],
            "id": "a",
            "to_directory": "/proc/none",
            "event_type": "note",
            "content": SECRET,
            "memory_id": "a",
            "message": "m",
            "verdict": "approve",
            "principal_id": "helper",
            "actor_id": "helper",
            "obol_id": "0" * 16,
            "from_ref": "refs/shared/main",
            "onto": "refs/shared/main",
            "target_ref": "refs/shared/main",
            "scopes": ["memory.read"],
            "refs": ["refs/topics/*"],
            "changes": {"approvals_needed": 2},
            "expires_s": 60,
            "read_head": True,
        }

    def fields(self, operation: dict[str, Any]) -> list[str]:
        """Gives the names of the body's fields; none for a route without a body."""
        content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
        schema = content.get("schema", {})
        for part in [schema, *schema.get("anyOf", [])]:
            if "$ref" in part:
                schema = self.schemas[part["$ref"].rpartition("/")[2]]
        return sorted(schema.get("properties", {}))

    def likely(self, name: str) -> Any:
        """Gives a value that goes far."""
        return self.plausible.get(name, self.head)


@contextmanager
def _served(name: str, app: FastAPI, feed: Feed, bearer: str, head: str) -> Iterator[Door]:
    headers = {"Authorization": f"Bearer {bearer}"}
    with (
        running(app, on_stop=feed.close) as where,
        httpx.Client(base_url=where.url, headers=headers) as client,
    ):
        yield Door(name, client, app.openapi(), head)


@contextmanager
def _lethe(folder: Path) -> Iterator[Door]:
    keys = MergeKeys((("k1", "a-merge-key-of-more-than-32-characters"),))
    store = LetheStore.open(folder / "lethe.db", merge_keys=keys)
    head = store.init_project("atlas")["changeset"]["changeset_id"]
    request = {
        "project_id": "atlas",
        "ref_name": BRANCH,
        "parent_ids": [head],
        "author_principal": "builder",
        "message": "begin",
        "idempotency_key": "1",
        "ops": [{"op_type": "add_memory", "payload": {"memory_id": "a", "content": "one"}}],
        "advance_ref": True,
        "create_ref_if_missing": True,
    }
    head = store.create_changeset(request)[0]["changeset_id"]
    with _served("lethe", create_lethe_app(store, api_key=API_KEY), store.feed, API_KEY, head) as door:
        yield door
    store.close()


@contextmanager
def _charon(folder: Path) -> Iterator[Door]:
    gate = Gate.open(folder)
    local = gate.as_operator()
    gate.init_project(local, "atlas")
    gate.add_principal(local, "helper", "agent")
    gate.add_principal(local, "builder", "human", profile="write", scopes=["admin", "memory.redact"])
    gate.grant(local, "builder", "atlas")
    ops = [{"op_type": "add_memory", "payload": {"memory_id": "a", "content": "one"}}]
    done = gate.commit(gate.as_principal("builder"), "atlas", message="begin", ops=ops, read_head=True)
    obol = gate.mint_obol(local, "builder", 3600)["token"]
    head = done["changeset"]["changeset_id"]
    with _served("charon", create_charon_app(gate), gate.feed, obol, head) as door:
        yield door
    gate.close()


@pytest.fixture(scope="module", params=[_lethe, _charon], ids=["lethe", "charon"])
def door(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with request.param(tmp_path_factory.mktemp("door")) as door:
        yield door


def check(answer: httpx.Response) -> None:
    """Holds an answer to the rules of this module."""
    told = (
        f"{answer.request.method} {answer.request.url} {answer.request.content[:400]!r}: {answer.text[:400]}"
    )
    assert answer.status_code < 500, told
    assert "Traceback" not in answer.text, told
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == "application/problem+json", told
        assert answer.json()["status"] == answer.status_code, told
        assert answer.json()["code"], told
        assert SECRET not in answer.text, told


NASTY_TEXTS = [
    "",
    SECRET,
    "\x00",
    "\u202e",
    "../..",
    "refs/shared/main",
    ABSENT,
    "a" * 3000,
    "0" * 64,
    "9" * 30,
    "{}",
    "-1",
]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, -1, 1, 2**53 - 1, -(2**53) + 1, 1.5, 1e300, -0.0]),
    st.sampled_from(NASTY_TEXTS),
    st.text(max_size=20).filter(lambda text: text.isprintable()),
)
KEYS = st.sampled_from(
    ["op_type", "payload", "content", "memory_id", "envelope", "changeset_id", "ordinal", "x"]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
EXAMPLES = settings(
    max_examples=400,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.mark.slow
@EXAMPLES
@given(data=st.data())
def test_no_request_breaks_a_route_or_is_repeated_by_its_error(door: Door, data: st.DataObject) -> None:
    method, path, operation = data.draw(st.sampled_from(door.operations), label="route")
    body: Any = None
    names = door.fields(operation)
    if names:
        body = {name: door.likely(name) for name in names if data.draw(st.booleans(), label=f"with {name}")}
        for name in data.draw(st.lists(st.sampled_from(names), max_size=2), label="wrong"):
            body[name] = data.draw(VALUES, label=name)
        body = data.draw(st.sampled_from([body] * 9 + [VALUES]), label="body")
        body = data.draw(body) if isinstance(body, st.SearchStrategy) else body
    query = {}
    for parameter in operation.get("parameters", []):
        name, wrong = parameter["name"], data.draw(st.integers(0, 3), label=f"wrong {parameter['name']}") == 0
        value = data.draw(st.sampled_from(NASTY_TEXTS)) if wrong else door.likely(name)
        if parameter["in"] == "path":
            path = path.replace("{" + name + "}", quote(str(value), safe="") or "-")
        elif parameter["in"] == "query" and (wrong or parameter.get("required") or data.draw(st.booleans())):
            query[name] = str(value).lower() if isinstance(value, bool) else str(value)
    check(door.client.request(method, path, params=query, json=body))


@pytest.mark.slow
@EXAMPLES
@given(
    op=st.dictionaries(
        st.sampled_from(["op_type", "payload", "target_event_id", "resulting_event_id", "y"]), VALUES
    )
)
def test_no_op_breaks_the_door(door: Door, op: dict[str, Any]) -> None:
    body: dict[str, Any] = {"message": "m", "idempotency_key": sha256_hex(repr(op).encode())}
    body["ops"] = [{"op_type": "add_memory", "payload": {}} | op]
    if door.name == "lethe":
        names = ("project_id", "ref_name", "parent_ids")
        body |= {name: door.likely(name) for name in names} | {
            "author_principal": "builder",
            "advance_ref": False,
        }
    else:
        body["read_head"] = True
    check(door.client.post(COMMIT[door.name], json=body))


@pytest.mark.slow
@EXAMPLES
@given(content=st.binary(max_size=200))
def test_no_bytes_break_the_door(door: Door, content: bytes) -> None:
    answer = door.client.post(
        COMMIT[door.name], content=content, headers={"Content-Type": "application/json"}
    )
    check(answer)
    assert answer.status_code == 400

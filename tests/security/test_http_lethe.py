"""Lethe's door under hostile requests: every route of its own description, with bodies that are nearly right and quite wrong.

Nothing that a client can send makes a 500, a traceback, or an error that repeats what was sent.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_git.domain.canonical import sha256_hex
from memory_git.domain.envelope import MergeKeys
from memory_git.http.lethe_app import OPEN_PATHS, create_lethe_app
from memory_git.http.serving import running
from memory_git.lethe.store import LetheStore

API_KEY = "the-key-of-this-test"
SECRET = "hunter2-is-the-password"
ABSENT = "018f0000-0000-7000-8000-000000000000"
BRANCH = "refs/agents/builder/main"


class Door:
    """A served store with one project in it."""

    def __init__(self, client: httpx.Client, document: dict[str, Any], head: str) -> None:
        self.client = client
        self.head = head
        self.operations = [
            (method, path, operation)
            for path, item in sorted(document["paths"].items())
            for method, operation in sorted(item.items())
            if path not in ("/api/live", "/api/backup")
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


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    keys = MergeKeys((("k1", "a-merge-key-of-more-than-32-characters"),))
    store = LetheStore.open(tmp_path_factory.mktemp("door") / "lethe.db", merge_keys=keys)
    app = create_lethe_app(store, api_key=API_KEY)
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
    headers = {"Authorization": f"Bearer {API_KEY}"}
    with (
        running(app, on_stop=store.feed.close) as where,
        httpx.Client(base_url=where.url, headers=headers) as client,
    ):
        yield Door(client, app.openapi(), head)
    store.close()


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
    body = {name: door.likely(name) for name in ("project_id", "ref_name", "parent_ids")} | {
        "author_principal": "builder",
        "message": "m",
        "idempotency_key": sha256_hex(repr(op).encode()),
        "ops": [{"op_type": "add_memory", "payload": {}} | op],
        "advance_ref": False,
    }
    check(door.client.post("/api/memory/changesets", json=body))


@pytest.mark.slow
@EXAMPLES
@given(content=st.binary(max_size=200))
def test_no_bytes_break_the_door(door: Door, content: bytes) -> None:
    for path in ("/api/memory/changesets", "/api/memory/atlas/branches", "/api/events"):
        answer = door.client.post(path, content=content, headers={"Content-Type": "application/json"})
        check(answer)
        assert answer.status_code == 400


def test_every_route_but_the_open_ones_asks_for_the_bearer(door: Door) -> None:
    for method, path, _ in door.operations:
        for header in (
            "",
            "Bearer",
            "Bearer wrong",
            f"Basic {API_KEY}",
            f"Bearer {API_KEY}x",
            f"Bearer {API_KEY[:-1]}",
            API_KEY,
        ):
            answer = door.client.request(method, path, headers={"Authorization": header})
            if path in OPEN_PATHS:
                assert answer.status_code != 401, path
            else:
                assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated"), (path, header)
                assert answer.headers["www-authenticate"] == "Bearer"
                assert API_KEY[:-1] not in answer.text


def test_the_right_bearer_is_asked_before_the_body_is_read(door: Door) -> None:
    big = (b"x" * 65536 for _ in range(200))
    answer = door.client.post(
        "/api/memory/changesets", content=big, headers={"Authorization": "Bearer wrong"}
    )
    assert answer.status_code == 401


def test_a_create_request_has_a_larger_cap_than_the_rest(door: Door) -> None:
    text = b'{"ref_name": "%s"}' % (b"a" * (2 << 20))
    headers = {"Content-Type": "application/json"}
    small = door.client.post("/api/memory/atlas/branches", content=text, headers=headers)
    create = door.client.post("/api/memory/changesets", content=text, headers=headers)
    assert (small.status_code, small.json()["max_bytes"]) == (413, 1 << 20)
    assert create.status_code == 400
    beyond = door.client.post("/api/memory/changesets", content=text * 5, headers=headers)
    assert (beyond.status_code, beyond.json()["max_bytes"]) == (413, 8 << 20)


@pytest.mark.parametrize(
    "raw",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET /api/health HTTP/1.1\r\nHost: evil.example\r\nHost: localhost\r\n\r\n",
        b"GARBAGE\r\n\r\n",
        b"GET /api/health HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /api/events HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
    ],
)
def test_a_broken_request_is_refused_and_the_door_stays_open(door: Door, raw: bytes) -> None:
    netloc = door.client.base_url
    with socket.create_connection((netloc.host, netloc.port or 0)) as connection:
        connection.sendall(raw)
        connection.settimeout(5)
        status = connection.recv(4096).split(b"\r\n")[0]
    assert b" 4" in status
    assert door.client.get("/api/health").status_code == 200

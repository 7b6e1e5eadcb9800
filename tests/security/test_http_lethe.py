"""Lethe's door: the bearer before anything else, the caps of bodies, requests that are none."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import httpx
import pytest

from memory_git.http.lethe_app import OPEN_PATHS, create_lethe_app
from memory_git.http.serving import running
from memory_git.lethe.store import LetheStore

API_KEY = "the-key-of-this-test"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    store = LetheStore.open(tmp_path_factory.mktemp("door") / "lethe.db", merge_keys=None)
    store.init_project("atlas")
    headers = {"Authorization": f"Bearer {API_KEY}"}
    with (
        running(create_lethe_app(store, api_key=API_KEY), on_stop=store.feed.close) as where,
        httpx.Client(base_url=where.url, headers=headers) as client,
    ):
        yield client
    store.close()


def test_every_route_but_the_open_ones_asks_for_the_bearer(client: httpx.Client) -> None:
    document = client.get("/api/openapi.json").json()
    for method, path in [(method, path) for path, item in document["paths"].items() for method in item]:
        for header in (
            "",
            "Bearer",
            "Bearer wrong",
            f"Basic {API_KEY}",
            f"Bearer {API_KEY}x",
            f"Bearer {API_KEY[:-1]}",
            API_KEY,
        ):
            answer = client.request(method, path, headers={"Authorization": header})
            if path in OPEN_PATHS:
                assert answer.status_code != 401, path
            else:
                assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated"), (path, header)
                assert answer.headers["www-authenticate"] == "Bearer"
                assert API_KEY[:-1] not in answer.text


def test_the_right_bearer_is_asked_before_the_body_is_read(client: httpx.Client) -> None:
    big = (b"x" * 65536 for _ in range(200))
    answer = client.post("/api/memory/changesets", content=big, headers={"Authorization": "Bearer wrong"})
    assert answer.status_code == 401


def test_a_create_request_has_a_larger_cap_than_the_rest(client: httpx.Client) -> None:
    text = b'{"ref_name": "%s"}' % (b"a" * (2 << 20))
    headers = {"Content-Type": "application/json"}
    small = client.post("/api/memory/atlas/branches", content=text, headers=headers)
    create = client.post("/api/memory/changesets", content=text, headers=headers)
    assert (small.status_code, small.json()["max_bytes"]) == (413, 1 << 20)
    assert create.status_code == 400
    beyond = client.post("/api/memory/changesets", content=text * 5, headers=headers)
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
def test_a_broken_request_is_refused_and_the_door_stays_open(client: httpx.Client, raw: bytes) -> None:
    netloc = client.base_url
    with socket.create_connection((netloc.host, netloc.port or 0)) as connection:
        connection.sendall(raw)
        connection.settimeout(5)
        status = connection.recv(4096).split(b"\r\n")[0]
    assert b" 4" in status
    assert client.get("/api/health").status_code == 200

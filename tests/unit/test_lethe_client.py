"""The client of Lethe: how it reaches a store, what it tries again, what it makes of answers that are none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from memory_git.domain.errors import (
    Clash,
    Corrupt,
    Invalid,
    NotAllowed,
    NotFound,
    Refused,
    TooLarge,
    TooMany,
    Unauthenticated,
    Unavailable,
)
from memory_git.http.lethe_app import create_lethe_app
from memory_git.http.problems import problem_answer
from memory_git.http.serving import Where, running
from memory_git.lethe.client import LetheClient
from memory_git.lethe.store import LetheStore

KEY = "the-key-of-this-test"


@contextmanager
def answering(answer: Callable[[Request], Response]) -> Iterator[LetheClient]:
    """Serves one answer to everything, and gives a client of it."""

    async def everything(request: Request) -> Response:
        return answer(request)

    app = Starlette(routes=[Route("/{path:path}", everything, methods=["GET", "POST"])])
    with running(app) as where:
        client = LetheClient(where.url, KEY)
        yield client
        client.close()


@pytest.mark.parametrize(
    "error",
    [
        Invalid("bad_ref_name", "a ref name", field="ref_name"),
        Unauthenticated("unauthenticated", "no bearer"),
        NotAllowed("protected_ref", "propose one"),
        NotFound("ref_not_found", "no such ref"),
        Clash("ref_moved", "moved", current_head="h", ref_name="r"),
        TooLarge("request_too_large", "large", max_bytes=5),
        TooMany("too_many", "slow down", retry_after_s=3),
        Unavailable("recovery_readonly", "read only"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_refusal_comes_back_as_what_it_was(error: Refused) -> None:
    with answering(lambda _: problem_answer(error)) as client, pytest.raises(Refused) as caught:
        client.list_projects()
    assert type(caught.value) is type(error)
    assert (caught.value.code, caught.value.message, caught.value.facts) == (
        error.code,
        error.message,
        error.facts,
    )


def test_corruption_comes_back_as_corruption_with_kind_and_id() -> None:
    broken = Corrupt("changeset", "abc", "why")
    with answering(lambda _: problem_answer(broken)) as client, pytest.raises(Corrupt) as caught:
        client.list_projects()
    assert (caught.value.kind, caught.value.object_id) == ("changeset", "abc")


@pytest.mark.parametrize(
    ("status", "content"),
    [
        (200, b"<html>hello</html>"),
        (200, b"[]"),
        (200, b"{}"),
        (204, b""),
        (302, b""),
        (500, b'{"code": "internal", "message": "m"}'),
        (502, b"Bad Gateway"),
        (400, b'{"code": 1}'),
        (400, b"\xff"),
        (418, b'{"code": "teapot", "message": "m"}'),
    ],
)
def test_what_does_not_speak_the_api_is_unavailable_never_taken_for_an_answer(
    status: int, content: bytes
) -> None:
    with answering(lambda _: Response(content, status)) as client, pytest.raises(Unavailable) as caught:
        client.list_projects()
    assert caught.value.code == "lethe_failed"


def test_an_absent_store_is_unavailable() -> None:
    with running(Starlette()) as where:
        client = LetheClient(where.url, KEY)
    with pytest.raises(Unavailable) as caught:
        client.list_projects()
    assert caught.value.code == "lethe_unreachable"


class _Breaking:
    """An application that breaks off its first answers, and counts."""

    def __init__(self, breaks: int) -> None:
        self.breaks = breaks
        self.asked = 0

    async def __call__(self, scope, receive, send) -> None:  # type: ignore[no-untyped-def]
        if scope["type"] != "http":
            return
        self.asked += 1
        length = b"400" if self.asked <= self.breaks else b"16"
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
        await send({"type": "http.response.body", "body": b'{"projects": []}'})


def test_a_reading_is_tried_again_when_the_connection_breaks_and_a_writing_never() -> None:
    app = _Breaking(2)
    with running(app) as where:
        client = LetheClient(where.url, KEY)
        assert client.list_projects() == []
        assert app.asked == 3
        app.breaks = 100
        with pytest.raises(Unavailable):
            client.init_project("atlas")
        assert app.asked == 4
        with pytest.raises(Unavailable):
            client.list_projects()
        assert app.asked == 7
        client.close()


@pytest.mark.parametrize(
    "url",
    [
        "http://192.0.2.1:18485",
        "http://lethe.example",
        "ftp://localhost",
        "localhost:18485",
        "",
        "http://localhost.evil.example",
    ],
)
def test_a_bearer_never_leaves_this_machine_in_clear(url: str) -> None:
    with pytest.raises(Invalid) as refused:
        LetheClient(url, KEY)
    assert refused.value.code == "bad_upstream"


def test_a_store_behind_a_unix_socket_is_reached_by_its_path(tmp_path: Path) -> None:
    store = LetheStore.open(tmp_path / "lethe.db", merge_keys=None)
    where = Where(unix_path=str(tmp_path / "lethe.sock"))
    with running(create_lethe_app(store, api_key=KEY), where, on_stop=store.feed.close):
        client = LetheClient(f"unix:{tmp_path / 'lethe.sock'}", KEY)
        client.init_project("atlas")
        assert client.list_projects() == ["atlas"]
        client.close()
    store.close()


def test_a_wrong_key_is_unauthenticated(tmp_path: Path) -> None:
    store = LetheStore.open(tmp_path / "lethe.db", merge_keys=None)
    with running(create_lethe_app(store, api_key=KEY), on_stop=store.feed.close) as where:
        client = LetheClient(where.url, "another")
        assert client.health()["status"] == "ok"
        with pytest.raises(Unauthenticated):
            client.list_projects()
        client.close()
    store.close()

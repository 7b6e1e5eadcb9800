"""Server-sent events, over a real server: order, resumption, what a reader may see, the end."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from memory_git.http.live import live_answer
from memory_git.http.positions import SealedPositions
from memory_git.http.serving import running
from memory_git.lethe.feed import Feed


def _application(feed: Feed) -> Starlette:
    async def live(request: Request) -> Response:
        last = request.headers.get("last-event-id")
        return live_answer(feed, last, lambda event: event.project_id != "hidden")

    return Starlette(routes=[Route("/live", live)])


@pytest.fixture
def served() -> Iterator[tuple[Feed, httpx.Client]]:
    feed = Feed()
    with running(_application(feed), on_stop=feed.close) as where, httpx.Client(base_url=where.url) as client:
        yield feed, client


def read(lines: Iterator[str]) -> dict[str, str]:
    """Gives the next event of a stream."""
    event: dict[str, str] = {}
    for line in lines:
        if not line and "data" in event:
            return event
        name, _, value = line.partition(": ")
        event[name] = value
    raise AssertionError("the stream ended")


def test_events_arrive_as_they_happen_without_those_that_the_reader_may_not_see(
    served: tuple[Feed, httpx.Client],
) -> None:
    feed, client = served
    feed.publish("ref_moved", "atlas", ref_name="before the reader came")
    with client.stream("GET", "/live") as answer:
        lines = answer.iter_lines()
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert next(lines).startswith("retry: ")
        feed.publish("ref_moved", "hidden")
        sent = feed.publish("ref_moved", "atlas", ref_name="refs/shared/main")
        event = read(lines)
    assert event["id"] == sent.position
    assert event["event"] == "ref_moved"
    assert event["data"] == '{"project_id":"atlas","ref_name":"refs/shared/main","type":"ref_moved"}'


def test_a_reader_that_comes_again_gets_what_it_missed(served: tuple[Feed, httpx.Client]) -> None:
    feed, client = served
    seen = feed.publish("ref_moved", "atlas")
    missed = feed.publish("conflict_opened", "atlas")
    with client.stream("GET", "/live", headers={"Last-Event-ID": seen.position}) as answer:
        assert read(answer.iter_lines())["id"] == missed.position
    with client.stream("GET", "/live", headers={"Last-Event-ID": "gone-1"}) as answer:
        assert read(answer.iter_lines())["event"] == "reset"


def test_what_a_client_is_told_of_a_position_counts_nothing_and_leads_back_to_it() -> None:
    feed, positions = Feed(), SealedPositions()

    async def live(request: Request) -> Response:
        last = request.headers.get("last-event-id")
        return live_answer(feed, last, lambda event: event.project_id != "hidden", positions)

    app = Starlette(routes=[Route("/live", live)])
    with running(app, on_stop=feed.close) as where, httpx.Client(base_url=where.url) as client:
        with client.stream("GET", "/live") as answer:
            lines = answer.iter_lines()
            next(lines)
            feed.publish("ref_moved", "atlas", ref_name="first")
            first = read(lines)
            for _ in range(1000):
                feed.publish("ref_moved", "hidden")
            feed.publish("ref_moved", "atlas", ref_name="second")
            second = read(lines)
        assert len(first["id"]) == len(second["id"])
        assert positions.sealed(feed.position) != positions.sealed(feed.position)
        with client.stream("GET", "/live", headers={"Last-Event-ID": first["id"]}) as answer:
            assert '"ref_name":"second"' in read(answer.iter_lines())["data"]
        for foreign in (
            feed.position,
            "",
            SealedPositions().sealed(feed.position),
            "x" * 300,
            first["id"][:-1],
        ):
            with client.stream("GET", "/live", headers={"Last-Event-ID": foreign or "-"}) as answer:
                assert read(answer.iter_lines())["event"] == "reset"


def test_the_stream_ends_with_the_server_and_holds_nothing_up() -> None:
    feed = Feed()
    with (
        running(_application(feed), on_stop=feed.close) as where,
        httpx.stream("GET", f"{where.url}/live") as answer,
    ):
        lines = answer.iter_lines()
        next(lines)
        feed.close()
        assert [line for line in lines if line] == []

"""What stands before every route: strict bodies and queries, caps, Host and Origin, and errors without content."""

from __future__ import annotations

import gzip
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated

import httpx
import pytest
from fastapi import APIRouter, FastAPI, Query
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from memory_git.domain.errors import Corrupt, Unavailable
from memory_git.http.limits import LOOPBACK_HOSTS, AtMost, HostAndOrigin, LastCatch
from memory_git.http.problems import JsonAnswer, install_problems
from memory_git.http.serving import running
from memory_git.http.strict import BODY_BYTES, Body, StrictRoute

SECRET = "hunter2-is-the-password"
routes = APIRouter(route_class=StrictRoute)


class Note(Body):
    text: str
    weight: int | None = None


@routes.post("/notes")
def take(note: Note) -> JsonAnswer:
    return JsonAnswer({"given": note.given()})


@routes.get("/notes")
def give(limit: Annotated[int, Query(ge=1, le=10)] = 5) -> JsonAnswer:
    return JsonAnswer({"limit": limit})


@routes.get("/unexpected")
def unexpected() -> JsonAnswer:
    raise ValueError(SECRET)


@routes.get("/corrupt")
def corrupt() -> JsonAnswer:
    raise Corrupt("changeset", "abc", SECRET)


@routes.get("/busy")
def busy() -> JsonAnswer:
    raise Unavailable("busy", "the writer's queue is full", retry_after_s=3)


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    app = FastAPI(openapi_url=None)
    install_problems(app)
    app.include_router(routes)
    app.add_middleware(HostAndOrigin, hosts=LOOPBACK_HOSTS, origins=["https://memory.example"])
    app.add_middleware(LastCatch)
    with running(app) as where, httpx.Client(base_url=where.url) as client:
        yield client


def post(client: httpx.Client, body: bytes, media_type: str = "application/json") -> httpx.Response:
    return client.post("/notes", content=body, headers={"Content-Type": media_type})


def test_a_good_body_arrives_as_it_was_sent_without_what_was_not(client: httpx.Client) -> None:
    assert post(client, b'{"text": "a"}').json() == {"given": {"text": "a"}}
    assert post(client, b'{"text": "a", "weight": null}').json() == {"given": {"text": "a", "weight": None}}


@pytest.mark.parametrize(
    ("name", "body", "code"),
    [
        ("a key twice", b'{"text": "a", "text": "b"}', "bad_json"),
        ("NaN", b'{"text": "a", "weight": NaN}', "bad_json"),
        ("a huge integer", b'{"text": "a", "weight": 9007199254740993}', "bad_json"),
        ("thousands of digits", b'{"text": "a", "weight": ' + b"9" * 6000 + b"}", "bad_json"),
        ("a lone surrogate", b'{"text": "\\ud800"}', "bad_json"),
        ("not UTF-8", b'{"text": "\xff"}', "bad_json"),
        ("cut short", b'{"text": "a', "bad_json"),
        ("deep nesting", b"[" * 100_000, "bad_json"),
        ("an array", b"[]", "invalid_request"),
        ("null", b"null", "invalid_request"),
        ("nothing", b"", "invalid_request"),
        ("an unknown field", b'{"text": "a", "extra": 1}', "invalid_request"),
        ("a number for a text", b'{"text": 1}', "invalid_request"),
        ("a text for a number", b'{"text": "a", "weight": "1"}', "invalid_request"),
        ("a boolean for a number", b'{"text": "a", "weight": true}', "invalid_request"),
    ],
)
def test_a_bad_body_is_refused_by_its_rule(client: httpx.Client, name: str, body: bytes, code: str) -> None:
    answer = post(client, body)
    assert (answer.status_code, answer.json()["code"]) == (400, code), name
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_refusal_names_all_fields_and_kinds_and_no_value(client: httpx.Client) -> None:
    answer = post(client, b'{"text": ["%s"], "weight": "%s", "more": "%s"}' % ((SECRET.encode(),) * 3))
    faults = {fault["field"]: (fault["rule"], fault["found"]) for fault in answer.json()["faults"]}
    assert faults == {
        "text": ("is not a string", "list"),
        "weight": ("is not a int", "str"),
        "more": ("is not known here", "str"),
    }
    assert SECRET not in answer.text


@pytest.mark.parametrize(
    "media_type", ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""]
)
def test_a_body_of_another_media_type_is_refused_so_that_no_form_can_send_one(
    client: httpx.Client, media_type: str
) -> None:
    assert post(client, b'{"text": "a"}', media_type).json()["code"] == "bad_media_type"


def test_a_packed_body_is_refused_so_that_no_small_one_grows_large(client: httpx.Client) -> None:
    packed = gzip.compress(b'{"text": "a"}')
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    answer = client.post("/notes", content=packed, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_media_type")
    plain = {**headers, "Content-Encoding": "identity"}
    assert client.post("/notes", content=b'{"text": "a"}', headers=plain).status_code == 200


def test_a_query_parameter_that_is_said_twice_is_refused(client: httpx.Client) -> None:
    answer = client.get("/notes?limit=1&limit=2")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
    assert answer.json()["faults"][0]["field"] == "limit"


def test_a_body_over_the_cap_is_refused_whether_its_length_is_declared_or_not(client: httpx.Client) -> None:
    declared = post(client, b'{"text": "%s"}' % (b"a" * BODY_BYTES))
    chunked = client.post(
        "/notes", content=(b"a" * 65536 for _ in range(20)), headers={"Content-Type": "application/json"}
    )
    for answer in (declared, chunked):
        assert (answer.status_code, answer.json()["max_bytes"]) == (413, BODY_BYTES)
    assert post(client, b'{"text": "a"}').status_code == 200


@pytest.mark.parametrize(
    "query", ["limmit=3", "limit=3&x", "limit=0", "limit=11", "limit=" + "9" * 50, "limit=a"]
)
def test_a_query_that_is_not_declared_or_out_of_bounds_is_refused(client: httpx.Client, query: str) -> None:
    answer = client.get(f"/notes?{query}")
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")
    assert client.get("/notes?limit=10").json() == {"limit": 10}


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.", "", "user@localhost"]
)
def test_a_foreign_host_name_is_refused_or_a_page_could_rebind_its_name_to_us(
    client: httpx.Client, host: str
) -> None:
    answer = client.get("/notes", headers={"Host": host})
    assert (answer.status_code, answer.json()["code"]) == (403, "host_not_allowed")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:99", "127.0.0.1:1", "[::1]:18484"])
def test_a_loopback_name_is_served(client: httpx.Client, host: str) -> None:
    assert client.get("/notes", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:1", "file://", ""])
def test_a_page_of_another_origin_is_refused(client: httpx.Client, origin: str) -> None:
    answer = client.get("/notes", headers={"Origin": origin})
    assert (answer.status_code, answer.json()["code"]) == (403, "origin_not_allowed")


def test_the_own_origin_and_a_listed_one_are_served(client: httpx.Client) -> None:
    own = f"http://{client.base_url.netloc.decode()}"
    for origin in (own, "https://memory.example"):
        assert client.get("/notes", headers={"Origin": origin}).status_code == 200


def test_an_unexpected_exception_is_a_500_with_a_request_id_that_the_log_knows_and_no_content(
    client: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        answer = client.get("/unexpected")
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (500, "internal")
    assert problem["request_id"] == answer.headers["x-request-id"]
    (record,) = caplog.records
    assert record.__dict__["request_id"] == problem["request_id"]
    assert any("unexpected" in place for place in record.__dict__["places"])
    assert SECRET not in answer.text + str(record.__dict__)


def test_corruption_is_a_500_that_names_kind_and_id_alone(client: httpx.Client) -> None:
    answer = client.get("/corrupt")
    problem = answer.json()
    assert answer.status_code == 500
    assert (problem["code"], problem["kind"], problem["object_id"]) == ("corrupt", "changeset", "abc")
    assert SECRET not in answer.text


def test_what_can_be_tried_again_says_when(client: httpx.Client) -> None:
    answer = client.get("/busy")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "3")


def test_an_unknown_address_and_a_wrong_method_are_problem_documents(client: httpx.Client) -> None:
    absent, method = client.get("/nothing"), client.put("/notes")
    assert (absent.status_code, absent.json()["code"]) == (404, "not_found")
    assert (method.status_code, method.json()["code"]) == (405, "method_not_allowed")
    assert method.headers["allow"] == "GET, POST"


def test_one_request_too_many_is_told_to_come_again_and_the_others_are_served() -> None:
    entered, leave = threading.Event(), threading.Event()

    def wait(_request: Request) -> Response:
        entered.set()
        leave.wait()
        return PlainTextResponse("done")

    app = Starlette(routes=[Route("/", wait)], middleware=[Middleware(LastCatch), Middleware(AtMost, most=1)])
    with running(app) as where, ThreadPoolExecutor() as threads:
        first = threads.submit(httpx.get, where.url)
        entered.wait()
        busy = httpx.get(where.url)
        leave.set()
        assert (busy.status_code, busy.json()["code"], busy.headers["retry-after"]) == (503, "busy", "1")
        assert first.result().text == "done"
        assert httpx.get(where.url).text == "done"

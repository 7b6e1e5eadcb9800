"""Rates of requests: a bucket a project and a principal, and what over HTTP is told to whom it is empty for."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from memory_git.domain.errors import TooMany
from memory_git.http.lethe_app import create_lethe_app
from memory_git.http.serving import running
from memory_git.http.strict import names_of
from memory_git.lethe import rates
from memory_git.lethe.rates import Rates
from memory_git.lethe.store import LetheStore


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def taken(limits: Rates, *names: tuple[str, str]) -> bool:
    try:
        limits.take(names)
    except TooMany:
        return False
    return True


def test_a_second_holds_so_many_requests_and_they_come_back_with_time() -> None:
    clock = Clock()
    limits = Rates(2, clock)
    assert [taken(limits, ("project", "a")) for _ in range(3)] == [True, True, False]
    clock.now += 0.5
    assert [taken(limits, ("project", "a")) for _ in range(2)] == [True, False]
    clock.now += 100
    assert [taken(limits, ("project", "a")) for _ in range(3)] == [True, True, False]


def test_one_that_asks_for_too_much_keeps_no_other_from_asking() -> None:
    limits = Rates(1, Clock())
    assert taken(limits, ("project", "a"), ("principal", "ann"))
    assert not taken(limits, ("project", "b"), ("principal", "ann"))
    assert taken(limits, ("project", "b"), ("principal", "bob")), "a refused request takes from no bucket"
    assert taken(limits), "what names nobody is not counted"


def test_a_refusal_says_whose_rate_and_when_to_come_again() -> None:
    limits = Rates(0.25, Clock())
    limits.take([("project", "a")])
    with pytest.raises(TooMany) as refused:
        limits.take([("project", "a")])
    assert refused.value.facts == {"limited": "project", "per_s": 0.25, "retry_after_s": 4}


def test_only_so_many_names_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "REMEMBERED", 2)
    limits = Rates(1, Clock())
    for name in "abc":
        limits.take([("project", name)])
    assert [taken(limits, ("project", name)) for name in "bca"] == [False, False, True]


def test_a_request_is_named_by_its_path_before_its_query_and_body() -> None:
    parts = [{"project": "a"}, {"reader": "ann"}, {"project_id": "b", "author_principal": "bob"}]
    assert names_of(parts) == [("project", "a"), ("principal", "ann")]
    assert names_of([{"project_id": 7, "principal": ""}]) == []


def test_over_http_the_next_request_is_told_to_come_again_and_other_projects_are_served(
    tmp_path: Path,
) -> None:
    store = LetheStore.open(tmp_path / "lethe.db", merge_keys=None)
    app = create_lethe_app(store, api_key="k", requests_per_s=3)
    key = {"Authorization": "Bearer k"}
    with (
        running(app, on_stop=store.feed.close) as where,
        httpx.Client(base_url=where.url, headers=key) as client,
    ):
        answers = [client.get("/api/memory/atlas/refs") for _ in range(20)]
        refused = next(answer for answer in answers if answer.status_code == 429)
        assert (refused.json()["code"], refused.headers["retry-after"]) == ("too_many_requests", "1")
        assert refused.headers["content-type"] == "application/problem+json"
        commits = [client.post("/api/memory/changesets", json={"project_id": "atlas"}) for _ in range(9)]
        assert {answer.status_code for answer in commits} <= {400, 429}
        assert commits[-1].status_code == 429
        assert client.get("/api/memory/other/refs").status_code == 404
        assert client.get("/api/health").status_code == 200
    store.close()

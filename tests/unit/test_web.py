"""The pages, as a browser without scripts meets them: over a real server, on a real gate."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest

from memory_git.charon.gate import Gate
from memory_git.http.charon_app import create_charon_app
from memory_git.http.serving import running
from memory_git.web.app import create_pages

HOSTILE = '<script>alert(1)</script> "quoted" pay \u202eecila\u202c now\u200b'


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    gate = Gate.open(tmp_path)
    operator = gate.as_operator()
    gate.init_project(operator, "atlas")
    for name, kind, profile in (
        ("builder", "agent", "propose"),
        ("reviewer", "human", "review"),
        ("stranger", "human", "review"),
    ):
        gate.add_principal(operator, name, kind, profile=profile)
    for name in ("builder", "reviewer"):
        gate.grant(operator, name, "atlas")
    yield gate
    gate.close()


@pytest.fixture
def browser(gate: Gate) -> Iterator[httpx.Client]:
    app = create_charon_app(gate, pages=create_pages(gate))
    with running(app, on_stop=gate.feed.close) as where, httpx.Client(base_url=where.url) as browser:
        browser.headers["Origin"] = where.url
        yield browser


def sign_in(gate: Gate, browser: httpx.Client, principal: str = "reviewer") -> None:
    code = gate.mint_sign_in(gate.as_operator(), principal)["code"]
    answer = browser.post("/sign-in", data={"code": code})
    assert (answer.status_code, answer.headers["location"]) == (303, "/projects")


def propose(gate: Gate, *ops: dict[str, Any]) -> str:
    """Has the agent commit and propose; gives the proposal's id."""
    builder = gate.as_principal("builder")
    done = gate.commit(builder, "atlas", message="notes", ops=list(ops), read_head=True)
    head = done["changeset"]["changeset_id"]
    proposal = gate.propose(builder, "atlas", head_changeset_id=head, title="Notes", message=HOSTILE)
    proposal_id: str = proposal["proposal_id"]
    return proposal_id


def add(memory_id: str, content: str, **payload: Any) -> dict[str, Any]:
    return {"op_type": "add_memory", "payload": {"memory_id": memory_id, "content": content, **payload}}


def token_of(text: str) -> str:
    found = re.search(r'name="form_token" value="([^"]+)"', text)
    assert found is not None
    return unescape(found.group(1))


def field_of(text: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', text)
    assert found is not None
    return unescape(found.group(1))


def accept(gate: Gate, browser: httpx.Client, *ops: dict[str, Any]) -> None:
    """Has the work of the agent reviewed and merged by way of the pages."""
    proposal_id = propose(gate, *ops)
    page = browser.get(f"/proposals/{proposal_id}").text
    review = {
        "form_token": token_of(page),
        "verdict": "approve",
        "comment": "good",
        "judged_digest": field_of(page, "judged_digest"),
    }
    assert browser.post(f"/proposals/{proposal_id}/review", data=review).status_code == 303
    merge = {"form_token": token_of(page), "idempotency_key": field_of(page, "idempotency_key")}
    assert browser.post(f"/proposals/{proposal_id}/merge", data=merge).status_code == 303


def test_a_sign_in_link_is_not_used_up_by_looking_and_works_once(gate: Gate, browser: httpx.Client) -> None:
    code = gate.mint_sign_in(gate.as_operator(), "reviewer")["code"]
    for _ in range(3):
        page = browser.get("/sign-in", params={"code": code})
        assert page.status_code == 200
        assert "set-cookie" not in page.headers
    answer = browser.post("/sign-in", data={"code": code})
    cookie = answer.headers["set-cookie"]
    assert {part.strip().lower() for part in cookie.split(";")[1:]} >= {
        "httponly",
        "samesite=strict",
        "path=/",
    }
    assert code not in cookie
    browser.cookies.clear()
    again = browser.post("/sign-in", data={"code": code})
    assert again.status_code == 401
    assert "set-cookie" not in again.headers


def test_a_token_opens_a_session_too_and_a_wrong_one_does_not(gate: Gate, browser: httpx.Client) -> None:
    token = gate.mint_obol(gate.as_operator(), "reviewer", 3600)["token"]
    wrong = browser.post("/sign-in", data={"token": token[:-1] + "!"})
    assert wrong.status_code == 401
    assert token[:-1] not in wrong.text
    assert browser.post("/sign-in", data={"token": token}).status_code == 303
    assert "reviewer" in browser.get("/projects").text


def test_nobody_sees_a_page_without_signing_in(browser: httpx.Client) -> None:
    for path in (
        "/projects",
        "/projects/atlas",
        "/projects/atlas/memory?id=a",
        "/projects/atlas/proposals",
        "/proposals/x",
    ):
        answer = browser.get(path)
        assert answer.status_code == 401, path
        assert "atlas" not in answer.text
    browser.cookies.set("memory_git_session", "forged")
    assert browser.get("/projects").status_code == 401
    assert browser.get("/", follow_redirects=False).headers["location"] == "/projects"


def test_every_page_carries_a_strict_policy_and_asks_nothing_of_others(
    gate: Gate, browser: httpx.Client
) -> None:
    sign_in(gate, browser)
    accept(gate, browser, add("a", "one"))
    proposal_id = propose(gate, add("b", "two"))
    for path in (
        "/sign-in",
        "/projects",
        "/projects/atlas",
        "/projects/atlas?words=one",
        "/projects/atlas/memory?id=a",
        "/projects/atlas/proposals",
        "/projects/atlas/conflicts",
        f"/proposals/{proposal_id}",
        "/projects/none",
        "/nothing",
    ):
        answer = browser.get(path)
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'"), path
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert not re.search(r"<script|style=|\son\w+=|//[a-z]", answer.text), path
        assert '<html lang="en">' in answer.text
        assert len(re.findall("<h1>", answer.text)) == 1, path
    style = browser.get("/style.css")
    assert style.headers["content-type"].startswith("text/css")
    assert "prefers-color-scheme: dark" in style.text
    assert "url(" not in style.text


def test_stored_text_is_escaped_and_what_hides_in_it_is_shown(gate: Gate, browser: httpx.Client) -> None:
    sign_in(gate, browser)
    proposal_id = propose(gate, add('a"><b>', HOSTILE, title=HOSTILE))
    for path in (f"/proposals/{proposal_id}", "/projects/atlas/proposals"):
        text = browser.get(path).text
        assert "<script" not in text
        assert "\u202e" not in text
    text = browser.get(f"/proposals/{proposal_id}").text
    assert "&lt;script&gt;" in text
    assert ">U+202E</span>" in text
    assert ">U+200B</span>" in text
    assert "&#34;&gt;&lt;b&gt;" in text


def test_a_proposal_shows_before_and_after_and_is_approved_and_merged_on_the_page(
    gate: Gate, browser: httpx.Client
) -> None:
    sign_in(gate, browser)
    accept(gate, browser, add("a", "the old text"))
    proposal_id = propose(
        gate, {"op_type": "correct_memory", "target_event_id": "a", "payload": {"content": "the new text"}}
    )
    page = browser.get(f"/proposals/{proposal_id}").text
    assert re.search(
        r'<td class="before text">the old text</td>\s*<td class="after text">the new text</td>', page
    )
    early = {"form_token": token_of(page), "idempotency_key": field_of(page, "idempotency_key")}
    refused = browser.post(f"/proposals/{proposal_id}/merge", data=early)
    assert refused.status_code in (403, 409)
    assert f'<a href="/proposals/{proposal_id}">Back to the proposal</a>' in refused.text
    review = {
        "form_token": token_of(page),
        "verdict": "approve",
        "comment": "fine",
        "judged_digest": field_of(page, "judged_digest"),
    }
    assert (
        browser.post(f"/proposals/{proposal_id}/review", data=review).headers["location"]
        == f"/proposals/{proposal_id}"
    )
    merge = {"form_token": token_of(page), "idempotency_key": field_of(page, "idempotency_key")}
    assert browser.post(f"/proposals/{proposal_id}/merge", data=merge).status_code == 303
    assert browser.post(f"/proposals/{proposal_id}/merge", data=merge).status_code == 303
    assert "merged" in browser.get(f"/proposals/{proposal_id}").text
    memory = browser.get("/projects/atlas/memory", params={"id": "a"}).text
    assert memory.index("Version 2") < memory.index("Version 1") < memory.index("the old text")
    assert "the new text" in memory
    found = browser.get("/projects/atlas", params={"words": "new"}).text
    assert "the new text" in found
    assert "the new text" not in browser.get("/projects/atlas", params={"words": "unrelated"}).text


def test_a_proposal_is_rejected_on_the_page_with_its_reason(gate: Gate, browser: httpx.Client) -> None:
    sign_in(gate, browser)
    proposal_id = propose(gate, add("a", "one"))
    page = browser.get(f"/proposals/{proposal_id}").text
    review = {
        "form_token": token_of(page),
        "verdict": "reject",
        "comment": "not so",
        "judged_digest": field_of(page, "judged_digest"),
    }
    assert browser.post(f"/proposals/{proposal_id}/review", data=review).status_code == 303
    after = browser.get(f"/proposals/{proposal_id}").text
    assert "rejected" in after
    assert "not so" in after
    assert "Your review" not in after


@pytest.mark.parametrize("token", [None, "", "forged", "é"])
def test_a_form_without_the_sessions_own_token_does_nothing(
    gate: Gate, browser: httpx.Client, token: str | None
) -> None:
    sign_in(gate, browser)
    proposal_id = propose(gate, add("a", "one"))
    form = {"verdict": "approve"} | ({} if token is None else {"form_token": token})
    for act in ("review", "merge"):
        assert browser.post(f"/proposals/{proposal_id}/{act}", data=form).status_code == 403
    assert browser.post("/sign-out", data=form).status_code == 403
    assert "None yet." in browser.get(f"/proposals/{proposal_id}").text


def test_a_form_of_another_origin_or_kind_does_nothing(gate: Gate, browser: httpx.Client) -> None:
    sign_in(gate, browser)
    proposal_id = propose(gate, add("a", "one"))
    token = token_of(browser.get("/projects").text)
    address = f"/proposals/{proposal_id}/review"
    foreign = browser.post(
        address, data={"form_token": token, "verdict": "approve"}, headers={"Origin": "http://evil.example"}
    )
    assert foreign.status_code == 403
    other = browser.post(address, json={"form_token": token, "verdict": "approve"})
    assert other.status_code == 400
    large = browser.post(address, data={"form_token": token, "comment": "a" * 100_000})
    assert large.status_code == 413
    assert "None yet." in browser.get(f"/proposals/{proposal_id}").text


def test_a_session_ends_by_signing_out(gate: Gate, browser: httpx.Client) -> None:
    sign_in(gate, browser)
    cookie = browser.cookies["memory_git_session"]
    token = token_of(browser.get("/projects").text)
    assert browser.post("/sign-out", data={"form_token": token}).headers["location"] == "/sign-in"
    browser.cookies.set("memory_git_session", cookie)
    assert browser.get("/projects").status_code == 401


def test_who_has_no_grant_finds_nothing_and_can_not_tell_why(gate: Gate, browser: httpx.Client) -> None:
    sign_in(gate, browser, "stranger")
    assert "atlas" not in browser.get("/projects").text
    absent, hidden = browser.get("/projects/nowhere"), browser.get("/projects/atlas")
    assert absent.status_code == hidden.status_code == 404
    assert absent.text.replace("nowhere", "atlas") == hidden.text


def test_a_conflict_shows_both_sides_and_is_resolved_with_a_reason(gate: Gate, browser: httpx.Client) -> None:
    sign_in(gate, browser)
    accept(gate, browser, add("a", "Deploy on Fridays", kind="decision", fact_key="deploy"))
    operator = gate.as_operator()
    gate.add_principal(operator, "tester", "agent", profile="propose")
    gate.grant(operator, "tester", "atlas")
    tester = gate.as_principal("tester")
    done = gate.commit(
        tester,
        "atlas",
        message="m",
        ops=[add("b", "Never deploy on Fridays", title="Fridays", kind="decision", fact_key="deploy")],
        read_head=True,
    )
    head = done["changeset"]["changeset_id"]
    proposal_id = gate.propose(tester, "atlas", head_changeset_id=head, message="other")["proposal_id"]
    page = browser.get(f"/proposals/{proposal_id}").text
    assert page.index("Conflicts</h2>") < page.index("Never deploy on Fridays")
    assert page.count("Shown above.") == 1
    page = browser.get("/projects/atlas/conflicts").text
    assert f'href="/proposals/{proposal_id}"' in page
    assert "contradictory decision" in page
    assert "Deploy on Fridays" in page
    assert "Never deploy on Fridays" in page
    found = re.search(r'action="(/projects/atlas/conflicts/[0-9a-f]{64}/resolve)"', page)
    assert found is not None
    form = {"form_token": token_of(page), "outcome": "both", "note": "they speak of two services"}
    assert browser.post(found.group(1), data=form).status_code == 303
    resolved = browser.get("/projects/atlas/conflicts", params={"status": "resolved"}).text
    assert "they speak of two services" in resolved

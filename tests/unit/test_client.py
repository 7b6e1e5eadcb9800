"""One story told to `memory_git.Client` on a folder, on PostgreSQL and at an address: the same verbs, the same answers."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from memory_git import Client
from memory_git.charon.gate import Gate, GateSettings
from memory_git.client.remote import RemoteGate
from memory_git.domain.errors import Invalid, NotFound, Refused, Unauthenticated
from memory_git.http.charon_app import create_charon_app
from memory_git.http.serving import running
from memory_git.storage.charon_schema import CHARON_SCHEMA
from memory_git.storage.lethe_schema import SCHEMA

PROJECT = "atlas"
FRIDAY = "Releases go out on Fridays."


@dataclass
class Place:
    """Where clients connect to, and as whom."""

    connect: Callable[..., Client]
    tokens: dict[str, str]

    def client(self, who: str, **more: Any) -> Client:
        return self.connect(self.tokens[who], **more)


def filled(gate: Gate) -> dict[str, str]:
    local = gate.as_operator()
    gate.init_project(local, PROJECT)
    tokens = {}
    for name, kind, profile in (("builder", "agent", "propose"), ("bob", "human", "review")):
        gate.add_principal(local, name, kind, profile=profile)
        gate.grant(local, name, PROJECT)
        tokens[name] = gate.mint_obol(local, name, 3600)["token"]
    return tokens


@pytest.fixture(params=["a folder", "PostgreSQL", "an address"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    folder = tmp_path / "memory"
    if request.param == "PostgreSQL":
        schemas = request.getfixturevalue("schemas")
        charon, lethe = schemas.new(CHARON_SCHEMA), schemas.new(SCHEMA)
        gate = Gate.open(GateSettings(folder, database_url=charon, lethe_database_url=lethe))
        tokens = filled(gate)
        gate.close()
        yield Place(lambda token, **more: Client(charon, token, keys=folder, lethe=lethe, **more), tokens)
        return
    gate = Gate.open(folder)
    tokens = filled(gate)
    if request.param == "a folder":
        gate.close()
        yield Place(lambda token, **more: Client(folder, token, **more), tokens)
        return
    with running(create_charon_app(gate), on_stop=gate.feed.close) as where:
        yield Place(lambda token, **more: Client(where.url, token, **more), tokens)
    gate.close()


def adding(memory_id: str, content: str) -> dict[str, Any]:
    return {"op_type": "add_memory", "payload": {"memory_id": memory_id, "content": content}}


def test_an_author_and_a_reviewer_share_one_memory(place: Place) -> None:
    with place.client("builder") as builder, place.client("bob", project=PROJECT) as bob:
        assert builder.whoami()["principal_id"] == "builder"
        made = builder.commit("what we agreed on", [adding("release/day", FRIDAY)], read_head=True)
        head = made["changeset"]["changeset_id"]
        assert (made["ref"]["head_changeset_id"], made["replayed"]) == (head, False)
        assert builder.status()["working_head"] == head
        assert builder.show(head)["message"] == "what we agreed on"
        assert [item["changeset_id"] for item in builder.log(limit=1)["changesets"]] == [head]
        assert builder.memory("release/day")["record"]["content"] == FRIDAY
        assert len(builder.diff(head, "refs/shared/main")["memories_added"]) == 1
        with pytest.raises(NotFound):
            bob.show(head)
        proposal = builder.propose("as agreed", title="Release day")
        name = proposal["proposal_id"]
        assert [item["proposal_id"] for item in bob.proposals("open")["proposals"]] == [name]
        assert bob.review(name, "approve", "fine")["status"] == "approved"
        assert bob.merge(name, idempotency_key="once")["status"] == "merged"
        assert bob.proposal(name)["status"] == "merged"
        found = bob.context("Fridays", create_manifest=True)
        assert [item["record"]["content"] for item in found["memories"]] == [FRIDAY]
        again = bob.reproduce(str(found["manifest_id"]))
        assert [item["record"] for item in again["memories"]] == [
            item["record"] for item in found["memories"]
        ]
        assert [hit["memory_id"] for hit in bob.search("Fridays")["hits"]] == ["release/day"]
        assert [item["memory_id"] for item in bob.memories()["memories"]] == ["release/day"]
        assert len(bob.memory_history("release/day")["versions"]) == 1
        assert bob.conflicts() == []
        assert bob.projects() == [PROJECT]


def test_a_ref_is_made_moved_on_and_rebased_and_a_proposal_is_withdrawn(place: Place) -> None:
    with place.client("builder") as builder:
        ref = builder.branch("refs/agents/builder/side")
        made = builder.commit("side", [adding("a", "one")], ref=ref["ref_name"], read_head=True)
        assert {item["ref_name"] for item in builder.refs()} >= {
            "refs/agents/builder/side",
            "refs/shared/main",
        }
        proposal = builder.propose("please", source_ref=ref["ref_name"])
        assert proposal["head_changeset_id"] == made["changeset"]["changeset_id"]
        assert builder.cancel(proposal["proposal_id"])["status"] == "canceled"


def test_a_refusal_is_the_same_error_with_its_facts(place: Place) -> None:
    with place.client("builder") as builder:
        root = builder.status()["shared_head"]
        first = builder.commit("first", [adding("a", "one")], read_head=True)
        with pytest.raises(Refused) as moved:
            builder.commit("late", [adding("b", "two")], expected_head=root)
        assert moved.value.code == "ref_moved"
        assert moved.value.facts["current_head"] == first["changeset"]["changeset_id"]
        with pytest.raises(Invalid) as faulty:
            builder.commit("bad", [{"op_type": "nonsense"}], read_head=True)
        assert faulty.value.facts["faults"][0]["ordinal"] == 0


def test_a_wrong_token_is_refused_at_once_or_with_the_first_verb(place: Place) -> None:
    with pytest.raises(Unauthenticated), place.connect("obol_0_0") as client:
        client.whoami()


def test_an_owner_of_a_folder_needs_no_token(tmp_path: Path) -> None:
    gate = Gate.open(tmp_path / "memory")
    filled(gate)
    gate.close()
    with Client(tmp_path / "memory") as bob, Client(tmp_path / "memory", principal="builder") as builder:
        assert (bob.whoami()["principal_id"], builder.whoami()["principal_id"]) == ("bob", "builder")


def test_what_cannot_be_opened_is_said(tmp_path: Path) -> None:
    for place, code in (
        ("http://127.0.0.1:1", "token_needed"),
        ("postgresql://nobody@127.0.0.1:1/x", "keys_needed"),
    ):
        with pytest.raises(Refused) as refused:
            Client(place)
        assert refused.value.code == code


def test_an_address_has_every_verb_that_the_client_asks() -> None:
    asked = {
        name
        for name in inspect.getsource(Client).split("self._gate.")[1:]
        for name in [name.split("(")[0]]
        if name != "close"
    }
    assert {name for name in asked if not hasattr(RemoteGate, name)} == set()
    assert {name for name in asked if not hasattr(Gate, name)} == set()


def test_the_name_is_there_and_costs_nothing_until_it_is_asked_for() -> None:
    script = (
        "import sys, memory_git; assert 'httpx' not in sys.modules; memory_git.Client; "
        "assert not {'mcp', 'fastapi', 'apsw'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_another_place_s_tokens_do_not_open_this_one(tmp_path: Path) -> None:
    gate = Gate.open(tmp_path / uuid4().hex)
    tokens = filled(gate)
    gate.close()
    other = Gate.open(tmp_path / "other")
    filled(other)
    other.close()
    with pytest.raises(Unauthenticated):
        Client(tmp_path / "other", tokens["builder"])

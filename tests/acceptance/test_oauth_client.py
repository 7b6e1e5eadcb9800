"""A real MCP client library lets itself in by OAuth: discovery, registration, consent of a person, tokens, tools, refresh, revocation."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from gate_world import PROJECT
from mcp.client.auth import OAuthClientProvider
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from oauth_world import BACK, OAuthWorld, served
from pydantic import AnyUrl

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[OAuthWorld]:
    with served(tmp_path / "data") as world:
        yield world


class Storage:
    """Where the library keeps what it got."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Library:
    """The library with a person's browser at its side."""

    def __init__(self, house: OAuthWorld, person: str = "ann") -> None:
        self.house = house
        self.person = person
        self.storage = Storage()
        self.asked = 0
        self._answer: dict[str, str] = {}

    async def sends_to(self, address: str) -> None:
        self.asked += 1

        def decide() -> dict[str, str]:
            with self.house.person(self.person) as person:
                assert person.opens(address).status_code == 200, person.shown
                back = person.decides().headers["location"]
            return {name: values[0] for name, values in parse_qs(urlsplit(back).query).items()}

        self._answer = await asyncio.to_thread(decide)

    async def comes_back(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(**self._answer)

    def calls(
        self, tool: str, arguments: dict[str, Any] | None = None, then: Callable[[], None] | None = None
    ) -> Any:
        """Calls a tool; with `then`, once more in the same session after that."""
        return asyncio.run(self._calls(tool, arguments or {}, then))

    async def _calls(self, tool: str, arguments: dict[str, Any], then: Callable[[], None] | None) -> Any:
        metadata = OAuthClientMetadata(client_name="Library", redirect_uris=[AnyUrl(BACK)])
        auth = OAuthClientProvider(
            f"{self.house.url}/mcp", metadata, self.storage, self.sends_to, self.comes_back
        )
        async with (
            httpx2.AsyncClient(auth=auth, timeout=30, follow_redirects=True) as http,
            Client(streamable_http_client(f"{self.house.url}/mcp", http_client=http)) as client,
        ):
            result = await client.call_tool(tool, arguments)
            if then is not None:
                await asyncio.to_thread(then)
                auth.context.token_expiry_time = time.time() - 1
                result = await client.call_tool(tool, arguments)
            return result.structured_content if not result.is_error else result.content[0].text


def test_a_client_library_goes_the_whole_way_and_works_as_an_agent_of_the_person(house: OAuthWorld) -> None:
    library = Library(house)
    status = library.calls("memory_status")
    assert (library.asked, status["project"]) == (1, PROJECT)
    op = {"op_type": "add_memory", "payload": {"memory_id": "m/1", "content": "said by a client"}}
    done = library.calls("memory_changeset_create", {"message": "notes", "ops": [op], "read_head": True})
    assert library.asked == 1, "the token is used again"
    changeset = house.world.lethe.get_changeset(done["changeset_id"])
    assert (changeset["author_principal"], changeset["ref_name"]) == (
        "ann-library",
        "refs/agents/ann-library/main",
    )
    stored = changeset["ops"][0]["payload"]
    assert (stored["source_trust"], stored["owner_principal"]) == ("inference", "ann-library"), (
        "no person's word"
    )
    assert library.storage.tokens is not None
    assert (
        library.storage.tokens.scope == "memory.branch memory.commit memory.propose memory.read memory.search"
    )


def test_a_person_reviews_what_their_client_proposed(house: OAuthWorld) -> None:
    library = Library(house)
    op = {"op_type": "add_memory", "payload": {"memory_id": "m/1", "content": "said by a client"}}
    library.calls("memory_changeset_create", {"message": "notes", "ops": [op], "read_head": True})
    proposed = library.calls("memory_merge_propose", {"message": "please", "title": "Notes"})
    gate, world = house.world.gate, house.world
    gate.review(world.caller("ann"), proposed["proposal_id"], "approve", comment="fine")
    assert gate.merge(world.caller("ann"), proposed["proposal_id"])["status"] == "merged"


def test_an_expired_access_token_is_refreshed_without_asking_anybody(house: OAuthWorld) -> None:
    library = Library(house)
    seen = []

    def later() -> None:
        assert library.storage.tokens is not None
        seen.append(library.storage.tokens.access_token)
        house.world.later(minutes=16)
        assert house.calls(seen[0]).status_code == 401

    status = library.calls("memory_status", then=later)
    assert library.storage.tokens is not None
    assert (library.asked, status["project"]) == (1, PROJECT)
    assert library.storage.tokens.access_token not in seen


def test_a_connection_that_the_person_ended_is_over_at_the_next_call(house: OAuthWorld) -> None:
    library = Library(house)
    library.calls("memory_status")
    with house.person("ann") as person:
        page = person.http.get("/connections").text
        grant_id = house.world.gate.oauth_connections(house.world.caller("ann"))[0]["grant_id"]
        assert grant_id in page
        token = page.partition('name="form_token" value="')[2].partition('"')[0]
        ended = person.http.post(f"/connections/{grant_id}/end", data={"form_token": token})
        assert ended.status_code == 303
    assert library.storage.tokens is not None
    assert house.calls(library.storage.tokens.access_token).status_code == 401


def test_the_metadata_agrees_with_what_is_served(house: OAuthWorld) -> None:
    import httpx

    told = httpx.get(f"{house.url}/.well-known/oauth-authorization-server").json()
    assert told["issuer"] == house.url
    assert told["code_challenge_methods_supported"] == ["S256"]
    resource = httpx.get(f"{house.url}/.well-known/oauth-protected-resource/mcp").json()
    assert (resource["resource"], resource["authorization_servers"]) == (f"{house.url}/mcp", [house.url])
    challenged = httpx.post(f"{house.url}/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert challenged.status_code == 401
    said = challenged.headers["www-authenticate"]
    assert f'resource_metadata="{house.url}/.well-known/oauth-protected-resource/mcp"' in said
    assert 'scope="memory.branch memory.commit memory.propose memory.read memory.search"' in said
    assert json.dumps(told).count(house.url) >= 5

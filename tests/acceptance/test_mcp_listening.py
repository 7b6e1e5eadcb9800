"""Clients that listen hear that an address changed while they may see it, and nothing of what they may not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from gate_world import PROJECT, GateWorld
from mcp.client import Client

from memory_git.http.charon_app import create_charon_app, mount_mcp
from memory_git.http.serving import running
from memory_git.mcp.http import mcp_app
from memory_git.mcp.remote import connected

pytestmark = pytest.mark.slow
MAIN = f"memory://{PROJECT}/refs/shared/main"
OWN = f"memory://{PROJECT}/refs/agents/one/main"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[GateWorld, str]]:
    world = GateWorld(tmp_path / "data")
    app = create_charon_app(world.gate)
    with running(app, on_stop=world.gate.feed.close) as where:
        mount_mcp(app, mcp_app(world.gate, server_url=where.url))
        yield world, f"{where.url}/mcp"
    world.close()


@asynccontextmanager
async def listening(url: str, token: str, *uris: str) -> AsyncIterator[list[str]]:
    """Gives the addresses that a client heard of, as they come."""
    heard: list[str] = []
    client: Client
    async with (
        connected(url, token) as client,
        client.listen(resource_subscriptions=list(uris)) as stream,
    ):

        async def follow() -> None:
            async for event in stream:
                heard.append(str(getattr(event, "uri", type(event).__name__)))

        task = asyncio.ensure_future(follow())
        yield heard
        task.cancel()


async def until(heard: list[str], count: int) -> None:
    for _ in range(500):
        if len(heard) >= count:
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"heard only {heard}")


def test_who_may_see_a_branch_hears_of_it_and_who_may_not_hears_nothing(
    served: tuple[GateWorld, str],
) -> None:
    world, url = served

    async def story() -> None:
        tokens = world.tokens
        async with (
            listening(url, tokens["one"], OWN, MAIN) as author,
            listening(url, tokens["two"], OWN, MAIN) as stranger,
        ):
            await asyncio.to_thread(world.add, "one", "a", "Releases go out on Fridays.")
            await until(author, 1)
            await asyncio.to_thread(world.accept, "one")
            await until(stranger, 1)
            await until(author, 2)
            assert set(author) == {OWN, MAIN}
            assert set(stranger) == {MAIN}

    asyncio.run(story())


def test_a_revoked_token_hears_no_more(served: tuple[GateWorld, str]) -> None:
    world, url = served

    async def story() -> None:
        async with (
            listening(url, world.tokens["one"], OWN) as revoked,
            listening(url, world.tokens["bob"], MAIN) as other,
        ):
            for obol in world.gate.obols(world.operator, "one"):
                world.gate.revoke_obol(world.operator, obol["obol_id"])
            again: dict[str, Any] = world.gate.mint_obol(world.operator, "one")
            world.tokens["one"] = again["token"]
            await asyncio.to_thread(world.add, "one", "a", "Releases go out on Fridays.")
            await asyncio.to_thread(world.accept, "one")
            await until(other, 1)
            assert revoked == []

    asyncio.run(story())


def test_a_server_that_stops_ends_the_streams(tmp_path: Path) -> None:
    world = GateWorld(tmp_path / "data")
    app = create_charon_app(world.gate)
    ended = asyncio.Event()

    async def story() -> None:
        with running(app, on_stop=world.gate.feed.close) as where:
            mount_mcp(app, mcp_app(world.gate, server_url=where.url))
            async with (
                connected(f"{where.url}/mcp", world.tokens["one"]) as client,
                client.listen(resource_subscriptions=[MAIN]) as stream,
                asyncio.timeout(20),
            ):
                await asyncio.to_thread(world.gate.feed.close)
                async for _ in stream:
                    pass
                ended.set()

    asyncio.run(story())
    assert ended.is_set()
    world.close()

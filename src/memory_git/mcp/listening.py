"""`subscriptions/listen`, gated: a client hears that an address changed only while it may see what happened (6-charon, MCP).

1. What moves comes from the gate's live feed; whether the caller of the stream may learn of it is asked anew for each event, so that a
   revoked token or grant ends it.
2. An event names the address of a ref or a proposal, nothing else. An address that may not be seen is acknowledged like one that
   isn't there, and never heard of.
3. When the gate closes, every stream ends with its result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import anyio.lowlevel
from mcp.server.subscriptions import ListenHandler, ResourceUpdated, ServerEvent

from memory_git.charon.gate import Caller, Gate
from memory_git.lethe.feed import RESET, FeedEvent

Listener = Callable[[ServerEvent], None]


class GatedBus:
    """What listeners hear: of the feed what the caller of each may see; of the server itself, what its lists do."""

    def __init__(self, gate: Gate, caller: Callable[[], Caller]) -> None:
        self._gate = gate
        self._caller = caller
        self._following: dict[asyncio.Task[None], Listener] = {}
        self.handler: ListenHandler = ListenHandler(self)

    async def publish(self, event: ServerEvent) -> None:
        """Tells that a list changed; of an address only the feed tells."""
        if not isinstance(event, ResourceUpdated):
            for listener in list(self._following.values()):
                listener(event)
        await anyio.lowlevel.checkpoint()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Has a listener follow the feed for the caller of this request; gives what ends it."""
        task = asyncio.ensure_future(self._follow(self._caller(), listener, self._gate.feed.position))
        self._following[task] = listener

        def unsubscribe() -> None:
            self._following.pop(task, None)
            task.cancel()

        return unsubscribe

    async def _follow(self, caller: Caller, listener: Listener, position: str) -> None:
        feed, woken, loop = self._gate.feed, asyncio.Event(), asyncio.get_running_loop()

        def wake() -> None:
            loop.call_soon_threadsafe(woken.set)

        unwatch = feed.watch(wake)
        try:
            while not feed.closed:
                woken.clear()
                for event in feed.after(position):
                    position = event.position
                    if event.event_type != RESET and await asyncio.to_thread(
                        self._gate.may_see, caller, event
                    ):
                        for uri in addresses(event):
                            listener(ResourceUpdated(uri=uri))
                await woken.wait()
        finally:
            unwatch()
        self.handler.close()


def addresses(event: FeedEvent) -> Iterator[str]:
    """Yields the addresses of what an event is about (rule 2)."""
    facts: dict[str, Any] = event.facts
    if isinstance(facts.get("ref_name"), str):
        yield f"memory://{event.project_id}/{facts['ref_name']}"
    if isinstance(facts.get("proposal_id"), str):
        yield f"memory://{event.project_id}/proposals/{facts['proposal_id']}"

"""Server-sent events from a feed: metadata only, resumed from `Last-Event-ID`, woken by the publisher, never polling."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import orjson
from starlette.responses import StreamingResponse

from memory_git.http.positions import SealedPositions
from memory_git.lethe.feed import RESET, Feed, FeedEvent

_HEARTBEAT_S = 15.0
_RETRY_MS = 2000


def live_answer(
    feed: Feed,
    last_event_id: str | None,
    sees: Callable[[FeedEvent], bool],
    positions: SealedPositions | None = None,
) -> StreamingResponse:
    """Gives the stream of what came after a position (None: of what comes from now on) and that the reader may see.

    `positions` seals them, where there is something that the reader may not see.
    """
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    sealed = positions.sealed if positions is not None else str
    last = positions.opened(last_event_id) if positions is not None and last_event_id else last_event_id
    stream = _stream(feed, feed.position if last is None else last, sees, sealed)
    return StreamingResponse(stream, media_type="text/event-stream", headers=headers)


async def _stream(
    feed: Feed, position: str, sees: Callable[[FeedEvent], bool], sealed: Callable[[str], str]
) -> AsyncIterator[bytes]:
    woken = asyncio.Event()
    loop = asyncio.get_running_loop()

    def wake() -> None:
        loop.call_soon_threadsafe(woken.set)

    unwatch = feed.watch(wake)
    try:
        yield b"retry: %d\n\n" % _RETRY_MS
        while not feed.closed:
            woken.clear()
            seen = feed.after(position)
            for event in seen:
                position = event.position
                if event.event_type == RESET or await asyncio.to_thread(sees, event):
                    yield _frame(event, sealed(position))
            if not seen and not await _news(woken):
                yield b"id: %s\n\n" % sealed(position).encode()
    finally:
        unwatch()


async def _news(woken: asyncio.Event) -> bool:
    """Waits for the next event; decides whether one came before the connection needs a sign of life."""
    try:
        await asyncio.wait_for(woken.wait(), _HEARTBEAT_S)
    except TimeoutError:
        return False
    return True


def _frame(event: FeedEvent, position: str) -> bytes:
    content = orjson.dumps(event.to_json(), option=orjson.OPT_SORT_KEYS)
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (position.encode(), event.event_type.encode(), content)

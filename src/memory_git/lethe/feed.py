"""The live feed of one process (5-lethe, `/api/live`): what moved, in ids and names alone, in an order to resume from.

1. A position is `<epoch>-<n>`; the epoch is new at each start, n grows by one an event.
2. A reader of "after p" misses nothing: where the feed no longer holds all that came after p (another epoch, or the
   ring has gone round), it gets one `reset` first, which means: read the state anew.
3. Publish after the commit, never before.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

RESET = "reset"


@dataclass(frozen=True, slots=True)
class FeedEvent:
    """One thing that happened: `facts` hold ids, names and counts, never content."""

    position: str
    event_type: str
    project_id: str
    facts: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Gives the wire form, the `data` of a server-sent event."""
        return {"type": self.event_type, "project_id": self.project_id, **self.facts}


class Feed:
    """A ring of the latest events, shared by the threads of one process."""

    def __init__(
        self, capacity: int = 4096, epoch: str | None = None, announce: Callable[[str], None] | None = None
    ) -> None:
        self._epoch = epoch or secrets.token_hex(4)
        self._events: deque[FeedEvent] = deque(maxlen=capacity)
        self._count = 0
        self._wakes: set[Callable[[], None]] = set()
        self._lock = threading.Lock()
        self._announce = announce
        self.closed = False

    @property
    def position(self) -> str:
        """The position of the newest event."""
        return f"{self._epoch}-{self._count}"

    def publish(self, event_type: str, project_id: str, **facts: Any) -> FeedEvent:
        """Appends an event and wakes every watcher, of other processes too; gives the event with its position."""
        if self._announce is not None:
            self._announce(json.dumps([event_type, project_id, facts]))
        return self._append(event_type, project_id, facts)

    def hear(self, notice: str) -> None:
        """Appends what another process published."""
        event_type, project_id, facts = json.loads(notice)
        self._append(event_type, project_id, facts)

    def begin_anew(self) -> None:
        """Tells every watcher to read the state anew: events of other processes may have been lost."""
        with self._lock:
            self._epoch = secrets.token_hex(4)
            wakes = list(self._wakes)
        for wake in wakes:
            wake()

    def _append(self, event_type: str, project_id: str, facts: dict[str, Any]) -> FeedEvent:
        with self._lock:
            self._count += 1
            event = FeedEvent(self.position, event_type, project_id, facts)
            self._events.append(event)
            wakes = list(self._wakes)
        for wake in wakes:
            wake()
        return event

    def after(self, position: str) -> list[FeedEvent]:
        """Gives what came after a position, oldest first; a lone `reset` at the newest position where rule 2 says so."""
        with self._lock:
            seen = self._number(position)
            if seen is None or seen < self._count - len(self._events):
                return [FeedEvent(self.position, RESET, "")]
            missed = self._count - seen
            return list(self._events)[len(self._events) - missed :]

    def watch(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Has `wake` called after each event, in the publisher's thread, and at the close; gives what ends the watch."""
        with self._lock:
            self._wakes.add(wake)
        return lambda: self._forget(wake)

    def close(self) -> None:
        """Ends the feed: watchers are woken to find it closed."""
        with self._lock:
            self.closed = True
            wakes = list(self._wakes)
        for wake in wakes:
            wake()

    def _forget(self, wake: Callable[[], None]) -> None:
        with self._lock:
            self._wakes.discard(wake)

    def _number(self, position: str) -> int | None:
        epoch, _, number = position.partition("-")
        if epoch != self._epoch or not number.isascii() or not number.isdigit() or len(number) > 15:
            return None
        return int(number) if int(number) <= self._count else None

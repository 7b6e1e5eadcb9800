"""Rates of requests, per project and per principal (10-operations, limits): one that asks for too much waits, the others don't.

1. Each name has a bucket that holds a second's worth of requests, and fills at its rate; a request takes one from each of its names.
2. An empty bucket is 429 `too_many_requests`, with the seconds after which one is there again; nothing was done.
3. So many names are remembered, the latest: who was forgotten begins with a full bucket.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable

from memory_git.domain.errors import TooMany

REMEMBERED = 10_000
Name = tuple[str, str]
"""What is counted, `project` or `principal`, and which."""


class Rates:
    """The buckets of one process; any thread may take."""

    def __init__(self, per_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_s
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[Name, tuple[float, float]] = OrderedDict()

    def take(self, names: Iterable[Name]) -> None:
        """Takes a request from the bucket of each name, or raises TooMany `too_many_requests` and takes none."""
        now = self._clock()
        with self._lock:
            levels = {name: self._level(name, now) for name in names}
            for name, level in levels.items():
                if level < 1:
                    raise self._refusal(name[0], level)
            for name, level in levels.items():
                self._buckets[name] = (level - 1, now)
                self._buckets.move_to_end(name)
            while len(self._buckets) > REMEMBERED:
                self._buckets.popitem(last=False)

    def _level(self, name: Name, now: float) -> float:
        level, then = self._buckets.get(name, (math.inf, now))
        return min(max(1.0, self._per_s), level + (now - then) * self._per_s)

    def _refusal(self, counted: str, level: float) -> TooMany:
        wait_s = max(1, math.ceil((1 - level) / self._per_s))
        return TooMany(
            "too_many_requests",
            f"too many requests for one {counted}: come again after Retry-After",
            limited=counted,
            per_s=self._per_s,
            retry_after_s=wait_s,
        )

"""Python's cyclic garbage collector while much is made at once.

What a large changeset makes has no cycles, but the collector walks all of it, and everything else in memory, again and again: a
quarter of an import's time.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Collector:
    """Holds cyclic collection back for as long as anybody asks for it; what was off before stays off."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._resting = 0
        self._was_on = False

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """Holds collection back until this and every other holder is done."""
        with self._lock:
            if not self._resting:
                self._was_on = gc.isenabled()
                gc.disable()
            self._resting += 1
        try:
            yield
        finally:
            with self._lock:
                self._resting -= 1
                if not self._resting and self._was_on:
                    gc.enable()


COLLECTOR = Collector()
"""The one collector of the process."""

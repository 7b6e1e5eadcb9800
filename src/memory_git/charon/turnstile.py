"""Lets mutations pass together, and a backup only when none is under way (10-operations, backup)."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Turnstile:
    """Counts the mutations under way in this process."""

    def __init__(self) -> None:
        self._state = threading.Condition()
        self._inside = 0
        self._closed = False

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Holds for one mutation; waits while the turnstile is closed."""
        with self._state:
            self._state.wait_for(lambda: not self._closed)
            self._inside += 1
        try:
            yield
        finally:
            with self._state:
                self._inside -= 1
                self._state.notify_all()

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Holds while no mutation is under way and none begins."""
        with self._state:
            self._state.wait_for(lambda: not self._closed)
            self._closed = True
            self._state.wait_for(lambda: self._inside == 0)
        try:
            yield
        finally:
            with self._state:
                self._closed = False
                self._state.notify_all()

"""Lets mutations pass together, and a backup only when none is under way (10-operations, backup)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from memory_git.charon.steps import Step, Told


class Turnstile:
    """Counts the mutations under way in this process."""

    def __init__(self) -> None:
        self._state = threading.Condition()
        self._inside = 0
        self._closed = False

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Holds for one mutation; waits while the turnstile is closed."""
        self.enter()
        try:
            yield
        finally:
            self.leave()

    def entering(self) -> Step[None]:
        """Gives the step of waiting and entering; who waits for it on a loop has a thread of its own wait meanwhile."""
        return Step(self.enter, self._enter_soon)

    def enter(self) -> None:
        """Enters, after waiting while the turnstile is closed."""
        with self._state:
            self._state.wait_for(lambda: not self._closed)
            self._inside += 1

    def leave(self) -> None:
        """Leaves again."""
        with self._state:
            self._inside -= 1
            self._state.notify_all()

    def enter_if_open(self) -> bool:
        """Enters without waiting, and says whether it did."""
        with self._state:
            if not self._closed:
                self._inside += 1
            return not self._closed

    def _enter_soon(self, told: Told) -> Callable[[], None]:
        threading.Thread(target=self._enter_and_tell, args=(told,), daemon=True).start()
        return lambda: None

    def _enter_and_tell(self, told: Told) -> None:
        self.enter()
        told()

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

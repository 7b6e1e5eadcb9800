"""What a verification counts and finds (5-lethe, verify)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from memory_git.domain.errors import Corrupt, Refused

Progress = Callable[[str, int, int], None]
"""Takes what is being checked, how many are done, and how many there are."""


class Report:
    """Counts what was checked and keeps the faults."""

    def __init__(self, progress: Progress) -> None:
        self.checked: Counter[str] = Counter()
        self.faults: list[dict[str, Any]] = []
        self.progress = progress

    def fault(self, kind: str, object_id: object, why: str) -> None:
        """Notes a fault."""
        self.faults.append({"kind": kind, "object_id": str(object_id), "why": why})

    def expect(self, holds: bool, kind: str, object_id: object, why: str) -> None:
        """Notes a fault unless something holds."""
        if not holds:
            self.fault(kind, object_id, why)

    @contextmanager
    def each(self, kind: str, object_id: object) -> Iterator[None]:
        """Counts one object, and turns corruption, or a stored thing that can't even be read, into a fault."""
        self.checked[kind] += 1
        try:
            yield
        except Corrupt as error:
            self.fault(error.kind, error.object_id, error.why)
        except (
            Refused,
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            IndexError,
            AssertionError,
        ) as error:
            why = error.message if isinstance(error, Refused) else type(error).__name__
            self.fault(kind, object_id, f"can't be read: {why}")

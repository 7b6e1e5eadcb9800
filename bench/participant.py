"""What every participant does the same way: takes the same changes from the stream, and times only its own work.

Timed is what stands between the two readings of the clock: the participant's calls from the first to the last, each durable when it
returns. Making ids and texts, starting branches, warming up and checking the answers are outside.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.records import Edit, edits, new_texts

DIFF_EDITS = 10
MERGE_EDITS = 100
Json = dict[str, Any]


class Clock:
    """Seconds on the wall and of this process's processor time."""

    seconds = 0.0
    cpu_seconds = 0.0

    def told(self, **more: Any) -> Json:
        """Gives both readings in the wire form."""
        return {"seconds": self.seconds, "cpu_seconds": self.cpu_seconds, **more}


@contextmanager
def timed() -> Iterator[Clock]:
    """Reads the clocks around what is inside."""
    clock = Clock()
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        yield clock
    finally:
        clock.seconds = time.perf_counter() - wall
        clock.cpu_seconds = time.process_time() - cpu


class Participant(ABC):
    """The verbs that all have; a version control system fills in the steps."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.base = 0
        self._place = 0
        self._texts = 0
        self._pairs: list[tuple[str, str]] = []

    @abstractmethod
    def version(self) -> str:
        """Names the program and its version."""

    @abstractmethod
    def begin(self) -> None:
        """Opens the folder, ready to commit to its main branch."""

    def open(self, base: int, first: int = 0) -> None:
        """Begins, and takes changes from the `first` on."""
        self.base = base
        self._place = self._texts = first
        self.begin()

    @abstractmethod
    def close(self) -> None:
        """Lets go of the folder, with everything in it moved to where it stays."""

    @abstractmethod
    def commit(self, changes: Sequence[Edit]) -> str:
        """Commits changes to the main branch in one commit, durable on return; gives the new head."""

    @abstractmethod
    def head(self) -> str:
        """Gives the head of the main branch."""

    @abstractmethod
    def read_diff(self, before: str, after: str) -> int:
        """Reads what differs between two commits, with the texts of both sides; gives how many memories."""

    @abstractmethod
    def fork(self, left: Sequence[Edit], right: Sequence[Edit]) -> Any:
        """Commits one side to the main branch and the other to a new branch from the same head; gives that branch."""

    @abstractmethod
    def join(self, branch: Any) -> str:
        """Merges a branch into the main branch, durable on return; gives the new head."""

    @abstractmethod
    def parents(self, commit: str) -> int:
        """Counts the parents of a commit."""

    def modes(self, count: int) -> Json:
        """Tries the ways this participant can commit one change, takes the fastest, and gives each one's commits a second."""
        del count
        return {}

    def take(self, count: int) -> list[Edit]:
        """Takes the next changes of the stream."""
        taken = edits(self.base, self._place, count)
        self._place += count
        return taken

    def take_texts(self, count: int) -> list[Edit]:
        """Takes the next changes that give old memories other texts."""
        taken = new_texts(self.base, self._texts, count)
        self._texts += count
        return taken

    # verbs

    def commit_one(self, count: int) -> Json:
        """Times so many commits of one change each, one after the other."""
        changes = self.take(count)
        with timed() as clock:
            for change in changes:
                self.commit([change])
        return clock.told(count=count)

    def commit_batch(self, batches: int, width: int) -> Json:
        """Times commits of one change each, `width` of them a sync if this participant can do that, else one by one."""
        return self.commit_one(batches * width)

    def prepare_diff(self, pairs: int, *, mixed: bool = False) -> None:
        """Makes pairs of commits with ten changes between them: other texts of old memories, or half of them new ones."""
        self._pairs = []
        for _ in range(pairs):
            before = self.head()
            changes = (self.take if mixed else self.take_texts)(DIFF_EDITS)
            self._pairs.append((before, self.commit(changes)))

    def diff(self, rounds: int) -> Json:
        """Times reading each pair's difference so many times."""
        with timed() as clock:
            found = [self.read_diff(*pair) for _ in range(rounds) for pair in self._pairs]
        assert set(found) == {DIFF_EDITS}, f"a difference of {set(found)} memories"
        return clock.told(count=len(found))

    def merge(self, *, mixed: bool = False) -> Json:
        """Times one merge of two branches with a hundred changes each, disjoint, that start from one commit."""
        take = self.take if mixed else self.take_texts
        branch = self.fork(take(MERGE_EDITS), take(MERGE_EDITS))
        with timed() as clock:
            head = self.join(branch)
        assert self.parents(head) == 2, "the merge has two parents"
        return clock.told(count=1)

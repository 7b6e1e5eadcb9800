"""The bases that benchmarks start from: each built once a run, in a process of its own, and copied for each use."""

from __future__ import annotations

import importlib.util
import itertools
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench import records
from bench.figures import progress
from bench.processes import Failed, Process
from bench.registry import Scale

_PACKAGES = {"doltlite": "doltlite", "pygit2": "pygit2", "dulwich": "dulwich"}
_AS_IN = {"pygit2": "git", "dulwich": "git"}
"""The git peers start from one base."""


MOST_COPIED = 100_000
MOST_CHANGES = 1_000_000
"""More changes than one benchmark makes: the next one on the same base begins beyond them."""


class Absent(Exception):
    """A peer is not installed here."""


class Fixtures:
    """Bases below one scratch folder, by participant and size; `told` keeps what building them measured."""

    def __init__(self, scratch: Path, scale: Scale) -> None:
        self.scratch = scratch
        self.scale = scale
        self.sizes = scale.sizes
        self.told: dict[tuple[str, int], Any] = {}
        self._numbers = itertools.count()

    def order(self, count: int) -> Path:
        """Gives the file with the key order of so many memories."""
        path = self.scratch / f"order-{count}"
        if not path.exists():
            records.write_key_order(path, count)
        return path

    def base(self, name: str, count: int) -> Path:
        """Gives the folder of a participant's base, built at first use."""
        name = _AS_IN.get(name, name)
        folder = self.scratch / f"{name}-{count}"
        if (name, count) not in self.told:
            progress(f"builds the base of {name} with {count:,} memories")
            self.told[name, count] = self.build(name, count, folder)
        return folder

    def build(self, name: str, count: int, folder: Path) -> Any:
        """Builds a base in a folder, and gives what the participant tells of it."""
        require(name)
        folder.mkdir()
        arguments = {"order": str(self.order(count))} if name == "ours" else {}
        with Process(name, folder) as process:
            return process.ask("build", count=count, **arguments)

    @contextmanager
    def copy(self, name: str, count: int) -> Iterator[Process]:
        """Lends a participant that has opened a copy of its base, deleted afterwards; a very large base is lent itself."""
        require(name)
        folder = base = self.base(name, count)
        use = next(self._numbers)
        if count <= MOST_COPIED:
            folder = self.scratch / f"{name}-{count}-{use}"
            copy_durably(base, folder)
        try:
            with Process(name, folder) as process:
                process.ask("open", base=count, first=0 if folder != base else use * MOST_CHANGES)
                yield process
        finally:
            if folder != base:
                shutil.rmtree(folder)

    @contextmanager
    def copies(self, *wanted: tuple[str, int]) -> Iterator[list[Process]]:
        """Lends several at once."""
        with ExitStack() as stack:
            yield [stack.enter_context(self.copy(*each)) for each in wanted]

    @contextmanager
    def empty(self, name: str) -> Iterator[Process]:
        """Lends a participant with an empty folder, deleted afterwards."""
        require(name)
        folder = self.scratch / f"{name}-empty-{next(self._numbers)}"
        folder.mkdir()
        try:
            with Process(name, folder) as process:
                yield process
        finally:
            shutil.rmtree(folder)


def copy_durably(base: Path, folder: Path) -> None:
    """Copies a folder and syncs the copy, so that nothing of it is written during a measurement."""
    shutil.copytree(base, folder)
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())


def require(name: str) -> None:
    """Raises Absent for a peer that is not installed."""
    if name in _PACKAGES and importlib.util.find_spec(_PACKAGES[name]) is None:
        raise Absent(f"{name} is not installed")
    if name == "git" and shutil.which("git") is None:
        raise Absent("git is not installed")


__all__ = ["Absent", "Failed", "Fixtures", "Process", "require"]

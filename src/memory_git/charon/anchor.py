"""The ledger's anchor: the last link of each chain, outside the database (6-charon, audit ledger).

Who replaces a whole chain, or cuts its end off, must replace this file too.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from memory_git.charon.side_file import write_durably

FORMAT = "memory-git-ledger-anchor/v1"
_FILE = "ledger-heads.json"

Heads = dict[str, tuple[int, str]]


class Anchor:
    """One file of chain heads, shared by the processes of a data directory; a head only moves forward, but for a restore."""

    def __init__(self, place: Path) -> None:
        self.path = place if place.suffix else place / _FILE

    def heads(self) -> Heads:
        """Gives the anchored (seq, link) by project; empty when nothing was anchored yet."""
        try:
            stored = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        return {project: (head["seq"], head["link"]) for project, head in stored["heads"].items()}

    def move(self, heads: Mapping[str, tuple[int, str]]) -> None:
        """Anchors newer heads, durably; the file is replaced whole."""
        with self._held():
            known = self.heads()
            known.update(
                {name: head for name, head in heads.items() if head[0] > known.get(name, (0, ""))[0]}
            )
            self._replace(known)

    def set_back(self, heads: Mapping[str, tuple[int, str] | None]) -> None:
        """Anchors older heads after a restore; None lets go of a chain."""
        if heads:
            with self._held():
                known: dict[str, tuple[int, str] | None] = {**self.heads(), **heads}
                self._replace({name: head for name, head in known.items() if head is not None})

    @contextmanager
    def _held(self) -> Iterator[None]:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(
            self.path.with_name(f".{self.path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def _replace(self, heads: Heads) -> None:
        shown = {name: {"seq": seq, "link": link} for name, (seq, link) in sorted(heads.items())}
        content = json.dumps({"format": FORMAT, "heads": shown}, indent=1)
        write_durably(self.path, content.encode())

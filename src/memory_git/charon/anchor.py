"""The ledger's anchor: the last link of each chain, outside the database (6-charon, audit ledger).

Who replaces a whole chain, or cuts its end off, must replace this file too.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path

FORMAT = "memory-git-ledger-anchor/v1"
_FILE = "ledger-heads.json"

Heads = dict[str, tuple[int, str]]


class Anchor:
    """One file of chain heads, shared by the processes of a data directory; a head only ever moves forward."""

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
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(
            self.path.with_name(f".{self.path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            known = self.heads()
            known.update(
                {name: head for name, head in heads.items() if head[0] > known.get(name, (0, ""))[0]}
            )
            self._replace(known)
        finally:
            os.close(lock)

    def _replace(self, heads: Heads) -> None:
        shown = {name: {"seq": seq, "link": link} for name, (seq, link) in sorted(heads.items())}
        new = self.path.with_name(f".{self.path.name}.new")
        with os.fdopen(
            os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8"
        ) as file:
            json.dump({"format": FORMAT, "heads": shown}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path)

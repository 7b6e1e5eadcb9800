"""The audit of reads while the databases are read-only: a file of chained lines (6-charon, audit ledger)."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memory_git.domain.chain import link_keyed


class SideFile:
    """One file of `{view, previous, link}` lines, continued where the last start left it."""

    def __init__(self, path: Path, key: bytes) -> None:
        self.path = path
        self._key = key
        self._lock = threading.Lock()
        self._previous = _last_link(path)
        self._file = os.fdopen(
            os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a", encoding="utf-8"
        )

    def append(self, view: Mapping[str, Any]) -> None:
        """Appends one line."""
        with self._lock:
            link = link_keyed(self._key, self._previous, view)
            line = {"view": dict(view), "previous": self._previous, "link": link}
            self._file.write(json.dumps(line, ensure_ascii=False, sort_keys=True) + "\n")
            self._file.flush()
            self._previous = link

    def close(self) -> None:
        """Closes the file, durable."""
        with self._lock:
            os.fsync(self._file.fileno())
            self._file.close()


def write_durably(path: Path, content: bytes) -> None:
    """Replaces a file whole; what is there after a crash is the old one or the new one."""
    new = path.with_name(f".{path.name}.new")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def _last_link(path: Path) -> str | None:
    if not path.exists():
        return None
    lines = path.read_text(encoding="utf-8").splitlines()
    return str(json.loads(lines[-1])["link"]) if lines else None

"""What a commit of one change adds to the files: ours over theirs, N = 100k, the base left out.

Each makes the same commits (half new texts, half new memories) and closes, so that a write-ahead log is moved into its file; counted are
all bytes of all files, as lengths. Ours counts pages that were free before and are used now as growth. Nobody vacuums or packs.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import apsw

from bench.figures import Figure, progress, unmeasured
from bench.fixtures import Absent, Failed, Fixtures, Process, copy_durably

_SIZE = "100k"


def run(fixtures: Fixtures, *, quick: bool) -> list[Figure]:
    """Gives the figures of this benchmark."""
    count = 1_000 if quick else 5_000
    progress("bytes_per_commit")
    ours = _growth(fixtures, "ours", count)
    found = []
    for peer, commits in (("doltlite", count), ("pygit2", count // 10)):
        key = f"bytes_per_commit_100k_vs_{peer}"
        try:
            theirs = _growth(fixtures, peer, commits)
        except (Absent, Failed) as error:
            found.append(unmeasured(key, str(error), peer))
            continue
        runs = [{"ours_bytes": round(ours[0]), "theirs_bytes": round(theirs[0])}]
        note = f"{ours[0]:,.0f} bytes against {theirs[0]:,.0f}"
        progress(f"{key}: {note}")
        found.append(Figure(key, ours[0] / theirs[0], fixtures.sizes[_SIZE], runs, peer, theirs[1], note))
    return found


def _growth(fixtures: Fixtures, name: str, count: int) -> tuple[float, str]:
    """Gives the bytes that a commit adds, and the participant's version."""
    n = fixtures.sizes[_SIZE]
    folder = fixtures.scratch / f"{name}-bytes"
    copy_durably(fixtures.base(name, n), folder)
    try:
        with Process(name, folder) as process:
            process.ask("open", base=n)
            process.ask("close")
            before = _used(folder)
            process.ask("open", base=n)
            process.ask("commit_one", count=count)
            version = process.ask("version")
        after = _used(folder)
        return max(after[at] - before[at] for at in range(2)) / count, version
    finally:
        shutil.rmtree(folder)


def _used(folder: Path) -> tuple[int, int]:
    """Gives the bytes of all files, and the same without a store's free pages."""
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    free = 0
    if (folder / "lethe.db").exists():
        connection = apsw.Connection(str(folder / "lethe.db"), flags=apsw.SQLITE_OPEN_READONLY)
        free = connection.pragma("freelist_count") * connection.pragma("page_size")
        connection.close()
    return size, size - free

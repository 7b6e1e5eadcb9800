"""Lethe's start: from the start of the process `lethe serve` until `/api/readyz` says yes, seconds; the median of the runs.

The store holds the most memories of the run and a history of the long length upon them (`start_1m_s`: a million, 100,000 changesets; in
the quick run 100k and 5,000). The operating system has read the file before.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from bench.figures import Figure, middle, progress
from bench.fixtures import Fixtures
from bench.processes import ROOT, Process

_WIDTH = 32
_ROUNDS = 5
_LONGEST_S = 120.0


def run(fixtures: Fixtures, *, quick: bool) -> list[Figure]:
    """Gives the figure of this benchmark."""
    memories = fixtures.scale.most
    changesets = fixtures.scale.changesets // (4 if quick else 1)
    with fixtures.copy("ours", memories) as process:
        folder = _with_history(process, changesets)
        process.end()
        runs = [_start(folder) for _ in range(_ROUNDS)]
    progress(f"start_1m_s {middle(runs):.2f}")
    note = f"{memories:,} memories, {changesets:,} changesets"
    return [Figure("start_1m_s", middle(runs), memories, runs, note=note)]


def _with_history(process: Process, changesets: int) -> Path:
    """Commits so many changesets to branches, 32 at once, and gives the folder."""
    progress(f"commits {changesets:,} changesets")
    process.ask("commit_batch", batches=changesets // _WIDTH, width=_WIDTH)
    return process.folder


def _start(folder: Path) -> float:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "LETHE_DATA_DIR": str(folder), "LETHE_API_KEY": "the-key-of-the-benchmarks"}
    begun = time.perf_counter()
    server = subprocess.Popen(
        [sys.executable, "-m", "memory_git.cli.lethe", "serve", "--http", f"127.0.0.1:{port}"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
    )
    try:
        while not _is_ready(port):
            assert server.poll() is None, "the server ended"
            assert time.perf_counter() - begun < _LONGEST_S, "the server did not become ready"
            time.sleep(0.005)
        return time.perf_counter() - begun
    finally:
        server.terminate()
        server.wait()


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError):
        return False

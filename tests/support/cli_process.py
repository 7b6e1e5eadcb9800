"""The programs as real processes, in a world without settings of its own."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

BIN = Path(sys.executable).parent
PATIENCE_S = 30.0


@dataclass
class Programs:
    """`lethe` and `charon` on one data directory."""

    data: Path
    extra: dict[str, str] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("LETHE_", "CHARON_", "MEMORY_GIT_"))
        }
        empty = self.data.parent / "settings.toml"
        empty.touch()
        return {**kept, "CHARON_DATA_DIR": str(self.data), "MEMORY_GIT_CONFIG": str(empty), **self.extra}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [BIN / words[0], *words[1:]],
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )

    @contextmanager
    def serving(self, *words: str) -> Iterator[Served]:
        """Starts `charon serve --json ...` or `lethe serve --json ...` on a free port; ends it by SIGTERM."""
        began = time.monotonic()
        process = subprocess.Popen(
            [BIN / words[0], "serve", "--json", "--http", "127.0.0.1:0", *words[1:]],
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        served = Served(process, began)
        try:
            served.read_first_line()
            yield served
        finally:
            if process.poll() is None:
                served.end(signal.SIGTERM)
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()


@dataclass
class Served:
    """One server process, and the line it told about itself."""

    process: subprocess.Popen[str]
    began: float
    told: dict[str, Any] = field(default_factory=dict)

    @property
    def address(self) -> str:
        return str(self.told["address"])

    def read_first_line(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE_S)
        line = self.process.stdout.readline() if ready else ""
        assert line, f"it did not start: {self.process.stderr.read() if self.process.poll() else 'no word'}"
        self.told = json.loads(line)

    def get(self, path: str, token: str | None = None) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.get(f"{self.address}{path}", headers=headers, timeout=PATIENCE_S)

    def seconds_until_ok(self, method: str, path: str, **request: Any) -> float:
        """Gives how long after the start a request was first answered with 200."""
        while time.monotonic() - self.began < PATIENCE_S:
            answer = httpx.request(method, f"{self.address}{path}", timeout=PATIENCE_S, **request)
            if answer.status_code == 200:
                return time.monotonic() - self.began
        raise AssertionError(f"{path} never answered 200")

    def end(self, with_signal: signal.Signals) -> int:
        self.process.send_signal(with_signal)
        return self.process.wait(PATIENCE_S)

"""Participants as processes: started, asked, and ended by the one that measures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).parent.parent


class Failed(Exception):
    """A participant could not do what it was asked; the text is its last line of error."""


class Process:
    """One participant in a process of its own; ended on exit."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.worker", name, str(folder)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def ask(self, verb: str, **arguments: Any) -> Any:
        """Gives what a verb of the participant returns; raises Failed with what it raised."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"verb": verb, "arguments": arguments}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise Failed(f"{self.name} ended with {self._process.wait()} while asked to {verb}")
        answer = json.loads(line)
        if "error" in answer:
            print(answer["error"], file=sys.stderr)
            raise Failed(f"{self.name}, {verb}: {answer['error'].strip().splitlines()[-1]}")
        return answer["answer"]

    def end(self) -> None:
        """Ends the process and waits for it; what it holds open it closes itself."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

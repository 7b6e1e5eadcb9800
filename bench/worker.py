"""`python -m bench.worker NAME FOLDER`: one participant in a process of its own; a line of JSON asks, a line answers."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

MODULES = {
    "ours": "bench.ours",
    "raw": "bench.raw",
    "http_ours": "bench.http_ours",
    "http_gate": "bench.http_gate",
    "http_bare": "bench.http_bare",
    "http_load": "bench.http_load",
    "face_lethe": "bench.face_lethe",
    "face_charon": "bench.face_charon",
    "doltlite": "bench.peers.doltlite",
    "pygit2": "bench.peers.libgit2",
    "dulwich": "bench.peers.dulwich",
    "git": "bench.peers.git_program",
}
"""Each module has a class Participant; nothing of it is imported anywhere but in the worker."""


def serve(name: str, folder: Path) -> None:
    """Answers calls of a participant's verbs until its standard input ends; whatever else prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    participant = importlib.import_module(MODULES[name]).Participant(folder)
    for line in sys.stdin:
        call = json.loads(line)
        answer: dict[str, Any]
        try:
            answer = {"answer": getattr(participant, call["verb"])(**call["arguments"])}
        except Exception:
            answer = {"error": traceback.format_exc()}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    participant.close()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        serve(sys.argv[1], Path(sys.argv[2]))

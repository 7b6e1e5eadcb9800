"""One history, many processes: digests, roots and answers do not depend on the process (4-history, state)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "tests" / "support" / "history_program.py"


def printed(verb: str, folder: Path, seed: str) -> list[str]:
    path = os.pathsep.join([str(ROOT / "src"), str(PROGRAM.parent)])
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path}
    command = [sys.executable, str(PROGRAM), verb, str(folder)]
    ran = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr.decode()
    return ran.stdout.decode().splitlines()


@pytest.mark.slow
def test_every_digest_root_and_answer_is_the_same_under_any_hash_seed(tmp_path: Path) -> None:
    folders = [tmp_path / seed for seed in ("0", "1", "4294967295", "random")]
    for folder in folders:
        folder.mkdir()
    first, *others = (printed("write", folder, folder.name) for folder in folders)
    kinds = {line.split()[0] for line in first}
    assert kinds == {"made", "refused", "plan", "answer"}
    for other in others:
        assert other == first


@pytest.mark.slow
def test_a_state_is_the_fold_of_its_history_from_any_starting_point_in_any_process(tmp_path: Path) -> None:
    printed("write", tmp_path, "0")
    first = printed("fold", tmp_path, "17")
    rows = [line.split() for line in first]
    assert sum(start != name for start, name, _, _ in rows) > 100
    for start, name, stored, folded in rows:
        assert stored == folded, f"folded from {start}, {name} has another root"
    assert printed("fold", tmp_path, "random") == first

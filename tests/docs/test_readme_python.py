"""The Python of README runs as it stands there, and prints what was accepted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from memory_git.charon.gate import Gate

ROOT = Path(__file__).parent.parent.parent


def test_the_example_commits_proposes_reviews_merges_and_recalls(tmp_path: Path) -> None:
    gate = Gate.open(tmp_path / "memory")
    local = gate.as_operator()
    gate.init_project(local, "atlas")
    for name, kind, profile in (("builder", "agent", "propose"), ("bob", "human", "review")):
        gate.add_principal(local, name, kind, profile=profile)
        gate.grant(local, name, "atlas")
    gate.close()
    [example] = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", example],
        cwd=tmp_path,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['Releases go out on Fridays.']"

"""The benchmarks' keys are documented, and a small benchmark really runs; what it measures is asserted nowhere."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
_TINY = """
import sys
from pathlib import Path
from bench.__main__ import measure
from bench.registry import Scale
measure(["checkout"], Path(sys.argv[1]), Path(sys.argv[2]), quick=True, scale=Scale({"10k": 100, "100k": 200}, 100))
"""


def in_root(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def registered() -> dict[str, str]:
    rows = (line.split("\t") for line in in_root("-m", "bench", "--list").splitlines())
    return {key: bar for _, key, bar in rows}


def test_the_docs_name_every_key_and_no_other() -> None:
    text = (ROOT / "docs" / "BENCHMARKS.md").read_text(encoding="utf-8")
    section = text.partition("## The keys")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(named) == sorted(registered())


@pytest.mark.slow
def test_a_tiny_benchmark_runs_and_writes_its_figures(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    in_root("-c", _TINY, str(results), str(tmp_path / "scratch"))
    written: dict[str, Any] = json.loads(results.read_text(encoding="utf-8"))
    assert set(written) == {"figures", "machine"}
    assert {"cores", "python", "sqlite", "fdatasync_s"} <= set(written["machine"])
    figure = written["figures"]["checkout_one_1m_over_10k"]
    assert {"value", "unit", "bar", "n", "runs", "peer", "peer_version", "command"} <= set(figure)
    assert (figure["bar"], figure["unit"], figure["n"]) == (2, "ratio", 200)
    assert figure["value"] > 0
    assert len(figure["runs"]) > 1
    unmeasured = written["figures"]["checkout_one_1m_ms"]
    assert (unmeasured["value"], unmeasured["note"]) == (None, "only in the full run")
    assert list((tmp_path / "scratch").iterdir()) == []

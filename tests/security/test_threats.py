"""THREATS.md names tests that there are."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_each_test_that_the_threats_name_is_there() -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "THREATS.md").read_text("utf-8")))
    there = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text("utf-8"), re.MULTILINE)
    }
    assert named - there == set()
    assert len(named) > 60


def test_each_row_of_the_threats_has_a_check_and_a_test() -> None:
    rows = [line for line in (ROOT / "THREATS.md").read_text("utf-8").splitlines() if line.startswith("| ")]
    bare = [
        row
        for row in rows
        if not row.startswith("| attacker") and ("`test_" not in row or row.count("|") != 5)
    ]
    assert bare == []

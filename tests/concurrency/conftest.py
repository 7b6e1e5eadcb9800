"""Fixtures of this kind of test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "support"))

from gate_world import GateWorld


@pytest.fixture
def world(tmp_path: Path) -> Iterator[GateWorld]:
    """Gives a gate with its people, closed in the end."""
    made = GateWorld(tmp_path / "data")
    yield made
    made.close()

"""Hostile messages to the MCP face over a socket, in both eras (bench.mcp_fuzzing): no 5xx, no traceback, no content in an error."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from bench.mcp_fuzz import FACE, MESSAGES, QUICK_MESSAGES
from bench.mcp_fuzzing import fuzz_mcp
from bench.processes import Process

COUNTS = [
    QUICK_MESSAGES,
    pytest.param(MESSAGES, marks=[pytest.mark.deep, pytest.mark.timeout(3600)]),
]


@pytest.mark.slow
@pytest.mark.parametrize("count", COUNTS)
def test_no_message_gets_an_error_of_the_server_or_content_in_an_error(tmp_path: Path, count: int) -> None:
    with Process(FACE, tmp_path) as face:
        found = fuzz_mcp(face.ask("serve"), face.ask("tools"), count=count, seed=count)
        assert found.faults == []
        assert found.sent == count
        assert face.ask("errors") == []
    assert found.statuses[200] > count / 4, "messages that are right reach the verbs"

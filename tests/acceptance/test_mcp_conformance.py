"""The conformance suite of MCP against the product's server, in both eras: every check passes, and none is expected to fail."""

from __future__ import annotations

import re
from pathlib import Path

import conformance_server
import pytest
from node_programs import NodeProgram, installed

pytestmark = [
    pytest.mark.deep,
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.filterwarnings("ignore:.*deprecated as of 2026-07-28"),
]

SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
SCRIPT = "@modelcontextprotocol/conformance/dist/index.js"
EXPECTED_FAILURES = Path(__file__).parents[1] / "data" / "mcp_expected_failures.yml"
LEAST_CHECKS = {"2026-07-28": 152, "2025-11-25": 84}
NEED_SESSIONS = {
    "tools-call-sampling",
    "tools-call-elicitation",
    "elicitation-sep1034-defaults",
    "elicitation-sep1330-enums",
}
"""What asks the client back in the old era; the product asks nobody back, and keeps no sessions (chapter 6)."""


@pytest.fixture(scope="session")
def suite() -> NodeProgram:
    return installed(SCRIPT, SUITE)


def run(suite: NodeProgram, url: str, version: str) -> tuple[dict[str, tuple[int, int]], str]:
    """Gives passed and failed checks by scenario, and what was printed."""
    done = suite(
        *("server", "--url", url.replace("127.0.0.1", "localhost"), "--suite", "all"),
        *("--spec-version", version, "--expected-failures", str(EXPECTED_FAILURES)),
        timeout_s=300,
    )
    rows = re.findall(r"^[✓✗~] ([a-z0-9-]+): (\d+) passed, (\d+) failed", done.stdout, re.MULTILINE)
    assert rows, done.stdout[-2000:] + done.stderr[-2000:]
    return {name: (int(passed), int(failed)) for name, passed, failed in rows}, done.stdout


@pytest.mark.parametrize("version", LEAST_CHECKS)
def test_every_check_of_the_suite_passes(suite: NodeProgram, tmp_path: Path, version: str) -> None:
    with conformance_server.serving(tmp_path / "memory", sessions=version == "2025-11-25") as url:
        found, told = run(suite, url, version)
    assert {name: counts for name, counts in found.items() if counts[1]} == {}, told[-4000:]
    assert sum(passed for passed, _ in found.values()) >= LEAST_CHECKS[version]


def test_without_sessions_the_old_era_lacks_only_what_asks_the_client_back(
    suite: NodeProgram, tmp_path: Path
) -> None:
    with conformance_server.serving(tmp_path / "memory", sessions=False) as url:
        found, _ = run(suite, url, "2025-11-25")
    assert {name for name, (_, failed) in found.items() if failed} == NEED_SESSIONS


def test_nothing_is_expected_to_fail() -> None:
    assert EXPECTED_FAILURES.read_text("utf-8").strip() == "server: []"

"""What hostile MCP messages find wrong with the gate's face, served for real over a socket: `mcp_fuzz_faults` (`mcp_fuzzing`)."""

from __future__ import annotations

from bench.figures import Figure, progress
from bench.fixtures import Fixtures
from bench.mcp_fuzzing import fuzz_mcp

FACE = "face_charon"
QUICK_MESSAGES, MESSAGES = 5_000, 100_000


def run(fixtures: Fixtures, *, quick: bool) -> list[Figure]:
    """Gives the figure of this benchmark."""
    with fixtures.empty(FACE) as face:
        served = face.ask("serve")
        found = fuzz_mcp(served, face.ask("tools"), count=QUICK_MESSAGES if quick else MESSAGES)
        found.faults += [f"logged: {line}" for line in face.ask("errors")]
    for fault in found.faults[:5]:
        progress(fault)
    statuses = {str(status): count for status, count in sorted(found.statuses.items())}
    note = f"{found.sent:,} messages; 5xx: {found.server_errors}"
    return [Figure("mcp_fuzz_faults", len(found.faults), found.sent, [statuses], note=note)]

"""What outside tools and hostile requests find wrong with the two HTTP faces, each served for real over a socket.

`schemathesis_failures`: failures of schemathesis, all its checks on (`described`); `fuzz_5xx`: answers of 500 and above (`fuzzing`).
Both faces are asked; the figure is the sum, and its note says how many calls stand behind it.
"""

from __future__ import annotations

import httpx

from bench.described import describe, first_failures
from bench.figures import Figure, progress
from bench.fixtures import Fixtures
from bench.fuzzing import fuzz
from bench.participant import Json

FACES = ("face_lethe", "face_charon")
LEFT_OUT = ("/api/backup", "/api/live", "/api/v1/live")
"""Operations that schemathesis is not let at: one writes to a folder of the machine, two stream without end."""
QUICK_EXAMPLES, EXAMPLES = 5, 100
QUICK_REQUESTS, REQUESTS = 5_000, 100_000


def run(fixtures: Fixtures, *, quick: bool) -> list[Figure]:
    """Gives the figures of this benchmark."""
    examples = QUICK_EXAMPLES if quick else EXAMPLES
    requests = QUICK_REQUESTS if quick else REQUESTS
    described: list[Json] = []
    fuzzed: list[Json] = []
    for name in FACES:
        with fixtures.empty(name) as face:
            served = face.ask("serve")
            told = describe(served, face.folder / "schemathesis", examples=examples, left_out=LEFT_OUT)
            described.append({"face": name, "cases": told.cases, "failures": told.failures})
            if told.failures:
                progress(first_failures(told))
        with fixtures.empty(name) as face:
            served = face.ask("serve")
            document = httpx.get(f"{served['url']}/api/openapi.json").json()
            found = fuzz(served, document, count=requests // len(FACES))
            found.faults += [f"logged: {line}" for line in face.ask("errors")]
            for fault in found.faults[:5]:
                progress(fault)
            statuses = {str(status): count for status, count in sorted(found.statuses.items())}
            fuzzed.append(
                {"face": name, "requests": found.sent, "statuses": statuses, "5xx": found.server_errors}
            )
            fuzzed[-1]["faults"] = len(found.faults)
    cases, sent = sum(item["cases"] for item in described), sum(item["requests"] for item in fuzzed)
    failures = sum(item["failures"] for item in described)
    errors = sum(item["5xx"] for item in fuzzed)
    other = sum(item["faults"] for item in fuzzed)
    return [
        Figure("schemathesis_failures", failures, cases, described, note=f"{cases:,} calls"),
        Figure("fuzz_5xx", errors, sent, fuzzed, note=f"{sent:,} requests; faults of any kind: {other}"),
    ]

"""The two HTTP faces against what they say of themselves, and against hostile requests, over sockets (bench.described, bench.fuzzing)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from bench.api import EXAMPLES, FACES, LEFT_OUT, QUICK_EXAMPLES, QUICK_REQUESTS, REQUESTS
from bench.described import describe, first_failures
from bench.fuzzing import fuzz, operations
from bench.processes import Process

ROOT = Path(__file__).parent.parent.parent
LENGTHS = [
    "quick",
    pytest.param("long", marks=[pytest.mark.deep, pytest.mark.timeout(3600)]),
]


@pytest.fixture(params=FACES)
def face(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Process]:
    with Process(request.param, tmp_path) as process:
        yield process


@pytest.mark.slow
@pytest.mark.parametrize("length", LENGTHS)
def test_schemathesis_finds_no_failure(face: Process, tmp_path: Path, length: str) -> None:
    served = face.ask("serve")
    examples = QUICK_EXAMPLES if length == "quick" else EXAMPLES
    told = describe(served, tmp_path / "st", examples=examples, left_out=LEFT_OUT)
    assert told.failures == 0, first_failures(told)
    assert told.cases > 1_000
    assert face.ask("errors") == []


@pytest.mark.slow
@pytest.mark.parametrize("length", LENGTHS)
def test_hostile_requests_get_no_5xx_no_content_and_leave_no_error_in_the_log(
    face: Process, length: str
) -> None:
    served = face.ask("serve")
    count = (QUICK_REQUESTS if length == "quick" else REQUESTS) // len(FACES)
    found = fuzz(served, description(served), count=count)
    assert found.faults == []
    assert found.sent == count
    assert face.ask("errors") == []
    assert found.statuses[200] > count / 10, "requests that are right reach the verbs"


@pytest.mark.slow
def test_every_operation_is_fuzzed_but_the_streams(face: Process) -> None:
    document = description(face.ask("serve"))
    described = {(method.upper(), path) for path, item in document["paths"].items() for method in item}
    asked = {(operation.method, operation.path) for operation in operations(document)}
    assert {path for _, path in described - asked} <= {"/api/live", "/api/v1/live"}


@pytest.mark.deep
@pytest.mark.slow
def test_redocly_has_nothing_to_say(face: Process, tmp_path: Path) -> None:
    script = os.environ.get("REDOCLY")
    if script is None:
        pytest.fail("`make test-all` fetches redocly and says where it is in REDOCLY")
    (tmp_path / "openapi.json").write_bytes(httpx.get(_document(face.ask("serve"))).content)
    shutil.copy(ROOT / "redocly.yaml", tmp_path)
    node = os.environ.get("NODE", "node")
    command = [node, script, "lint", "openapi.json", "--format", "json"]
    quiet = {**os.environ, "REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"}
    done = subprocess.run(
        command, cwd=tmp_path, env=quiet, capture_output=True, text=True, timeout=110, check=False
    )
    told = json.loads(done.stdout[done.stdout.index("{") :])
    assert (done.returncode, told["problems"]) == (0, [])


def description(served: dict[str, Any]) -> Any:
    return httpx.get(_document(served)).json()


def _document(served: dict[str, Any]) -> str:
    return f"{served['url']}/api/openapi.json"

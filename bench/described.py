"""schemathesis against a served face: every operation of its own description, with valid, invalid and stateful calls.

Ids of what is there are handed to it by name, so that it reaches more than 404. All its checks are on. What JSON Schema can't say (an op
list that the state allows, a cursor that this store wrote, a name nobody has yet) is allowed to be 400 though the schema is met.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.participant import Json

_BINDINGS = {
    "path.project": "projects",
    "query.project": "projects",
    "body.project": "projects",
    "body.project_id": "projects",
    "path.changeset_id": "changesets",
    "path.manifest_id": "manifests",
    "path.event_id": "events",
    "path.assembly_id": "assemblies",
    "path.conflict_id": "conflicts",
    "path.proposal_id": "proposals",
    "path.principal_id": "principals",
    "path.key": "sessions",
    "query.head": "changesets",
    "query.left": "changesets",
    "query.right": "changesets",
    "query.target": "changesets",
    "query.base": "changesets",
    "query.without": "changesets",
    "query.ancestor": "changesets",
    "query.descendant": "changesets",
    "query.head_changeset_id": "changesets",
    "query.id": "memories",
    "query.name": "refs",
    "query.ref": "refs",
    "query.ref_name": "refs",
    "query.proposal_id": "proposals",
    "body.ref_name": "refs",
    "body.ref": "refs",
    "body.head": "changesets",
    "body.onto": "changesets",
    "body.target": "changesets",
    "body.source": "changesets",
    "body.changeset_id": "changesets",
    "body.head_changeset_id": "changesets",
    "body.base_changeset_id": "changesets",
    "body.left_changeset_id": "changesets",
    "body.right_changeset_id": "changesets",
    "body.expected_head": "changesets",
    "body.new_head": "changesets",
    "body.manifest_id": "manifests",
    "body.proposal_id": "proposals",
    "body.principal": "principals",
    "body.principal_id": "principals",
}
_BEYOND_SCHEMA = (400, 413)
"""Besides the statuses that valid input may have: a rule that no schema says."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a run of schemathesis told: cases made, failures and errors, and its report."""

    cases: int
    failures: int
    text: str


def describe(
    served: Json, folder: Path, *, examples: int, seed: int = 1, left_out: tuple[str, ...] = ()
) -> Told:
    """Runs schemathesis against a face (`served` as the participants give it), so many examples an operation."""
    folder.mkdir(parents=True, exist_ok=True)
    config, report = folder / "schemathesis.toml", folder / "report.json"
    config.write_text(_config(served["ids"], left_out), encoding="utf-8")
    command = [str(Path(sys.executable).parent / "st"), "--config-file", str(config), "--no-color", "run"]
    command += [f"{served['url']}/api/openapi.json", "--max-examples", str(examples), "--seed", str(seed)]
    command += ["--continue-on-failure", "--no-shrink", "--workers", "1", "--request-timeout", "30"]
    command += ["--report", "json", "--report-json-path", str(report), "--warnings", "off"]
    for name, value in served["headers"].items():
        command += ["--header", f"{name}: {value}"]
    environment = os.environ | {"SCHEMATHESIS_HOOKS": "", "NO_COLOR": "1"}
    environment.pop("SCHEMATHESIS_HOOKS")
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=3600, check=False
    )
    found = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}
    return Told(
        _cases(found), 0 if done.returncode == 0 else max(1, _failures(found)), done.stdout + done.stderr
    )


def _cases(found: Json) -> int:
    return int(found.get("test_cases", {}).get("generated", 0))


def _failures(found: Json) -> int:
    return len(found.get("failures", ())) + len(found.get("errors", ()))


def _config(ids: dict[str, list[str]], left_out: tuple[str, ...]) -> str:
    lines = ["[parameters]"]
    lines += [
        f'"{name}" = {{ dictionary = "{kind}", probability = 0.7 }}'
        for name, kind in _BINDINGS.items()
        if kind in ids
    ]
    for kind, values in ids.items():
        lines += [f"[dictionaries.{kind}]", f"values = {json.dumps(values)}"]
    accepted = ["2xx", "401", "403", "404", "409", "429", *map(str, _BEYOND_SCHEMA)]
    lines += ["[checks.positive_data_acceptance]", f"expected-statuses = {json.dumps(accepted)}"]
    for path in left_out:
        lines += ["[[operations]]", f"include-path = {json.dumps(path)}", "enabled = false"]
    return "\n".join(lines) + "\n"


def first_failures(told: Told, most: int = 8) -> str:
    """Gives the beginning of what failed, to be read by whoever mends it."""
    text: Any = told.text
    begins = text.find("FAILURES")
    return str(text[max(0, begins) :][: most * 1_000])

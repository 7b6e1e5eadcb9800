"""What our tools cost over the SDK's own on stdio: the p50 of `memory_show` over that of a trivial tool, in turns, same client, same run.

`mcp_call_overhead`: with the client of 2026-07-28, which both servers speak.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from bench.figures import Figure, middle, progress
from bench.fixtures import Fixtures
from bench.ours import PROJECT
from bench.processes import ROOT
from memory_git.charon.gate import Gate
from memory_git.mcp.client import AgentClient

_CALLS = 200


def run(fixtures: Fixtures, *, quick: bool) -> list[Figure]:
    """Gives the figure of this benchmark."""
    with fixtures.empty("http_load") as place:
        token, changeset_id = _filled(place.folder / "memory")
        data = str(place.folder / "memory")
        ours = AgentClient.stdio(
            [
                sys.executable,
                "-m",
                "memory_git.cli.charon",
                "mcp",
                "--data-dir",
                data,
                "--toolsets",
                "history",
            ],
            {"CHARON_TOKEN": token, "PYTHONPATH": str(ROOT / "src")},
        )
        theirs = AgentClient.stdio([sys.executable, str(ROOT / "bench" / "mcp_trivial.py")])
        with ours, theirs:
            asked = {"project": PROJECT, "changeset_id": changeset_id}
            runs = [_turn(ours, theirs, asked) for _ in range(5 if quick else 15)]
    overhead = middle(told["ratio"] for told in runs)
    note = " against ".join(
        f"{middle(told[name] for told in runs):.2f} ms" for name in ("ours_ms", "theirs_ms")
    )
    progress(f"mcp_call_overhead {overhead:.3g} ({note})")
    return [
        Figure("mcp_call_overhead", overhead, _CALLS, runs, peer="trivial tool of the MCP SDK", note=note)
    ]


def _turn(ours: AgentClient, theirs: AgentClient, asked: Mapping[str, Any]) -> dict[str, float]:
    """Gives the p50 of both, call by call in turns, so that what else the machine does hits both."""
    waits: dict[str, list[float]] = {"ours_ms": [], "theirs_ms": []}
    sides: list[tuple[str, AgentClient, str, Mapping[str, Any]]] = [
        ("ours_ms", ours, "memory_show", asked),
        ("theirs_ms", theirs, "greet", {"name": "you"}),
    ]
    for number in range(_CALLS):
        for name, agent, tool, given in sides[:: -1 if number % 2 else 1]:
            began = time.perf_counter()
            agent.called(tool, given)
            waits[name].append(1000 * (time.perf_counter() - began))
    told = {name: round(median(found), 4) for name, found in waits.items()}
    return {**told, "ratio": round(told["ours_ms"] / told["theirs_ms"], 3)}


def _filled(folder: Path) -> tuple[str, str]:
    """Gives the token of an agent and a changeset of one op of its own."""
    gate = Gate.open(folder)
    operator = gate.as_operator()
    gate.init_project(operator, PROJECT)
    gate.add_principal(operator, "bench", "agent", profile="propose")
    gate.grant(operator, "bench", PROJECT)
    token = gate.mint_obol(operator, "bench", 86_400, project=PROJECT)["token"]
    op = {"op_type": "add_memory", "payload": {"content": "Releases go out on Fridays.", "kind": "decision"}}
    agent = gate.authenticate(token, "mcp")
    made = gate.commit(agent, PROJECT, message="what we agreed on", ops=[op], read_head=True)
    gate.close()
    return str(token), str(made["changeset"]["changeset_id"])

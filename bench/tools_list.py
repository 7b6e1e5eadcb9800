"""How many bytes the default `tools/list` puts into a model's context, as compact JSON, for one who may do everything.

`tools_list_bytes`: without output schemas, which clients don't show a model; `tools_list_with_output_bytes`: with them.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path

from bench.figures import Figure, progress
from bench.fixtures import Fixtures
from memory_git.charon.gate import Gate
from memory_git.mcp.server import build_server


def run(fixtures: Fixtures, *, quick: bool) -> list[Figure]:
    """Gives the figures of this benchmark."""
    del fixtures, quick
    with tempfile.TemporaryDirectory() as folder:
        gate = Gate.open(Path(folder))
        operator = gate.as_operator()
        gate.init_project(operator, "bench")
        gate.add_principal(operator, "bench", "human", profile="write")
        gate.grant(operator, "bench", "bench")
        caller = gate.authenticate(gate.mint_obol(operator, "bench", 3600)["token"], "mcp")
        listed = asyncio.run(build_server(gate, lambda: caller).list_tools())
        gate.close()
    tools = [tool.model_dump(by_alias=True, exclude_none=True) for tool in listed]
    whole = _bytes(tools)
    bare = _bytes([{name: part for name, part in tool.items() if name != "outputSchema"} for tool in tools])
    progress(f"tools_list_bytes {bare}, with output schemas {whole}")
    return [
        Figure("tools_list_bytes", bare, len(tools)),
        Figure("tools_list_with_output_bytes", whole, len(tools)),
    ]


def _bytes(tools: list[dict[str, object]]) -> int:
    return len(json.dumps({"tools": tools}, separators=(",", ":")).encode())

"""Charon's HTTP API and MCP over a gate with people, agents, work, a proposal and conflicts, served in a process of its own."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from bench.face_lethe import PLANTED, PROJECT, watch_errors
from bench.participant import Json
from memory_git.charon.gate import Gate
from memory_git.http.charon_app import create_charon_app, mount_mcp
from memory_git.http.serving import running
from memory_git.mcp.http import mcp_app
from memory_git.mcp.server import TOOLS

_PEOPLE = (
    ("boss", "human", "write", ("admin",)),
    ("builder", "agent", "propose", ()),
    ("reviewer", "human", "review", ()),
)


class Participant:
    """The gate and its face in the worker's process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._exits = ExitStack()
        self._errors = watch_errors()

    def serve(self) -> Json:
        """Fills and serves a gate; gives the address, the headers of an administrator, and ids of what is there, by kind."""
        gate = Gate.open(self._folder)
        self._exits.callback(gate.close)
        tokens, ids = _fill(gate)
        app = create_charon_app(gate)
        where = self._exits.enter_context(running(app, on_stop=gate.feed.close))
        mount_mcp(app, mcp_app(gate, server_url=where.url))
        return {"url": where.url, "headers": {"Authorization": f"Bearer {tokens['boss']}"}, "ids": ids}

    def tools(self) -> list[Json]:
        """Gives every tool as it is listed."""
        return [tool.listed().model_dump(by_alias=True, exclude_none=True) for tool in TOOLS]

    def errors(self) -> list[str]:
        """Gives what was logged as an error."""
        return self._errors.lines

    def close(self) -> None:
        """Ends the server and the gate."""
        self._exits.close()


def _fill(gate: Gate) -> tuple[dict[str, str], dict[str, list[str]]]:
    local = gate.as_operator()
    root = gate.init_project(local, PROJECT)["changeset"]["changeset_id"]
    tokens = {}
    for name, kind, profile, scopes in _PEOPLE:
        gate.add_principal(local, name, kind, profile=profile, scopes=scopes)
        gate.grant(local, name, PROJECT)
        tokens[name] = gate.mint_obol(local, name, 86_400)["token"]
    builder = gate.authenticate(tokens["builder"], "http")
    ops = [{"op_type": "add_memory", "payload": {"memory_id": "one", "content": f"A text. {PLANTED}"}}]
    made = gate.commit(builder, PROJECT, message="work", ops=ops, read_head=True)
    proposal = gate.propose(
        builder, PROJECT, source_ref="refs/agents/builder/main", message=f"Please. {PLANTED}"
    )
    context = gate.context(builder, PROJECT, create_manifest=True)
    return tokens, {
        "projects": [PROJECT],
        "changesets": [root, made["changeset"]["changeset_id"]],
        "refs": ["refs/shared/main", "refs/agents/builder/main", "refs/agents/boss/main"],
        "memories": ["one"],
        "manifests": [context["manifest_id"]],
        "proposals": [proposal["proposal_id"]],
        "principals": ["builder", "reviewer"],
    }

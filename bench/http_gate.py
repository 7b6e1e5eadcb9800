"""Ours over HTTP behind the gate: Charon's application over a gate with the store inside, served in a process of its own."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

from bench.ours import PROJECT
from bench.participant import Json
from memory_git.charon.gate import Gate
from memory_git.http.charon_app import create_charon_app
from memory_git.http.serving import running

AGENT = "bench"


class Participant:
    """A gate and its HTTP face in the worker's process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._exits = ExitStack()

    def serve(self) -> Json:
        """Opens a gate with one agent, serves it, and gives the address and what a client needs: token, project, head, namespace."""
        gate = Gate.open(self._folder)
        self._exits.callback(gate.close)
        operator = gate.as_operator()
        root = gate.init_project(operator, PROJECT)["changeset"]["changeset_id"]
        gate.add_principal(operator, AGENT, "agent", profile="propose")
        gate.grant(operator, AGENT, PROJECT)
        token = gate.mint_obol(operator, AGENT, 86_400, project=PROJECT)["token"]
        where = self._exits.enter_context(running(create_charon_app(gate), on_stop=gate.feed.close))
        return {"port": where.port, "key": token, "project": PROJECT, "head": root, "gate": AGENT}

    def cpu(self) -> float:
        """Gives the seconds of processor time that the server's process took so far."""
        return time.process_time()

    def close(self) -> None:
        """Ends the server and the gate."""
        self._exits.close()

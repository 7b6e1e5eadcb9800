"""A real gate on a real, embedded store in a folder of the test's, with two people and two agents."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from memory_git.charon.gate import Caller, Gate, GateSettings

PROJECT = "demo"
MAIN = "refs/shared/main"
PEOPLE = (
    ("ann", "human", "write"),
    ("bob", "human", "review"),
    ("cy", "human", "review"),
    ("one", "agent", "propose"),
    ("two", "agent", "propose"),
)


class GateWorld:
    """`ann` administers; `bob` and `cy` review; the agents `one` and `two` propose. `later` moves the gate's clock."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder = folder
        self.settings = GateSettings(data_dir=folder, **settings)
        self.offset = timedelta()
        self.gate = self._open()
        operator = self.gate.as_operator()
        for name, kind, profile in PEOPLE:
            self.gate.add_principal(operator, name, kind, profile=profile)
        self.gate.init_project(self.gate.as_principal("ann"), PROJECT)
        for name, _, _ in PEOPLE[1:]:
            self.gate.grant(operator, name, PROJECT)
        self.tokens = {name: self.gate.mint_obol(operator, name)["token"] for name, _, _ in PEOPLE}

    def _open(self) -> Gate:
        return Gate.open(self.settings, self.now)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.offset

    def later(self, **delta: float) -> None:
        self.offset += timedelta(**delta)

    def restart(self) -> None:
        self.gate.close()
        self.gate = self._open()

    def caller(self, name: str, surface: str = "http") -> Caller:
        return self.gate.authenticate(self.tokens[name], surface)

    @property
    def operator(self) -> Caller:
        return self.gate.as_operator()

    @property
    def lethe(self) -> Any:
        return self.gate._house.lethe

    def head(self, ref: str = MAIN) -> str:
        return str(self.lethe.resolve_ref(PROJECT, ref)["head_changeset_id"])

    def add(self, name: str, memory_id: str, content: str, **payload: Any) -> dict[str, Any]:
        """Commits one new memory to the principal's working ref."""
        op = {"op_type": "add_memory", "payload": {"memory_id": memory_id, "content": content, **payload}}
        return self.commit(name, [op])

    def correct(self, name: str, memory_id: str, **payload: Any) -> dict[str, Any]:
        """Commits a correction in place to the principal's working ref."""
        return self.commit(
            name, [{"op_type": "correct_memory", "target_event_id": memory_id, "payload": payload}]
        )

    def commit(self, name: str, ops: Sequence[Any], **keywords: Any) -> dict[str, Any]:
        keywords = {"read_head": True, **keywords} if "expected_head" not in keywords else keywords
        return self.gate.commit(self.caller(name), PROJECT, message="work", ops=ops, **keywords)

    def propose(self, name: str, **keywords: Any) -> dict[str, Any]:
        return self.gate.propose(self.caller(name), PROJECT, message="please", **keywords)

    def approve(self, proposal_id: str, name: str = "bob") -> dict[str, Any]:
        return self.gate.review(self.caller(name), proposal_id, "approve", comment="fine")

    def merge(self, proposal_id: str, name: str = "bob", **keywords: Any) -> dict[str, Any]:
        return self.gate.merge(self.caller(name), proposal_id, **keywords)

    def accept(self, name: str, **keywords: Any) -> dict[str, Any]:
        """Proposes the principal's working ref, approves and merges it."""
        proposal_id = self.propose(name, **keywords)["proposal_id"]
        self.approve(proposal_id)
        return self.merge(proposal_id)

    def content(self, memory_id: str, name: str = "bob", ref: str = MAIN) -> str:
        found = self.gate.memory(self.caller(name), PROJECT, memory_id, ref=ref)
        return str(found["record"]["content"])

    def sync(self, name: str) -> dict[str, Any]:
        """Starts a fresh branch of the principal's at accepted memory and gives its ref."""
        actor = name
        count = len(self.gate.list_refs(self.caller(name), PROJECT))
        return self.gate.create_branch(self.caller(name), PROJECT, f"refs/agents/{actor}/b{count}")

    def close(self) -> None:
        self.gate.close()

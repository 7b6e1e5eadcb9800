"""What the steps of the story hand to each other, and the order in which they run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from memory_git.cli.story.actors import Agent, Person
from memory_git.cli.story.expect import StepFailed
from memory_git.cli.story.world import PROJECT, World
from memory_git.domain.ids import SHARED_MAIN
from memory_git.lethe.protocol import Json, Lethe
from memory_git.mcp.client import ToolRefused

A = TypeVar("A")


@dataclass
class Tale:
    """The story so far: the world, who acts in it, and what later steps look back to."""

    world: World
    input_path: Path
    base_head: str = ""
    branches: dict[str, Json] = field(default_factory=dict)
    """agent → the ref of its session branch."""
    changesets: dict[str, Json] = field(default_factory=dict)
    """agent → the changeset of its first work."""
    proposals: dict[str, str] = field(default_factory=dict)
    """name → proposal id."""
    kept: dict[str, Any] = field(default_factory=dict)

    @property
    def store(self) -> Lethe:
        """Lethe, as whoever holds its key reaches it."""
        return self._actor("store", self.world.store)

    @property
    def reviewer(self) -> Person:
        """The person who reviews, over HTTP."""
        return self._actor("reviewer", lambda: self.world.person("reviewer"))

    @property
    def agent_a(self) -> Agent:
        """The first agent, over stdio."""
        return self._actor("agent-a", lambda: self.world.agent("agent-a", "stdio"))

    @property
    def agent_b(self) -> Agent:
        """The second agent, over HTTP."""
        return self._actor("agent-b", lambda: self.world.agent("agent-b", "http"))

    def agent(self, name: str) -> Agent:
        """One of the two agents, by name."""
        return self.agent_a if name == "agent-a" else self.agent_b

    def propose(self, name: str, head: str, message: str, **more: Any) -> Json:
        """Has an agent propose a head for shared memory, over MCP."""
        key = f"propose-{name}-{message}"
        proposal: Json = self.agent(name).call(
            "memory_merge_propose",
            project=PROJECT,
            target_ref=SHARED_MAIN,
            head_changeset_id=head,
            message=message,
            idempotency_key=key,
            **more,
        )
        return proposal

    def _actor(self, name: str, make: Callable[[], A]) -> A:
        actors = self.kept.setdefault("actors", {})
        if name not in actors:
            actors[name] = make()
        actor: A = actors[name]
        return actor

    def forget_actors(self) -> None:
        """Lets go of all connections: the servers were stopped."""
        self.kept.pop("actors", None)

    def shared_head(self) -> str:
        """Gives the accepted head."""
        return str(self.store.resolve_ref(PROJECT, SHARED_MAIN)["head_changeset_id"])

    def state_at(self, head: str) -> dict[str, Json]:
        """Gives every memory of a state by id, as the store holds it."""
        found: dict[str, Json] = {}
        after = None
        while True:
            page = self.store.memories(PROJECT, head, limit=200, after=after)
            found |= {item["memory_id"]: item for item in page["memories"]}
            after = page.get("next")
            if after is None:
                return found

    def accept(self, proposal_id: str, **how: Any) -> Json:
        """Has the reviewer approve and merge a proposal, over HTTP; gives what the merge answers."""
        self.reviewer.post(
            f"/proposals/{proposal_id}/review", {"verdict": "approve", "comment": "Read and agreed."}
        )
        merged: Json = self.reviewer.post(f"/proposals/{proposal_id}/merge", how)
        return merged


@dataclass(frozen=True, slots=True)
class Step:
    """One step: its number, its title, and the function that plays it and gives what a reader wants to know."""

    number: int
    title: str
    play: Callable[[Tale], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Played:
    """How a step came out."""

    number: int
    title: str
    ok: bool
    seconds: float
    detail: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Gives the wire form, an item of `steps`."""
        return {
            "n": self.number,
            "title": self.title,
            "ok": self.ok,
            "seconds": round(self.seconds, 3),
            "detail": dict(self.detail),
        }


def play(tale: Tale, steps: tuple[Step, ...]) -> Iterator[Played]:
    """Plays the steps in order, and stops after the first that fails: the later ones build on it."""
    for step in steps:
        started = time.monotonic()
        try:
            detail, ok = step.play(tale), True
        except (StepFailed, ToolRefused) as failure:
            detail, ok = {"failed": str(failure)}, False
        except Exception as failure:  # an answer of another shape than expected is a step that does not hold
            detail, ok = {"failed": f"{type(failure).__name__}: {failure}"}, False
        yield Played(step.number, step.title, ok, time.monotonic() - started, detail)
        if not ok:
            return

"""One tool of the MCP face: how it is told to a model, who is offered it, what it calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mcp_types import Tool, ToolAnnotations

from memory_git.charon.gate import Caller, Gate
from memory_git.domain.errors import Fault, Invalid
from memory_git.domain.policy import READ_SCOPES
from memory_git.mcp.answers import Answer
from memory_git.mcp.schemas import Json, Parameters

Toolset = Literal["default", "review", "history", "admin"]
TOOLSETS: tuple[Toolset, ...] = ("default", "review", "history", "admin")
ALL = "all"
Effect = Literal["reads", "adds", "repeatable", "ends"]
_ANNOTATIONS: dict[Effect, ToolAnnotations] = {
    "reads": ToolAnnotations(read_only_hint=True, open_world_hint=False),
    "adds": ToolAnnotations(
        read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
    ),
    "repeatable": ToolAnnotations(
        read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    ),
    "ends": ToolAnnotations(
        read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
    ),
}


@dataclass(frozen=True, slots=True)
class GateTool:
    """A tool; `scopes` are those that its caller needs in some project, `output` the properties of its answer.

    `effect`: reads; adds something at each call; repeatable, the same call again changes nothing more; ends something for good.
    """

    name: str
    title: str
    description: str
    call: Callable[[Gate, Caller, Json], Answer]
    parameters: Parameters = field(default_factory=lambda: Parameters({}))
    output: Mapping[str, Json] = field(default_factory=dict)
    scopes: tuple[str, ...] = ("memory.read",)
    toolset: Toolset = "default"
    effect: Effect = "reads"
    for_admin: bool = False
    """An administrator is offered it without a grant."""

    def listed(self) -> Tool:
        """Gives the tool as `tools/list` tells it."""
        return Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=self.parameters.schema(),
            output_schema=Parameters(self.output, tuple(self.output)).shape(),
            annotations=_ANNOTATIONS[self.effect],
        )

    def is_offered(self, identity: Mapping[str, Any]) -> bool:
        """Decides whether a caller, as `whoami` tells it, has the scopes of the tool in any project."""
        if self.for_admin and "admin" in identity["scopes"]:
            return True
        return all(_has(identity, scope) for scope in self.scopes)


def wanted_toolsets(names: str) -> frozenset[str]:
    """Gives the toolsets that a comma-separated text names, always with the default one; raises Invalid for an unknown name.

    >>> sorted(wanted_toolsets("review")), sorted(wanted_toolsets("all"))
    (['default', 'review'], ['admin', 'default', 'history', 'review'])
    """
    named = {name.strip() for name in names.split(",")} - {""}
    if unknown := sorted(named - {ALL, *TOOLSETS}):
        fault = Fault(
            None, "toolsets", f"there are {', '.join(TOOLSETS)} and {ALL}", f"{len(unknown)} unknown"
        )
        raise Invalid("invalid_request", "a toolset is not known", [fault])
    return frozenset(TOOLSETS) if ALL in named else frozenset({"default", *named})


def _has(identity: Mapping[str, Any], scope: str) -> bool:
    if scope not in identity["scopes"]:
        return False
    return any(
        scope in grant["scopes"] and (grant["project"] != "*" or scope in READ_SCOPES)
        for grant in identity["grants"]
    )

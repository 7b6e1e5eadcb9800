"""The story in a form that a reader enjoys: a line a step as it goes, with what is worth knowing under it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from memory_git.cli.story.tale import Played

WIDTH = 100


def opening(mode: str, source: str) -> Iterator[str]:
    """Gives the lines before the first step."""
    yield "Two agents, a reviewer and an operator share one versioned memory."
    apart = "Lethe and Charon as two servers" if mode == "split" else "Charon with the store inside"
    yield f"Real processes in a disposable directory: {apart}."
    yield "Agent A speaks MCP over stdio, agent B over HTTP; the reviewer uses the HTTP API, the operator the command line."
    yield f"Memories: {source}"
    yield ""


def after(played: Played, *, brief: bool = False) -> Iterator[str]:
    """Gives the lines of a step that was played; brief: its title alone, unless it failed."""
    mark = "✓" if played.ok else "✗"
    yield f"{mark} {played.number:>2}  {played.title}  ({played.seconds:.1f} s)"
    told = {} if brief and played.ok else played.detail
    for name, value in told.items():
        yield from _shown(name.replace("_", " "), value)


def _shown(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield f"        {name}:"
        for inner, found in value.items():
            yield _cut(f"          {inner}: {found}")
    else:
        shown = ", ".join(str(item) for item in value) if isinstance(value, list | tuple) else str(value)
        yield _cut(f"        {name}: {shown}")


def _cut(line: str) -> str:
    return line if len(line) <= WIDTH else line[: WIDTH - 1] + "…"


def closing(played: list[Played], wanted: int, kept: str | None) -> Iterator[str]:
    """Gives the lines after the last step."""
    yield ""
    seconds = sum(step.seconds for step in played)
    good = sum(step.ok for step in played)
    yield f"{good} of {wanted} steps hold, in {seconds:.0f} s."
    if kept:
        yield f"The directory is kept: {kept}"

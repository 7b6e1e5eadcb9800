"""`charon`: the gate: who may do what, proposals, reviews, merges, the audit, and the faces for agents."""

from __future__ import annotations

import sys
from typing import NoReturn

from memory_git.cli.program import Entry, make_program, run

COMMANDS = {
    "serve": Entry("Serve agents, programs and the browser.", "memory_git.cli.charon_commands.serve"),
    "mcp": Entry("Serve MCP to a local agent over stdio.", "memory_git.cli.charon_commands.mcp"),
    "demo": Entry("Play the sixteen steps over real processes.", "memory_git.cli.charon_commands.demo"),
    "completion": Entry("Print the completion script of a shell.", "memory_git.cli.completion"),
}

program = make_program(
    "charon",
    COMMANDS,
    "The gate of Memory Git: one memory for several agents and people, changed only by reviewed merges.",
)


def main() -> NoReturn:
    """Runs `charon` with the arguments of this process."""
    sys.exit(run(program, sys.argv[1:]))


if __name__ == "__main__":
    main()

"""`lethe`: the store by itself: serve it, read its history, verify it."""

from __future__ import annotations

import sys
from typing import NoReturn

from memory_git.cli.program import Entry, make_program, run

COMMANDS = {
    "serve": Entry("Serve the store to Charon.", "memory_git.cli.lethe_commands.serve"),
    "memory": Entry("See history and states, make branches.", "memory_git.cli.lethe_commands.memory"),
    "verify-chain": Entry(
        "Recompute everything, and find any changed byte.", "memory_git.cli.lethe_commands.verify_chain"
    ),
    "nodes": Entry(
        "Drop the tree nodes of old states, or store them again.", "memory_git.cli.lethe_commands.nodes"
    ),
    "import-lethe": Entry(
        "Take in the history of a database of the original.", "memory_git.cli.lethe_commands.import_lethe"
    ),
    "migrate": Entry(
        "Bring the PostgreSQL databases of the settings up to this program.",
        "memory_git.cli.lethe_commands.migrate",
    ),
    "keygen": Entry("Print a new random secret.", "memory_git.cli.lethe_commands.keygen"),
    "completion": Entry("Print the completion script of a shell.", "memory_git.cli.completion"),
}

program = make_program(
    "lethe",
    COMMANDS,
    "The store of Memory Git: immutable changesets, refs, states, manifests, and their verification.",
)


def main() -> NoReturn:
    """Runs `lethe` with the arguments of this process."""
    sys.exit(run(program, sys.argv[1:]))


if __name__ == "__main__":
    main()

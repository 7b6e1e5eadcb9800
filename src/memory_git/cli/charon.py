"""`charon`: the gate: who may do what, proposals, reviews, merges, the audit, and the faces for agents."""

from __future__ import annotations

import sys
from typing import NoReturn

from memory_git.cli.program import Entry, make_program, run

COMMANDS = {
    "serve": Entry("Serve agents, programs and the browser.", "memory_git.cli.charon_commands.serve"),
    "mcp": Entry("Serve MCP to a local agent over stdio.", "memory_git.cli.charon_commands.mcp"),
    "demo": Entry("Play the sixteen steps over real processes.", "memory_git.cli.charon_commands.demo"),
    "principal": Entry(
        "People, agents and services that may call.", "memory_git.cli.charon_commands.principal"
    ),
    "obol": Entry("Tokens of principals.", "memory_git.cli.charon_commands.obol"),
    "grant": Entry("What principals may do in which project.", "memory_git.cli.charon_commands.grant"),
    "project": Entry("Projects, and what each asks of its merges.", "memory_git.cli.charon_commands.project"),
    "proposal": Entry(
        "Work proposed for accepted memory: review it, merge it.", "memory_git.cli.charon_commands.proposal"
    ),
    "conflict": Entry(
        "Conflicts of proposals, and their settlement.", "memory_git.cli.charon_commands.conflict"
    ),
    "import": Entry(
        "Commit the memories of another program to a branch.", "memory_git.cli.charon_commands.importing"
    ),
    "ledger": Entry("The audit of every call.", "memory_git.cli.charon_commands.ledger"),
    "config": Entry("The settings, and where they come from.", "memory_git.cli.charon_commands.config"),
    "doctor": Entry(
        "Look for what is wrong with this installation.", "memory_git.cli.charon_commands.doctor"
    ),
    "oauth": Entry("Remote clients that people let in.", "memory_git.cli.charon_commands.oauth"),
    "secret": Entry("The keys of the gate, and their rotation.", "memory_git.cli.charon_commands.secret"),
    "backup": Entry("Write a backup, while serving.", "memory_git.cli.charon_commands.backup"),
    "restore": Entry(
        "Restore a backup into an empty data directory.", "memory_git.cli.charon_commands.restore"
    ),
    "reconcile": Entry(
        "Compare gate and store, and end a recovery.", "memory_git.cli.charon_commands.reconcile"
    ),
    "redact": Entry("Erase a memory for good.", "memory_git.cli.charon_commands.redact"),
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

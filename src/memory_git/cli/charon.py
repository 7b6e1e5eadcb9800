"""`charon`: the gate: who may do what, proposals, reviews, merges, the audit, and the faces for agents."""

from __future__ import annotations

import sys
from typing import NoReturn

from memory_git.cli.program import Entry, make_program, run

COMMANDS = {
    "serve": Entry("Serve agents, programs and the browser.", "memory_git.cli.charon_commands.serve"),
    "mcp": Entry("Serve MCP to a local agent over stdio.", "memory_git.cli.charon_commands.mcp"),
    "demo": Entry("Play the sixteen steps over real processes.", "memory_git.cli.charon_commands.demo"),
    "project": Entry("Start projects, and set their policy.", "memory_git.cli.charon_commands.project"),
    "principal": Entry("Add people, agents and services.", "memory_git.cli.charon_commands.principal"),
    "grant": Entry("Say what a principal may do in a project.", "memory_git.cli.charon_commands.grant"),
    "obol": Entry("Mint and revoke tokens.", "memory_git.cli.charon_commands.obol"),
    "import": Entry("Bring other memories in, on a branch.", "memory_git.cli.charon_commands.importing"),
    "proposal": Entry("Propose, review and merge.", "memory_git.cli.charon_commands.proposal"),
    "conflict": Entry("See what contradicts, and settle it.", "memory_git.cli.charon_commands.conflict"),
    "ledger": Entry("Read and verify the audit.", "memory_git.cli.charon_commands.ledger"),
    "redact": Entry("Erase a memory for good.", "memory_git.cli.charon_commands.redact"),
    "backup": Entry("Copy both databases at one point.", "memory_git.cli.charon_commands.backup"),
    "restore": Entry("Bring a backup back, read-only at first.", "memory_git.cli.charon_commands.restore"),
    "reconcile": Entry(
        "Compare gate, store and ledger; mend after a crash.", "memory_git.cli.charon_commands.reconcile"
    ),
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

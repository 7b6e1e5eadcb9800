"""`lethe memory`: history and states, read and moved as the store itself allows; who may do what is Charon's."""

from __future__ import annotations

from memory_git.cli.program import Entry, LazyGroup

_HERE = "memory_git.cli.lethe_commands"
COMMANDS = {
    "status": Entry("Show the refs, and where they stand against accepted memory.", f"{_HERE}.memory_status"),
    "log": Entry("Show the changesets that a ref reaches.", f"{_HERE}.memory_log"),
    "show": Entry("Show a changeset, or a memory.", f"{_HERE}.memory_show"),
    "diff": Entry("Show what differs between two states, by meaning.", f"{_HERE}.memory_diff"),
    "branch": Entry("Make an unprotected ref.", f"{_HERE}.memory_branch"),
    "context": Entry("Show the accepted memory for a prompt.", f"{_HERE}.memory_context"),
    "manifest": Entry("Show or rebuild what a session was given.", f"{_HERE}.memory_manifest"),
    "merge": Entry("Merge into an unprotected ref.", f"{_HERE}.memory_merge"),
}

command = LazyGroup(
    "memory",
    COMMANDS,
    "Show history, states and differences, and move unprotected refs.\n\n"
    "Works at LETHE_API_URL when that is set, else on the data directory itself, also while a server runs on it.\n\n"
    "Example: lethe memory log --project default",
)

"""`lethe nodes`: the tree nodes of old states, which can be dropped and made anew."""

from __future__ import annotations

from memory_git.cli.program import Entry, LazyGroup

_HERE = "memory_git.cli.lethe_commands"
COMMANDS = {
    "drop": Entry("Drop the tree nodes between the states that are kept.", f"{_HERE}.nodes_drop"),
    "rebuild": Entry("Store dropped tree nodes again.", f"{_HERE}.nodes_rebuild"),
}

command = LazyGroup(
    "nodes",
    COMMANDS,
    "Make room: tree nodes are a cache of versions and changesets.\n\n"
    "Works on the data directory itself, also while a server runs on it. Nothing is lost by dropping: every state reads"
    " the same afterwards, an old one more slowly.\n\n"
    "Example: lethe nodes drop",
)

"""`python -m memory_git.cli.reference`: docs/CLI.md, from the command tables and the settings model."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click
from pydantic.fields import FieldInfo

from memory_git.cli import charon, lethe
from memory_git.cli.exits import Exit
from memory_git.cli.program import LazyGroup
from memory_git.cli.settings import TABLES, environment_name

PROGRAMS: tuple[LazyGroup, ...] = (lethe.program, charon.program)
_WIDTH = 100
_EXITS = {
    Exit.DONE: "done",
    Exit.FINDING: "a finding, or a check that failed",
    Exit.USAGE: "usage: the command line itself is wrong",
    Exit.REFUSED: "refused: the input breaks a rule, or names what is not there",
    Exit.CONFLICT: "a conflict, or the head has moved",
    Exit.NOT_ALLOWED: "not allowed, or no valid token",
    Exit.UNAVAILABLE: "unavailable: try again later",
    Exit.INTERRUPTED: "stopped by Ctrl-C",
    Exit.BROKEN_PIPE: "the reader of the output went away",
}


def reference() -> str:
    """Gives docs/CLI.md: exit codes, settings, and the help of every command."""
    parts = [
        "# Command line\n\nWritten by `make docs` from the command tables and the settings model; do not edit.\n",
        "`--json` prints one JSON document on stdout, for a refusal its problem document (docs/ERRORS.md).\n",
        _exit_codes(),
        _settings(),
    ]
    for program in PROGRAMS:
        parts += [f"## {program.name}\n", *(_section(*found) for found in commands(program))]
    return "\n".join(parts)


def commands(program: LazyGroup) -> Iterator[tuple[click.Command, click.Context]]:
    """Yields every command of a program with its context, the root first, groups before their members."""
    root = click.Context(program, info_name=program.name, terminal_width=_WIDTH, **program.context_settings)
    yield from _walk(program, root)


def _walk(command: click.Command, context: click.Context) -> Iterator[tuple[click.Command, click.Context]]:
    yield command, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            member = command.get_command(context, name)
            if member is not None:
                below = click.Context(member, parent=context, info_name=name, terminal_width=_WIDTH)
                yield from _walk(member, below)


def _section(command: click.Command, context: click.Context) -> str:
    return f"### {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"


def _exit_codes() -> str:
    rows = "".join(f"| {code.value} | {meaning} |\n" for code, meaning in _EXITS.items())
    return f"## Exit codes\n\n| code | meaning |\n|---|---|\n{rows}"


def _settings() -> str:
    rows = "".join(
        f"| `{table}.{name}` | `{environment_name(table, name)}` | {_default(field)} | {field.description} |\n"
        for table, model in TABLES.items()
        for name, field in model.model_fields.items()
    )
    return (
        "## Settings\n\nDefaults < TOML file < environment < flags. The file has the tables `[lethe]` and `[charon]`; "
        "it is named by `--config` or `MEMORY_GIT_CONFIG`, else it is `memory-git/config.toml` in the user's "
        "configuration directory.\n\n| setting | environment | default | what it says |\n|---|---|---|---|\n"
        + rows
    )


def _default(field: FieldInfo) -> str:
    if field.default_factory is not None:
        return "`memory-git/` in the user data directory"
    return "" if field.default is None else f"`{field.default}`"


if __name__ == "__main__":
    sys.stdout.write(reference())

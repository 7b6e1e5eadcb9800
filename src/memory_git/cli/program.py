"""The frame of a program: groups that import a command when it is called, and how a run ends.

`--help` is drawn from the table alone, so it imports nothing heavy and answers within 150 ms.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memory_git import __version__
from memory_git.cli.exits import Exit, report
from memory_git.cli.render import write_document
from memory_git.domain.errors import Corrupt, Invalid, Refused

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from memory_git.cli.settings import Settings

_CONFIG = "memory_git.config"


@dataclass(frozen=True, slots=True)
class Entry:
    """One command of a table: its one-line help, and the module that holds it as `command`."""

    help: str
    module: str


class LazyGroup(click.Group):
    """A group whose commands stand in a table and are imported only when called."""

    def __init__(self, name: str, table: Mapping[str, Entry], help: str) -> None:
        super().__init__(name, help=help, context_settings={"help_option_names": ["-h", "--help"]})
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Lists the names in the order of the table."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports the command of that name, or gives None."""
        entry = self.table.get(cmd_name)
        if entry is None:
            return None
        command: click.Command = import_module(entry.module).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the commands from the table; click's own would import each."""
        if self.table:
            with formatter.section("Commands"):
                formatter.write_dl([(name, entry.help) for name, entry in self.table.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[Any]]:
        """Completes names from the table, then the options, without importing a command."""
        from click.shell_completion import CompletionItem

        named = [
            CompletionItem(name, help=entry.help)
            for name, entry in self.table.items()
            if name.startswith(incomplete)
        ]
        return named + click.Command.shell_complete(self, ctx, incomplete)


def make_program(name: str, table: Mapping[str, Entry], help: str) -> LazyGroup:
    """Gives the root group of a program, with `--version` and `--config`."""
    program = LazyGroup(name, table, help)
    program.params.append(
        click.Option(
            ["--config", "config"],
            type=click.Path(dir_okay=False, path_type=Path),
            expose_value=False,
            is_eager=True,
            callback=_remember_config,
            envvar="MEMORY_GIT_CONFIG",
            help="Read settings from this TOML file.",
        )
    )
    return click.version_option(__version__, prog_name=name, message="%(prog)s %(version)s")(program)


def read_settings(context: click.Context, **flags: object) -> Settings:
    """Reads the settings of a command; flags are named `lethe__http`, and None means not given."""
    from memory_git.cli.settings import load

    named = {name.replace("__", ".", 1): value for name, value in flags.items()}
    return load(config=config_file(context), flags=named)


def config_file(context: click.Context) -> Path | None:
    """Gives the settings file that was named, by `--config` or the environment."""
    named: Path | None = context.meta.get(_CONFIG)
    return named


def run(program: LazyGroup, args: Sequence[str]) -> int:
    """Runs one command line and gives its exit code; every expected error is told, none is raised."""
    use_utf8()
    name = str(program.name)
    variable = f"_{name.upper()}_COMPLETE"
    if instruction := os.environ.get(variable):
        from click.shell_completion import shell_complete

        return shell_complete(program, {}, name, variable, instruction)
    try:
        code = _invoke(program, name, list(args))
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_stdout()
        return Exit.BROKEN_PIPE
    return code


def use_utf8() -> None:
    """Makes the standard streams UTF-8 whatever the locale says; what can't be encoded is escaped."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="strict" if stream is sys.stdin else "backslashreplace")


def _invoke(program: LazyGroup, name: str, args: list[str]) -> int:
    as_json = "--json" in args
    try:
        with program.make_context(name, args) as context:
            result = program.invoke(context)
        return result if isinstance(result, Exit) else Exit.DONE
    except click.exceptions.Exit as done:
        return done.exit_code
    except (KeyboardInterrupt, click.Abort):
        return Exit.INTERRUPTED
    except click.ClickException as error:
        return _report_usage(error, as_json=as_json)
    except BrokenPipeError:
        raise
    except (Refused, Corrupt, OSError) as error:
        return report(error, as_json=as_json)


def _report_usage(error: click.ClickException, *, as_json: bool) -> Exit:
    if as_json:
        write_document(Invalid("usage", error.format_message()).to_problem())
    else:
        error.show()
    return Exit.USAGE


def _remember_config(context: click.Context, _option: click.Parameter, value: Any) -> None:
    context.meta[_CONFIG] = value


def _discard_stdout() -> None:
    # The reader is gone; without this the interpreter complains once more when it flushes at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

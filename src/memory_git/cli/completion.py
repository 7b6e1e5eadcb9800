"""`lethe completion`, `charon completion`: the script that makes a shell complete commands and options."""

from __future__ import annotations

import sys

import click
from click.shell_completion import BashComplete, ShellComplete, ZshComplete

from memory_git.cli.program import LazyGroup

_SHELLS: dict[str, type[ShellComplete]] = {"bash": BashComplete, "zsh": ZshComplete}


@click.command("completion")
@click.argument("shell", type=click.Choice(sorted(_SHELLS)))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the completion script of SHELL.

    bash: add `eval "$(PROGRAM completion bash)"` to ~/.bashrc.
    zsh: add `eval "$(PROGRAM completion zsh)"` to ~/.zshrc, after compinit.
    """
    program = context.find_root().command
    assert isinstance(program, LazyGroup)
    sys.stdout.write(completion_script(program, shell))


def completion_script(program: LazyGroup, shell: str) -> str:
    """Gives the script for `bash` or `zsh`; it asks the program itself for each completion."""
    name = str(program.name)
    complete = _SHELLS[shell](program, {}, name, f"_{name.upper()}_COMPLETE")
    return ShellComplete.source(complete) + "\n"  # not bash's own, which starts a bash to ask its version

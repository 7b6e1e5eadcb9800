"""`charon demo`: the sixteen steps of acceptance over real processes, told as a story."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import click

from memory_git.cli.exits import Exit
from memory_git.cli.render import json_option, write_document, write_text


@click.command("demo")
@click.option(
    "--input",
    "input_path",
    type=click.Path(path_type=Path, exists=True),
    help="Memories to begin with: the MCP memory server's JSONL, or a folder of Markdown. Default: a bundled sample.",
)
@click.option(
    "--mode",
    type=click.Choice(["split", "embedded"]),
    default="split",
    show_default=True,
    help="split: Lethe and Charon as two servers; embedded: Charon with the store inside.",
)
@click.option(
    "--keep", type=click.Path(path_type=Path), help="Keep the databases, keys and logs in this empty folder."
)
@click.option("--brief", is_flag=True, help="Tell a line a step.")
@json_option
def command(input_path: Path | None, mode: str, keep: Path | None, brief: bool, as_json: bool) -> Exit:
    """Plays sixteen steps with two agents, a reviewer and an operator, and checks what comes back.

    Nothing outside a disposable directory is touched. Ends with 1 if a step does not hold.

    Example: charon demo --input memory.jsonl
    """
    if keep is not None and keep.exists() and any(keep.iterdir()):
        raise click.BadParameter("the folder is not empty", param_hint="--keep")
    if keep is not None:
        return _play(keep.absolute(), input_path, mode, str(keep), brief=brief, as_json=as_json)
    with tempfile.TemporaryDirectory(prefix="memory-git-demo-") as directory:
        return _play(Path(directory), input_path, mode, None, brief=brief, as_json=as_json)


def _play(
    directory: Path, input_path: Path | None, mode: Any, kept: str | None, *, brief: bool, as_json: bool
) -> Exit:
    from memory_git.cli.story import telling
    from memory_git.cli.story.steps import STEPS
    from memory_git.cli.story.tale import Tale, play
    from memory_git.cli.story.world import opened
    from memory_git.interchange.sample import sample_path

    source = input_path or sample_path()
    if not as_json:
        for line in telling.opening(mode, source.name):
            write_text(line)
    played = []
    with opened(directory, mode) as world:
        for step in play(Tale(world, source), STEPS):
            played.append(step)
            if not as_json:
                for line in telling.after(step, brief=brief):
                    write_text(line)
    ok = len(played) == len(STEPS) and all(step.ok for step in played)
    if as_json:
        write_document({"ok": ok, "engine": "sqlite", "steps": [step.to_json() for step in played]})
    else:
        for line in telling.closing(played, len(STEPS), kept):
            write_text(line)
    return Exit.DONE if ok else Exit.FINDING

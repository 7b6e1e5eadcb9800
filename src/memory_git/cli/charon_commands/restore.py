"""`charon restore`: a backup into an empty data directory."""

from __future__ import annotations

from pathlib import Path

import click

from memory_git.cli.program import read_settings
from memory_git.cli.render import json_option, write_document, write_text


@click.command("restore")
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    required=True,
    help="The backup's folder.",
)
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    help="The folder to restore into. Default: CHARON_DATA_DIR.",
)
@json_option
@click.pass_context
def command(context: click.Context, source: Path, data_dir: Path | None, as_json: bool) -> None:
    """Checks a backup against its manifest and restores it into an empty data directory, read-only at first.

    `charon reconcile` lifts that once its report is clean.

    Example: charon restore --from backups/monday --data-dir restored
    """
    from memory_git.charon.backup import restore

    settings = read_settings(context, charon__data_dir=data_dir)
    report = restore(source.absolute(), settings.charon.data_dir.absolute())
    if as_json:
        write_document(report)
    else:
        write_text(f"Restored into {settings.charon.data_dir}, read-only. Next: charon reconcile --repair")

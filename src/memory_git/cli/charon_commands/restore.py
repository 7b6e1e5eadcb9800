"""`charon restore`: a backup, verified, into an empty data directory."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from memory_git.cli.charon_commands.local import gate_options, local_settings
from memory_git.cli.render import write_document, write_fields


@click.command("restore")
@click.option(
    "--from",
    "source",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="The folder that `charon backup` wrote.",
)
@gate_options
@click.pass_context
def command(context: click.Context, source: Path, data_dir: Path | None, as_json: bool) -> None:
    """Restore a backup into an empty data directory, where keys/ and anchor/ may stand already.

    What is restored refuses writes until `charon reconcile` finds both sides in agreement.

    Example: charon restore --from /mnt/backup/monday --data-dir ./restored
    """
    from memory_git.charon.backup import restore

    to = local_settings(context, data_dir).charon.data_dir
    manifest = restore(source, to)
    if as_json:
        write_document({**manifest, "data_dir": str(to), "recovery_readonly": True})
        return
    write_fields(
        {
            "restored to": str(to),
            "backup of": manifest["created_at"],
            "with keys": manifest["keys"],
            "next": shlex.join(["charon", "reconcile", "--data-dir", str(to.absolute())]),
        }
    )

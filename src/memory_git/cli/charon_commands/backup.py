"""`charon backup`: both databases and a manifest, taken while serving."""

from __future__ import annotations

from pathlib import Path

import click

from memory_git.cli.charon_commands.local import gate_options, local_gate
from memory_git.cli.render import write_document, write_fields, write_table


@click.command("backup")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="A new or empty folder for the backup.",
)
@click.option(
    "--with-keys", is_flag=True, help="Copy the keys too; without them no token holds in a restore."
)
@gate_options
@click.pass_context
def command(context: click.Context, out: Path, with_keys: bool, data_dir: Path | None, as_json: bool) -> None:
    """Write a backup of the gate and the store. A server may be running on them.

    Example: charon backup --out /mnt/backup/monday --with-keys
    """
    with local_gate(context, data_dir) as gate:
        manifest = gate.backup(gate.as_operator(), out, with_keys)
    if as_json:
        write_document(manifest)
        return
    write_fields({"folder": str(out), "created_at": manifest["created_at"], "keys": manifest["keys"]})
    write_table(("file", "sha256"), [(item["name"], item["sha256"]) for item in manifest["files"]])

"""`charon backup`: both databases at one point."""

from __future__ import annotations

from pathlib import Path

import click

from memory_git.cli.opening import gate_of
from memory_git.cli.program import read_settings
from memory_git.cli.render import json_option, write_document, write_fields


@click.command("backup")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="An empty or new folder.")
@click.option(
    "--with-keys",
    is_flag=True,
    help="Copy the keys too: a restore elsewhere needs them. Keep such a copy secret.",
)
@json_option
@click.pass_context
def command(context: click.Context, out: Path, with_keys: bool, as_json: bool) -> None:
    """Copies both databases at one consistent point, while servers go on serving, with a manifest of digests and heads.

    Example: charon backup --out backups/monday
    """
    with gate_of(read_settings(context)) as gate:
        manifest = gate.backup(gate.as_operator(), out.absolute(), with_keys=with_keys)
    if as_json:
        write_document(manifest)
    else:
        files = ", ".join(item["name"] for item in manifest["files"])
        write_fields(
            {"folder": str(out), "files": files, "keys": manifest["keys"], "at": manifest["created_at"]}
        )

"""`charon restore`: a backup, verified, into an empty data directory."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memory_git.cli.charon_commands.local import gate_options, local_settings, require_begun
from memory_git.cli.render import write_document, write_fields

if TYPE_CHECKING:
    from memory_git.cli.settings import Settings


@click.command("restore")
@click.option(
    "--from",
    "source",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder that `charon backup` wrote.",
)
@click.option(
    "--in-place",
    is_flag=True,
    help="The databases were put back by other tools (pg_restore, a copy of files): only the rest is done.",
)
@click.option(
    "--anchor",
    "anchor_from",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder anchor/ as it was last, copied where the data directory has none yet.",
)
@gate_options
@click.pass_context
def command(
    context: click.Context,
    source: Path | None,
    in_place: bool,
    anchor_from: Path | None,
    data_dir: Path | None,
    as_json: bool,
) -> None:
    """Restore a backup into an empty data directory, where keys/ and anchor/ may stand already as they were last.

    anchor/ holds the journal of what was revoked and erased since the backup: it is done again before anything is served.
    What is restored refuses writes until `charon reconcile` finds both sides in agreement.

    Example: charon restore --from /mnt/backup/monday --anchor ./old/anchor --data-dir ./restored
    """
    from memory_git.charon.backup import restore
    from memory_git.charon.recovery import write_marker

    if in_place == (source is not None):
        raise click.UsageError("Give either --from or --in-place.")
    settings = local_settings(context, data_dir)
    to = settings.charon.data_dir
    if source is None:
        require_begun(settings)
        write_marker(to, None)
        manifest: dict[str, Any] = {}
    else:
        manifest = restore(source, to, anchor_from)
    replayed = _replay(settings)
    if as_json:
        write_document({**manifest, "data_dir": str(to), "recovery_readonly": True, **replayed})
        return
    write_fields(
        {
            "restored to": str(to),
            "backup of": manifest.get("created_at"),
            "with keys": manifest.get("keys"),
            "journal": replayed["journal"],
            "next": shlex.join(["charon", "reconcile", "--data-dir", str(to.absolute())]),
        }
    )


def _replay(settings: Settings) -> dict[str, str]:
    """Opens the gate once, which brings it up to the journal, and says what of it was found."""
    from memory_git.cli.opening import open_gate

    gate = open_gate(settings)
    try:
        return {"journal": gate.recovery_why() or "replayed"}
    finally:
        gate.close()

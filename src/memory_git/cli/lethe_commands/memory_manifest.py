"""`lethe memory manifest`: what a session was given."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from memory_git.cli.lethe_commands.local import local_store, store_options
from memory_git.cli.render import write_document, write_fields, write_table

_FIELDS = ("manifest_id", "project_id", "kind", "ref_name", "head_changeset_id", "state_root", "created_at")


@click.command("manifest")
@click.argument("manifest_id")
@click.option("--reproduce", is_flag=True, help="Rebuild the exact records from history, with proofs.")
@store_options
@click.pass_context
def command(
    context: click.Context, manifest_id: str, reproduce: bool, data_dir: Path | None, as_json: bool
) -> None:
    """Show what a session was given: ids and digests, or the records themselves.

    Example: lethe memory manifest 0198c0de-0000-7000-8000-000000000000 --reproduce
    """
    with local_store(context, data_dir) as lethe:
        found = lethe.reproduce(manifest_id) if reproduce else lethe.get_manifest(manifest_id)
    if as_json:
        write_document(found)
        return
    write_fields({name: found[name] for name in _FIELDS if found.get(name)})
    if reproduce:
        rows = [(item["memory_id"], _content(item)) for item in found["memories"]]
        write_table(["memory", "content"], rows, empty="no memories")
    else:
        rows = [(item["memory_id"], item["record_digest"]) for item in found.get("selected", ())]
        write_table(["memory", "digest"], rows, empty="no memories")


def _content(item: Mapping[str, Any]) -> str:
    return "(redacted)" if item.get("redacted") else str(item["record"]["content"])

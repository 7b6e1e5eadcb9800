"""Backup and restore, in their plain case (10-operations, backup and recovery).

1. A backup is taken while serving: no mutation of this process is under way meanwhile, and the gate is copied before the
   store, so that what the store has beyond the gate is what a crash between two steps leaves, and reconcile finishes it.
2. The manifest names both files with their SHA-256, every head, the ledger's last links, schemas and the time. Keys are
   copied only when asked for: without the ledger key a copy can't be verified, without the token key no token holds.
3. A restore checks each file against the manifest, writes into an empty data directory (keys/ and anchor/ may be there), and
   leaves it read-only until reconcile finds nothing. What the next opening does of itself is in `recovery`.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from memory_git.charon.caller import Caller
from memory_git.charon.house import House
from memory_git.charon.journal_file import JOURNAL
from memory_git.charon.recovery import write_marker
from memory_git.charon.side_file import write_durably
from memory_git.domain.canonical import decode, sha256_hex
from memory_git.domain.errors import Clash, Invalid
from memory_git.lethe.protocol import Json
from memory_git.storage import charon_journal, charon_ledger
from memory_git.storage.charon_schema import CHARON_SCHEMA

FORMAT = "memory-git-backup/v1"
MANIFEST = "manifest.json"
_GATE_FILE = "charon.db"
_MAY_BE_THERE = frozenset({"keys", "anchor"})


def backup(house: House, caller: Caller, out: Path, keys_from: Path | None) -> Json:
    """Writes both databases and a manifest into a new folder; gives the manifest."""
    with house.administers(caller, "backup", reads=True, out=str(out)):
        out = out.absolute()
        if house.database.is_shared:
            house.database.backup(out / _GATE_FILE)
        _make_empty(out)
        with house.turnstile.closed():
            house.ledger.flush()
            with house.database.read() as connection:
                heads = charon_ledger.heads(connection)
                journalled = charon_journal.last(connection)
            house.database.backup(out / _GATE_FILE)
            store = house.lethe.backup(str(out))
        manifest = {
            "format": FORMAT,
            "created_at": house.time(),
            "files": [
                _file(out / _GATE_FILE, len(CHARON_SCHEMA.migrations)),
                {"name": store["file"], "sha256": store["sha256"], "schema_version": store["schema_version"]},
            ],
            "heads": store["heads"],
            "ledger_heads": {name: {"seq": seq, "link": link} for name, (seq, link) in heads.items()},
            "journal": {"seq": journalled[0], "link": journalled[1]},
            "keys": keys_from is not None,
        }
        if keys_from is not None:
            _copy_private(keys_from, out / "keys")
        write_durably(out / MANIFEST, json.dumps(manifest, indent=1, sort_keys=True).encode())
        return manifest


def restore(source: Path, data_dir: Path, anchor_from: Path | None = None) -> Json:
    """Writes a verified backup into an empty data directory, read-only until reconciled; gives the manifest.

    `anchor_from` is the folder of the anchor and the journal as they were last, where they are not in their place already.
    """
    manifest = read_manifest(source)
    if data_dir.exists():
        found = sorted(item.name for item in data_dir.iterdir() if item.name not in _MAY_BE_THERE)
        if found:
            raise Clash("data_directory_in_use", f"{data_dir} is not empty: restore into a new folder")
    if anchor_from is not None and not (anchor_from / JOURNAL).is_file():
        raise Invalid("journal_absent", f"{anchor_from} holds no {JOURNAL}")
    contents = {item["name"]: _verified(source / item["name"], item) for item in manifest["files"]}
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_marker(data_dir, manifest)
    if (source / "keys").is_dir() and not (data_dir / "keys").exists():
        _copy_private(source / "keys", data_dir / "keys")
    if anchor_from is not None and not (data_dir / "anchor").exists():
        _copy_private(anchor_from, data_dir / "anchor")
    for name, content in contents.items():
        write_durably(data_dir / name, content)
    return manifest


def read_manifest(source: Path) -> dict[str, Any]:
    """Gives the manifest of a backup; raises Invalid `not_a_backup`."""
    try:
        manifest = decode((source / MANIFEST).read_bytes())
    except OSError:
        raise Invalid("not_a_backup", f"{source} holds no {MANIFEST}") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise Invalid("not_a_backup", f"{source / MANIFEST} is not of the form {FORMAT}")
    for item in manifest["files"]:
        if Path(item["name"]).name != item["name"]:
            raise Invalid("not_a_backup", "a file of the backup is named by a path")
    return manifest


def _verified(path: Path, item: Json) -> bytes:
    try:
        content = path.read_bytes()
    except OSError:
        raise Invalid("backup_damaged", f"the backup lacks {path.name}", file=path.name) from None
    if sha256_hex(content) != item["sha256"]:
        raise Invalid("backup_damaged", f"{path.name} is not what was backed up", file=path.name)
    return content


def _make_empty(out: Path) -> None:
    out.mkdir(mode=0o700, parents=True, exist_ok=True)
    if any(out.iterdir()):
        raise Clash("backup_exists", f"{out} is not empty: a backup never overwrites")


def _file(path: Path, schema_version: int) -> Json:
    return {"name": path.name, "sha256": sha256_hex(path.read_bytes()), "schema_version": schema_version}


def _copy_private(source: Path, to: Path) -> None:
    to.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path in sorted(source.iterdir()):
        if path.is_file() and not path.name.startswith("."):
            shutil.copy2(path, to / path.name)
            (to / path.name).chmod(0o600)

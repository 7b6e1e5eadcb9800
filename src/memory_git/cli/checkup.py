"""What `charon doctor` looks at: each check gives what it found; none of them changes anything or raises.

A check is `ok`, a `warning` (it works, and somebody should look) or `broken` (it does not, and the detail says what to do).
"""

from __future__ import annotations

import os
import platform
import shutil
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from memory_git import __version__
from memory_git.cli.opening import gate_settings, open_gate, store_path
from memory_git.cli.settings import unknown_names
from memory_git.domain.errors import Corrupt, Refused

if TYPE_CHECKING:
    from memory_git.charon.gate import Gate
    from memory_git.cli.settings import Settings

OK, WARNING, BROKEN = "ok", "warning", "broken"
LOW_SPACE_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Finding:
    """One check's outcome."""

    check: str
    state: str
    detail: str


def examine(settings: Settings, *, deep: bool) -> list[Finding]:
    """Runs every check; `deep` recomputes the ledger and compares both databases."""
    found = [_programs(), *_environment(), *_folders(settings), *_keys(settings), *_space(settings)]
    if not _begun(settings):
        place = settings.charon.data_dir
        return [
            *found,
            Finding("database", WARNING, f"{place} holds no charon.db yet: `charon serve` makes one"),
        ]
    try:
        gate = open_gate(settings)
    except (Refused, Corrupt, OSError) as error:
        return [*found, Finding("database", BROKEN, _said(error))]
    try:
        return [*found, *_gate(gate, settings, deep=deep)]
    finally:
        gate.close()


def _programs() -> Finding:
    git = shutil.which("git") or "none: the Git view needs it"
    return Finding(
        "programs",
        OK,
        f"memory-git {__version__}, Python {platform.python_version()}, SQLite {apsw.sqlite_lib_version()}, git {git}",
    )


def _environment() -> Iterator[Finding]:
    unknown = unknown_names()
    if unknown:
        yield Finding("environment", WARNING, f"no settings of ours: {', '.join(unknown)}")


def _folders(settings: Settings) -> Iterator[Finding]:
    charon = settings.charon
    for name, folder in (("data directory", charon.data_dir), ("anchor", charon.anchor_path)):
        place = folder.parent if folder.suffix else folder
        if not place.exists():
            continue
        mode = stat.S_IMODE(place.stat().st_mode)
        if not os.access(place, os.W_OK):
            yield Finding(name, BROKEN, f"{place} can't be written by this user")
        elif mode & 0o077:
            yield Finding(name, WARNING, f"others may enter {place} (mode {mode:04o}): chmod 700 it")
        else:
            yield Finding(name, OK, str(place))
    if charon.ledger_anchor_path is None:
        yield Finding(
            "anchor apart",
            WARNING,
            "the anchor and the journal stand on the disk of the databases: CHARON_LEDGER_ANCHOR_PATH names a safer place",
        )


def _keys(settings: Settings) -> Iterator[Finding]:
    from memory_git.charon.keys import KEY_NAMES, Keys

    folder = settings.charon.keys_dir
    if not all((folder / name).exists() for name in KEY_NAMES):
        yield Finding("keys", WARNING, f"{folder} lacks keys: they are made at the first start")
        return
    try:
        keys = Keys(folder)
    except (Refused, OSError) as error:
        yield Finding("keys", BROKEN, _said(error))
        return
    older = [name for name in KEY_NAMES if len(keys.ring(name).secrets) > 1 and name != "ledger"]
    told = f"older ones wait to be retired: {', '.join(older)}" if older else str(folder)
    yield Finding("keys", WARNING if older else OK, told)


def _space(settings: Settings) -> Iterator[Finding]:
    for place in sorted({_existing(settings.charon.data_dir), _existing(store_path(settings).parent)}):
        free = shutil.disk_usage(place).free
        state = WARNING if free < LOW_SPACE_BYTES else OK
        yield Finding("disk", state, f"{free / (1 << 30):.1f} GiB free at {place}")


def _gate(gate: Gate, settings: Settings, *, deep: bool) -> Iterator[Finding]:
    operator = gate.as_operator()
    try:
        ready = gate.ready()
    except (Refused, OSError) as error:
        yield Finding("database", BROKEN, _said(error))
        return
    yield Finding(
        "database", OK, f"{ready['engine']}, schema {ready['schema_version']}, {ready['durability']}"
    )
    store = settings.charon.upstream or settings.lethe.database_url or store_path(settings)
    where = store if isinstance(store, str | Path) else "LETHE_DATABASE_URL"
    yield Finding("store", OK, f"{ready['lethe']['status']} at {where}")
    if ready["recovery_readonly"]:
        why = gate.recovery_why() or "a restore was not reconciled, or CHARON_RECOVERY_READONLY is set"
        yield Finding("recovery", BROKEN, f"writes are refused: {why}; then `charon reconcile`")
    people = [item for item in gate.principals(operator) if item["kind"] == "human" and not item["disabled"]]
    if not people:
        yield Finding("people", WARNING, "nobody can review: `charon principal add NAME --kind human`")
    if deep:
        yield from _deep(lambda: gate.reconcile(operator))


def _deep(reconcile: Callable[[], dict[str, object]]) -> Iterator[Finding]:
    report = reconcile()
    faults = report["faults"]
    kinds = sorted({str(item["kind"]) for item in faults}) if isinstance(faults, list) else []
    if kinds:
        yield Finding("reconcile", BROKEN, f"{', '.join(kinds)}: `charon reconcile --repair`")
    else:
        yield Finding("reconcile", OK, ", ".join(f"{name} {count}" for name, count in _counted(report)))


def _counted(report: dict[str, object]) -> list[tuple[str, object]]:
    checked = report["checked"]
    return list(checked.items()) if isinstance(checked, dict) else []


def _begun(settings: Settings) -> bool:
    place = gate_settings(settings).place
    return not isinstance(place, Path) or place.exists()


def _existing(folder: Path) -> Path:
    while not folder.exists():
        folder = folder.parent
    return folder


def _said(error: Exception) -> str:
    code = f" ({error.code})" if isinstance(error, Refused) else ""
    return f"{getattr(error, 'message', None) or error}{code}"

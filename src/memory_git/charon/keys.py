"""The secrets of the gate, each in a file of its own under keys/ (10-operations, trust and transport).

1. A missing file is made at the first start: mode 0600, in a folder of mode 0700, durable before it is used.
2. A file that others can read or write is refused: what it held is no secret any more.
3. A file holds `id=secret` lines; the first signs, all verify. No secret is ever shown or put into an error.
"""

from __future__ import annotations

import os
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

from memory_git.domain.envelope import MIN_SECRET_CHARACTERS, MergeKeys
from memory_git.domain.errors import Unavailable

LETHE_API = "lethe-api"
MERGE = "merge"
TOKEN = "token"  # noqa: S105 (the name of a file)
LEDGER = "ledger"
KEY_NAMES = (LETHE_API, MERGE, TOKEN, LEDGER)
_SECRET_BYTES = 32


@dataclass(frozen=True, slots=True, repr=False)
class Keys:
    """All secrets of one gate; `merge` signs protected merges, `token` tokens, `ledger` the audit, `lethe_api` is Lethe's bearer."""

    lethe_api: str
    merge: MergeKeys
    token: MergeKeys
    ledger: MergeKeys

    def __repr__(self) -> str:
        return "Keys(…)"


def load_keys(directory: Path) -> Keys:
    """Gives the secrets of a folder, making those that are missing; raises Unavailable for an open or damaged file."""
    rings = {name: _ring(directory / name) for name in KEY_NAMES}
    return Keys(rings[LETHE_API].secrets[0][1], rings[MERGE], rings[TOKEN], rings[LEDGER])


def _ring(path: Path) -> MergeKeys:
    if not path.exists():
        _make(path)
    return _read(path)


def _make(path: Path) -> None:
    """Writes a new secret; of two processes that start at once, the first to finish wins."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{secrets.token_hex(4)}={secrets.token_hex(_SECRET_BYTES)}\n")
            file.flush()
            os.fsync(file.fileno())
        _install(new, path)
    finally:
        new.unlink()


def _install(new: Path, path: Path) -> None:
    try:
        os.link(new, path)
    except FileExistsError:
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _read(path: Path) -> MergeKeys:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, encoding="utf-8", errors="replace") as file:
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        if mode & 0o077:
            raise Unavailable(
                "key_not_private",
                f"{path} can be read by others (mode {mode:04o}): make it 0600, and replace its secret",
            )
        lines = [line.strip() for line in file if line.strip()]
    pairs = tuple(
        (key_id, secret) for key_id, mark, secret in (line.partition("=") for line in lines) if mark
    )
    fits = len(pairs) == len(lines) and len({key_id for key_id, _ in pairs}) == len(pairs) and pairs
    if not fits or any(len(secret) < MIN_SECRET_CHARACTERS for _, secret in pairs):
        raise Unavailable(
            "key_damaged",
            f"{path} does not hold id=secret lines of {MIN_SECRET_CHARACTERS} characters or more",
        )
    return MergeKeys(pairs)

"""The secrets of the gate, each in a file of its own under keys/ (10-operations, trust and transport).

1. A missing file is made at the first start: mode 0600, in a folder of mode 0700, durable before it is used.
2. A file that others can read or write is refused: what it held is no secret any more.
3. A file holds `id=secret` lines; the first signs, all verify. No secret is ever shown or put into an error.
4. A file that was replaced is read anew at its next use, by every process: so a key is rotated while all of them serve. One that
   can't be read any more counts as it was.
"""

from __future__ import annotations

import fcntl
import logging
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path

from memory_git.charon.side_file import write_durably
from memory_git.domain.envelope import MIN_SECRET_CHARACTERS, MergeKeys
from memory_git.domain.errors import Unavailable

LETHE_API = "lethe-api"
MERGE = "merge"
TOKEN = "token"  # noqa: S105 (the name of a file)
LEDGER = "ledger"
OAUTH = "oauth"
KEY_NAMES = (LETHE_API, MERGE, TOKEN, LEDGER, OAUTH)
_SECRET_BYTES = 32
_log = logging.getLogger(__name__)


class Keys:
    """All secrets of one gate; `merge` signs protected merges, `token` tokens, `oauth` those of clients, `ledger` the audit,
    `lethe_api` is Lethe's bearer.

    Raises Unavailable for an open or damaged file; those that are missing are made. `merge` given stands in place of its file.
    """

    def __init__(self, directory: Path, merge: MergeKeys | None = None) -> None:
        self.directory = directory
        self.merge_elsewhere = merge
        self._files = {name: _RingFile(directory / name) for name in KEY_NAMES}

    @property
    def lethe_api(self) -> str:
        """The bearer that Charon sends."""
        return self.ring(LETHE_API).secrets[0][1]

    def lethe_bearers(self) -> tuple[str, ...]:
        """Gives the bearers that Lethe takes: that of before a rotation too."""
        return tuple(secret for _, secret in self.ring(LETHE_API).secrets)

    @property
    def merge(self) -> MergeKeys:
        """The keys that sign and verify protected merges."""
        return self.merge_elsewhere or self.ring(MERGE)

    @property
    def token(self) -> MergeKeys:
        """The keys of tokens' digests."""
        return self.ring(TOKEN)

    @property
    def ledger(self) -> MergeKeys:
        """The keys of the audit's links."""
        return self.ring(LEDGER)

    @property
    def oauth(self) -> MergeKeys:
        """The keys of the digests of OAuth clients' tokens."""
        return self.ring(OAUTH)

    def ring(self, name: str) -> MergeKeys:
        """Gives the secrets of one file as they are now."""
        return self._files[name].ring()

    def replace(self, name: str, change: Callable[[MergeKeys], MergeKeys]) -> MergeKeys:
        """Replaces a file by what the change makes of it, durable; gives that. Other processes wait."""
        path = self.directory / name
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        lock = os.open(path.with_name(f".{name}.lock"), flags, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            ring = change(_read(path))
            lines = "".join(f"{key_id}={secret}\n" for key_id, secret in ring.secrets)
            write_durably(path, lines.encode())
        finally:
            os.close(lock)
        return self.ring(name)

    def __repr__(self) -> str:
        return "Keys(…)"


class _RingFile:
    """One file's secrets, read anew when it was replaced."""

    def __init__(self, path: Path) -> None:
        self._path = path
        if not path.exists():
            _make(path)
        self._read = (_stamp(path), _read(path))

    def ring(self) -> MergeKeys:
        """Gives what the file holds; of one that can't be read any more, what it held."""
        stamp, ring = self._read
        try:
            now = _stamp(self._path)
            if now != stamp:
                ring = _read(self._path)
                self._read = (now, ring)
        except (OSError, Unavailable) as error:
            _log.error("the keys in use stay: %s", error)
        return ring


def new_key() -> tuple[str, str]:
    """Gives a fresh (id, secret)."""
    return secrets.token_hex(4), secrets.token_hex(_SECRET_BYTES)


def _stamp(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_ino, found.st_mtime_ns, found.st_size


def _make(path: Path) -> None:
    """Writes a new secret; of two processes that start at once, the first to finish wins."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    key_id, secret = new_key()
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(f"{key_id}={secret}\n")
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

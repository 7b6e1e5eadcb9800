"""What a gate is opened with, and the house that comes of it (10-operations; 2-architecture, embedded or apart)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from memory_git.charon.anchor import Anchor
from memory_git.charon.house import House
from memory_git.charon.keys import Keys, load_keys
from memory_git.charon.ledger import Ledger
from memory_git.charon.side_file import SideFile
from memory_git.charon.standings import Standings
from memory_git.domain.envelope import MergeKeys
from memory_git.domain.errors import Unavailable
from memory_git.lethe.client import LetheClient
from memory_git.lethe.feed import Feed
from memory_git.lethe.store import LetheStore
from memory_git.storage import charon_ledger
from memory_git.storage.charon_schema import CHARON_SCHEMA
from memory_git.storage.engine import Database
from memory_git.storage.opening import open_database
from memory_git.storage.settings import SqliteSettings

_DURABLE = SqliteSettings()
RECOVERY_MARKER = "recovery-readonly"
SIDE_FILE = "recovery-reads.jsonl"


@dataclass(frozen=True, slots=True, repr=False)
class GateSettings:
    """Where a gate's things are. Without `lethe_url` the store is embedded, in the same folder.

    `database_url` and `lethe_database_url` name PostgreSQL databases in place of the two files; keys and anchor stay in the folder.
    `anchor_path` is a folder, or a file if it has a suffix; by default `anchor/` of the folder. `merge_keys` stand in place
    of the key file. `reconciling` opens for writing while recovery is under way; only reconcile does that.
    """

    data_dir: Path
    lethe_path: Path | None = None
    lethe_url: str | None = None
    lethe_api_key: str | None = None
    merge_keys: MergeKeys | None = None
    anchor_path: Path | None = None
    recovery_readonly: bool = False
    reconciling: bool = False
    sqlite: SqliteSettings = _DURABLE
    max_history: int = 1_000_000
    database_url: str | None = None
    lethe_database_url: str | None = None

    @property
    def marker(self) -> Path:
        """The file that keeps a restored gate read-only until it is reconciled."""
        return self.data_dir / RECOVERY_MARKER

    @property
    def store_place(self) -> Path | str:
        """The file of an embedded store, or the URL of its database."""
        return self.lethe_database_url or self.lethe_path or self.data_dir / "lethe.db"

    @property
    def place(self) -> Path | str:
        """The file of the gate's own database, or its URL."""
        return self.database_url or self.data_dir / "charon.db"

    @property
    def is_readonly(self) -> bool:
        """Says whether every write is to be refused."""
        return (self.recovery_readonly or self.marker.exists()) and not self.reconciling


def utc_now() -> datetime:
    """Gives the present time."""
    return datetime.now(UTC)


def open_house(settings: GateSettings, now: Callable[[], datetime] = utc_now) -> House:
    """Opens the keys, both databases and the ledger; what was opened is closed again if a later one fails."""
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    keys = load_keys(settings.data_dir / "keys")
    if settings.merge_keys is not None:
        keys = replace(keys, merge=settings.merge_keys)
    read_only = settings.is_readonly
    database = open_database(settings.place, CHARON_SCHEMA, settings.sqlite, read_only=read_only)
    try:
        _require_store(settings, database)
        lethe = _open_lethe(settings, keys)
        side_file = _side_file(settings, keys) if read_only else None
    except BaseException:
        database.close()
        raise
    feed = lethe.feed if isinstance(lethe, LetheStore) else _own_feed(database)
    anchor = Anchor(settings.anchor_path or settings.data_dir / "anchor")
    return House(
        database=database,
        lethe=lethe,
        ledger=Ledger(database, keys.ledger, anchor, now, side_file),
        keys=keys,
        standings=Standings(database, now),
        feed=feed,
        now=now,
        recovery_readonly=read_only,
    )


def close_house(house: House) -> None:
    """Writes what waits, and closes the databases."""
    try:
        house.ledger.close()
    finally:
        try:
            house.database.close()
        finally:
            if isinstance(house.lethe, LetheStore | LetheClient):
                house.lethe.close()
            if not isinstance(house.lethe, LetheStore):
                house.feed.close()


def _require_store(settings: GateSettings, database: Database) -> None:
    """Refuses an embedded store that is gone: opening it would put an empty one under a gate that knows projects."""
    place = settings.store_place
    if settings.lethe_url is not None or not isinstance(place, Path) or place.exists():
        return
    with database.read() as connection:
        known = sorted(charon_ledger.heads(connection).keys() - {""})
    if known:
        raise Unavailable(
            "database_absent",
            f"{place.parent} holds no lethe.db, and the gate knows the project {known[0]}: "
            "restore both from a backup, or name the folder by LETHE_DATA_DIR",
        )


def _open_lethe(settings: GateSettings, keys: Keys) -> LetheStore | LetheClient:
    if settings.lethe_url is not None:
        return LetheClient(settings.lethe_url, settings.lethe_api_key or keys.lethe_api)
    return LetheStore.open(
        settings.store_place,
        merge_keys=keys.merge,
        recovery_readonly=settings.is_readonly,
        settings=settings.sqlite,
        max_history=settings.max_history,
    )


def _own_feed(database: Database) -> Feed:
    feed = Feed(announce=database.announce if database.is_shared else None)
    database.hear(feed.hear, feed.begin_anew)
    return feed


def _side_file(settings: GateSettings, keys: Keys) -> SideFile:
    secret = keys.ledger.secret(keys.ledger.signing_key_id)
    if secret is None:
        raise Unavailable("key_damaged", "the ledger key is absent")
    return SideFile(settings.data_dir / SIDE_FILE, secret)

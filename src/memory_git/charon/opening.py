"""What a gate is opened with, and the house that comes of it (10-operations; 2-architecture, embedded or apart)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from memory_git.charon import recovery
from memory_git.charon.anchor import Anchor
from memory_git.charon.house import House
from memory_git.charon.journal import Journal
from memory_git.charon.keys import Keys
from memory_git.charon.ledger import Ledger
from memory_git.charon.limits import Limits, LimitSettings
from memory_git.charon.recovery import MARKER, Marker
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
_UNLIMITED = LimitSettings()
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
    limits: LimitSettings = _UNLIMITED
    oauth_author_scopes: bool = True

    @property
    def marker(self) -> Path:
        """The file that keeps a restored gate read-only until it is reconciled."""
        return self.data_dir / MARKER

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
    """Opens the keys, both databases and the ledger, and brings a restored database up to the journal (`recovery`)."""
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    keys = Keys(settings.data_dir / "keys", settings.merge_keys)
    anchor = Anchor(settings.anchor_path or settings.data_dir / "anchor")
    _require_gate(settings, anchor)
    marker = recovery.read_marker(settings.marker)
    _require_restored(settings, marker)
    house = _first_opened(settings, keys, anchor, now, marker)
    try:
        found = recovery.assess(house, marker, anchor, keys.ledger)
        if found.behind or found.begins_epoch:
            house = _reopened(house, settings, keys, anchor, now, read_only=False)
            recovery.replay(house, found.behind)
            if found.begins_epoch and marker is not None:
                recovery.begin_epoch(house, marker, anchor)
        read_only = settings.is_readonly or (bool(found.fault) and not settings.reconciling)
        house = _reopened(house, settings, keys, anchor, now, read_only=read_only)
        house.recovery_fault, house.recovery_why = found.fault, recovery.WHY.get(found.fault, "")
        if not read_only and not found.fault:
            house.journal.begin()
    except BaseException:
        close_house(house)
        raise
    return house


def _first_opened(
    settings: GateSettings, keys: Keys, anchor: Anchor, now: Callable[[], datetime], marker: Marker | None
) -> House:
    """Opens a house as the settings say; what an older program backed up is migrated, which needs writing."""
    try:
        return _opened(settings, keys, anchor, now, read_only=settings.is_readonly)
    except Unavailable as refusal:
        if refusal.code != "schema_older" or marker is None or marker.restore_id is None:
            raise
        return _opened(settings, keys, anchor, now, read_only=False)


def _reopened(
    house: House,
    settings: GateSettings,
    keys: Keys,
    anchor: Anchor,
    now: Callable[[], datetime],
    *,
    read_only: bool,
) -> House:
    if house.recovery_readonly == read_only:
        return house
    close_house(house)
    return _opened(settings, keys, anchor, now, read_only=read_only)


def _opened(
    settings: GateSettings, keys: Keys, anchor: Anchor, now: Callable[[], datetime], *, read_only: bool
) -> House:
    """Opens all; what was opened is closed again if a later one fails."""
    database = open_database(settings.place, CHARON_SCHEMA, settings.sqlite, read_only=read_only)
    try:
        _require_store(settings, database)
        lethe = _open_lethe(settings, keys, read_only=read_only)
        side_file = _side_file(settings, keys) if read_only else None
    except BaseException:
        database.close()
        raise
    feed = lethe.feed if isinstance(lethe, LetheStore) else _own_feed(database)
    ledger = Ledger(database, keys, anchor, now, side_file)
    journal = Journal(database, ledger, keys, recovery.journal_file(anchor), now)
    limits = Limits(settings.limits, database, now)
    ledger.follow(limits.note)
    if database.is_shared:
        ledger.follow(journal.copy)
    return House(
        database=database,
        lethe=lethe,
        ledger=ledger,
        journal=journal,
        limits=limits,
        oauth_author_scopes=settings.oauth_author_scopes,
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


def _require_gate(settings: GateSettings, anchor: Anchor) -> None:
    """Refuses a gate's database that is gone where its journal is there: opening it would let everybody begin anew."""
    place, file = settings.place, recovery.journal_file(anchor)
    if isinstance(place, Path) and not place.exists() and file.exists():
        raise Unavailable(
            "database_absent",
            f"{place.parent} holds no charon.db, and {file.path} is of a gate that was here: restore it from a backup "
            "(`charon restore`), or move the journal away to begin a new gate",
        )


def _require_restored(settings: GateSettings, marker: Marker | None) -> None:
    """Refuses a folder into which a restore was cut off: opening it would make the databases that it lacks, empty."""
    if marker is None or marker.manifest is None:
        return
    places = [settings.place, *([settings.store_place] if settings.lethe_url is None else [])]
    for place in places:
        if isinstance(place, Path) and not place.exists():
            raise Unavailable(
                "database_absent",
                f"the restore into {settings.data_dir} did not come to its end, {place.name} is not there: "
                "empty the folder, keys/ and anchor/ apart, and restore again",
            )


def _open_lethe(settings: GateSettings, keys: Keys, *, read_only: bool) -> LetheStore | LetheClient:
    if settings.lethe_url is not None:
        return LetheClient(settings.lethe_url, settings.lethe_api_key or keys.lethe_api)
    return LetheStore.open(
        settings.store_place,
        merge_keys=lambda: keys.merge,
        recovery_readonly=read_only,
        settings=settings.sqlite,
        max_history=settings.max_history,
    )


def _own_feed(database: Database) -> Feed:
    feed = Feed(announce=database.announce if database.is_shared else None)
    database.hear(feed.hear, feed.begin_anew)
    return feed


def _side_file(settings: GateSettings, keys: Keys) -> SideFile:
    return SideFile(settings.data_dir / SIDE_FILE, keys.ledger.secrets[0][1].encode())

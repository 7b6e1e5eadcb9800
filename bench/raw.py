"""The least that an import could cost: apsw inserting the same canonical bytes into one indexed table, durable per 10,000.

The bytes are those that ours stored, read from its database before the clock starts: the memory's id, the op's payload, the record's
body. WAL, synchronous FULL, 64 MiB of cache, SQLite's own checkpoints, one `executemany` a transaction, up to the checkpoint at close.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path

import apsw

from bench.participant import Json, timed

_TABLE = "CREATE TABLE raw (id INTEGER PRIMARY KEY, memory_id TEXT NOT NULL UNIQUE, payload BLOB NOT NULL, body BLOB NOT NULL)"
_OPS = "SELECT changeset_row, ordinal, payload FROM op ORDER BY changeset_row, ordinal"
_VERSIONS = "SELECT changeset_row, ordinal, memory_id, body FROM version ORDER BY id"
_CHANGESET = itemgetter(0)


class Participant:
    """One file, one connection."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._builds = 0

    def close(self) -> None:
        """Nothing is held between builds."""

    def build(self, source: str) -> Json:
        """Times inserting what the changesets of a store hold, one transaction each."""
        self._builds += 1
        connection = apsw.Connection(str(self.folder / f"raw-{self._builds}.db"))
        connection.execute(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA temp_store = 2; PRAGMA cache_size = -65536"
        )
        connection.execute(_TABLE)
        assert connection.pragma("synchronous") == 2, "raw is durable"
        seconds = cpu = 0.0
        count = 0
        for rows in self._batches(source):
            with timed() as clock, connection:
                connection.executemany("INSERT INTO raw (memory_id, payload, body) VALUES (?, ?, ?)", rows)
            seconds, cpu, count = seconds + clock.seconds, cpu + clock.cpu_seconds, count + len(rows)
        with timed() as closing:
            connection.close()
        return {
            "seconds": seconds + closing.seconds,
            "cpu_seconds": cpu + closing.cpu_seconds,
            "count": count,
        }

    def _batches(self, source: str) -> Iterator[list[tuple[str, bytes, bytes]]]:
        """Yields what a store that was only imported into holds, in the order of its changesets."""
        store = apsw.Connection(source, flags=apsw.SQLITE_OPEN_READONLY)
        by_changeset = (itertools.groupby(store.execute(sql), _CHANGESET) for sql in (_OPS, _VERSIONS))
        for (row, ops), (same, versions) in zip(*by_changeset, strict=True):
            assert row == same, "ops and versions belong together"
            pairs = zip(ops, sorted(versions), strict=True)
            yield [(version[2], op[2], version[3]) for op, version in pairs]
        store.close()

"""The background thread that moves the WAL into the database file (10-operations, durability)."""

from __future__ import annotations

import threading
from collections.abc import Callable

import apsw

from memory_git.storage.errors import ends_writing

INTERVAL_S = 0.25
LONG_WAL_PAGES = 16_384


class Checkpoints:
    """Checkpoints PASSIVE each INTERVAL_S, so that no commit pays for it and the WAL is never cut while serving.

    Under steady writing a passive checkpoint never catches up with the end and the WAL would only grow: beyond
    LONG_WAL_PAGES the writer is asked to copy the rest between two batches, and then starts the WAL again.
    """

    def __init__(
        self,
        driver: apsw.Connection,
        on_long_wal: Callable[[], None],
        on_failure: Callable[[apsw.Error], None],
    ) -> None:
        self._driver = driver
        self._on_long_wal = on_long_wal
        self._on_failure = on_failure
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sqlite-checkpoint", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the thread and closes its connection."""
        self._stop.set()
        self._thread.join()
        self._driver.close(True)

    def _run(self) -> None:
        while not self._stop.wait(INTERVAL_S):
            try:
                pages, _ = self._driver.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            except apsw.Error as error:
                if ends_writing(error):
                    self._on_failure(error)
                    return
            else:
                if pages > LONG_WAL_PAGES:
                    self._on_long_wal()

"""Where a world's databases are, how they are copied, and how somebody reaches into them behind the programs' backs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from memory_git.storage.connection import Connection
from memory_git.storage.lethe_schema import SCHEMA
from memory_git.storage.opening import open_database


class Databases(Protocol):
    """Databases that are no files of the data directory."""

    @property
    def settings(self) -> Mapping[str, str]:
        """The variables that name them to the programs."""

    @property
    def store(self) -> str:
        """The URL of the store's."""

    def copied(self) -> Databases:
        """Gives others with what these hold now, made by the tools of whoever keeps them."""

    def raw(self) -> bytes:
        """Gives every text and byte that they hold."""


def flip_record_byte(place: Path | str, memory_id: str) -> None:
    """Changes one byte in every stored version of a memory, behind the store's back; done twice, it is as it was."""

    def flip(connection: Connection) -> None:
        named = "SELECT project_id, id, body FROM version WHERE memory_id = ?"
        for project_id, row, body in connection.rows(named, (memory_id,)):
            at = body.index(b'"content":"') + len(b'"content":"')
            flipped = body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]
            connection.execute(
                "UPDATE version SET body = ? WHERE project_id = ? AND id = ?", (flipped, project_id, row)
            )

    database = open_database(place, SCHEMA)
    try:
        database.write(flip)
    finally:
        database.close()

"""Schemas: forward only, each step in one transaction, a newer or another one refused (10-operations, durability)."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import apsw

from memory_git.domain.errors import Unavailable


@dataclass(frozen=True, slots=True)
class Schema:
    """One database's tables: PRAGMA user_version counts the applied migrations, application_id tells the name."""

    name: str
    migrations: tuple[str, ...]
    postgres: tuple[str, ...] = ()
    """What each migration needs on PostgreSQL besides, where its text is told as that engine takes it (`dialect`)."""

    @property
    def application_id(self) -> int:
        """The number in the file's header that keeps a charon.db from being opened as a lethe.db."""
        return zlib.crc32(f"memory-git/{self.name}".encode()) & 0x7FFF_FFFF


def found_version(driver: apsw.Connection, schema: Schema) -> int:
    """Gives how many migrations the file has, once it is known to be this schema's and not newer."""
    application_id = driver.pragma("application_id")
    if application_id != schema.application_id:
        raise Unavailable(
            "wrong_database",
            f"this file is not a {schema.name} database of memory-git; check the path in the settings",
        )
    version = int(driver.pragma("user_version"))
    if version > len(schema.migrations):
        raise Unavailable(
            "schema_newer",
            f"the {schema.name} database has schema {version}, this program knows {len(schema.migrations)}; "
            "run the version of memory-git that wrote it, or a newer one",
            found=version,
            known=len(schema.migrations),
        )
    return version


def require_current(driver: apsw.Connection, schema: Schema) -> None:
    """Refuses a database that needs a migration, which a read-only opening can't run."""
    version = found_version(driver, schema)
    if version < len(schema.migrations):
        raise Unavailable(
            "schema_older",
            f"the {schema.name} database has schema {version} and needs {len(schema.migrations)}; "
            "open it once without read-only recovery to migrate it",
            found=version,
            known=len(schema.migrations),
        )


def name_database(driver: apsw.Connection, schema: Schema) -> None:
    """Writes into a new file whose database it is."""
    driver.execute(f"PRAGMA application_id = {schema.application_id}").fetchall()


def migrate(driver: apsw.Connection, schema: Schema) -> None:
    """Applies the migrations that are missing; the caller holds the lock between processes.

    Foreign keys rest meanwhile, so that a table can be rebuilt, and are all checked before each commit.
    """
    missing = range(found_version(driver, schema), len(schema.migrations))
    if not missing:
        return
    driver.execute("PRAGMA foreign_keys = 0")
    try:
        for step in missing:
            _apply(driver, schema.migrations[step], step + 1)
    finally:
        driver.execute("PRAGMA foreign_keys = 1")


def _apply(driver: apsw.Connection, script: str, version: int) -> None:
    driver.execute("BEGIN IMMEDIATE")
    try:
        driver.execute(script).fetchall()
        broken = driver.execute("PRAGMA foreign_key_check").fetchone()
        if broken is not None:
            raise Unavailable(
                "migration_failed", f"migration {version} leaves a foreign key of {broken[0]} open"
            )
        driver.execute(f"PRAGMA user_version = {version}").fetchall()
        driver.execute("COMMIT")
    except BaseException:
        if driver.in_transaction:
            driver.execute("ROLLBACK")
        raise

"""The story's databases on PostgreSQL: one database a world, a schema a program; copied as its keeper would, by pg_dump."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

import psycopg
from postgres_server import Server, programs
from postgres_texts import columns

from memory_git.storage.charon_schema import CHARON_SCHEMA
from memory_git.storage.lethe_schema import SCHEMA
from memory_git.storage.postgres_migrate import migrate
from memory_git.storage.postgres_url import DatabaseUrl


@dataclass
class PostgresDatabases:
    """Both programs' tables in one database of a server; `made` are all that stand there of one test."""

    server: Server
    made: list[str] = field(default_factory=list)

    @cached_property
    def store(self) -> str:
        name = f"world_{secrets.token_hex(6)}"
        with psycopg.connect(self.server.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        self.made.append(name)
        return self.server.url.removesuffix("postgres") + name

    @property
    def settings(self) -> Mapping[str, str]:
        return {"LETHE_DATABASE_URL": self.store, "CHARON_DATABASE_URL": self.store}

    def copied(self) -> PostgresDatabases:
        copy = PostgresDatabases(self.server, self.made)
        dumped = subprocess.run(
            [programs() / "pg_dump", "--no-owner", self.store], capture_output=True, check=True
        )
        with_psql = [programs() / "psql", "-q", "-X", "-v", "ON_ERROR_STOP=1", "-d", copy.store]
        subprocess.run(with_psql, input=dumped.stdout, capture_output=True, check=True)
        return copy

    def raw(self) -> bytes:
        return b"\0".join(value for _, value in columns(self.store, SCHEMA.name))


@contextmanager
def postgres_databases(server: Server) -> Iterator[PostgresDatabases]:
    """Makes them, with empty tables, and drops them in the end with every copy."""
    databases = PostgresDatabases(server)
    try:
        for schema in (SCHEMA, CHARON_SCHEMA):
            migrate(DatabaseUrl.parse(databases.store, schema.name), schema)
        yield databases
    finally:
        with psycopg.connect(server.url, autocommit=True) as connection:
            for name in databases.made:
                connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

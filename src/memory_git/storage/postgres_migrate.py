"""Migrations on PostgreSQL: run by `lethe migrate` alone, forward only, all missing ones in one transaction."""

from __future__ import annotations

from psycopg import pq

from memory_git.domain.errors import Unavailable
from memory_git.storage import dialect
from memory_git.storage.migrate import Schema
from memory_git.storage.postgres_errors import Lost, translate, unreachable
from memory_git.storage.postgres_url import DatabaseUrl, require_server

_MARK = """
CREATE TABLE IF NOT EXISTS write_mark (
    project_id text COLLATE "C" NOT NULL,
    writer text NOT NULL,
    number bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (project_id, writer)
)
"""
"""What a connection wrote last in a project: so it is known whether a commit that broke off is there."""
_RECORD = "CREATE TABLE IF NOT EXISTS migration (version bigint PRIMARY KEY, name text NOT NULL, at timestamptz NOT NULL DEFAULT now())"
FOUND = "SELECT version, name FROM migration ORDER BY version DESC LIMIT 1"


def migrate(url: DatabaseUrl, schema: Schema) -> tuple[int, int]:
    """Gives the version that was found, 0 for none, and the one that is there now. Others that migrate wait."""
    conn = pq.PGconn.connect(url.conninfo.encode())
    try:
        if conn.status != pq.ConnStatus.OK:
            raise unreachable(conn.get_error_message("utf-8").strip())
        require_server(conn.server_version)
        _run(conn, "BEGIN; SELECT pg_advisory_xact_lock(hashtext('memory-git migrations'))")
        _run(conn, f"CREATE SCHEMA IF NOT EXISTS {url.schema}; {_RECORD}; {_MARK}")
        found = _found(conn, schema)
        for step in range(found, len(schema.migrations)):
            _run(conn, dialect.tables(schema.migrations[step]))
            _run(conn, schema.postgres[step])
            _run(conn, f"INSERT INTO migration (version, name) VALUES ({step + 1}, '{schema.name}')")
        _run(conn, "COMMIT")
    except Lost as error:
        raise unreachable(str(error)) from error
    finally:
        conn.finish()
    return found, len(schema.migrations)


def require_version(found: tuple[int, str] | None, schema: Schema, place: str) -> None:
    """Refuses a schema that is another program's, newer than this program, or not migrated."""
    known = len(schema.migrations)
    version, name = found or (0, schema.name)
    if name != schema.name:
        raise Unavailable("wrong_database", f"{place} holds the tables of {name}, not of {schema.name}")
    if version > known:
        raise Unavailable(
            "schema_newer",
            f"the {schema.name} database has schema {version}, this program knows {known}; "
            "run the version of memory-git that wrote it, or a newer one",
            found=version,
            known=known,
        )
    if version < known:
        raise Unavailable(
            "schema_older",
            f"the {schema.name} database has schema {version} and needs {known}: run `lethe migrate` once",
            found=version,
            known=known,
        )


def _found(conn: pq.abc.PGconn, schema: Schema) -> int:
    result = _run(conn, FOUND)
    if not result.ntuples:
        return 0
    version, name = (bytes(result.get_value(0, column) or b"").decode() for column in (0, 1))
    if name != schema.name or int(version) > len(schema.migrations):
        require_version((int(version), name), schema, "the database")
    return int(version)


def _run(conn: pq.abc.PGconn, script: str) -> pq.abc.PGresult:
    result = conn.exec_(script.encode())
    if result.status not in (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK, pq.ExecStatus.EMPTY_QUERY):
        state = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"08000").decode()
        raise translate(state, result.error_message.decode("utf-8", "replace"))
    return result

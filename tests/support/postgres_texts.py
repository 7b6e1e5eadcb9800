"""Everything that a PostgreSQL database holds as text or bytes, for whoever looks for a word in it."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg

from memory_git.storage.postgres_url import DatabaseUrl


def columns(url: str, program: str = "none") -> Iterator[tuple[str, bytes]]:
    """Yields `table.column` and each value in it, of every column of a schema that could hold a text."""
    parsed = DatabaseUrl.parse(url, program)
    with psycopg.connect(parsed.conninfo) as connection:
        found = connection.execute(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = %s"
            " AND data_type IN ('text', 'bytea', 'jsonb', 'json', 'tsvector', 'ARRAY')",
            (parsed.schema,),
        ).fetchall()
        assert len(found) > 40
        for table, column in found:
            for (value,) in connection.execute(f'SELECT "{column}" FROM "{parsed.schema}"."{table}"'):
                yield f"{table}.{column}", value if isinstance(value, bytes) else str(value).encode()

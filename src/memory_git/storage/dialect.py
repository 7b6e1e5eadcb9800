"""The seam between the two engines' SQL: one body of text, written as SQLite takes it, told again as PostgreSQL takes it.

Queries, in the order of the code: what only SQLite's planner reads goes; a JSON list of rows (`AS wanted`) or of names (`AS named`) is
unfolded by PostgreSQL's own function; `?` becomes `$1`, `$2`. Tables: the three types, and a key that begins with the project.
Each text is told once a process; SQLite never comes here.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import count

_LIST = "(SELECT {value} AS value, place - 1 AS key FROM json_array_elements_text(CAST(? AS json)) WITH ORDINALITY AS item (value, place)) AS {name}"
_QUERY = (
    (re.compile(r" INDEXED BY \w+"), ""),
    (re.compile(r"\+project_id\b"), "project_id"),
    (re.compile(r"\bCROSS JOIN\b"), "JOIN"),
    (re.compile(r"json_each\(\?\) AS wanted\b"), _LIST.format(value="CAST(value AS bigint)", name="wanted")),
    (re.compile(r"json_each\(\?\) AS named\b"), _LIST.format(value="value", name="named")),
    (re.compile(r"json_group_array\((\w+)\)"), r"CAST(coalesce(json_agg(\1), '[]') AS text)"),
)
_MARK = re.compile(r"\?")
_TABLES = (
    (re.compile(r"CREATE VIRTUAL TABLE \w+ [^;]*;|INSERT INTO version_words [^;]*;"), ""),
    (re.compile(r"\) STRICT(, WITHOUT ROWID)?;"), ");"),
    (re.compile(r"\bINTEGER\b"), "bigint"),
    (re.compile(r"\bBLOB\b"), "bytea"),
    (re.compile(r"\bTEXT\b"), 'text COLLATE "C"'),
)
_NUMBERED = re.compile(r"    id INTEGER PRIMARY KEY,\n(.*?)\n\) STRICT;", re.DOTALL)


@cache
def query(sql: str) -> str:
    """Gives a statement as PostgreSQL takes it.

    >>> query("SELECT a FROM version WHERE id = ? AND +project_id = ?")
    'SELECT a FROM version WHERE id = $1 AND project_id = $2'
    """
    for found, told in _QUERY:
        sql = found.sub(told, sql)
    places = count(1)
    return _MARK.sub(lambda _: f"${next(places)}", sql)


def tables(script: str) -> str:
    """Gives a migration as PostgreSQL takes it; texts are ordered by their bytes, whatever the database's locale."""
    script = _NUMBERED.sub(
        r"    id INTEGER NOT NULL,\n\1,\n    PRIMARY KEY (project_id, id)\n) STRICT;", script
    )
    for found, told in _TABLES:
        script = found.sub(told, script)
    return script

"""SQL of states: tree nodes, versions of records, relationships, salts, claims and the word index."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import orjson

from memory_git.domain.state_root import memory_key
from memory_git.domain.words import words
from memory_git.storage.connection import Connection
from memory_git.storage.lethe_schema import row_range

_TABLES_WITH_ROWS = ("changeset", "version", "edge", "node")


class VersionRow(NamedTuple):
    """One version of a memory; `ordinal` None: a field merge made it. `salt` and `body` None: redacted.

    `memory_key` is the first 8 bytes of the memory's key in the tree: what the index finds it by.
    """

    id: int
    project_id: str
    memory_id: str
    memory_key: int
    changeset_row: int
    ordinal: int | None
    previous: int | None
    second_previous: int | None
    record_digest: bytes
    salt: bytes | None
    body: bytes | None


class EdgeRow(NamedTuple):
    """One relationship, as some changeset made it."""

    id: int
    project_id: str
    from_memory_id: str
    kind: str
    to_memory_id: str
    changeset_row: int
    ordinal: int | None


_VERSION, _EDGE = ", ".join(VersionRow._fields), ", ".join(EdgeRow._fields)


def indexed_key(memory_id: str) -> int:
    """Gives the first 8 bytes of a memory's key as a signed integer; a hit is checked against the whole id."""
    return key_index(memory_key(memory_id))


def key_index(key: bytes) -> int:
    """Gives what `indexed_key` gives, from the memory's key."""
    return int.from_bytes(key[:8], signed=True)


def last_row(connection: Connection, project_id: str, table: str, number: int) -> int:
    """Gives the greatest row that a project has in a table, or the one before its first."""
    assert table in _TABLES_WITH_ROWS, table
    least, beyond = row_range(number)
    found = connection.value(
        f"SELECT id FROM {table} WHERE id >= ? AND id < ? AND +project_id = ? ORDER BY id DESC LIMIT 1",
        (least, beyond, project_id),
    )
    return least if found is None else int(found)


def rows_between(connection: Connection, project_id: str, table: str, least: int, beyond: int) -> list[int]:
    """Gives the rows that a project has in a table."""
    assert table in _TABLES_WITH_ROWS, table
    rows = connection.rows(
        f"SELECT id FROM {table} WHERE id >= ? AND id < ? AND project_id = ?", (least, beyond, project_id)
    )
    return [row for (row,) in rows]


class NodeRow(NamedTuple):
    """A tree node as stored: its body, or with a `base`, what makes its body of that older node's (`lethe.node_bodies`).

    `steps` counts the nodes that must be read below it.
    """

    id: int
    project_id: str
    base: int | None
    steps: int
    body: bytes


def get_node(connection: Connection, project_id: str, row: int) -> NodeRow | None:
    """Gives a tree node, or None."""
    found = connection.row(
        "SELECT id, project_id, base, steps, body FROM node WHERE id = ? AND project_id = ?",
        (row, project_id),
    )
    return NodeRow(*found) if found else None


def steps_of(connection: Connection, project_id: str, row: int) -> int:
    """Gives how many nodes must be read below a stored one."""
    return int(
        connection.value("SELECT steps FROM node WHERE id = ? AND project_id = ?", (row, project_id)) or 0
    )


def put_nodes(connection: Connection, nodes: Iterable[NodeRow]) -> None:
    """Inserts tree nodes."""
    connection.execute_many("INSERT INTO node VALUES (?, ?, ?, ?, ?)", nodes)


def get_version(connection: Connection, project_id: str, row: int) -> VersionRow | None:
    """Gives a version by its row, or None."""
    found = connection.row(
        f"SELECT {_VERSION} FROM version WHERE id = ? AND project_id = ?", (row, project_id)
    )
    return VersionRow(*found) if found else None


def get_versions(connection: Connection, project_id: str, rows: Sequence[int]) -> list[VersionRow]:
    """Gives versions by their rows."""
    columns = ", ".join(f"version.{name}" for name in _VERSION.split(", "))
    found = connection.rows(
        f"SELECT {columns} FROM json_each(?) AS wanted"
        " CROSS JOIN version ON version.id = wanted.value AND project_id = ?",
        (json.dumps(rows), project_id),
    )
    return [VersionRow(*row) for row in found]


def version_rows(connection: Connection, project_id: str, memory_id: str) -> list[int]:
    """Gives the rows of all versions of a memory that any changeset ever made."""
    rows = connection.rows(
        "SELECT id FROM version WHERE project_id = ? AND memory_key = ? AND memory_id = ? ORDER BY id",
        (project_id, indexed_key(memory_id), memory_id),
    )
    return [row for (row,) in rows]


def all_versions(
    connection: Connection, project_id: str, number: int, after: int, limit: int
) -> list[VersionRow]:
    """Gives versions beyond a row, in order."""
    beyond = row_range(number)[1]
    rows = connection.rows(
        f"SELECT {_VERSION} FROM version WHERE id > ? AND id < ? AND +project_id = ? ORDER BY id LIMIT ?",
        (after, beyond, project_id, limit),
    )
    return [VersionRow(*row) for row in rows]


def put_versions(connection: Connection, versions: Iterable[VersionRow]) -> None:
    """Inserts versions."""
    connection.execute_many("INSERT INTO version VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", versions)


def get_edge(connection: Connection, project_id: str, row: int) -> EdgeRow | None:
    """Gives a relationship by its row, or None."""
    found = connection.row(f"SELECT {_EDGE} FROM edge WHERE id = ? AND project_id = ?", (row, project_id))
    return EdgeRow(*found) if found else None


def edges_of(connection: Connection, project_id: str, memory_id: str) -> list[EdgeRow]:
    """Gives every relationship that any changeset ever made with a memory; the tree says which stand."""
    rows = connection.rows(
        f"SELECT {_EDGE} FROM edge WHERE project_id = ? AND from_memory_id = ?"
        f" UNION SELECT {_EDGE} FROM edge WHERE project_id = ? AND to_memory_id = ? ORDER BY 1",
        (project_id, memory_id, project_id, memory_id),
    )
    return [EdgeRow(*row) for row in rows]


def put_edges(connection: Connection, edges: Iterable[EdgeRow]) -> None:
    """Inserts relationships."""
    connection.execute_many("INSERT INTO edge VALUES (?, ?, ?, ?, ?, ?, ?)", edges)


def get_salt(connection: Connection, project_id: str, memory_id: str) -> str | None:
    """Gives a memory's salt as hex text, or None when the memory was never seen or is erased."""
    found = connection.value(
        "SELECT salt FROM version WHERE project_id = ? AND memory_key = ? AND memory_id = ? AND salt IS NOT NULL"
        " ORDER BY id DESC LIMIT 1",
        (project_id, indexed_key(memory_id), memory_id),
    )
    return None if found is None else bytes(found).hex()


def salts_of(connection: Connection, project_id: str, keys: Sequence[int]) -> dict[str, str]:
    """Gives the salts of many memories, and of those that share a key with one of them, by memory id."""
    rows = connection.rows(
        "SELECT memory_id, salt FROM json_each(?) AS wanted"
        " CROSS JOIN version ON project_id = ? AND memory_key = wanted.value WHERE salt IS NOT NULL ORDER BY version.id",
        (json.dumps(list(keys)), project_id),
    )
    return {memory_id: bytes(salt).hex() for memory_id, salt in rows}


def claim_key(claim: str) -> int:
    """Gives the indexed form of a claim: the first 8 bytes of its SHA-256; a hit is checked against the record."""
    return int.from_bytes(hashlib.sha256(claim.encode()).digest()[:8], signed=True)


def put_claims(connection: Connection, project_id: str, claims: Iterable[tuple[str, int]]) -> None:
    """Indexes versions under their claims."""
    rows = sorted([(project_id, claim_key(claim), row) for claim, row in claims])
    connection.execute_later("INSERT INTO claim VALUES (?, ?, ?) ON CONFLICT DO NOTHING", rows)


def claim_rows(connection: Connection, project_id: str, claims: Sequence[str]) -> dict[str, list[int]]:
    """Gives the rows of versions that make each of many claims; a claim that nobody makes has none."""
    connection.settle()
    rows = connection.rows(
        "SELECT wanted.key,"
        " (SELECT json_group_array(version_row) FROM claim WHERE project_id = ? AND claim = wanted.value)"
        " FROM json_each(?) AS wanted",
        (project_id, json.dumps([claim_key(claim) for claim in claims])),
    )
    return {claims[place]: orjson.loads(found) for place, found in rows}


def memory_ids_of(connection: Connection, project_id: str, rows: Sequence[int]) -> dict[int, str]:
    """Gives the memories of versions, by their rows."""
    found = connection.rows(
        "SELECT version.id, memory_id FROM json_each(?) AS wanted"
        " CROSS JOIN version ON version.id = wanted.value AND project_id = ?",
        (json.dumps(rows), project_id),
    )
    return dict(found)


def claims_of_version(connection: Connection, project_id: str) -> list[tuple[int, int]]:
    """Gives all claims of a project, for verify."""
    connection.settle()
    return connection.rows(
        "SELECT claim, version_row FROM claim WHERE project_id = ? ORDER BY version_row, claim", (project_id,)
    )


def put_words(connection: Connection, project_id: str, versions: Iterable[tuple[int, str]]) -> None:
    """Indexes the words of versions, given as text split by spaces."""
    if connection.is_postgres:
        rows = [(project_id, row, _word_keys(project_id, words(text))) for row, text in versions]
        connection.execute_later(
            "INSERT INTO version_words VALUES (?, ?, CAST(CAST(? AS text) AS bigint[]))", rows
        )
    else:
        connection.execute_later("INSERT INTO version_words (rowid, words) VALUES (?, ?)", list(versions))


def versions_with_word(connection: Connection, project_id: str, number: int, word: str) -> list[int]:
    """Gives rows of a project's versions that hold a word, newest first."""
    connection.settle()
    least, beyond = row_range(number)
    quoted = '"' + word.replace('"', '""') + '"'
    if connection.is_postgres:
        rows = connection.rows(
            "SELECT version_row FROM version_words WHERE project_id = ?"
            " AND words @> CAST(CAST(? AS text) AS bigint[]) ORDER BY version_row DESC",
            (project_id, _word_keys(project_id, [word])),
        )
    else:
        rows = connection.rows(
            "SELECT rowid FROM version_words WHERE version_words MATCH ? AND rowid >= ? AND rowid < ? ORDER BY rowid DESC",
            (quoted, least, beyond),
        )
    return [row for (row,) in rows]


def erase_words(connection: Connection, project_id: str, rows: Iterable[int]) -> None:
    """Takes versions out of the word index."""
    if connection.is_postgres:
        sql = "DELETE FROM version_words WHERE project_id = ? AND version_row = ?"
        connection.execute_many(sql, [(project_id, row) for row in rows])
    else:
        connection.execute_many("DELETE FROM version_words WHERE rowid = ?", [(row,) for row in rows])


def _word_keys(project_id: str, found: Iterable[str]) -> str:
    """Gives the indexed forms of a project's words, as PostgreSQL writes an array: so an index over all projects is looked up by project."""
    keys = {
        int.from_bytes(hashlib.blake2b(f"{project_id}\0{word}".encode(), digest_size=8).digest(), signed=True)
        for word in found
    }
    return f"{{{','.join(map(str, sorted(keys)))}}}"

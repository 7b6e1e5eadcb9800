"""SQL of the collection of tree nodes: what a changeset made, who reaches which node, and what is dropped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from memory_git.storage.connection import Connection
from memory_git.storage.lethe_schema import row_range

DROPPED = 0
"""A changeset's pointer to the top of a trie whose nodes are dropped; of an empty trie too, which is never stored."""
_COLUMNS = {"version": "memory_id, record_digest", "edge": "from_memory_id, kind, to_memory_id"}
_PAGE = 64
_NODES = 10_000


class MadeVersion(NamedTuple):
    """A version, as the changeset made it: what a leaf entry takes from it."""

    row: int
    memory_id: str
    record_digest: bytes


class MadeEdge(NamedTuple):
    """A relationship, as the changeset made it."""

    row: int
    from_memory_id: str
    kind: str
    to_memory_id: str


class MadeRows:
    """Reads what changesets made, one after the other; quickest in the order of their rows.

    On SQLite neither table has an index for it: rows of a project ascend with the changesets that made them.
    """

    def __init__(self, connection: Connection, project_id: str, number: int) -> None:
        self._connection = connection
        self._project_id = project_id
        self._least, self._beyond = row_range(number)
        self._places = dict.fromkeys(_COLUMNS, (0, self._least))
        """By table: a changeset's row, and the place behind which all rows are that it and later ones made."""

    def versions(self, changeset_row: int) -> list[MadeVersion]:
        """Gives the versions that a changeset made, in the order of their rows."""
        return [MadeVersion(*row) for row in self._made("version", changeset_row)]

    def edges(self, changeset_row: int) -> list[MadeEdge]:
        """Gives the relationships that a changeset made, in the order of their rows."""
        return [MadeEdge(*row) for row in self._made("edge", changeset_row)]

    def _made(self, table: str, changeset_row: int) -> list[tuple[Any, ...]]:
        if self._connection.is_postgres:
            return self._connection.rows(
                f"SELECT id, {_COLUMNS[table]} FROM {table} WHERE project_id = ? AND changeset_row = ? ORDER BY id",
                (self._project_id, changeset_row),
            )
        place = self._first(table, changeset_row)
        made: list[tuple[Any, ...]] = []
        while page := self._page(table, place, _PAGE):
            mine = [(row, *columns) for row, maker, *columns in page if maker == changeset_row]
            made += mine
            place = mine[-1][0] + 1 if mine else place
            if len(mine) < len(page):
                break
        self._places[table] = (changeset_row + 1, place)
        return made

    def _first(self, table: str, changeset_row: int) -> int:
        """Gives a place that has no row of the changeset before it, and no other changeset's row behind it up to its first."""
        known, least = self._places[table]
        least, beyond = (least if known <= changeset_row else self._least), self._beyond
        if self._is_behind(table, least, changeset_row):
            return least
        while least < beyond:
            middle = (least + beyond) // 2
            if self._is_behind(table, middle, changeset_row):
                beyond = middle
            else:
                least = middle + 1
        return least

    def _is_behind(self, table: str, place: int, changeset_row: int) -> bool:
        """Decides whether every row from a place on was made by that changeset or a later one."""
        page = self._page(table, place, 1)
        return not page or page[0][1] >= changeset_row

    def _page(self, table: str, place: int, limit: int) -> list[tuple[Any, ...]]:
        return self._connection.rows(
            f"SELECT id, changeset_row, {_COLUMNS[table]} FROM {table}"
            " WHERE id >= ? AND id < ? AND +project_id = ? ORDER BY id LIMIT ?",
            (place, self._beyond, self._project_id, limit),
        )


def ends_relationships(connection: Connection, project_id: str, changeset_row: int) -> bool:
    """Decides whether an op of a changeset takes a relationship away."""
    found = connection.value(
        "SELECT 1 FROM op WHERE project_id = ? AND changeset_row = ? AND op_type = 'remove_relationship' LIMIT 1",
        (project_id, changeset_row),
    )
    return found is not None


def counts_made(connection: Connection, project_id: str, number: int) -> dict[int, int]:
    """Gives how many versions and relationships each changeset made, by its row; those that made none are left out."""
    least, beyond = row_range(number)
    counts: dict[int, int] = {}
    for table in ("version", "edge"):
        rows = connection.rows(
            f"SELECT changeset_row, count(*) FROM {table} WHERE id >= ? AND id < ? AND +project_id = ? GROUP BY 1",
            (least, beyond, project_id),
        )
        for changeset_row, count in rows:
            counts[changeset_row] = counts.get(changeset_row, 0) + count
    return counts


class StoredNode(NamedTuple):
    """What a stored node takes, and the older node that it is based on."""

    row: int
    base: int | None
    steps: int
    stored_bytes: int


def nodes_down(connection: Connection, project_id: str, number: int) -> Iterator[StoredNode]:
    """Yields the nodes of a project, the newest first: each before the one that it is based on."""
    least, before = row_range(number)
    while page := connection.rows(
        "SELECT id, base, steps, length(body) FROM node WHERE id >= ? AND id < ? AND +project_id = ?"
        " ORDER BY id DESC LIMIT ?",
        (least, before, project_id, _NODES),
    ):
        yield from (StoredNode(*row) for row in page)
        before = page[-1][0]


def with_bases(nodes: Iterable[StoredNode], kept: set[int]) -> Iterator[tuple[StoredNode, bool]]:
    """Yields nodes, the newest first, and whether each is kept: as one of those, or as what one of them is based on."""
    for node in nodes:
        is_kept = node.row in kept
        if is_kept and node.base is not None:
            kept.add(node.base)
        yield node, is_kept


def delete_nodes(connection: Connection, project_id: str, rows: Iterable[int]) -> None:
    """Deletes nodes by their rows."""
    connection.execute_many(
        "DELETE FROM node WHERE id = ? AND project_id = ?", [(row, project_id) for row in rows]
    )


def set_tops(connection: Connection, project_id: str, changeset_row: int, memories: int, edges: int) -> None:
    """Writes where the tops of a changeset's tries are stored; no digest covers that."""
    connection.execute(
        "UPDATE changeset SET memories_row = ?, edges_row = ? WHERE id = ? AND project_id = ?",
        (memories, edges, changeset_row, project_id),
    )


def drop_tops(connection: Connection, project_id: str, changeset_rows: Iterable[int]) -> None:
    """Writes that the nodes of changesets are dropped."""
    connection.execute_many(
        f"UPDATE changeset SET memories_row = {DROPPED}, edges_row = {DROPPED} WHERE id = ? AND project_id = ?",
        [(row, project_id) for row in changeset_rows],
    )

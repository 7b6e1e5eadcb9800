"""Where the nodes of the state tree are read and written (2-architecture, the state tree; 4-history).

Nodes are immutable and rows are never used again, so an implementer may cache bodies by row without
invalidation, once the transaction that wrote them is durable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from memory_git.domain.errors import Corrupt
from memory_git.domain.trie_bytes import child_rows
from memory_git.domain.trie_node import (
    EMPTY,
    Leaf,
    Node,
    Root,
    count_of,
    decode,
    encode_inner,
    encode_leaf,
    node_digest,
    verified,
)

_NOTHING = Leaf(())


class NodeReader(Protocol):
    """Where nodes are read."""

    def get(self, row: int, expected_digest: bytes) -> bytes:
        """Gives the body of a node; raises Corrupt unless its digest is the expected one (see `verified`)."""
        ...


class NodeWriter(NodeReader, Protocol):
    """Where nodes are also written."""

    def put(self, body: bytes, like: int | None = None) -> int:
        """Keeps a body under a row that was never used before, and gives that row.

        `like` is the row of a node that this one differs little from: a hint for who wants to keep it small.
        """
        ...


def load(nodes: NodeReader, tree: Root) -> Node:
    """Gives the top node of a subtree; of EMPTY, a leaf of nothing."""
    return _NOTHING if tree == EMPTY else decode(body_of(nodes, tree))


def body_of(nodes: NodeReader, tree: Root) -> bytes:
    """Gives the body of the top node of a subtree that is not EMPTY."""
    body = nodes.get(tree.row, tree.digest)
    if count_of(body) != tree.count:
        raise Corrupt("node", tree.row, f"holds {count_of(body)} entries where {tree.count} are expected")
    return body


def store(nodes: NodeWriter, node: Node) -> Root:
    """Writes a node and gives the subtree that it stands for; of no entries, EMPTY, unwritten."""
    if isinstance(node, Leaf):
        return store_body(nodes, encode_leaf(node.entries)) if node.entries else EMPTY
    return store_body(nodes, encode_inner(node.children))


def store_body(nodes: NodeWriter, body: bytes, like: int | None = None) -> Root:
    """Writes the body of a node that is not empty, and gives the subtree that it stands for."""
    return Root(nodes.put(body, like), node_digest(body), count_of(body))


def reached(bodies: Mapping[int, bytes], roots: Iterable[Root]) -> dict[int, bytes]:
    """Gives those of some nodes that roots reach; a merge that ops were put on leaves others behind."""
    found: dict[int, bytes] = {}
    waiting = [root.row for root in roots if root.row in bodies]
    while waiting:
        row = waiting.pop()
        if row not in found:
            found[row] = bodies[row]
            waiting += bodies.keys() & child_rows(found[row])
    return found


class MemoryNodes:
    """Nodes in a dictionary, verified on each read; rows count up from 1."""

    def __init__(self) -> None:
        self.bodies: dict[int, bytes] = {}

    def get(self, row: int, expected_digest: bytes) -> bytes:
        """Gives a body; raises Corrupt if it is absent or is not what was expected."""
        body = self.bodies.get(row)
        if body is None:
            raise Corrupt("node", row, "is absent")
        return verified(body, expected_digest, row)

    def put(self, body: bytes, like: int | None = None) -> int:
        """Keeps a body under the next row."""
        del like
        row = len(self.bodies) + 1
        self.bodies[row] = body
        return row


class ScratchNodes:
    """Nodes under negative rows above a reader, so that a merge can be planned and nothing is stored."""

    def __init__(self, reader: NodeReader) -> None:
        self._reader = reader
        self.bodies: dict[int, bytes] = {}

    def get(self, row: int, expected_digest: bytes) -> bytes:
        """Gives a scratch body, or one of the reader's."""
        if row >= 0:
            return self._reader.get(row, expected_digest)
        body = self.bodies.get(row)
        if body is None:
            raise Corrupt("node", row, "is absent")
        return verified(body, expected_digest, row)

    def put(self, body: bytes, like: int | None = None) -> int:
        """Keeps a body under the next negative row."""
        del like
        row = -1 - len(self.bodies)
        self.bodies[row] = body
        return row

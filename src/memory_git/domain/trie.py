"""The state tree: a canonical Merkle radix trie over 32-byte keys (2-architecture; 4-history, state).

1. Content alone decides the shape and the root digest: never the order of history, never rows or provenance (`trie_shape`).
2. A change writes the nodes on the paths of the changed keys, each once; what did not change keeps its row.
3. Two trees are compared and merged in `trie_sides`, a node's bytes are `trie_node`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from memory_git.domain.node_store import (
    MemoryNodes,
    NodeReader,
    NodeWriter,
    ScratchNodes,
    body_of,
    store_body,
)
from memory_git.domain.trie_bytes import child_at, entry_in, with_children, with_entry
from memory_git.domain.trie_node import (
    EMPTY,
    LEAF,
    Entry,
    Inner,
    Leaf,
    Node,
    Root,
    decode,
    decode_inner,
    decode_leaf,
    nibble,
    node_digest,
    verified,
)
from memory_git.domain.trie_shape import (
    Change,
    Subtree,
    check_entry,
    entries_beyond,
    fanned,
    grown,
    joined,
    sealed,
    size_of,
)
from memory_git.domain.trie_sides import Pair, Resolve, diff, merge

__all__ = [
    "EMPTY",
    "Entry",
    "Inner",
    "Leaf",
    "MemoryNodes",
    "Node",
    "NodeReader",
    "NodeWriter",
    "Pair",
    "Resolve",
    "Root",
    "ScratchNodes",
    "decode",
    "diff",
    "get",
    "get_many",
    "merge",
    "node_digest",
    "put_many",
    "verified",
    "walk",
]

MOST_LIKE = 4
"""A node of which more children changed is no longer like the one that it was made from."""


def get(nodes: NodeReader, root: Root, key: bytes) -> Entry | None:
    """Gives the entry of a key, or None."""
    tree, depth = root, 0
    while tree != EMPTY:
        body = nodes.get(tree.row, tree.digest)
        if body[0] == LEAF:
            return entry_in(body, key)
        tree = child_at(body, nibble(key, depth))
        depth += 1
    return None


def get_many(nodes: NodeReader, root: Root, keys: Sequence[bytes]) -> dict[bytes, Entry]:
    """Gives the entries of those keys that have one, in one walk; keys ascend."""
    found: dict[bytes, Entry] = {}
    if keys and root != EMPTY:
        _get_many(nodes, root, keys, 0, found)
    return found


def put_many(nodes: NodeWriter, root: Root, changes: Mapping[bytes, Entry | None]) -> Root:
    """Gives the tree with these entries put (None: removed), in one pass; the same object if it is equal."""
    for key, entry in changes.items():
        check_entry(key, entry)
    return sealed(nodes, _put(nodes, root, sorted(changes.items()), 0)) if changes else root


def walk(nodes: NodeReader, root: Root, after: bytes | None = None) -> Iterator[Entry]:
    """Gives all entries in key order, or those beyond a key, which need not be in the tree."""
    if after is not None:
        check_entry(after, None)
    return entries_beyond(nodes, root, after, 0)


def _get_many(
    nodes: NodeReader, tree: Root, keys: Sequence[bytes], depth: int, found: dict[bytes, Entry]
) -> None:
    body = body_of(nodes, tree)
    if body[0] == LEAF:
        for key in keys:
            entry = entry_in(body, key)
            if entry is not None:
                found[key] = entry
        return
    for slot, group in groupby(keys, lambda key: nibble(key, depth)):
        child = child_at(body, slot)
        if child.count:
            _get_many(nodes, child, list(group), depth + 1, found)


def _put(nodes: NodeWriter, tree: Root, changes: list[Change], depth: int) -> Subtree:
    if tree == EMPTY:
        entries = _overlaid((), changes)
        return grown(nodes, entries, depth) if entries else EMPTY
    body = body_of(nodes, tree)
    if body[0] == LEAF:
        return _put_in_leaf(nodes, tree, body, changes, depth)
    changed: list[tuple[int, Root, Subtree]] = []
    for slot, group in fanned(changes, depth):
        before = child_at(body, slot)
        after = _put(nodes, before, group, depth + 1)
        if after != before:
            changed.append((slot, before, after))
    if not changed:
        return tree
    if all(before.count and size_of(after) >= before.count for _, before, after in changed):
        stored = [(slot, sealed(nodes, after)) for slot, _, after in changed]
        like = tree.row if len(stored) <= MOST_LIKE else None
        return store_body(nodes, with_children(body, stored), like)
    children: list[Subtree] = list(decode_inner(body).children)
    for slot, _, after in changed:
        children[slot] = after
    return joined(nodes, tuple(children), ())


def _put_in_leaf(nodes: NodeWriter, tree: Root, body: bytes, changes: list[Change], depth: int) -> Subtree:
    """Writes one entry more, or another value of one, without decoding the leaf: most changes of a session are that."""
    entry = changes[0][1]
    if len(changes) == 1 and entry is not None:
        spliced = with_entry(body, entry)
        if spliced is not None:
            return tree if spliced == body else store_body(nodes, spliced, tree.row)
    known = decode_leaf(body).entries
    entries = _overlaid(known, changes)
    return tree if entries == known else grown(nodes, entries, depth)


def _overlaid(entries: Iterable[Entry], changes: Iterable[Change]) -> tuple[Entry, ...]:
    merged: dict[bytes, Entry | None] = {entry.key: entry for entry in entries}
    merged.update(changes)
    return tuple([entry for _, entry in sorted(merged.items()) if entry is not None])

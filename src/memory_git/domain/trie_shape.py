"""How entries become subtrees of the state tree: a canonical shape that the entries alone decide (2-architecture, the state tree).

1. Up to 32 entries are one leaf, more are an inner node of sixteen subtrees, by the next four bits of their keys.
2. A subtree that may still become part of its parent's leaf is not written yet: it is its entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TypeVar

from memory_git.domain.node_store import (
    NodeReader,
    NodeWriter,
    load,
    store,
)
from memory_git.domain.trie_node import (
    EMPTY,
    FAN_OUT,
    KEY_BYTES,
    LEAF_MAX,
    Entry,
    Inner,
    Leaf,
    Node,
    Root,
    nibble,
)

Change = tuple[bytes, Entry | None]
Subtree = Root | tuple[Entry, ...]
"""A stored subtree, or the entries of one that is not written (yet)."""
_Keyed = TypeVar("_Keyed", Entry, Change)


def check_entry(key: bytes, entry: Entry | None) -> None:
    """Raises ValueError for a key that is not 32 bytes, or an entry that stands under another."""
    if len(key) != KEY_BYTES:
        raise ValueError(f"a key has {KEY_BYTES} bytes, not {len(key)}")
    if entry is not None and (entry.key != key or len(entry.digest) != KEY_BYTES):
        raise ValueError("an entry stands under a key that is not its own, or its digest is not 32 bytes")


def fanned(items: Iterable[_Keyed], depth: int) -> Iterator[tuple[int, list[_Keyed]]]:
    """Gives sorted items by their slot below a node at that depth."""
    for slot, group in groupby(items, lambda item: nibble(item[0], depth)):
        yield slot, list(group)


def grown(nodes: NodeWriter, entries: tuple[Entry, ...], depth: int) -> Subtree:
    """Gives the subtree of sorted entries, written below its top, and unwritten if it fits one leaf."""
    if len(entries) <= LEAF_MAX:
        return entries
    children = [EMPTY] * FAN_OUT
    for slot, group in fanned(entries, depth):
        children[slot] = sealed(nodes, grown(nodes, tuple(group), depth + 1))
    return store(nodes, Inner(tuple(children)))


def joined(
    nodes: NodeWriter, children: Sequence[Subtree], known: Iterable[tuple[Subtree, Sequence[Subtree]]]
) -> Subtree:
    """Gives the subtree of sixteen children: a known one that has the same, else a leaf or an inner node."""
    for tree, its_children in known:
        if children == its_children:
            return tree
    if sum([size_of(child) for child in children]) <= LEAF_MAX:
        return tuple([entry for child in children for entry in entries_of(nodes, child)])
    return store(nodes, Inner(tuple([sealed(nodes, child) for child in children])))


def sealed(nodes: NodeWriter, subtree: Subtree) -> Root:
    """Gives the subtree stored, its leaf written if it is not yet."""
    return subtree if isinstance(subtree, Root) else store(nodes, Leaf(subtree))


def size_of(subtree: Subtree) -> int:
    """Gives how many entries a subtree holds."""
    return subtree.count if isinstance(subtree, Root) else len(subtree)


def entries_of(nodes: NodeReader, subtree: Subtree) -> tuple[Entry, ...]:
    """Gives all entries of a subtree."""
    return tuple(entries_beyond(nodes, subtree, None, 0)) if isinstance(subtree, Root) else subtree


def top_of(nodes: NodeReader, subtree: Subtree) -> Node:
    """Gives the top node of a subtree."""
    return load(nodes, subtree) if isinstance(subtree, Root) else Leaf(subtree)


def children_of(node: Node, depth: int) -> tuple[Subtree, ...]:
    """Gives the sixteen subtrees of a node; those of a leaf are as they would be if it were an inner node."""
    if isinstance(node, Inner):
        return node.children
    children: list[Subtree] = [EMPTY] * FAN_OUT
    for slot, group in fanned(node.entries, depth):
        children[slot] = tuple(group)
    return tuple(children)


def entries_beyond(nodes: NodeReader, tree: Root, after: bytes | None, depth: int) -> Iterator[Entry]:
    """Gives the entries of a subtree in key order, or those beyond a key."""
    node = load(nodes, tree)
    if isinstance(node, Leaf):
        yield from (entry for entry in node.entries if after is None or entry.key > after)
        return
    first = 0 if after is None else nibble(after, depth)
    for child in node.children[first:]:
        yield from entries_beyond(nodes, child, after, depth + 1)
        after = None

"""The state tree: a canonical Merkle radix trie over 32-byte keys (2-architecture; 4-history, state).

1. Content alone decides the shape and the root digest: never the order of history, never rows or provenance.
2. A change writes the nodes on the paths of the changed keys, each once; what did not change keeps its row.
3. Subtrees of one row are one: a merge takes it unread. Equal digests under different rows are descended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TypeVar

from memory_git.domain.node_store import (
    MemoryNodes,
    NodeReader,
    NodeWriter,
    ScratchNodes,
    body_of,
    load,
    store,
    store_body,
)
from memory_git.domain.trie_node import (
    EMPTY,
    FAN_OUT,
    INNER,
    KEY_BYTES,
    LEAF,
    LEAF_MAX,
    By,
    Entry,
    Inner,
    Leaf,
    Node,
    Root,
    child_at,
    decode,
    decode_inner,
    decode_leaf,
    differing_children,
    differing_entries,
    entry_in,
    is_same,
    nibble,
    node_digest,
    verified,
    with_children,
    with_entry,
)

__all__ = [
    "EMPTY",
    "Entry",
    "Inner",
    "Leaf",
    "MemoryNodes",
    "Node",
    "NodeReader",
    "NodeWriter",
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
Pair = tuple[Entry | None, Entry | None]
Resolve = Callable[[bytes, Entry | None, Entry | None, Entry | None], Entry | None]
Change = tuple[bytes, Entry | None]
Subtree = Root | tuple[Entry, ...]
"""A stored subtree, or the entries of one that is not written (yet)."""
_Keyed = TypeVar("_Keyed", Entry, Change)


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
        _check(key, entry)
    return _seal(nodes, _put(nodes, root, sorted(changes.items()), 0)) if changes else root


def walk(nodes: NodeReader, root: Root, after: bytes | None = None) -> Iterator[Entry]:
    """Gives all entries in key order, or those beyond a key, which need not be in the tree."""
    if after is not None:
        _check(after, None)
    return _walk(nodes, root, after, 0)


def diff(nodes: NodeReader, left: Root, right: Root, by: By = "digest") -> Iterator[Pair]:
    """Gives the entries that differ, in key order, None on the side that has none.

    By digest: what differs in record digest, past every subtree of equal digest. By row: what differs in
    anything, past subtrees of the same row only.
    """
    if not _is_same(left, right, by):
        yield from _diff(nodes, left, right, by)


def merge(nodes: NodeWriter, base: Root, left: Root, right: Root, resolve: Resolve) -> Root:
    """Gives the three-way merge: what one side changed is taken, whole subtrees unread.

    A key that both sides changed, not to one entry, goes to `resolve(key, base, left, right)`, in key order.
    """
    return _seal(nodes, _merge(nodes, (base, left, right), resolve, 0))


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


def _check(key: bytes, entry: Entry | None) -> None:
    if len(key) != KEY_BYTES:
        raise ValueError(f"a key has {KEY_BYTES} bytes, not {len(key)}")
    if entry is not None and (entry.key != key or len(entry.digest) != KEY_BYTES):
        raise ValueError("an entry stands under a key that is not its own, or its digest is not 32 bytes")


def _fan(items: Iterable[_Keyed], depth: int) -> Iterator[tuple[int, list[_Keyed]]]:
    """Gives sorted items by their slot below a node at that depth."""
    for slot, group in groupby(items, lambda item: nibble(item[0], depth)):
        yield slot, list(group)


def _put(nodes: NodeWriter, tree: Root, changes: list[Change], depth: int) -> Subtree:
    if tree == EMPTY:
        entries = _overlaid((), changes)
        return _grow(nodes, entries, depth) if entries else EMPTY
    body = body_of(nodes, tree)
    if body[0] == LEAF:
        return _put_in_leaf(nodes, tree, body, changes, depth)
    changed: list[tuple[int, Root, Subtree]] = []
    for slot, group in _fan(changes, depth):
        before = child_at(body, slot)
        after = _put(nodes, before, group, depth + 1)
        if after != before:
            changed.append((slot, before, after))
    if not changed:
        return tree
    if all(before.count and _count(after) >= before.count for _, before, after in changed):
        sealed = [(slot, _seal(nodes, after)) for slot, _, after in changed]
        like = tree.row if len(sealed) <= MOST_LIKE else None
        return store_body(nodes, with_children(body, sealed), like)
    children: list[Subtree] = list(decode_inner(body).children)
    for slot, _, after in changed:
        children[slot] = after
    return _join(nodes, tuple(children), ())


def _put_in_leaf(nodes: NodeWriter, tree: Root, body: bytes, changes: list[Change], depth: int) -> Subtree:
    """Writes one entry more, or another value of one, without decoding the leaf: most changes of a session are that."""
    entry = changes[0][1]
    if len(changes) == 1 and entry is not None:
        spliced = with_entry(body, entry)
        if spliced is not None:
            return tree if spliced == body else store_body(nodes, spliced, tree.row)
    known = decode_leaf(body).entries
    entries = _overlaid(known, changes)
    return tree if entries == known else _grow(nodes, entries, depth)


def _count(subtree: Subtree) -> int:
    return subtree.count if isinstance(subtree, Root) else len(subtree)


def _overlaid(entries: Iterable[Entry], changes: Iterable[Change]) -> tuple[Entry, ...]:
    merged: dict[bytes, Entry | None] = {entry.key: entry for entry in entries}
    merged.update(changes)
    return tuple([entry for _, entry in sorted(merged.items()) if entry is not None])


def _grow(nodes: NodeWriter, entries: tuple[Entry, ...], depth: int) -> Subtree:
    """Gives the subtree of sorted entries, written below its top, and unwritten if it fits one leaf."""
    if len(entries) <= LEAF_MAX:
        return entries
    children = [EMPTY] * FAN_OUT
    for slot, group in _fan(entries, depth):
        children[slot] = _seal(nodes, _grow(nodes, tuple(group), depth + 1))
    return store(nodes, Inner(tuple(children)))


def _join(
    nodes: NodeWriter, children: Sequence[Subtree], known: Iterable[tuple[Subtree, Sequence[Subtree]]]
) -> Subtree:
    """Gives the subtree of sixteen children: a known one that has the same, else a leaf or an inner node."""
    for tree, its_children in known:
        if children == its_children:
            return tree
    if sum([_count(child) for child in children]) <= LEAF_MAX:
        return tuple([entry for child in children for entry in _entries(nodes, child)])
    return store(nodes, Inner(tuple([_seal(nodes, child) for child in children])))


def _seal(nodes: NodeWriter, subtree: Subtree) -> Root:
    return subtree if isinstance(subtree, Root) else store(nodes, Leaf(subtree))


def _entries(nodes: NodeReader, subtree: Subtree) -> tuple[Entry, ...]:
    return tuple(_walk(nodes, subtree, None, 0)) if isinstance(subtree, Root) else subtree


def _open(nodes: NodeReader, subtree: Subtree) -> Node:
    return load(nodes, subtree) if isinstance(subtree, Root) else Leaf(subtree)


def _children(node: Node, depth: int) -> tuple[Subtree, ...]:
    """Gives the sixteen subtrees of a node; those of a leaf are as they would be if it were an inner node."""
    if isinstance(node, Inner):
        return node.children
    children: list[Subtree] = [EMPTY] * FAN_OUT
    for slot, group in _fan(node.entries, depth):
        children[slot] = tuple(group)
    return tuple(children)


def _walk(nodes: NodeReader, tree: Root, after: bytes | None, depth: int) -> Iterator[Entry]:
    node = load(nodes, tree)
    if isinstance(node, Leaf):
        yield from (entry for entry in node.entries if after is None or entry.key > after)
        return
    first = 0 if after is None else nibble(after, depth)
    for child in node.children[first:]:
        yield from _walk(nodes, child, after, depth + 1)
        after = None


def _is_same(left: Subtree, right: Subtree, by: By) -> bool:
    if isinstance(left, Root) and isinstance(right, Root):
        return is_same(left, right, by)
    return left == right


def _diff(nodes: NodeReader, left: Subtree, right: Subtree, by: By) -> Iterator[Pair]:
    waiting: list[tuple[Subtree, Subtree, int]] = [(left, right, 0)]
    while waiting:
        one, other, depth = waiting.pop()
        if isinstance(one, Root) and isinstance(other, Root) and one.count and other.count:
            bodies = body_of(nodes, one), body_of(nodes, other)
            if bodies[0][0] == bodies[1][0] == INNER:
                children = [(*pair, depth + 1) for pair in differing_children(*bodies, by)]
                waiting += reversed(children)
                continue
            entries = differing_entries(*bodies, by) if bodies[0][0] == bodies[1][0] else None
            if entries is not None:
                yield from entries
                continue
        opened = _open(nodes, one), _open(nodes, other)
        if isinstance(opened[0], Leaf) and isinstance(opened[1], Leaf):
            yield from _differing(opened[0].entries, opened[1].entries, by)
            continue
        fans = zip(_children(opened[0], depth), _children(opened[1], depth), strict=True)
        waiting += reversed([(*pair, depth + 1) for pair in fans if not _is_same(*pair, by)])


def _differing(left: Iterable[Entry], right: Iterable[Entry], by: By) -> Iterator[Pair]:
    lefts = {entry.key: entry for entry in left}
    rights = {entry.key: entry for entry in right}
    for key in sorted(lefts.keys() | rights.keys()):
        one, other = lefts.get(key), rights.get(key)
        if one is None or other is None or one.digest != other.digest or (by == "row" and one != other):
            yield one, other


def _merge(
    nodes: NodeWriter, sides: tuple[Subtree, Subtree, Subtree], resolve: Resolve, depth: int
) -> Subtree:
    base, left, right = sides
    if _is_same(left, right, "row") or _is_same(right, base, "row"):
        return left
    if _is_same(left, base, "row"):
        return right
    opened = [_open(nodes, side) for side in sides]
    leaves = [node.entries for node in opened if isinstance(node, Leaf)]
    if len(leaves) == len(sides):
        entries = _merged_entries(leaves, resolve)
        known = [side for side, leaf in zip(sides, leaves, strict=True) if leaf == entries]
        return known[0] if known else _grow(nodes, entries, depth)
    fans = [_children(node, depth) for node in opened]
    children = [_merge(nodes, fan, resolve, depth + 1) for fan in zip(*fans, strict=True)]
    return _join(nodes, tuple(children), zip(sides, fans, strict=True))


def _merged_entries(leaves: Iterable[tuple[Entry, ...]], resolve: Resolve) -> tuple[Entry, ...]:
    bases, lefts, rights = ({entry.key: entry for entry in leaf} for leaf in leaves)
    merged = []
    for key in sorted(lefts.keys() | rights.keys() | bases.keys()):
        entry = _merged_entry(key, bases.get(key), lefts.get(key), rights.get(key), resolve)
        if entry is not None:
            merged.append(entry)
    return tuple(merged)


def _merged_entry(
    key: bytes, base: Entry | None, left: Entry | None, right: Entry | None, resolve: Resolve
) -> Entry | None:
    if right in (left, base):
        return left
    if left == base:
        return right
    entry = resolve(key, base, left, right)
    _check(key, entry)
    return entry

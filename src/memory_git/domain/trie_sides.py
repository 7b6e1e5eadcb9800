"""Two or three state trees side by side: what differs, and the three-way merge (4-history, semantic diff, three-way merge).

1. Subtrees of one row are one: a merge takes it unread. Equal digests under different rows are descended.
   What a merge gives is of its two sides' nodes and new ones, never of the base's: those may be stored nowhere.
2. Two stored nodes of one kind are compared by their bytes, and only what differs is decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from memory_git.domain.node_store import (
    NodeReader,
    NodeWriter,
    body_of,
)
from memory_git.domain.trie_bytes import By, differing_children, differing_entries, is_same
from memory_git.domain.trie_node import INNER, Entry, Leaf, Root
from memory_git.domain.trie_shape import (
    Subtree,
    check_entry,
    children_of,
    grown,
    joined,
    sealed,
    top_of,
)

Pair = tuple[Entry | None, Entry | None]
Resolve = Callable[[bytes, Entry | None, Entry | None, Entry | None], Entry | None]


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
    return sealed(nodes, _merge(nodes, (base, left, right), resolve, 0))


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
        opened = top_of(nodes, one), top_of(nodes, other)
        if isinstance(opened[0], Leaf) and isinstance(opened[1], Leaf):
            yield from _differing(opened[0].entries, opened[1].entries, by)
            continue
        fans = zip(children_of(opened[0], depth), children_of(opened[1], depth), strict=True)
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
    opened = [top_of(nodes, side) for side in sides]
    leaves = [node.entries for node in opened if isinstance(node, Leaf)]
    if len(leaves) == len(sides):
        entries = _merged_entries(leaves, resolve)
        known = [side for side, leaf in zip(sides[1:], leaves[1:], strict=True) if leaf == entries]
        return known[0] if known else grown(nodes, entries, depth)
    fans = [children_of(node, depth) for node in opened]
    children = [_merge(nodes, fan, resolve, depth + 1) for fan in zip(*fans, strict=True)]
    return joined(nodes, tuple(children), zip(sides[1:], fans[1:], strict=True))


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
    check_entry(key, entry)
    return entry

"""Reading, comparing and changing tree nodes as bytes (`trie_node`), without decoding them: most changes are of one entry.

1. A child or an entry is found by its place among the digests, and its pointer stands as far behind the bar.
2. An entry is replaced or inserted, a child replaced, by cutting the body and putting it together again.
3. Two bodies of one kind are compared piece by piece.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Literal

from memory_git.domain.trie_node import (
    CHILD,
    DIGEST_BYTES,
    EMPTY,
    FAN_OUT,
    INNER_HEAD,
    KEY_BYTES,
    LEAF,
    LEAF_HEAD,
    LEAF_MAX,
    PAIR,
    PAIR_BYTES,
    POINTERS,
    PROVENANCE,
    Entry,
    Root,
    bitmap_of,
    count_of,
    place_of,
)

By = Literal["digest", "row"]
"""What makes two subtrees or entries the same: what is digested, or everything."""


def child_at(body: bytes, slot: int) -> Root:
    """Gives one subtree of an inner body, EMPTY where there is none; decodes nothing else."""
    bitmap = bitmap_of(body)
    if not bitmap >> slot & 1:
        return EMPTY
    return _child_of(body, bitmap.bit_count(), (bitmap & (1 << slot) - 1).bit_count())


def _child_of(body: bytes, size: int, place: int) -> Root:
    start = INNER_HEAD + DIGEST_BYTES * place
    row, count = CHILD.unpack_from(body, INNER_HEAD + DIGEST_BYTES * size + CHILD.size * place)
    return Root(row, body[start : start + DIGEST_BYTES], count)


def differing_children(one: bytes, other: bytes, by: By) -> Iterator[tuple[Root, Root]]:
    """Gives the subtrees of two inner bodies that differ, slot by slot; decodes nothing else."""
    bitmap = bitmap_of(one)
    if bitmap != bitmap_of(other):
        pairs = ((child_at(one, slot), child_at(other, slot)) for slot in range(FAN_OUT))
        yield from (pair for pair in pairs if not is_same(*pair, by))
        return
    size = bitmap.bit_count()
    first, width = INNER_HEAD, DIGEST_BYTES
    if by == "row":
        first, width = INNER_HEAD + DIGEST_BYTES * size, CHILD.size
    for place in _differing_places(one, other, first, width, size):
        yield _child_of(one, size, place), _child_of(other, size, place)


def _differing_places(one: bytes, other: bytes, first: int, width: int, count: int) -> list[int]:
    """Gives which of so many items differ, in order; as two large numbers they are compared at once."""
    end = first + width * count
    differs = int.from_bytes(one[first:end]) ^ int.from_bytes(other[first:end])
    places, bits = [], 8 * width
    while differs:
        behind = (differs.bit_length() - 1) // bits
        places.append(count - 1 - behind)
        differs &= (1 << bits * behind) - 1
    return places


def differing_entries(one: bytes, other: bytes, by: By) -> list[tuple[Entry, Entry]] | None:
    """Gives the entries of two leaf bodies that differ; None when their keys do. Decodes nothing else."""
    size = one[1]
    if size != other[1]:
        return None
    places = _differing_places(one, other, LEAF_HEAD, PAIR_BYTES, size)
    if any(_key_at(one, place) != _key_at(other, place) for place in places):
        return None
    if by == "row":
        beside = _differing_places(one, other, LEAF_HEAD + PAIR_BYTES * size, PROVENANCE.size, size)
        places = sorted({*places, *beside})
    return [(_entry_at(one, place), _entry_at(other, place)) for place in places]


def is_same(left: Root, right: Root, by: By) -> bool:
    """Decides whether two subtrees need not be compared any further."""
    return left.row == right.row if by == "row" else left.digest == right.digest


def child_rows(body: bytes) -> tuple[int, ...]:
    """Gives the rows of an inner body's children, none of a leaf's; decodes nothing else."""
    if body[0] == LEAF:
        return ()
    pointers = POINTERS[bitmap_of(body).bit_count()]
    return pointers.unpack_from(body, len(body) - pointers.size)[::2]


def entry_in(body: bytes, key: bytes) -> Entry | None:
    """Gives one entry of a leaf body, or None; decodes nothing else."""
    place = place_of(body, key)
    return None if place is None else _entry_at(body, place)


def _entry_at(body: bytes, place: int) -> Entry:
    bar = LEAF_HEAD + PAIR_BYTES * body[1]
    pair = PAIR.unpack_from(body, LEAF_HEAD + PAIR_BYTES * place)
    return Entry(*pair, *PROVENANCE.unpack_from(body, bar + PROVENANCE.size * place))


def with_entry(body: bytes, entry: Entry) -> bytes | None:
    """Gives a leaf body with one entry replaced or inserted, None where it has no room; decodes nothing else."""
    size = body[1]
    bar = LEAF_HEAD + PAIR_BYTES * size
    place = place_of(body, entry.key)
    if place is None and size == LEAF_MAX:
        return None
    skipped = 0 if place is None else 1
    if place is None:
        place = bisect_left(range(size), entry.key, key=lambda at: _key_at(body, at))
    pair, provenance = LEAF_HEAD + PAIR_BYTES * place, bar + PROVENANCE.size * place
    return b"".join(
        (
            bytes((LEAF, size + 1 - skipped)),
            body[LEAF_HEAD:pair],
            PAIR.pack(*entry[:2]),
            body[pair + PAIR_BYTES * skipped : provenance],
            PROVENANCE.pack(*entry[2:]),
            body[provenance + PROVENANCE.size * skipped :],
        )
    )


def with_children(body: bytes, children: Iterable[tuple[int, Root]]) -> bytes:
    """Gives an inner body with some of its children replaced by others that are not empty; decodes nothing else."""
    bitmap = bitmap_of(body)
    count, pointers = count_of(body), INNER_HEAD + DIGEST_BYTES * bitmap.bit_count()
    spliced = bytearray(body)
    for slot, child in children:
        place = (bitmap & (1 << slot) - 1).bit_count()
        start, at = INNER_HEAD + DIGEST_BYTES * place, pointers + CHILD.size * place
        count += child.count - CHILD.unpack_from(body, at)[1]
        spliced[start : start + DIGEST_BYTES] = child.digest
        CHILD.pack_into(spliced, at, child.row, child.count)
    spliced[1:5] = count.to_bytes(4)
    return bytes(spliced)


def _key_at(leaf: bytes, place: int) -> bytes:
    start = LEAF_HEAD + PAIR_BYTES * place
    return leaf[start : start + KEY_BYTES]

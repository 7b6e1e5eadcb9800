"""The nodes of the state tree as bytes (2-architecture, the state tree).

    leaf   0x11, n u8                   (key, record digest) * n | (row, introduced, changed i64, version u32) * n
    inner  0x12, count u32, bitmap u16  child digest * n         | (child row i64, child count u32) * n

1. Big-endian, fixed width. The high half of the first byte is the format, the low half the kind.
2. A node's digest is SHA-256 of what stands before the bar: no row, provenance or child count is in it.
3. Bit i of the bitmap stands for the child at nibble i; children follow in that order. Leaf keys ascend.
4. A subtree of at most 32 entries is one leaf, so an inner node counts more than 32.
5. The tree of nothing has the digest of a leaf of nothing, row 0, and is never stored.
"""

from __future__ import annotations

from hashlib import sha256
from itertools import chain
from struct import Struct
from typing import NamedTuple

from memory_git.domain.errors import Corrupt

KEY_BYTES = 32
FAN_OUT = 16
LEAF_MAX = 32
LEAF, INNER = 0x11, 0x12
LEAF_HEAD, INNER_HEAD = 2, 7
PAIR_BYTES, DIGEST_BYTES = 64, 32

_LEAVES = tuple(Struct(">BB" + "32s32s" * n + "qqqI" * n) for n in range(LEAF_MAX + 1))
_INNERS = tuple(Struct(">BIH" + "32s" * n + "qI" * n) for n in range(FAN_OUT + 1))
POINTERS = tuple(Struct(">" + "qI" * n) for n in range(FAN_OUT + 1))
PAIR = Struct(">32s32s")
PROVENANCE = Struct(">qqqI")
_COUNT_BITMAP = Struct(">IH")
CHILD = Struct(">qI")


class Entry(NamedTuple):
    """One record of a state: key and record digest, digested; record row and provenance, not.

    `introduced` and `changed` are sequence numbers of changesets.
    """

    key: bytes
    digest: bytes
    row: int
    introduced: int
    changed: int
    version: int


class Root(NamedTuple):
    """A tree, or a subtree: the row of its top node, that node's digest, and how many entries it holds."""

    row: int
    digest: bytes
    count: int  # type: ignore[assignment]  # hides tuple.count; a dataclass made decoding twice as slow


class Leaf(NamedTuple):
    """A decoded leaf; keys ascend."""

    entries: tuple[Entry, ...]


class Inner(NamedTuple):
    """A decoded inner node: sixteen subtrees, EMPTY where there is none."""

    children: tuple[Root, ...]


Node = Leaf | Inner
EMPTY = Root(0, sha256(bytes((LEAF, 0))).digest(), 0)


def digested_length(body: bytes) -> int:
    """Gives how many bytes stand before the bar, or 0 if this cannot be the start of a node."""
    if len(body) >= LEAF_HEAD and body[0] == LEAF and body[1] <= LEAF_MAX:
        return LEAF_HEAD + PAIR_BYTES * body[1]
    if len(body) >= INNER_HEAD and body[0] == INNER:
        return INNER_HEAD + DIGEST_BYTES * bitmap_of(body).bit_count()
    return 0


def node_digest(body: bytes) -> bytes:
    """Gives SHA-256 of what stands before the bar."""
    return sha256(body[: digested_length(body)]).digest()


def verified(body: bytes, expected_digest: bytes, row: int) -> bytes:
    """Gives the body if it is a whole node with that digest, else raises Corrupt.

    An implementer calls this when a body is loaded; a body from its cache needs only its digest compared.
    """
    if node_digest(body) != expected_digest:
        raise Corrupt("node", row, "its content does not agree with its digest")
    if not _is_whole(body):
        raise Corrupt("node", row, "its pointers do not agree with its content")
    return body


def count_of(body: bytes) -> int:
    """Gives how many entries a body says it holds."""
    return body[1] if body[0] == LEAF else int.from_bytes(body[1:5])


def bitmap_of(body: bytes) -> int:
    """Gives the bitmap of an inner body."""
    return body[5] << 8 | body[6]


def decode(body: bytes) -> Node:
    """Gives a verified body as a value."""
    return decode_leaf(body) if body[0] == LEAF else decode_inner(body)


def encode_leaf(entries: tuple[Entry, ...]) -> bytes:
    """Gives the body of a leaf."""
    size = len(entries)
    pairs = chain.from_iterable([entry[:2] for entry in entries])
    pointers = chain.from_iterable([entry[2:] for entry in entries])
    return _LEAVES[size].pack(LEAF, size, *pairs, *pointers)


def encode_inner(children: tuple[Root, ...]) -> bytes:
    """Gives the body of an inner node, of sixteen subtrees."""
    present = [child for child in children if child.count]
    bitmap = sum([1 << slot for slot, child in enumerate(children) if child.count])
    count = sum([child.count for child in present])
    digests = [child.digest for child in present]
    pointers = chain.from_iterable([(child.row, child.count) for child in present])
    return _INNERS[len(present)].pack(INNER, count, bitmap, *digests, *pointers)


def digest_at(digested: bytes, slot: int) -> bytes | None:
    """Gives the digest of one child from an inner node's digested part, or None."""
    bitmap = bitmap_of(digested)
    if not bitmap >> slot & 1:
        return None
    start = INNER_HEAD + DIGEST_BYTES * (bitmap & (1 << slot) - 1).bit_count()
    return digested[start : start + DIGEST_BYTES]


def place_of(digested: bytes, key: bytes) -> int | None:
    """Gives the place of a key in a leaf's digested part, or None."""
    end = LEAF_HEAD + PAIR_BYTES * digested[1]
    found = digested.find(key, LEAF_HEAD, end)
    while found >= 0 and (found - LEAF_HEAD) % PAIR_BYTES:
        found = digested.find(key, found + 1, end)
    return None if found < 0 else (found - LEAF_HEAD) // PAIR_BYTES


def nibble(key: bytes, depth: int) -> int:
    """Gives the slot of a key below an inner node at that depth."""
    return key[depth >> 1] & 15 if depth & 1 else key[depth >> 1] >> 4


def _is_whole(body: bytes) -> bool:
    if body[0] == LEAF:
        return len(body) == _LEAVES[body[1]].size
    count, bitmap = _COUNT_BITMAP.unpack_from(body, 1)
    size = bitmap.bit_count()
    if len(body) != _INNERS[size].size:
        return False
    return bool(sum(_INNERS[size].unpack(body)[4 + size :: 2]) == count > LEAF_MAX)


def decode_leaf(body: bytes) -> Leaf:
    """Gives a verified leaf body as a value."""
    flat = _LEAVES[body[1]].unpack(body)
    bar = 2 + 2 * body[1]
    return Leaf(
        tuple(
            map(
                Entry,
                flat[2:bar:2],
                flat[3:bar:2],
                flat[bar::4],
                flat[bar + 1 :: 4],
                flat[bar + 2 :: 4],
                flat[bar + 3 :: 4],
            )
        )
    )


def decode_inner(body: bytes) -> Inner:
    """Gives a verified inner body as a value."""
    bitmap = bitmap_of(body)
    size = bitmap.bit_count()
    flat = _INNERS[size].unpack(body)
    children = map(Root, flat[3 + size :: 2], flat[3 : 3 + size], flat[4 + size :: 2])
    if size == FAN_OUT:
        return Inner(tuple(children))
    return Inner(tuple([next(children) if bitmap >> slot & 1 else EMPTY for slot in range(FAN_OUT)]))

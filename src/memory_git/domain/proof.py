"""Proof that a state holds a record, or holds none under a key, from the root digest alone (7-context, reproduce).

A proof is the digested part of each node on the key's path, from the top. It is accepted if

1. each part is a whole digested part, and its SHA-256 is what the part above (or the root digest) names;
2. a part that names no child for the key, or is a leaf, is the last one; any other is not;
3. the keys of the leaf ascend, so that none stands in it twice;
4. the record digest found in the leaf is the one asked about, or there is none and absence was asked about.

A proof comes from outside: anything else is a plain no, never an exception.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise

from memory_git.domain.errors import Invalid
from memory_git.domain.node_store import NodeReader
from memory_git.domain.trie_bytes import child_at
from memory_git.domain.trie_node import (
    DIGEST_BYTES,
    EMPTY,
    KEY_BYTES,
    LEAF,
    LEAF_HEAD,
    LEAF_MAX,
    PAIR_BYTES,
    Root,
    digest_at,
    digested_length,
    nibble,
    place_of,
)

_NOTHING = bytes((LEAF, 0))
_MAX_PARTS = 2 * KEY_BYTES + 1
_MAX_PART_BYTES = LEAF_HEAD + PAIR_BYTES * LEAF_MAX


@dataclass(frozen=True, slots=True)
class Proof:
    """The digested parts of the nodes on one path, the top one first."""

    parts: tuple[bytes, ...]

    def to_json(self) -> list[str]:
        """Gives the wire form: each part in lower-case hex."""
        return [part.hex() for part in self.parts]

    @classmethod
    def from_json(cls, value: object) -> Proof:
        """Reads the wire form; raises Invalid `bad_proof` for any other value."""
        if not isinstance(value, list) or len(value) > _MAX_PARTS:
            raise Invalid("bad_proof", f"a proof is a list of up to {_MAX_PARTS} strings")
        return cls(tuple([_part(item) for item in value]))


def prove(nodes: NodeReader, root: Root, key: bytes) -> Proof:
    """Gives the proof that the entry of a key is what it is, or that there is none."""
    parts: list[bytes] = []
    tree = root
    while tree != EMPTY:
        body = nodes.get(tree.row, tree.digest)
        parts.append(body[: digested_length(body)])
        tree = EMPTY if body[0] == LEAF else child_at(body, nibble(key, len(parts) - 1))
    return Proof(tuple(parts) or (_NOTHING,))


def verify_proof(root_digest: bytes, key: bytes, record_digest: bytes | None, proof: Proof) -> bool:
    """Decides whether the state of that root digest holds that record digest under a key (None: holds none)."""
    if len(key) != KEY_BYTES or not 0 < len(proof.parts) <= _MAX_PARTS:
        return False
    expected: bytes | None = root_digest
    for depth, part in enumerate(proof.parts):
        if expected is None or not _is_digested_part(part) or sha256(part).digest() != expected:
            return False
        if part[0] == LEAF:
            return depth + 1 == len(proof.parts) and _leaf_agrees(part, key, record_digest)
        if depth == 2 * KEY_BYTES:
            return False
        expected = digest_at(part, nibble(key, depth))
    return expected is None and record_digest is None


def _part(item: object) -> bytes:
    if not isinstance(item, str) or len(item) > 2 * _MAX_PART_BYTES:
        raise Invalid("bad_proof", f"a part is the hex text of up to {_MAX_PART_BYTES} bytes")
    try:
        part = bytes.fromhex(item)
    except ValueError:
        part = b""
    if part.hex() != item:
        raise Invalid("bad_proof", "a part is not lower-case hex")
    return part


def _is_digested_part(part: bytes) -> bool:
    return 0 < digested_length(part) == len(part)


def _leaf_agrees(part: bytes, key: bytes, record_digest: bytes | None) -> bool:
    keys = [part[start : start + KEY_BYTES] for start in range(LEAF_HEAD, len(part), PAIR_BYTES)]
    if not all(one < other for one, other in pairwise(keys)):
        return False
    place = place_of(part, key)
    if place is None:
        return record_digest is None
    start = LEAF_HEAD + PAIR_BYTES * place + KEY_BYTES
    return part[start : start + DIGEST_BYTES] == record_digest

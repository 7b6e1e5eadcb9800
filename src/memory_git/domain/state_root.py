"""Keys of the two tries of a state, and the digest over both (2-architecture; 4-history, state)."""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256

from memory_git.domain.canonical import plain_bytes, plain_digest

MOST_KEPT_KEYS = 65_536
STATE_VERSION = "memory_git/state/v1"


@lru_cache(MOST_KEPT_KEYS)
def memory_key(memory_id: str) -> bytes:
    """Gives the key of a memory in the trie of memories."""
    return sha256(b"m\0" + memory_id.encode()).digest()


def edge_key(from_id: str, kind: str, to_id: str) -> bytes:
    """Gives the key of a relationship in the trie of relationships."""
    return sha256(b"r\0" + plain_bytes([from_id, kind, to_id])).digest()


def state_root(memories: bytes, relationships: bytes) -> str:
    """Gives the digest of a state, from the root digests of its two tries."""
    return plain_digest([STATE_VERSION, memories.hex(), relationships.hex()])

"""How tree nodes are kept small: most differ from an older one by one child or entry (2-architecture, the state tree).

1. A node may be kept as what deflate (RFC 1951) makes of its body with the older node's body as dictionary; digests are over
   bodies, so nothing of this enters one.
2. No more than MOST_STEPS nodes are read below one, then it is kept whole again.
3. Who drops nodes keeps those that a kept one is based on; a base is always older, so its row is smaller.
"""

from __future__ import annotations

import zlib

from memory_git.domain.errors import Corrupt

MOST_STEPS = 8
_LEVEL, _WINDOW_BITS, _MEMORY_LEVEL = 1, -13, 3
_MOST_BYTES = 4_096
"""No body of a node is longer: a leaf of 32 entries has 2,946 bytes."""


def packed(body: bytes, base: bytes) -> bytes | None:
    """Gives what makes a body of its base, or None where that is not much shorter."""
    packing = zlib.compressobj(
        _LEVEL, zlib.DEFLATED, _WINDOW_BITS, _MEMORY_LEVEL, zlib.Z_DEFAULT_STRATEGY, base
    )
    made = packing.compress(body) + packing.flush()
    return made if 2 * len(made) < len(body) else None


def unpacked(made: bytes, base: bytes, row: int) -> bytes:
    """Gives the body again; raises Corrupt for what `packed` did not make. The caller verifies it against its digest."""
    unpacking = zlib.decompressobj(_WINDOW_BITS, zdict=base)
    try:
        body = unpacking.decompress(made, _MOST_BYTES)
    except zlib.error as error:
        raise Corrupt("node", row, "does not come of its base") from error
    if not unpacking.eof:
        raise Corrupt("node", row, "does not come of its base")
    return body

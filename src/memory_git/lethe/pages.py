"""How much a page holds: so many items as asked for, and no more bytes than a reader can be expected to take at once (12-lessons, size).

A page that reaches the bytes ends early, never within an item, and its `next` goes on there. The first item stands always.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

PAGE_BYTES = 4 << 20


def fitting(items: Iterable[dict[str, Any]], most_bytes: int = PAGE_BYTES) -> list[dict[str, Any]]:
    """Gives the items from the first on that fit into a page; no more of them is asked for than is needed."""
    page: list[dict[str, Any]] = []
    size = 0
    for item in items:
        size += len(orjson.dumps(item))
        if page and size > most_bytes:
            break
        page.append(item)
    return page

"""What the gate takes for text. Pure: a call's words go into rows, a ledger and pages, and must be writable there.

A command line can hold bytes that are not UTF-8, which arrive as lone surrogates; a NUL ends a text in many a reader.
Ops, evidence and verification are left to the store, which names the faulty one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from memory_git.domain.errors import Fault, Invalid

_THE_STORES = frozenset({"ops", "evidence", "verification"})
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
_RULE = "is no text: it holds a NUL or a lone surrogate"


def require_text(request: Mapping[str, Any]) -> None:
    """Refuses a call with a field whose words are no text; raises Invalid `not_text` with every such field."""
    faults = [
        Fault(None, field, _RULE)
        for field, value in request.items()
        if field not in _THE_STORES and not _is_text(value)
    ]
    if faults:
        raise Invalid("not_text", "a text holds a NUL or a lone surrogate", faults)


def _is_text(value: Any) -> bool:
    if isinstance(value, str):
        return _NO_TEXT.search(value) is None
    if isinstance(value, Mapping):
        return all(_is_text(key) and _is_text(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(_is_text(item) for item in value)
    return True

"""Answers about texts that are kept in memory: bounded, and forgotten at once when a text is erased (10-operations, redaction)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import ParamSpec, TypeVar, cast

P = ParamSpec("P")
T = TypeVar("T")

_forgets: list[Callable[[], None]] = []


def kept(most: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Gives a decorator by which a pure function keeps its last answers, so many of them."""

    def keep(answer: Callable[P, T]) -> Callable[P, T]:
        keeping = lru_cache(most)(answer)
        _forgets.append(keeping.cache_clear)
        return cast("Callable[P, T]", keeping)

    return keep


def forget() -> None:
    """Empties whatever is kept of texts."""
    for empty in _forgets:
        empty()

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


class Kept(dict[str, T]):
    """What a pure function gives for a word, asked once for each; emptied when it holds `most`. Cheaper to ask than `kept`."""

    def __init__(self, answer: Callable[[str], T], most: int) -> None:
        self._answer = answer
        self._most = most
        _forgets.append(self.clear)

    def __missing__(self, word: str) -> T:
        if len(self) >= self._most:
            self.clear()
        found = self[word] = self._answer(word)
        return found


def forget() -> None:
    """Empties whatever is kept of texts."""
    for empty in _forgets:
        empty()

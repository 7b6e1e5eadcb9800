"""The same memories for everybody: ids, texts of about 200 bytes, and the stream of changes to them.

Everything follows from numbers alone, so that each process makes the same. Six in ten are observations, three facts with a fact key of
their own, one is a decision: conflict detection has to look at all of them.
"""

from __future__ import annotations

import random
from array import array
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import accumulate
from pathlib import Path

CONTENT_BYTES = 200
_STRIDE = 7919
_VOCABULARY = 20_000
_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
_OFTEN = (
    "the of and to in is that for it with on as was at by an be this from or have are but which you all will "
    "when they one said who more if about other some time than into could them only new after use how work"
)


def _vocabulary() -> list[str]:
    draw = random.Random(20_000)
    rare = {"".join(draw.choices(_SYLLABLES, k=draw.randint(2, 4))) for _ in range(2 * _VOCABULARY)}
    often = _OFTEN.split()
    return [*often, *sorted(rare)[: _VOCABULARY - len(often)]]


_WORDS = _vocabulary()
_WEIGHTS = list(accumulate(1 / rank for rank in range(1, len(_WORDS) + 1)))


def memory_id(number: int) -> str:
    """Gives the id of a memory by its number."""
    return f"m-{number:08d}"


def content(number: int, version: int = 0) -> str:
    """Gives a text of about CONTENT_BYTES, its words drawn by Zipf's law; another version is another text."""
    draw = random.Random(number * 1_000_003 + version).random
    words, size = [], 0
    while size < CONTENT_BYTES:
        word = _WORDS[bisect(_WEIGHTS, draw() * _WEIGHTS[-1])]
        words.append(word)
        size += len(word) + 1
    return f"{' '.join(words)}."


def kind(number: int) -> str:
    """Gives the kind of a memory by its number."""
    return "decision" if number % 10 == 0 else "fact" if number % 10 < 4 else "observation"


@dataclass(frozen=True, slots=True)
class Edit:
    """One change: a new memory, or another text of an old one."""

    number: int
    text: str
    is_new: bool

    @property
    def memory_id(self) -> str:
        """Gives the id of the memory."""
        return memory_id(self.number)


def edits(base: int, first: int, count: int) -> list[Edit]:
    """Gives changes `first` to `first + count` on a base of so many memories: in turn another text and a new memory, all over the keys."""
    return [_edit(base, place) for place in range(first, first + count)]


def _edit(base: int, place: int) -> Edit:
    number = base + place if place % 2 else place // 2 * _STRIDE % base
    return Edit(number, content(number, place + 1), bool(place % 2))


def new_texts(base: int, first: int, count: int) -> list[Edit]:
    """Gives other texts of old memories, `first` to `first + count`; while few are taken they are none of those in `edits`."""
    numbers = ((base - 1 - place) * _STRIDE % base for place in range(first, first + count))
    return [Edit(number, content(number, -1 - first), False) for number in numbers]


def write_key_order(path: Path, count: int) -> None:
    """Writes the numbers of the first memories in the order of their trie keys, four bytes each."""
    keys = [(sha256(b"m\0" + memory_id(number).encode()).digest(), number) for number in range(count)]
    keys.sort()
    path.write_bytes(array("I", (number for _, number in keys)).tobytes())


def chunks(path: Path, size: int) -> Iterator[list[int]]:
    """Yields the numbers of an order that was written, `size` at a time."""
    with path.open("rb") as file:
        while block := file.read(4 * size):
            yield list(array("I", block))

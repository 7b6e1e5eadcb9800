"""Ranks candidates against the words of a query: BM25 over weighted fields (Robertson and Zaragoza 2009, §3.6).

Every statistic comes from the candidates that the caller may see, so a score tells nothing of what is hidden.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory_git.domain.words import is_unspaced, words

SATURATION = 1.2
LENGTH_SHARE = 0.75
TITLE_WEIGHT, SUMMARY_WEIGHT, TAGS_WEIGHT, BODY_WEIGHT = 4.0, 2.5, 1.5, 1.0
_WEIGHTS = (TITLE_WEIGHT, SUMMARY_WEIGHT, TAGS_WEIGHT, BODY_WEIGHT)


@dataclass(frozen=True, slots=True)
class Document:
    """What is ranked: the texts of one record; any of them may be empty."""

    id: str
    title: str = ""
    summary: str = ""
    tags: Sequence[str] = ()
    content: str = ""


@dataclass(frozen=True, slots=True)
class _Counted:
    """How often each word stands in each field, and how long the fields are."""

    fields: tuple[Counter[str], ...]
    lengths: tuple[int, ...]


def rank(
    query_words: Iterable[str], documents: Sequence[Document], total_documents: int
) -> list[tuple[str, float]]:
    """Gives (id, score) of every document that holds a word of the query, the best first, ties in the input's order.

    `query_words` come from `words`; `total_documents` is the number of documents visible to the caller.
    """
    counted = [_count(document) for document in documents]
    means = [
        sum(one.lengths[field] for one in counted) / len(counted) if counted else 0.0
        for field in range(len(_WEIGHTS))
    ]
    scores = [0.0] * len(documents)
    total = max(total_documents, len(documents))
    for word in dict.fromkeys(query_words):
        weights = [_weight(word, one, means) for one in counted]
        holding = sum(1 for weight in weights if weight)
        rarity = math.log(1 + (total - holding + 0.5) / (holding + 0.5))
        for at, weight in enumerate(weights):
            scores[at] += rarity * weight / (SATURATION + weight)
    found = [(document.id, score) for document, score in zip(documents, scores, strict=True) if score > 0]
    return sorted(found, key=lambda pair: -pair[1])


def _count(document: Document) -> _Counted:
    texts = (document.title, document.summary, "\n".join(document.tags), document.content)
    fields = tuple(Counter(words(text)) for text in texts)
    return _Counted(fields, tuple(field.total() for field in fields))


def _weight(word: str, counted: _Counted, means: Sequence[float]) -> float:
    """Gives the weighted frequency of a word, each field's set against its mean length."""
    weight = 0.0
    for field, length, mean, boost in zip(counted.fields, counted.lengths, means, _WEIGHTS, strict=True):
        times = _times(word, field)
        if times:
            weight += boost * times / (1 - LENGTH_SHARE + LENGTH_SHARE * length / mean)
    return weight


def _times(word: str, field: Counter[str]) -> int:
    """Gives how often a word stands in a field; a single character of an unspaced script also within pairs."""
    if len(word) > 1 or not is_unspaced(word):
        return field[word]
    return sum(times for pair, times in field.items() if word in pair and is_unspaced(pair))

"""Two texts compared by their words alone: the same, a near-duplicate, about one thing (4-history, conflicts).

1. The same: equal after NFKC, case and white-space folding. Punctuation is kept but at the end of the text.
2. Differing negations, numbers, dates or names never make a duplicate, however alike the rest is.
3. A near-duplicate has the same content words in the same order; small words and endings may differ. It may begin
   elsewhere (a phrase moved from end to start), and words of time may stand elsewhere. X over Y is not Y over X.
4. Two decisions are about one thing when the words that name the thing agree; what may differ is the value: names,
   numbers, dates, a negation. Doubt says no: an unrelated decision called alike is worse than one missed.

No language is asked for; what `lexicon` doesn't know counts as content, so it keeps texts apart.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import Literal

from memory_git.domain import lexicon
from memory_git.domain.canonical import sha256_hex
from memory_git.domain.kept import kept
from memory_git.domain.reading import (
    MOST_KEPT_CHARACTERS,
    MOST_KEPT_READINGS,
    Reading,
    Token,
    read,
    visible,
)

Difference = Literal["negation", "number", "date", "name"]
MOST_TOPIC_WORDS = 12
MIN_SHARED = 2
LEAST_SHARE = 0.4
"""Two topics that are alike share at least so much of each; the words under which a decision is found follow from it."""
MIN_TOPIC_OVERLAP = 0.5
MIN_OVERLAP_FROM_ONE_START = LEAST_SHARE
MIN_OVERLAP_IN_DOUBT = 0.67

_TYPOGRAPHY = str.maketrans(
    {"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": "-"}
)
_LAST_MARKS = re.compile(r"[\s.!。]+$")


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two texts stand to each other. `is_near` holds for equal texts too; `similarity` is in [0, 1]."""

    same: bool
    is_near: bool
    similarity: float
    differs_in: frozenset[Difference]


def fold(text: str) -> str:
    """Gives the text as it counts for equality of keys: NFKC, case, white space and typography folded.

    >>> fold("  Ｕse\\tRedis. ")
    'use redis.'
    """
    if text.isascii():
        return " ".join(text.lower().split())
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", visible(text)).casefold())
    return " ".join(folded.translate(_TYPOGRAPHY).split())


def normalize(text: str) -> str:
    """Gives the text as it counts for equality of texts: folded, no full stop at its end."""
    folded = fold(text)
    return _LAST_MARKS.sub("", folded) or folded


def text_digest(text: str) -> str:
    """Gives SHA-256 of the normalized text: equal for texts that are the same."""
    return sha256_hex(normalize(text).encode("utf-8", "surrogatepass"))


def compare(a: str, b: str) -> Comparison:
    """Gives how two texts compare; the order of the two makes no difference."""
    if normalize(a) == normalize(b):
        return Comparison(True, True, 1.0, frozenset())
    left, right = read(a), read(b)
    differs_in = _differences(left, right)
    is_near = not differs_in and _is_same_content(left, right)
    return Comparison(False, is_near, _similarity(left, right), differs_in)


def is_duplicate(a: str, b: str) -> bool:
    """Decides whether two texts say the same in the same words, small words and endings aside (`Comparison.is_near`)."""
    if normalize(a) == normalize(b):
        return True
    left, right = read(a), read(b)
    return _is_same_content(left, right) and not _differences(left, right)


def alike_topic(a: str, b: str) -> bool:
    """Decides whether two decisions are clearly about the same thing; when in doubt they are not."""
    topic_a, topic_b = topic_words(a), topic_words(b)
    shared = len(set(topic_a) & set(topic_b))
    if shared < max(least_shared(len(topic_a)), least_shared(len(topic_b))):
        return False
    left, right = read(a), read(b)
    if set(topic_a) == set(topic_b):
        return len(topic_a) >= MIN_SHARED or _values(left) != _values(right)
    return _is_parallel(left, right) or _overlaps(topic_a, topic_b, left, right)


def topic_words(text: str) -> tuple[str, ...]:
    """Gives the words by which `alike_topic` knows what a decision is about, each once, in their order; the first of many."""
    return _topic_of_short(text) if len(text) <= MOST_KEPT_CHARACTERS else _topic(text)


def least_shared(size: int) -> int:
    """Gives how many words a topic of that size shares at least with any that is alike."""
    return max(1, ceil(LEAST_SHARE * size))


def _differences(left: Reading, right: Reading) -> frozenset[Difference]:
    found: set[Difference] = set()
    if left.negations != right.negations or _negates_by_prefix(left, right):
        found.add("negation")
    if _stems(left, "number") != _stems(right, "number"):
        found.add("number")
    if _stems(left, "date") != _stems(right, "date"):
        found.add("date")
    if _names_differ(left, right):
        found.add("name")
    return frozenset(found)


def _stems(reading: Reading, kind: str) -> Counter[str]:
    return Counter(token.stem for token in reading.tokens if token.kind == kind)


def _negates_by_prefix(left: Reading, right: Reading) -> bool:
    """Finds encrypted against unencrypted: a word that is another with a negating prefix."""
    words_a = {token.stem for token in left.content if token.kind == "word"}
    words_b = {token.stem for token in right.content if token.kind == "word"}
    return any(
        prefix + word in longer
        for words, longer in ((words_a - words_b, words_b - words_a), (words_b - words_a, words_a - words_b))
        for word in words
        for prefix in lexicon.NEGATIVE_PREFIXES
    )


def _names_differ(left: Reading, right: Reading) -> bool:
    names_a, names_b = _sure_names(left), _sure_names(right)
    if _begin_with_other_names(left, right):
        return True
    if set(names_a) == set(names_b) and len(names_a) == len(names_b):
        return names_a != names_b and not _is_same_content(left, right)
    stems_a = {token.stem for token in left.tokens}
    stems_b = {token.stem for token in right.tokens}
    return any(name not in stems_b for name in names_a) or any(name not in stems_a for name in names_b)


def _begin_with_other_names(left: Reading, right: Reading) -> bool:
    """Finds "Grafana is hosted here" against "Kibana is hosted here". German writes all nouns so: no answer there."""
    a, b = left.content, right.content
    if not a or not b or left.is_german or not (a[0].is_name and b[0].is_name):
        return False
    return a[0].stem != b[0].stem and _sequence(a[1:]) == _sequence(b[1:])


def _sure_names(reading: Reading) -> list[str]:
    """Gives what is written as a name: with a capital inside a sentence, or as an identifier anywhere."""
    return [
        token.stem
        for token in reading.content
        if token.kind == "word" and token.is_name and (token.is_identifier or not token.is_first)
    ]


def _is_same_content(left: Reading, right: Reading) -> bool:
    content_a, content_b = _sequence(left.content), _sequence(right.content)
    if not content_a or not content_b:
        return False
    if content_a == content_b:
        return left.marks == right.marks or Counter(left.marks) != Counter(right.marks)
    if Counter(content_a) != Counter(content_b):
        return False
    if len(content_a) > 2 and _is_rotation(content_a, content_b):
        return True
    return _without_time(left) == _without_time(right)


def _sequence(tokens: Sequence[Token]) -> list[str]:
    return [token.stem for token in tokens]


def _without_time(reading: Reading) -> list[str]:
    return [token.stem for token in reading.content if token.kind not in {"date", "time"}]


def _is_rotation(a: Sequence[str], b: Sequence[str]) -> bool:
    """Decides whether `b` is `a` begun elsewhere; in linear time, as a search in `a` doubled."""
    return "\0".join(b) + "\0" in "\0" + "\0".join([*a, *a]) + "\0"


def _similarity(left: Reading, right: Reading) -> float:
    """Gives Dice's coefficient over single tokens and pairs of neighbours."""
    a, b = _shingles(left), _shingles(right)
    total = a.total() + b.total()
    return round(2 * (a & b).total() / total, 4) if total else 0.0


def _shingles(reading: Reading) -> Counter[tuple[str, ...]]:
    stems = _sequence(reading.tokens)
    return Counter([*((stem,) for stem in stems), *pairwise(stems)])


def _topic(text: str) -> tuple[str, ...]:
    """Gives the words that name what a decision is about; Chinese characters in pairs."""
    topic: dict[str, None] = {}
    content = read(text).content
    for place, token in enumerate(content):
        if token.kind == "han":
            topic.update(dict.fromkeys(_han_pair(content, place)))
        elif token.kind == "word" and not token.is_generic and not token.is_value:
            topic[token.stem] = None
        if len(topic) >= MOST_TOPIC_WORDS:
            break
    return tuple(topic)


_topic_of_short = kept(MOST_KEPT_READINGS)(_topic)


def _han_pair(content: Sequence[Token], place: int) -> list[str]:
    """Gives the pair that starts here, or the character when it stands alone."""
    token = content[place]
    following = content[place + 1] if place + 1 < len(content) else None
    if following is not None and following.kind == "han" and following.follows:
        return [token.stem + following.stem]
    before = content[place - 1] if place else None
    is_alone = before is None or before.kind != "han" or not token.follows
    return [token.stem] if is_alone else []


def _values(reading: Reading) -> Counter[str]:
    return Counter(
        token.stem
        for token in reading.content
        if token.is_value or token.kind in {"number", "date", "negation"}
    )


def _overlaps(topic_a: Sequence[str], topic_b: Sequence[str], left: Reading, right: Reading) -> bool:
    """Decides by the share of topic words in common, and by where they stand."""
    shared = set(topic_a) & set(topic_b)
    if len(shared) < MIN_SHARED or (topic_a[0] not in shared and topic_b[0] not in shared):
        return False
    both_differ = len(shared) < len(topic_a) and len(shared) < len(topic_b)
    if both_differ and shared & lexicon.ADDITIVE:
        return False
    overlap = len(shared) / len({*topic_a, *topic_b})
    if both_differ and (_have_same_values(left, right) or _is_one_phrase(shared, left, right)):
        return overlap >= MIN_OVERLAP_IN_DOUBT
    starts_alike = topic_a[0] == topic_b[0]
    return overlap >= (MIN_OVERLAP_FROM_ONE_START if starts_alike else MIN_TOPIC_OVERLAP)


def _have_same_values(left: Reading, right: Reading) -> bool:
    return bool(_values(left)) and _values(left) == _values(right)


def _is_one_phrase(shared: set[str], left: Reading, right: Reading) -> bool:
    """Decides whether only two neighbouring words are shared: one thing, of which two things may be said."""
    if len(shared) > 2:
        return False
    for reading in (left, right):
        places = [place for place, token in enumerate(reading.content) if token.stem in shared]
        if not places or places[-1] - places[0] != 1:
            return False
        if reading.is_german and not all(reading.content[place].is_name for place in places):
            return False  # a noun and its verb
    return True


def _is_parallel(left: Reading, right: Reading) -> bool:
    """Finds "use tabs for indentation" against "use spaces for indentation": one word before an equal purpose."""
    a, b = _sequence(left.content), _sequence(right.content)
    cut_a, cut_b = _purpose_start(a), _purpose_start(b)
    if cut_a is None or cut_b is None or a[cut_a:] != b[cut_b:] or len(a) != len(b) or cut_a < 2:
        return False
    return sum(one != other for one, other in zip(a, b, strict=True)) == 1 and a[0] == b[0]


def _purpose_start(stems: Sequence[str]) -> int | None:
    places = [place for place, stem in enumerate(stems) if stem in lexicon.PURPOSES]
    return places[0] if len(places) == 1 and places[0] + 1 < len(stems) else None

"""Two texts compared by their words alone: the same, a near-duplicate, the same words moved (4-history, conflicts).

1. The same: equal after NFKC, case and white-space folding. Punctuation is kept but at the end of the text.
2. Differing negations, numbers, dates or names never make a duplicate, however alike the rest is.
3. A near-duplicate has the same content words in the same order; small words and endings may differ. It may begin
   elsewhere (a phrase moved from end to start), and words of time may stand elsewhere. X over Y is not Y over X.
4. A text restates another if it says the same words with one phrase moved, or, in a language of free order, in the same forms.

No language is asked for; what `lexicon` doesn't know counts as content, so it keeps texts apart.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from memory_git.domain import lexicon
from memory_git.domain.canonical import sha256_hex
from memory_git.domain.reading import Reading, read
from memory_git.domain.tokens import Token, stem, visible

Difference = Literal["negation", "number", "date", "name"]
_TYPOGRAPHY = str.maketrans(
    {"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": "-"}
)
_SIDES = {stem(word): side for word, side in lexicon.CONTRASTING.items()}
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


def restates(a: str, b: str) -> bool:
    """Decides whether one text says the same as the other in the same words, with one phrase moved, or in a language of free order."""
    left, right = read(a), read(b)
    if _differences(left, right) or not _hold_the_same(left, right):
        return False
    if left.order_is_free and right.order_is_free:
        return Counter(left.forms) == Counter(right.forms)
    return _is_one_move(gist(left), gist(right))


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
    return a[0].stem != b[0].stem and stems_of(a[1:]) == stems_of(b[1:])


def _sure_names(reading: Reading) -> list[str]:
    """Gives what is written as a name: with a capital inside a sentence, or as an identifier anywhere."""
    return [
        token.stem
        for token in reading.content
        if token.kind == "word" and token.is_name and (token.is_identifier or not token.is_first)
    ]


def _is_same_content(left: Reading, right: Reading) -> bool:
    content_a, content_b = stems_of(left.content), stems_of(right.content)
    if not content_a or not content_b:
        return False
    if content_a == content_b:
        return left.marks == right.marks or Counter(left.marks) != Counter(right.marks)
    if Counter(content_a) != Counter(content_b):
        return False
    if len(content_a) > 2 and _is_rotation(content_a, content_b):
        return True
    return _without_time(left) == _without_time(right)


def stems_of(tokens: Sequence[Token]) -> list[str]:
    """Gives the stems of tokens in their order."""
    return [token.stem for token in tokens]


def _without_time(reading: Reading) -> list[str]:
    return [token.stem for token in reading.content if token.kind not in {"date", "time"}]


def _is_rotation(a: Sequence[str], b: Sequence[str]) -> bool:
    """Decides whether `b` is `a` begun elsewhere; in linear time, as a search in `a` doubled."""
    return "\0".join(b) + "\0" in "\0" + "\0".join([*a, *a]) + "\0"


def _is_one_move(a: Sequence[str], b: Sequence[str]) -> bool:
    """Decides whether `b` is `a` with one phrase moved elsewhere; "A checks B" is not "B checks A" so."""
    start = next((at for at, (one, other) in enumerate(zip(a, b, strict=True)) if one != other), len(a))
    end = next((at for at in range(len(a), start, -1) if a[at - 1] != b[at - 1]), start)
    return _is_rotation(a[start:end], b[start:end])


def _hold_the_same(left: Reading, right: Reading) -> bool:
    """Decides whether two texts hold the same words, signs and values in any order, unless their order is what was decided."""
    if prefers(left) or _contrasts(left) != _contrasts(right):
        return False
    return Counter(gist(left)) == Counter(gist(right))


def _contrasts(reading: Reading) -> Counter[object]:
    """Counts signs, and small words that tell more from less, before from after."""
    signs = (token.stem for token in reading.tokens if token.kind == "sign")
    return Counter([*signs, *(_SIDES[token.stem] for token in reading.tokens if token.stem in _SIDES)])


def gist(reading: Reading) -> list[str]:
    """Gives the stems of what a text says, light verbs and prepositions left out."""
    said = (token for token in reading.content if token.kind != "sign")
    return [token.stem for token in said if token.is_value or not token.is_generic]


def prefers(reading: Reading) -> bool:
    """Decides whether the order of two names may be what a text decides: X over Y, from X to Y."""
    stems = {token.stem for token in reading.tokens}
    leads = not (stems.isdisjoint(lexicon.FROM) or stems.isdisjoint(lexicon.TO))
    return leads or not stems.isdisjoint(lexicon.PREFERRING)


def _similarity(left: Reading, right: Reading) -> float:
    """Gives Dice's coefficient over single tokens and pairs of neighbours."""
    a, b = _shingles(left), _shingles(right)
    total = a.total() + b.total()
    return round(2 * (a & b).total() / total, 4) if total else 0.0


def _shingles(reading: Reading) -> Counter[tuple[str, ...]]:
    stems = stems_of(reading.tokens)
    return Counter([*((stem,) for stem in stems), *pairwise(stems)])

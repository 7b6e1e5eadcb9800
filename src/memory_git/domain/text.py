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
    stem,
    visible,
)

Difference = Literal["negation", "number", "date", "name"]
MOST_TOPIC_WORDS = 12
MIN_SHARED = 2
MOST_SIGNS_OF_A_PLACE = 3
MOST_WORDS_OF_A_PHRASE = 2
LEAST_SHARE = 0.4
"""Two topics that are alike share at least so much of each; the words under which a decision is found follow from it."""
MIN_TOPIC_OVERLAP = 0.5
MIN_OVERLAP_IN_DOUBT = 0.67

_SIDES = {stem(word.replace("-", "")): place for word, place in lexicon.OPPOSITES.items()}
_NO_SIDE = (-1, 0)
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


def restates(a: str, b: str) -> bool:
    """Decides whether one text says the same as the other in the same words, with one phrase moved, or in a language of free order."""
    left, right = read(a), read(b)
    if _differences(left, right) or not _hold_the_same(left, right):
        return False
    if left.order_is_free and right.order_is_free:
        return Counter(left.forms) == Counter(right.forms)
    return _is_one_move(_gist(left), _gist(right))


def alike_topic(a: str, b: str) -> bool:
    """Decides whether two decisions are clearly about the same thing; when in doubt they are not."""
    topic_a, topic_b = topic_words(a), topic_words(b)
    shared = set(topic_a) & set(topic_b)
    if len(shared) < max(least_shared(len(topic_a)), least_shared(len(topic_b))):
        return False
    left, right = read(a), read(b)
    if _refines(left, right) or _refines(right, left) or _play_other_roles(left, right):
        return False
    if (
        _exclude_each_other(topic_a, topic_b, left, right)
        or _is_parallel(left, right)
        or _differ_in_one_place(topic_a[0], left, right)
    ):
        return True
    if _is_one_phrase(shared, left, right) and not _may_fill_one_slot(left, right, by_place=True):
        return False
    if set(topic_a) == set(topic_b):
        return _may_fill_one_slot(left, right)
    return _overlaps(topic_a, topic_b, left, right)


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
    in_doubt = bool(_values(left) and _values(right)) or _is_one_phrase(shared, left, right)
    if (both_differ and in_doubt) or not _may_fill_one_slot(left, right):
        return overlap >= MIN_OVERLAP_IN_DOUBT
    return overlap >= MIN_TOPIC_OVERLAP


def _hold_the_same(left: Reading, right: Reading) -> bool:
    """Decides whether two texts hold the same words and values in any order, unless their order is what was decided."""
    return Counter(_gist(left)) == Counter(_gist(right)) and not _prefers(left)


def _refines(more: Reading, less: Reading) -> bool:
    """Decides whether one decision says all that another does, in any order, and more: what it adds leaves the other true.

    Not where the order is what was decided, or the other said "only".
    """
    if more.negations != less.negations or _prefers(less):
        return False
    if any(token.stem in lexicon.EXCLUSIVE for token in less.tokens):
        return Counter(_gist(more)) == Counter(_gist(less))
    return Counter(_gist(less)) <= Counter(_gist(more))


def _gist(reading: Reading) -> list[str]:
    said = (token for token in reading.content if token.kind != "sign")
    return [token.stem for token in said if token.is_value or not token.is_generic]


def _prefers(reading: Reading) -> bool:
    return any(token.stem in lexicon.PREFERRING for token in reading.tokens)


def _is_one_move(a: Sequence[str], b: Sequence[str]) -> bool:
    """Decides whether `b` is `a` with one phrase moved elsewhere; "A checks B" is not "B checks A" so."""
    start = next((at for at, (one, other) in enumerate(zip(a, b, strict=True)) if one != other), len(a))
    end = next((at for at in range(len(a), start, -1) if a[at - 1] != b[at - 1]), start)
    return _is_rotation(a[start:end], b[start:end])


def _play_other_roles(left: Reading, right: Reading) -> bool:
    """Finds "PostgreSQL as the database" beside "Redis as the cache": two things chosen for two roles."""
    one, other = _role(left), _role(right)
    return bool(one) and bool(other) and one[0] != other[0]


def _role(reading: Reading) -> list[str]:
    """Gives the content words after the first word that says a role."""
    places = [place for place, token in enumerate(reading.tokens) if token.stem in lexicon.ROLES]
    following = reading.tokens[places[0] + 1 :] if places else ()
    return [token.stem for token in following if token.kind in ("word", "han") and not token.is_generic]


def _exclude_each_other(
    topic_a: Sequence[str], topic_b: Sequence[str], left: Reading, right: Reading
) -> bool:
    """Finds two opposites said of one thing: deleted after a month, kept for a year."""
    sides_a, sides_b = _sides(topic_a, left), _sides(topic_b, right)
    opposed = {pair for pair in sides_a.keys() & sides_b.keys() if not sides_a[pair] & sides_b[pair]}
    if not opposed:
        return False
    rest_a = {word for word in topic_a if _SIDES.get(word, _NO_SIDE)[0] not in opposed}
    rest_b = {word for word in topic_b if _SIDES.get(word, _NO_SIDE)[0] not in opposed}
    return 2 * len(rest_a & rest_b) >= max(1, len(rest_a | rest_b))


def _sides(topic: Sequence[str], reading: Reading) -> dict[int, set[int]]:
    """Gives, for each pair of opposites, which side of it a text names."""
    found: dict[int, set[int]] = {}
    for word in (*topic, *(token.stem for token in reading.tokens)):
        if word in _SIDES:
            pair, side = _SIDES[word]
            found.setdefault(pair, set()).add(side)
    return found


def _have_same_values(left: Reading, right: Reading) -> bool:
    return bool(_values(left)) and _values(left) == _values(right)


def _is_one_phrase(shared: set[str], left: Reading, right: Reading) -> bool:
    """Decides whether only one word, or two neighbouring ones, are shared: one thing, of which two things may be said."""
    if len(shared) > MOST_WORDS_OF_A_PHRASE and not _is_one_run(shared):
        return False
    for reading in (left, right):
        places = [place for place, token in enumerate(reading.content) if token.stem in shared]
        if places and places[-1] - places[0] >= MOST_WORDS_OF_A_PHRASE:
            return False
        if len(places) > 1 and reading.is_german and not all(reading.content[at].is_name for at in places):
            return False  # a noun and its verb
    return True


def _is_one_run(shared: set[str]) -> bool:
    """Decides whether pairs of Chinese characters follow each other to one run."""
    if not all(len(pair) == 2 and not pair.isascii() for pair in shared):
        return False
    heads, tails = {pair[0] for pair in shared}, {pair[1] for pair in shared}
    return len(heads - tails) <= 1 and len(tails - heads) <= 1


def _is_parallel(left: Reading, right: Reading) -> bool:
    """Finds "use tabs for indentation" against "use spaces for indentation": one word before an equal purpose."""
    a, b = _sequence(left.content), _sequence(right.content)
    cut_a, cut_b = _purpose_start(a), _purpose_start(b)
    if cut_a is None or cut_b is None or a[cut_a:] != b[cut_b:] or len(a) != len(b) or cut_a < 2:
        return False
    return sum(one != other for one, other in zip(a, b, strict=True)) == 1 and a[0] == b[0]


def _differ_in_one_place(subject: str, left: Reading, right: Reading) -> bool:
    """Finds "pages are rendered on the server" beside "in the browser": all is equal but what one preposition leads to."""
    a, b = left.content, right.content
    if len(a) != len(b) or _have_same_values(left, right):
        return False
    places = [at for at, (one, other) in enumerate(zip(a, b, strict=True)) if one.stem != other.stem]
    if any(a[at].kind != b[at].kind for at in places):
        return False
    most = MOST_SIGNS_OF_A_PLACE if places and a[places[0]].kind == "han" else 1
    if not places or len(places) > most or places[-1] - places[0] >= most or places[0] == 0:
        return False
    if any(subject in (a[at].stem, b[at].stem) for at in places):
        return False
    if left.is_unspaced and left.order_is_free:
        return _has_one_particle(left, right)
    return _is_led_to(left, a[places[0]]) and _is_led_to(right, b[places[0]])


def _has_one_particle(left: Reading, right: Reading) -> bool:
    """Decides whether the one word that differs has the same particle of place or means in two Japanese texts."""
    one, other = set(left.forms) - set(right.forms), set(right.forms) - set(left.forms)
    if len(one) != 1 or len(other) != 1:
        return False
    return any(
        one_form.endswith(mark) and other_form.endswith(mark)
        for mark in lexicon.PARTICLES_OF_PLACE
        for one_form in one
        for other_form in other
    )


def _is_led_to(reading: Reading, token: Token) -> bool:
    """Decides whether a preposition stands before a token, or before the article before it."""
    place = reading.tokens.index(token)
    before = [found.stem for found in reading.tokens[max(0, place - 2) : place]]
    return not lexicon.PREPOSITIONS.isdisjoint((*before, "".join(before)))


def _may_fill_one_slot(left: Reading, right: Reading, *, by_place: bool = False) -> bool:
    """Decides whether two texts give values of one kind, or one gives none: S3 and thirty days are both true of a log.

    `by_place` asks names to stand after the same word.
    """
    one, other = _slots(left, by_place), _slots(right, by_place)
    if by_place:
        return bool(one & other) or ("negation" in one) != ("negation" in other)
    return not one or not other or bool(one & other) or ("negation" in one) != ("negation" in other)


def _slots(reading: Reading, by_place: bool) -> set[str]:
    """Gives what a text says values of: its numbers, its dates, a negation, its names."""
    found: set[str] = set()
    for place, token in enumerate(reading.tokens):
        if token.kind in {"number", "date", "negation"}:
            found.add(token.kind)
        elif token.is_value:
            before = reading.tokens[place - 1].stem if by_place and place and not reading.is_unspaced else ""
            found.add(f"name {before}")
    return found


def _purpose_start(stems: Sequence[str]) -> int | None:
    places = [place for place, stem in enumerate(stems) if stem in lexicon.PURPOSES]
    return places[0] if len(places) == 1 and places[0] + 1 < len(stems) else None

"""When two decisions are about one thing, by their words alone (4-history, conflicts). Doubt says no: one false alarm costs more than one miss.

1. The topic of a decision is the words that say what it is about: the first of them, without names, numbers, light verbs.
2. Never: they share too few topic words; one says all that the other does, and more; the two are chosen for two roles; each says
   another thing of another name; both permit or offer something.
3. Always: they say opposites of one thing; one word differs before an equal purpose, or where one preposition leads to.
4. If only the subject is shared, values of one kind must stand in one place.
5. Else the topics are equal, or share enough, and give values of one kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from math import ceil

from memory_git.domain import lexicon
from memory_git.domain.kept import kept
from memory_git.domain.opposites import OPPOSITES
from memory_git.domain.reading import MOST_KEPT_CHARACTERS, MOST_KEPT_READINGS, Reading, read
from memory_git.domain.text import gist, prefers, stems_of
from memory_git.domain.tokens import MOST_KEPT_WORDS, Token, stem, tokens_of_word

MOST_TOPIC_WORDS = 12
MIN_SHARED = 2
MOST_SIGNS_OF_A_PLACE = 3
MOST_WORDS_OF_A_PHRASE = 2
LEAST_SHARE = 0.4
"""Two topics that are alike share at least so much of each; the words under which a decision is found follow from it."""
MIN_TOPIC_OVERLAP = 0.5
MIN_OVERLAP_IN_DOUBT = 0.67
_SIDES = {stem(word.replace("-", "")): place for word, place in OPPOSITES.items()}
_NO_SIDE = (-1, 0)


def alike_topic(a: str, b: str) -> bool:
    """Decides whether two decisions are clearly about the same thing; when in doubt they are not."""
    topic_a, topic_b = topic_words(a), topic_words(b)
    shared = set(topic_a) & set(topic_b)
    if len(shared) < max(least_shared(len(topic_a)), least_shared(len(topic_b))):
        return False
    left, right = read(a), read(b)
    if _refines(left, right) or _refines(right, left) or _play_other_roles(left, right):
        return False
    if _say_it_of_other_things(left, right) or _may_both_hold(left, right):
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


def _topic(text: str) -> tuple[str, ...]:
    """Gives the words that name what a decision is about; Chinese characters in pairs."""
    topic = _topic_by_words(text) if text.isascii() and not text.isupper() else None
    if topic is None:
        topic = {}
        content = read(text).content
        for place, token in enumerate(content):
            if token.kind == "han":
                topic.update(dict.fromkeys(_han_pair(content, place)))
            elif token.kind == "word" and not token.is_generic and not token.is_value:
                topic[token.stem] = None
    return tuple(islice(topic, MOST_TOPIC_WORDS))


def _topic_by_words(text: str) -> dict[str, None] | None:
    """Gives the topic of a text whose words can be read alone; None for German, which tells its names otherwise."""
    topic: dict[str, None] = {}
    is_first = True
    for word in text.split():
        tokens, ends_sentence = _word_alone(word)
        for token in tokens:
            if token.kind == "word":
                if not (token.is_generic or token.is_identifier or (token.is_name and not is_first)):
                    topic[token.stem] = None
            elif token.kind == "stop" and token.stem in lexicon.GERMAN:
                return None
            is_first = False
        is_first |= ends_sentence
    return topic


@kept(MOST_KEPT_WORDS)
def _word_alone(word: str) -> tuple[tuple[Token, ...], bool]:
    return tuple(tokens_of_word(word)), word.rstrip("\"')")[-1:] in (".", "!", "?")


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


def _refines(more: Reading, less: Reading) -> bool:
    """Decides whether one decision says all that another does, in any order, and more: what it adds leaves the other true.

    Not where the order is what was decided, or the other said "only".
    """
    if more.negations != less.negations or prefers(less):
        return False
    if any(token.stem in lexicon.EXCLUSIVE for token in less.tokens):
        return Counter(gist(more)) == Counter(gist(less))
    return Counter(gist(less)) <= Counter(gist(more))


def _play_other_roles(left: Reading, right: Reading) -> bool:
    """Finds "PostgreSQL as the database" beside "Redis as the cache": two things chosen for two roles."""
    one, other = _role(left), _role(right)
    return bool(one) and bool(other) and one[0] != other[0]


def _say_it_of_other_things(left: Reading, right: Reading) -> bool:
    """Finds "the Berlin office closes at 18:00" beside "the Paris office closes at 19:00", and what is allowed here, not there."""
    names_a, names_b = (
        _names(left) - set(stems_of(right.content)),
        _names(right) - set(stems_of(left.content)),
    )
    words_a, words_b = _topic_stems(left) - _topic_stems(right), _topic_stems(right) - _topic_stems(left)
    if bool(left.negations) != bool(right.negations):
        return bool((names_a or words_a) and (names_b or words_b))
    one, other = _measures(left), _measures(right)
    if not one or not other or one == other:
        return _places_other_names(left, right, names_a, names_b)
    return bool((names_a and (names_b or words_b)) or (names_b and words_a))


def _may_both_hold(left: Reading, right: Reading) -> bool:
    """Finds "customers can cancel" beside "customers can upgrade": permissions and offers add up, where no number or negation differs."""
    if left.negations or right.negations or _measures(left) != _measures(right):
        return False
    one, other = set(stems_of(left.tokens)), set(stems_of(right.tokens))
    if not (one | other).isdisjoint(lexicon.EXCLUSIVE):
        return False
    return any(
        not (one.isdisjoint(words) or other.isdisjoint(words))
        for words in (lexicon.ADDITIVE, lexicon.PERMITTING)
    )


def _places_other_names(left: Reading, right: Reading, names_a: set[str], names_b: set[str]) -> bool:
    """Finds "the European cluster runs in Frankfurt" beside "the American cluster runs in Virginia": names on both sides of a shared word."""
    shared = _topic_stems(left) & _topic_stems(right)
    return _surround(left, names_a, shared) and _surround(right, names_b, shared)


def _surround(reading: Reading, names: set[str], shared: set[str]) -> bool:
    places = [place for place, token in enumerate(reading.content) if token.stem in shared]
    if not places:
        return False
    stems = stems_of(reading.content)
    return not names.isdisjoint(stems[: places[0]]) and not names.isdisjoint(stems[places[0] + 1 :])


def _measures(reading: Reading) -> Counter[str]:
    return Counter(token.stem for token in reading.content if token.kind in ("number", "date"))


def _names(reading: Reading) -> set[str]:
    return {token.stem for token in reading.content if token.is_value}


def _topic_stems(reading: Reading) -> set[str]:
    return {token.stem for token in reading.content if token.kind == "word" and not token.is_generic}


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


def _is_parallel(left: Reading, right: Reading) -> bool:
    """Finds "use tabs for indentation" against "use spaces for indentation": one word before an equal purpose."""
    a, b = stems_of(left.content), stems_of(right.content)
    cut_a, cut_b = _purpose_start(a), _purpose_start(b)
    if cut_a is None or cut_b is None or a[cut_a:] != b[cut_b:] or len(a) != len(b) or cut_a < 2:
        return False
    return sum(one != other for one, other in zip(a, b, strict=True)) == 1 and a[0] == b[0]


def _purpose_start(stems: Sequence[str]) -> int | None:
    places = [place for place, stem in enumerate(stems) if stem in lexicon.PURPOSES]
    return places[0] if len(places) == 1 and places[0] + 1 < len(stems) else None


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


def _may_fill_one_slot(left: Reading, right: Reading, *, by_place: bool = False) -> bool:
    """Decides whether two texts give values of one kind, or one gives none: S3 and thirty days are both true of a log.

    `by_place` asks names to stand after the same preposition, or after none.
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
            before = reading.tokens[place - 1].stem if by_place and place else ""
            before = before if before in lexicon.PREPOSITIONS and not reading.is_unspaced else ""
            found.add(f"name {before}")
    return found


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


def _values(reading: Reading) -> Counter[str]:
    return Counter(
        token.stem
        for token in reading.content
        if token.is_value or token.kind in {"number", "date", "negation"}
    )


def _have_same_values(left: Reading, right: Reading) -> bool:
    return bool(_values(left)) and _values(left) == _values(right)

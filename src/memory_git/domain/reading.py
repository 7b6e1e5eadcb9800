"""A text read as tokens, each settled by what stands beside it (4-history, conflicts).

1. Folded by NFKC and split into sentences; case is folded after names were seen.
2. Numbers lose their grouping where the text's own language says so; numbers beside a month are dates; an echo of a negation counts
   with it once; names that a decision may choose are values.
3. Readings of short texts are kept.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property

from memory_git.domain import lexicon
from memory_git.domain.kept import kept
from memory_git.domain.numerals import ungrouped
from memory_git.domain.tokens import HAN, KANA, NEGATION, Token, any_of, token_matches, tokens_of, visible

MOST_KEPT_CHARACTERS = 1024
MOST_KEPT_READINGS = 4096
_CJK = re.compile(f"[{HAN}{KANA}]")
_OTHER_SCRIPT = re.compile(f"[{HAN}{KANA}\u0400-\u04ff]")
_KANA_ONLY = re.compile(f"[{KANA}]")
_CYRILLIC = re.compile("[\u0400-\u04ff]")
_LETTERS = re.compile(r"\w+")
_SMALL_WORDS = lexicon.STOP | lexicon.GENERIC
_WITH_PARTICLE = re.compile(rf"(?:(?![\u3041-\u309f])\w)+(?:{any_of(lexicon.KANA_PARTICLES)}|で|と)?")
_UMLAUTS = frozenset("äöüßÄÖÜ")


@dataclass(frozen=True)
class Reading:
    """A text as tokens.

    `marks` are its case-marking articles and particles in order; `forms` what tells the words' roles where their order is free
    (`order_is_free`): in Russian the words with their endings, in Japanese each run of signs with the particle after it.
    """

    tokens: tuple[Token, ...]
    marks: tuple[str, ...]
    is_german: bool
    forms: tuple[str, ...] = ()
    is_unspaced: bool = False

    @property
    def order_is_free(self) -> bool:
        """Says whether forms, not order, tell who does what."""
        return bool(self.forms)

    @cached_property
    def content(self) -> tuple[Token, ...]:
        """Gives the tokens that carry meaning: all but stop words."""
        return tuple(token for token in self.tokens if token.kind != "stop")

    @cached_property
    def negations(self) -> int:
        """Gives how many times the text negates."""
        return sum(token.kind == "negation" for token in self.tokens)


def read(text: str) -> Reading:
    """Gives the reading of a text; those of short ones are kept."""
    return _read_short(text) if len(text) <= MOST_KEPT_CHARACTERS else _read(text)


def _read(text: str) -> Reading:
    folded = unicodedata.normalize("NFKC", visible(text))
    shouts = folded.isupper() and not any(unicodedata.category(sign) == "Lo" for sign in folded)
    marks: list[str] = []
    tokens: list[Token] = []
    starts_sentence, end_of_han = True, -1
    for match in token_matches(folded):
        found, found_marks = tokens_of(match, shouts)
        if found and starts_sentence:
            found = (found[0]._replace(is_first=True), *found[1:])
            starts_sentence = False
        if found and found[0].kind == "han":
            if end_of_han == match.start():
                found = (found[0]._replace(follows=True), *found[1:])
            end_of_han = match.end()
        tokens += found
        marks += found_marks
        starts_sentence |= match.lastgroup == "stopsign" or match.group() in "?？"
    stops = {token.stem for token in tokens if token.kind == "stop"}
    german = not (lexicon.GERMAN.isdisjoint(stops) and _UMLAUTS.isdisjoint(folded))
    groups_by = "." if german else "," if not lexicon.ENGLISH.isdisjoint(stops) else ""
    settled = _settle_numbers(tokens, groups_by or ("," if _CJK.search(folded) else ""))
    is_foreign = _OTHER_SCRIPT.search(folded) is not None
    settled = _settle_values(_settle_echoes(_settle_dates(settled)), german, is_foreign)
    return Reading(tuple(settled), tuple(marks), german, _forms(folded), _CJK.search(folded) is not None)


_read_short = kept(MOST_KEPT_READINGS)(_read)


def _forms(folded: str) -> tuple[str, ...]:
    if _KANA_ONLY.search(folded):
        return tuple(sorted(_WITH_PARTICLE.findall(folded)))
    if _CYRILLIC.search(folded):
        words = _LETTERS.findall(folded.casefold().replace("ё", "е"))
        return tuple(sorted(word for word in words if word not in _SMALL_WORDS))
    return ()


def _settle_numbers(tokens: list[Token], groups_by: str) -> list[Token]:
    """Takes the one grouping sign out of 1,200, where the text's own language groups by that sign."""
    return [
        token._replace(stem=ungrouped(token.stem, groups_by)) if token.kind == "number" else token
        for token in tokens
    ]


def _settle_dates(tokens: list[Token]) -> list[Token]:
    """Makes a number beside a month a date, and an ordinal that ends a phrase; `may` alone stays a word."""
    settled = list(tokens)
    for place, token in enumerate(tokens):
        if token.kind != "number":
            continue
        near = [other for other in tokens[max(0, place - 2) : place + 3] if other.stem.startswith("month:")]
        following = tokens[place + 1 : place + 2]
        ends = token.is_first and not (following and following[0].kind == "word")
        year = len(token.stem) == 4 and token.stem[:2] in {"19", "20"} and place > 0
        if (
            near
            or ends
            or (year and tokens[place - 1].stem in {"in", "en", "im", "в", "since", "until", "by"})
        ):
            settled[place] = token._replace(stem=f"day:{token.stem}", kind="date", is_first=False)
        else:
            settled[place] = token._replace(is_first=False)
    return settled


def _settle_echoes(tokens: list[Token]) -> list[Token]:
    """Counts "ne … pas" and "никогда не" once; an echo that stands alone negates by itself."""
    has_negation = any(token.stem == NEGATION for token in tokens)
    settled = []
    for token in tokens:
        if token.kind != "negation" or token.stem == NEGATION:
            settled.append(token)
        elif not has_negation:
            settled.append(token._replace(stem=NEGATION))
    return settled


def _settle_values(tokens: list[Token], is_german: bool, is_foreign: bool) -> list[Token]:
    """Marks the names that a decision may choose.

    In German, which writes all nouns so, only sure ones: bare after a preposition or a verb of choice. In another script any
    Latin word is one.
    """
    settled = []
    for place, token in enumerate(tokens):
        is_katakana = "\u30a0" <= token.stem[0] <= "\u30ff"
        is_chosen = token.is_name and not token.is_first and not is_katakana
        if is_german:
            is_chosen = is_chosen and place > 0 and tokens[place - 1].stem in lexicon.BEFORE_CHOSEN
        is_chosen = is_chosen or (is_foreign and "a" <= token.stem[0] <= "z")
        is_value = token.kind == "word" and (token.is_identifier or is_chosen)
        settled.append(token._replace(is_value=True) if is_value else token)
    return settled

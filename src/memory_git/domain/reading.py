"""A text read as tokens: words by their stems, numbers by value, dates, negations, names (4-history, conflicts).

1. Folded by NFKC; case and accents of case are folded after names were seen; sentence punctuation is dropped, and
   every other sign is a token of its own, so that `<` and `>` differ.
2. Words of alphabets are stemmed by a few endings. Chinese characters stand one by one; Japanese words in katakana
   are one token, hiragana is grammar, marks of case, or what is left as a word.
3. A negation is a word of its own, whatever it was written as; a character that only contains one is not one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from memory_git.domain import lexicon
from memory_git.domain.kept import kept
from memory_git.domain.numerals import date_value, number_value, numeral_value, ungrouped

Kind = Literal["word", "han", "number", "date", "time", "negation", "sign", "stop"]
NEGATION = "¬"
MOST_KEPT_CHARACTERS = 1024
MOST_KEPT_READINGS = 4096
MOST_KEPT_WORDS = 65_536
"""What is kept of what was read: readings of texts up to so many characters, and words."""


class Token(NamedTuple):
    """One token: its stem, what it is, and what its capitals say.

    `is_value` holds for a name that a decision chooses, as against a word for what it is about; `follows` for a
    Chinese character that stands directly after another.
    """

    stem: str
    kind: Kind
    is_name: bool = False
    is_identifier: bool = False
    is_first: bool = False
    is_generic: bool = False
    is_value: bool = False
    follows: bool = False


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


class _Plainly(dict[int, int | str | None]):
    """Maps a character of format to nothing, and what NFKC would run into its neighbours to what it says; asked once for each."""

    def __missing__(self, code: int) -> int | str | None:
        sign = chr(code)
        kept: int | str | None = None if unicodedata.category(sign) == "Cf" else code
        form = unicodedata.decomposition(sign).partition(" ")[0]
        if form == "<super>" and sign.isdigit():
            kept = f"^{unicodedata.digit(sign)}"
        elif form == "<fraction>":
            kept = f" {sign}"
        self[code] = kept
        return kept


_PLAINLY = _Plainly()


def _any_of(phrases: tuple[str, ...]) -> str:
    return "|".join(re.escape(phrase) for phrase in sorted(phrases, key=len, reverse=True))


_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff々〆"
_KANA = "\u3041-\u309f\u30a0-\u30ff"
_LETTER = rf"(?:(?![{_HAN}{_KANA}])[^\W_])"
_WORD_REST = rf"(?:{_LETTER}|_)*(?:[-._/@+'\u2019:](?:{_LETTER}|_)+)*[+#]*"
_NUMERAL = "[一二三四五六七八九十百千万〇零两]+"
_TOKEN = re.compile(
    rf"""
    (?P<latin>[a-z]+{_WORD_REST})
    |(?P<fixed>{_any_of(lexicon.HAN_FIXED + lexicon.HAN_NOT_NEGATING)})
    |(?P<weekday>(?:周|星期|礼拜|週)[一二三四五六日天](?![次个])|[月火水木金土日]曜日?)
    |(?P<daytime>{_any_of(tuple(lexicon.DAYTIMES))})
    |(?P<month>(?:\d+|{_NUMERAL})月)|(?P<year>(?:19|20)\d\d年)|(?P<monthday>(?<=月)(?:\d+|{_NUMERAL})[日号])
    |(?P<numeral>{_NUMERAL})
    |(?P<generic>{_any_of(lexicon.HAN_GENERIC)})
    |(?P<hannegation>{_any_of(lexicon.HAN_NEGATIONS)})
    |(?P<hanstop>{_any_of(lexicon.HAN_STOP)})
    |(?P<han>[{_HAN}])
    |(?P<katakana>[\u30a0-\u30ff]+)
    |(?P<hiragana>[\u3041-\u309f]+)
    |(?P<isodate>\d{{4}}-\d\d?-\d\d?|\d\d?[./]\d\d?[./]\d{{4}})
    |(?P<clock>\d\d?:\d\d(?!\d))
    |(?P<number>(?:(?<![\w)])[-\u2212])?\d+(?:[.,'\u2019/:\u2044\u2013-]\d+)*)(?P<ordinal>st|nd|rd|th|\.(?=\ )|-?й|-?го)?(?!{_LETTER})
    |(?P<word>{_LETTER}{_WORD_REST})
    |(?P<stopsign>[.。]+|[!！](?![\w=]))
    |(?P<sign>[^\w\s])
    """,
    re.VERBOSE | re.IGNORECASE,
)
_KANA_PIECE = re.compile(
    rf"""
    (?P<affirmed>{_any_of(lexicon.KANA_NOT_NEGATING)})
    |(?P<negation>{_any_of(lexicon.KANA_NEGATIONS)})
    |(?P<grammar>{_any_of(lexicon.KANA_GRAMMAR + lexicon.KANA_ABLE)})
    |(?P<particle>{_any_of(lexicon.KANA_PARTICLES)})
    |(?P<rest>.)
    """,
    re.VERBOSE,
)
_PUNCTUATION = frozenset(",;:\"'()[]{}«»„“”‘’`*_-–—…、，；：「」『』（）【】·・/\\")
_CJK = re.compile(f"[{_HAN}{_KANA}]")
_OTHER_SCRIPT = re.compile(f"[{_HAN}{_KANA}\u0400-\u04ff]")
_KANA_ONLY = re.compile(f"[{_KANA}]")
_CYRILLIC = re.compile("[\u0400-\u04ff]")
_LETTERS = re.compile(r"\w+")
_WITH_PARTICLE = re.compile(rf"(?:(?![\u3041-\u309f])\w)+(?:{_any_of(lexicon.KANA_PARTICLES)}|で|と)?")
_UMLAUTS = frozenset("äöüßÄÖÜ")
_IDENTIFIER = re.compile(r"\d|[a-zа-я][A-ZА-Я]|[._/@:#+]")


def read(text: str) -> Reading:
    """Gives the reading of a text; those of short ones are kept."""
    return _read_short(text) if len(text) <= MOST_KEPT_CHARACTERS else _read(text)


def _read(text: str) -> Reading:
    folded = unicodedata.normalize("NFKC", visible(text))
    shouts = folded.isupper() and not any(unicodedata.category(sign) == "Lo" for sign in folded)
    marks: list[str] = []
    tokens: list[Token] = []
    starts_sentence, end_of_han = True, -1
    for match in _TOKEN.finditer(folded):
        found, found_marks = _tokens_of(match, shouts)
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
        return tuple(sorted(_LETTERS.findall(folded.casefold().replace("ё", "е"))))
    return ()


def visible(text: str) -> str:
    """Gives a text without characters of format (joiners, marks of direction); 10² is not 102 in it, nor 1½ 11⁄2."""
    return text if text.isascii() else text.translate(_PLAINLY)


def tokens_of_word(word: str) -> Iterator[Token]:
    """Yields the tokens of what stands between two spaces, read alone."""
    for match in _TOKEN.finditer(word):
        yield from _tokens_of(match, False)[0]


def _tokens_of(match: re.Match[str], shouts: bool) -> tuple[tuple[Token, ...], tuple[str, ...]]:
    """Gives the tokens of one match, and the marks of case in it."""
    kind, text = match.lastgroup, match.group()
    if kind in ("latin", "word"):
        return _read_word(text, shouts)
    if kind == "hiragana":
        return _read_kana(text, match.string[match.start() - 1 : match.start()])
    return tuple(_signs(kind, text, match)), ()


def _signs(kind: str | None, text: str, match: re.Match[str]) -> Iterator[Token]:
    """Gives the tokens of a match that is neither a word of letters nor hiragana."""
    if kind == "daytime":
        yield Token(f"daytime:{lexicon.DAYTIMES[text]}", "date")
    elif kind == "fixed":
        yield from (Token(sign, "han", follows=place > 0) for place, sign in enumerate(text))
    elif kind in {"weekday", "month", "year", "monthday", "isodate", "clock"}:
        yield Token(date_value(kind or "", text), "date")
    elif match["number"] is not None:
        yield Token(number_value(match["number"]), "number", is_first=bool(match["ordinal"]))
    elif kind == "numeral":
        yield Token(numeral_value(text), "number")
    elif kind == "hannegation":
        yield Token(NEGATION, "negation")
    elif kind == "hanstop":
        yield Token(text, "stop")
    elif kind == "generic":
        yield Token(text, "word", is_generic=True)
    elif kind == "han":
        yield Token(text, "time" if text in lexicon.TIMES_OF_LIFE else "han")
    elif kind == "katakana":
        yield Token(text, "word", is_name=True)
    elif kind == "sign" and text not in _PUNCTUATION:
        yield Token(text, "sign")


@kept(MOST_KEPT_WORDS)
def _read_word(text: str, shouts: bool) -> tuple[tuple[Token, ...], tuple[str, ...]]:
    """Gives the tokens of a word of letters, its apostrophes taken apart, and its mark of case."""
    text = text.replace("\u2019", "'")
    folded = text.casefold().replace("ё", "е")
    if folded.endswith("n't"):
        tokens, marks = _read_word(text[:-3], shouts)
        return (*tokens, Token(NEGATION, "negation")), marks
    elided, mark, rest = text.partition("'")
    before: tuple[Token, ...] = ()
    if mark and rest.casefold() in {"s", ""}:
        text = elided
    elif mark and len(elided) <= 2:
        before = (Token(NEGATION, "negation"),) if elided.casefold() == "n" else ()
        text = rest
    if not text:
        return before, ()
    token = word_token(text, shouts)
    return (*before, token), (token.stem,) if token.stem in lexicon.ARTICLES_WITH_CASE else ()


def word_token(text: str, shouts: bool = False) -> Token:
    """Gives the token of a word of letters alone."""
    folded = text.casefold().replace("ё", "е").replace("'", "")
    if folded in lexicon.NUMBER_WORDS:
        return Token(lexicon.NUMBER_WORDS[folded], "number")
    if folded in lexicon.WEEKDAYS:
        return Token(lexicon.WEEKDAYS[folded], "date")
    if folded in lexicon.MONTHS and (
        folded not in lexicon.CAPITAL_MONTHS or text[:1].isupper() or folded == "mars"
    ):
        return Token(lexicon.MONTHS[folded], "date")
    if folded in lexicon.NEGATIONS or folded in lexicon.ECHOES:
        return Token(NEGATION if folded in lexicon.NEGATIONS else folded, "negation")
    if folded in lexicon.STOP:
        return Token(folded, "stop")
    if folded in lexicon.EVERY:
        return Token("every", "time")
    if folded in lexicon.TIMES_OF_LIFE:
        return Token(stem(folded), "time")
    identifier = _IDENTIFIER.search(text) is not None or (len(text) > 1 and text.isupper() and not shouts)
    capital = text[:1].isupper() and not shouts
    return Token(
        folded if identifier else stem(folded.replace("-", "")), "word",
        is_name=identifier or capital, is_identifier=identifier, is_generic=folded in lexicon.GENERIC,
    )  # fmt: skip


def _read_kana(text: str, before: str) -> tuple[tuple[Token, ...], tuple[str, ...]]:
    """Takes a run of hiragana apart: negations, grammar, marks of case; what is left is an ending or a word."""
    tokens: list[Token] = []
    marks: list[str] = []
    rest = ""
    for piece in _KANA_PIECE.finditer(text):
        kind = piece.lastgroup
        if kind == "negation" and not (piece.start() == 0 and before in lexicon.HAN_NEGATED_ADJECTIVES):
            tokens.append(Token(NEGATION, "negation"))
        elif kind == "affirmed":
            tokens.append(Token(piece.group(), "word"))
        elif kind == "particle":
            marks.append(piece.group())
        elif kind == "rest":
            rest += piece.group()
    is_ending = re.match(rf"[{_HAN}\d]", before) is not None and len(rest) <= 2
    if rest and not is_ending:
        tokens.append(Token(rest, "word"))
    return tuple(tokens), tuple(marks)


def stem(word: str) -> str:
    """Gives a folded word without its ending; short words and other alphabets stay as they are."""
    word = lexicon.IRREGULAR.get(word, word)
    if any(sign.isdigit() for sign in word):
        return word
    endings = lexicon.CYRILLIC_ENDINGS if "\u0400" <= word[:1] <= "\u04ff" else lexicon.LATIN_ENDINGS
    for ending in endings:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)] + ("y" if ending in {"ied", "ies"} else "")
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


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

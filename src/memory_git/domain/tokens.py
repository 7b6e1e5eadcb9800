"""Texts taken apart: words by their stems, numbers by value, dates, negations, names (4-history, conflicts).

1. Characters of format are left out, and what NFKC would run into its neighbours is set apart, before all else.
2. Words of alphabets are stemmed by a few endings. Chinese characters stand one by one; Japanese words in katakana are one token,
   hiragana is grammar, marks of case, or what is left as a word.
3. A negation is a token of its own, whatever it was written as; a character that only contains one is not one.
4. Sentence punctuation is dropped; every other sign is a token, so that `<` and `>` differ.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Literal, NamedTuple

from memory_git.domain import lexicon
from memory_git.domain.kept import kept
from memory_git.domain.numerals import date_value, number_value, numeral_value

Kind = Literal["word", "han", "number", "date", "time", "negation", "sign", "stop"]
NEGATION = "¬"
MOST_KEPT_WORDS = 65_536


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


def any_of(phrases: tuple[str, ...]) -> str:
    """Gives the pattern that matches one of some phrases, the longest first."""
    return "|".join(re.escape(phrase) for phrase in sorted(phrases, key=len, reverse=True))


HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff々〆"


KANA = "\u3041-\u309f\u30a0-\u30ff"


_LETTER = rf"(?:(?![{HAN}{KANA}])[^\W_])"


_WORD_REST = rf"(?:{_LETTER}|_)*(?:[-._/@+'\u2019:](?:{_LETTER}|_)+)*[+#]*"


_UNIT = "(?:am|pm|h|uhr|min|ms|s|[kmgt]b|[kmgt]ib|px|km|cm|mm|kg|ч|мин)"
"""May stand beside its number without a space: 10am, 10 am."""


_NUMERAL = "[一二三四五六七八九十百千万〇零两]+"


_TOKEN = re.compile(
    rf"""
    (?P<latin>[a-z]+{_WORD_REST})
    |(?P<fixed>{any_of(lexicon.HAN_FIXED + lexicon.HAN_NOT_NEGATING)})
    |(?P<weekday>(?:周|星期|礼拜|週)[一二三四五六日天](?![次个])|[月火水木金土日]曜日?)
    |(?P<daytime>{any_of(tuple(lexicon.DAYTIMES))})
    |(?P<month>(?:\d+|{_NUMERAL})月)|(?P<year>(?:19|20)\d\d年)|(?P<monthday>(?<=月)(?:\d+|{_NUMERAL})[日号])
    |(?P<numeral>{_NUMERAL})
    |(?P<generic>{any_of(lexicon.HAN_GENERIC)})
    |(?P<hannegation>{any_of(lexicon.HAN_NEGATIONS)})
    |(?P<hanstop>{any_of(lexicon.HAN_STOP)})
    |(?P<han>[{HAN}])
    |(?P<katakana>[\u30a0-\u30ff]+)
    |(?P<hiragana>[\u3041-\u309f]+)
    |(?P<isodate>\d{{4}}-\d\d?-\d\d?|\d\d?[./]\d\d?[./]\d{{4}})
    |(?P<clock>\d\d?:\d\d(?!\d))
    |(?P<number>(?:(?<![\w)])[-\u2212])?\d+(?:[.,'\u2019/:\u2044\u2013-]\d+)*)(?P<ordinal>st|nd|rd|th|\.(?=\ )|-?й|-?го)?(?:(?!{_LETTER})|(?={_UNIT}(?!{_LETTER}|\d)))
    |(?P<word>{_LETTER}{_WORD_REST})
    |(?P<stopsign>[.。]+|[!！](?![\w=]))
    |(?P<sign>[^\w\s])
    """,
    re.VERBOSE | re.IGNORECASE,
)


_KANA_PIECE = re.compile(
    rf"""
    (?P<affirmed>{any_of(lexicon.KANA_NOT_NEGATING)})
    |(?P<negation>{any_of(lexicon.KANA_NEGATIONS)})
    |(?P<grammar>{any_of(lexicon.KANA_GRAMMAR + lexicon.KANA_ABLE)})
    |(?P<particle>{any_of(lexicon.KANA_PARTICLES)})
    |(?P<rest>.)
    """,
    re.VERBOSE,
)


_PUNCTUATION = frozenset(",;:\"'()[]{}«»„“”‘’`*_-–—…、，；：「」『』（）【】·・/\\")


_IDENTIFIER = re.compile(r"\d|[a-zа-я][A-ZА-Я]|[._/@:#+]")


def visible(text: str) -> str:
    """Gives a text without characters of format (joiners, marks of direction); 10² is not 102 in it, nor 1½ 11⁄2."""
    return text if text.isascii() else text.translate(_PLAINLY)


def token_matches(folded: str) -> Iterator[re.Match[str]]:
    """Yields what of a folded text makes tokens, one after the other."""
    return _TOKEN.finditer(folded)


def tokens_of_word(word: str) -> Iterator[Token]:
    """Yields the tokens of what stands between two spaces, read alone."""
    for match in _TOKEN.finditer(word):
        yield from tokens_of(match, False)[0]


def tokens_of(match: re.Match[str], shouts: bool) -> tuple[tuple[Token, ...], tuple[str, ...]]:
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
    is_ending = re.match(rf"[{HAN}\d]", before) is not None and len(rest) <= 2
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

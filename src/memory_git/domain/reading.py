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
from dataclasses import dataclass, replace
from typing import Literal

from memory_git.domain import lexicon

Kind = Literal["word", "han", "number", "date", "time", "negation", "sign", "stop"]
NEGATION = "¬"


@dataclass(frozen=True, slots=True)
class Token:
    """One token: its stem, what it is, where it stood, and what its capitals say.

    `is_value` holds for a name that a decision chooses, as against a word for what it is about.
    """

    stem: str
    kind: Kind
    start: int
    end: int
    is_name: bool = False
    is_identifier: bool = False
    is_first: bool = False
    is_generic: bool = False
    is_value: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """A text as tokens. `marks` are its case-marking articles and particles in order."""

    tokens: tuple[Token, ...]
    marks: tuple[str, ...]
    is_german: bool

    @property
    def content(self) -> tuple[Token, ...]:
        """Gives the tokens that carry meaning: all but stop words."""
        return tuple(token for token in self.tokens if token.kind != "stop")

    @property
    def negations(self) -> int:
        """Gives how many times the text negates."""
        return sum(token.kind == "negation" for token in self.tokens)


def _any_of(phrases: tuple[str, ...]) -> str:
    return "|".join(re.escape(phrase) for phrase in sorted(phrases, key=len, reverse=True))


_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff々〆"
_KANA = "\u3041-\u309f\u30a0-\u30ff"
_LETTER = rf"(?:(?![{_HAN}{_KANA}])[^\W_])"
_NUMERAL = "[一二三四五六七八九十百千万〇零两]+"
_TOKEN = re.compile(
    rf"""
    (?P<fixed>{_any_of(lexicon.HAN_FIXED + lexicon.HAN_NOT_NEGATING)})
    |(?P<weekday>(?:周|星期|礼拜|週)[一二三四五六日天](?![次个])|[月火水木金土日]曜日?)
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
    |(?P<number>(?:(?<![\w)])[-\u2212])?\d+(?:[.,'\u2019\u202f]\d+)*)(?P<ordinal>st|nd|rd|th|\.(?=\ )|-?й|-?го)?(?!{_LETTER})
    |(?P<word>{_LETTER}(?:{_LETTER}|_)*(?:[-._/@+'\u2019:](?:{_LETTER}|_)+)*[+#]*)
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
_IDENTIFIER = re.compile(r"\d|[a-zа-я][A-ZА-Я]|[._/@:#+]")
_GROUPED = re.compile(r"\d{1,3}(?:[.,'\u2019\u202f]\d{3})+")
_HAN_VALUES = {sign: value for value, sign in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2}
_HAN_UNITS = {"十": 10, "百": 100, "千": 1000, "万": 10000}


def read(text: str) -> Reading:
    """Gives the reading of a text."""
    folded = unicodedata.normalize("NFKC", text)
    shouts = folded.isupper() and not any(unicodedata.category(sign) == "Lo" for sign in folded)
    marks: list[str] = []
    tokens: list[Token] = []
    starts_sentence = True
    for match in _TOKEN.finditer(folded):
        for token in _tokens_of(match, marks, shouts):
            tokens.append(replace(token, is_first=True) if starts_sentence else token)
            starts_sentence = False
        if match.lastgroup == "stopsign" or match.group() in "?？":
            starts_sentence = True
    german = any(token.kind == "stop" and token.stem in lexicon.GERMAN for token in tokens)
    german = german or any(letter in "äöüßÄÖÜ" for letter in folded)
    tokens = _settle_values(_settle_echoes(_settle_dates(tokens)), german)
    return Reading(tuple(tokens), tuple(marks), german)


def _tokens_of(match: re.Match[str], marks: list[str], shouts: bool) -> Iterator[Token]:
    kind, text = match.lastgroup, match.group()
    if match.group("number") is not None:
        kind = "number"
    start, end = match.span()
    if kind == "word":
        yield from _read_word(text, start, end, marks, shouts)
    elif kind == "hiragana":
        before = match.string[start - 1 : start]
        yield from _read_kana(text, start, before, marks)
    elif kind == "fixed":
        yield from (Token(sign, "han", start + place, start + place + 1) for place, sign in enumerate(text))
    elif kind in {"weekday", "month", "year", "monthday", "isodate", "clock"}:
        yield Token(_date_value(kind, text), "date", start, end)
    elif kind == "number":
        yield Token(
            _number_value(match.group("number")), "number", start, end, is_first=bool(match.group("ordinal"))
        )
    elif kind == "numeral":
        yield Token(_numeral_value(text), "number", start, end)
    elif kind == "hannegation":
        yield Token(NEGATION, "negation", start, end)
    elif kind == "hanstop":
        yield Token(text, "stop", start, end)
    elif kind == "generic":
        yield Token(text, "word", start, end, is_generic=True)
    elif kind == "han":
        yield Token(text, "time" if text in lexicon.TIMES_OF_LIFE else "han", start, end)
    elif kind == "katakana":
        yield Token(text, "word", start, end, is_name=True)
    elif kind == "sign" and text not in _PUNCTUATION:
        yield Token(text, "sign", start, end)


def _read_word(text: str, start: int, end: int, marks: list[str], shouts: bool) -> Iterator[Token]:
    text = text.replace("\u2019", "'")
    folded = text.casefold().replace("ё", "е")
    if folded.endswith("n't"):
        yield from _read_word(text[:-3], start, end, marks, shouts)
        yield Token(NEGATION, "negation", start, end)
        return
    elided, mark, rest = text.partition("'")
    if mark and rest.casefold() in {"s", ""}:
        text = elided
    elif mark and len(elided) <= 2:
        if elided.casefold() == "n":
            yield Token(NEGATION, "negation", start, end)
        text = rest
    folded = text.casefold().replace("ё", "е").replace("'", "")
    if folded in lexicon.ARTICLES_WITH_CASE:
        marks.append(folded)
    yield _word_token(text, folded, start, end, shouts)


def _word_token(text: str, folded: str, start: int, end: int, shouts: bool) -> Token:
    if folded in lexicon.NUMBER_WORDS:
        return Token(lexicon.NUMBER_WORDS[folded], "number", start, end)
    if folded in lexicon.WEEKDAYS:
        return Token(lexicon.WEEKDAYS[folded], "date", start, end)
    if folded in lexicon.MONTHS and (
        folded not in lexicon.CAPITAL_MONTHS or text[:1].isupper() or folded == "mars"
    ):
        return Token(lexicon.MONTHS[folded], "date", start, end)
    if folded in lexicon.NEGATIONS or folded in lexicon.ECHOES:
        return Token(NEGATION if folded in lexicon.NEGATIONS else folded, "negation", start, end)
    if folded in lexicon.STOP:
        return Token(folded, "stop", start, end)
    if folded in lexicon.EVERY:
        return Token("every", "time", start, end)
    if folded in lexicon.TIMES_OF_LIFE:
        return Token(stem(folded), "time", start, end)
    identifier = _IDENTIFIER.search(text) is not None or (len(text) > 1 and text.isupper() and not shouts)
    capital = text[:1].isupper() and not shouts
    generic = folded in lexicon.GENERIC
    return Token(
        folded if identifier else stem(folded.replace("-", "")), "word", start, end,
        is_name=identifier or capital, is_identifier=identifier,
        is_generic=generic,
    )  # fmt: skip


def _read_kana(text: str, start: int, before: str, marks: list[str]) -> Iterator[Token]:
    """Takes a run of hiragana apart: negations, grammar, marks of case; what is left is an ending or a word."""
    rest = ""
    for piece in _KANA_PIECE.finditer(text):
        kind = piece.lastgroup
        if kind == "negation" and not (piece.start() == 0 and before in lexicon.HAN_NEGATED_ADJECTIVES):
            yield Token(NEGATION, "negation", start + piece.start(), start + piece.end())
        elif kind == "affirmed":
            yield Token(piece.group(), "word", start + piece.start(), start + piece.end())
        elif kind == "particle":
            marks.append(piece.group())
        elif kind == "rest":
            rest += piece.group()
    is_ending = bool(re.match(rf"[{_HAN}]", before)) and len(rest) <= 2
    if rest and not is_ending:
        yield Token(rest, "word", start, start + len(text))


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
            settled[place] = replace(token, stem=f"day:{token.stem}", kind="date", is_first=False)
        else:
            settled[place] = replace(token, is_first=False)
    return settled


def _settle_echoes(tokens: list[Token]) -> list[Token]:
    """Counts "ne … pas" and "никогда не" once; an echo that stands alone negates by itself."""
    has_negation = any(token.stem == NEGATION for token in tokens)
    settled = []
    for token in tokens:
        if token.kind != "negation" or token.stem == NEGATION:
            settled.append(token)
        elif not has_negation:
            settled.append(replace(token, stem=NEGATION))
    return settled


def _settle_values(tokens: list[Token], is_german: bool) -> list[Token]:
    """Marks the names that a decision may choose; in German, which writes all nouns so, only sure ones."""
    settled = []
    for place, token in enumerate(tokens):
        is_katakana = "\u30a0" <= token.stem[0] <= "\u30ff"
        is_chosen = token.is_name and not token.is_first and not is_katakana
        if is_german:
            is_chosen = is_chosen and place > 0 and tokens[place - 1].stem in lexicon.BARE_PREPOSITIONS
        is_value = token.kind == "word" and (token.is_identifier or is_chosen)
        settled.append(replace(token, is_value=True) if is_value else token)
    return settled


def _date_value(kind: str, text: str) -> str:
    if kind == "weekday":
        sign = text[0] if "曜" in text else text[-1]
        order = "月火水木金土日" if "曜" in text else "一二三四五六日"
        return f"weekday:{order.index(sign.replace('天', '日')) + 1}"
    if kind in {"month", "monthday"}:
        value = text[:-1] if text[0].isdigit() else _numeral_value(text[:-1])
        return f"{'month' if kind == 'month' else 'day'}:{value}"
    return f"{kind}:{text}"


def _number_value(text: str) -> str:
    if _GROUPED.fullmatch(text):
        return re.sub(r"\D", "", text)
    return text.replace(",", ".").replace("\u2212", "-")


def _numeral_value(text: str) -> str:
    if not any(sign in _HAN_UNITS for sign in text):
        return "".join(str(_HAN_VALUES[sign]) for sign in text)
    total, section, digit = 0, 0, 0
    for sign in text:
        if sign in _HAN_VALUES:
            digit = _HAN_VALUES[sign]
        elif sign == "万":
            total, section, digit = total + (section + digit or 1) * 10000, 0, 0
        else:
            section, digit = section + (digit or 1) * _HAN_UNITS[sign], 0
    return str(total + section + digit)

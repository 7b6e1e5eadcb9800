"""The words of a text, for search: one rule for the index, the query and the ranking.

1. NFKC and case folding make one word of its spellings ("Straße", "STRASSE"); what is invisible (soft hyphens, joiners,
   variation selectors) is dropped.
2. A word is a run of letters, marks and digits of any script; everything else parts words.
3. Scripts that are written without spaces give overlapping pairs of characters; a single one stays itself.
4. No word is left out for being common.
"""

from __future__ import annotations

import re
import unicodedata

# Han, Hiragana, Katakana, Hangul, Bopomofo; Thai, Lao, Myanmar, Khmer. Code points, no claim beyond "no spaces between words".
_UNSPACED_CLASS = (
    "\u0e01-\u0e4e\u0e81-\u0ece\u1000-\u103f\u1050-\u108f\u1780-\u17d3"
    "\u1100-\u11ff\u3005-\u3007\u3041-\u3096\u3099-\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7af\uf900-\ufaff\U00020000-\U000323af"
)
_RUNS = re.compile(f"[{_UNSPACED_CLASS}]+|[^{_UNSPACED_CLASS}]+")
_UNSPACED = re.compile(f"[{_UNSPACED_CLASS}]")
_ASCII_WORDS = re.compile("[a-z0-9]+")
_INVISIBLE = {0xAD, 0x200C, 0x200D, 0x2060, 0xFEFF, 0x180B, 0x180C, 0x180D, *range(0xFE00, 0xFE10)}


class _WordCharacters(dict[int, int | None]):
    """Maps a code point to itself, to nothing, or to a space; asked once for each."""

    def __missing__(self, code: int) -> int | None:
        kept: int | None = code if unicodedata.category(chr(code))[0] in "LMN" else 0x20
        if code in _INVISIBLE:
            kept = None
        self[code] = kept
        return kept


_WORD_CHARACTERS = _WordCharacters()


def words(text: str) -> list[str]:
    """Gives the words in their order, repeated ones repeated.

    >>> words("Die Straße nach 東京都, 24 km")
    ['die', 'strasse', 'nach', '東京', '京都', '24', 'km']
    """
    if text.isascii():
        return _ASCII_WORDS.findall(text.lower())
    folded = unicodedata.normalize("NFKC", text.translate(_INVISIBLE_TO_NOTHING))
    folded = unicodedata.normalize("NFKC", folded.casefold())
    found: list[str] = []
    for word in folded.translate(_WORD_CHARACTERS).split():
        if word.isascii():
            found.append(word)
            continue
        for run in _RUNS.findall(word):
            found += _pairs(run) if is_unspaced(run) else [run]
    return found


def is_unspaced(word: str) -> bool:
    """Decides whether a word begins with a character of a script that is written without spaces."""
    return _UNSPACED.match(word) is not None


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)] or [run]


_INVISIBLE_TO_NOTHING = dict.fromkeys(_INVISIBLE)

"""Text as a reviewer must see it: what hides or reorders itself is shown by its code point.

Bidi controls, zero-width characters, other format characters, controls and lone combining surrogates are replaced by a
marked `U+XXXX`; line breaks and tabs stay. A name that mixes scripts is the reader's to judge: nothing is folded.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Any

from markupsafe import Markup, escape

_PLAIN = frozenset("\n\t")
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_BLANK_LETTERS = frozenset("\u00ad\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\u2800")


def is_hidden(character: str) -> bool:
    """Decides whether a character hides or reorders text.

    >>> is_hidden("\\u202e"), is_hidden("\\u200b"), is_hidden("e")
    (True, True, False)
    """
    if character in _PLAIN:
        return False
    return unicodedata.category(character) in _HIDDEN_CATEGORIES or character in _BLANK_LETTERS


def shown(text: Any) -> Markup:
    """Gives HTML of a text, escaped, with hidden characters marked."""
    plain = "" if text is None else str(text)
    return Markup("").join(_parts(plain))


def moment(time: Any) -> Markup:
    """Gives a time to the minute; the mark-up keeps it whole.

    >>> moment("2026-12-01T02:11:05.978784Z")
    Markup('<time datetime="2026-12-01T02:11:05.978784Z">2026-12-01 02:11 UTC</time>')
    """
    text = str(time)
    return Markup('<time datetime="{}">{} UTC</time>').format(text, text[:16].replace("T", " "))


def has_hidden(text: Any) -> bool:
    """Decides whether a text holds a hidden character."""
    return any(is_hidden(character) for character in str(text))


def _parts(text: str) -> Iterator[Markup]:
    run = 0
    for place, character in enumerate(text):
        if is_hidden(character):
            yield escape(text[run:place])
            yield _mark(character)
            run = place + 1
    yield escape(text[run:])


def _mark(character: str) -> Markup:
    name = unicodedata.name(character, "no name")
    return Markup('<span class="hidden-character" title="{}">U+{:04X}</span>').format(name, ord(character))

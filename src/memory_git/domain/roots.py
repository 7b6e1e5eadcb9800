"""What equal and nearly equal texts have in common, found fast: the key under which duplicates are looked up (4-history, conflicts).

1. The key of a short text comes from the roots of its words, without small words, negations and signs, and from the figures of its
   numbers: coarser than `text.is_duplicate`, never finer, so no duplicate is missed; whoever is found is compared by it.
2. Each word is read alone and the digests are added up, so what is kept of a word serves every text, and order counts for nothing.
3. Longer texts are their own normalized text: they are compared for equality only.
"""

from __future__ import annotations

import hashlib

from memory_git.domain.kept import Kept, kept
from memory_git.domain.reading import MOST_KEPT_READINGS
from memory_git.domain.text import normalize
from memory_git.domain.tokens import MOST_KEPT_WORDS, tokens_of_word, word_token

MOST_CHARACTERS = 1024
MOST_KEPT_CHARACTERS = 32
"""Texts whose words are longer on average are written without spaces, and their words not kept."""
DIGEST_BYTES = 7


def duplicate_key(text: str) -> str:
    """Gives the key that equal texts and near-duplicates share: hex digits."""
    return _key_of_short(text) if len(text) <= MOST_CHARACTERS else _key(text)


def _key(text: str) -> str:
    if not text.isascii() or len(text) > MOST_CHARACTERS:
        text = normalize(text)
    found = _sum_of_roots(text.lower()) if len(text) <= MOST_CHARACTERS else _digest(text)
    return f"{found:x}"


_key_of_short = kept(MOST_KEPT_READINGS)(_key)


def _sum_of_roots(folded: str) -> int:
    words = folded.split()
    is_spaced = len(folded) <= MOST_KEPT_CHARACTERS * len(words)
    return sum(map(_ROOTS.__getitem__ if is_spaced else _read_word, words))


def _digest(text: str) -> int:
    raw = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES).digest()
    return int.from_bytes(raw)


def _read_word(word: str) -> int:
    """Gives the sum of the digests of a word's roots, and of those of what stands beside it without a space."""
    bare = word.strip(".,:;!?()")
    if bare.isascii() and bare.isdigit():
        return sum([_FIGURES[int(sign)] for sign in bare])
    found: list[str] = []
    for token in tokens_of_word(word):
        if token.kind in ("number", "date"):
            found += _figures(token.stem)
        elif token.kind not in ("stop", "negation", "sign"):
            found += _root(token.stem)
    return sum(map(_digest, found))


_FIGURES = [_digest(sign) for sign in "0123456789"]
_ROOTS = Kept(_read_word, MOST_KEPT_WORDS)


def _root(word: str) -> list[str]:
    """Gives what a word's stem, the stem of that and so on come to: whatever is stemmed alike, once or often, has one root."""
    word = word.replace("-", "")
    for _ in range(len(word)):
        token = word_token(word)
        if token.kind in ("number", "date"):
            return _figures(token.stem)
        if token.kind in ("stop", "negation"):
            return []
        if token.stem == word:
            break
        word = token.stem
    return [word]


def _figures(value: str) -> list[str]:
    """Gives the figures of a number or a date, each alone, since one text may write 1200 where another has 1 200."""
    return [sign for sign in value if sign.isdigit()]

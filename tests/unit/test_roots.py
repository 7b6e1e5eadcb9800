"""The key under which duplicates are found: coarser than any comparison of two texts, and no more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_git.domain.roots import MOST_CHARACTERS, duplicate_key
from memory_git.domain.text import is_duplicate

PAIRS = Path(__file__).resolve().parents[1] / "data" / "conflict_pairs.jsonl"
SAME_KEY = {
    "case and a full stop": ("Use Redis.", "use redis"),
    "a number with its grouping": ("It holds 1,200 rows", "It holds 1200 rows"),
    "small words": ("The backup runs at night", "Backup runs at night"),
    "endings": ("All invoices are checked", "All invoice is checked"),
    "full width": ("ＶＰＮはArgoです", "VPNはArgoです"),
    "a joiner inside a word": ("po\u200brt 80", "port 80"),
    "words in capitals": ("USE THE API KEYS", "use the api keys"),
    "white space in a long text": ("a  b " * MOST_CHARACTERS, "a b " * MOST_CHARACTERS),
    "no more than a negation": ("don't", "don't the"),
}
OTHER_KEY = {
    "a number": ("Port 8080 is open", "Port 8443 is open"),
    "a word": ("Backups run at night", "Backups run at noon"),
    "long texts that differ at their end": ("word " * MOST_CHARACTERS + "x", "word " * MOST_CHARACTERS + "y"),
}


@pytest.mark.parametrize(("a", "b"), SAME_KEY.values(), ids=SAME_KEY.keys())
def test_equal_and_nearly_equal_texts_share_a_key(a: str, b: str) -> None:
    assert duplicate_key(a) == duplicate_key(b)


@pytest.mark.parametrize(("a", "b"), OTHER_KEY.values(), ids=OTHER_KEY.keys())
def test_texts_that_differ_in_what_counts_do_not(a: str, b: str) -> None:
    assert duplicate_key(a) != duplicate_key(b)


def test_labelled_duplicates_share_a_key() -> None:
    for line in PAIRS.read_text(encoding="utf-8").splitlines():
        pair = json.loads(line)
        a, b = pair["a"]["content"], pair["b"]["content"]
        assert not is_duplicate(a, b) or duplicate_key(a) == duplicate_key(b), pair["id"]


WORDS = st.sampled_from(
    [
        "use",
        "Use",
        "USE",
        "the",
        "redis",
        "Redis",
        "REDIS",
        "urls",
        "URL's",
        "don't",
        "not",
        "3",
        "three",
        "3.",
        "1,200",
        "1200",
        "May",
        "may",
        "mai",
        "15th",
        "e-mail",
        "email",
        "API-key",
        "ones",
        "processes",
        "process",
        "l'eau",
        "и",
        "не",
        "базы",
        "база",
        "三つ",
        "禁止",
        "使用",
        "サーバー",
        "する",
        "の",
        ",",
        ".",
        "(",
        ")",
        "<",
        "\xad",
        "é",
        "É",
        "½",
        "ß",
    ]
)


@given(st.lists(WORDS, max_size=7), st.data())
def test_whatever_is_called_a_duplicate_shares_the_key(words: list[str], data: st.DataObject) -> None:
    other = data.draw(
        st.permutations(words).map(lambda found: [*found, *data.draw(st.lists(WORDS, max_size=2))])
    )
    a, b = " ".join(words), " ".join(other)
    if is_duplicate(a, b):
        assert duplicate_key(a) == duplicate_key(b)

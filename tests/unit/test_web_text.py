"""What the pages make of stored text and of a diff."""

from __future__ import annotations

import pytest

from memory_git.web.diff_view import record_fields, sections
from memory_git.web.shown import has_hidden, shown


@pytest.mark.parametrize(
    ("name", "text", "html"),
    [
        ("plain text stays", "a b\n\tc", "a b\n\tc"),
        ("markup is escaped", "<b>&\"'", "&lt;b&gt;&amp;&#34;&#39;"),
        ("an unset value is empty", None, ""),
        ("letters of every script stay", "日本語 ελ ü", "日本語 ελ ü"),
    ],
)
def test_a_text_is_shown_as_it_is(name: str, text: str | None, html: str) -> None:
    assert str(shown(text)) == html, name


@pytest.mark.parametrize(
    "character",
    [
        "\u202e",
        "\u2066",
        "\u200b",
        "\u200d",
        "\ufeff",
        "\u00ad",
        "\u0000",
        "\u001b",
        "\u2028",
        "\u3164",
        "\U000e0041",
        "\ud800",
    ],
)
def test_what_hides_or_reorders_text_is_shown_by_its_code_point(character: str) -> None:
    html = str(shown(f"pay{character}<i>"))
    assert f">U+{ord(character):04X}</span>&lt;i&gt;" in html
    assert html.startswith("pay<span")
    assert character not in html
    assert has_hidden(character)


def test_a_diff_becomes_sections_in_reading_order_with_before_and_after() -> None:
    diff = {
        "corrections_proposed": [
            {
                "summary": "new",
                "before": {"memory_id": "a", "content": "old", "tags": ["x"]},
                "after": {"memory_id": "a", "content": "new", "tags": ["x"]},
                "changed_fields": ["content"],
            }
        ],
        "memories_added": [
            {"summary": "s", "before": None, "after": {"memory_id": "b", "content": "c", "kind": "fact"}}
        ],
        "relationships_added": [],
        "relationships_removed": [{"from_memory_id": "a", "kind": "links_to", "to_memory_id": "b"}],
    }
    added, corrected, removed = sections(diff)
    assert [section.name for section in (added, corrected, removed)] == [
        "memories_added",
        "corrections_proposed",
        "relationships_removed",
    ]
    assert [(field.name, field.before, field.after) for field in added.changes[0].fields] == [
        ("kind", None, "fact"),
        ("content", None, "c"),
    ]
    assert [(field.name, field.before, field.after) for field in corrected.changes[0].fields] == [
        ("content", "old", "new")
    ]
    assert removed.changes[0].title == "a links_to b"
    assert [section.changes[0].is_new for section in (added, corrected, removed)] == [True, False, False]


def test_what_stands_in_two_sections_is_written_out_in_the_first() -> None:
    item = {"before": None, "after": {"memory_id": "b", "content": "c", "kind": "decision"}}
    added, decided = sections({"decisions_changed": [item], "memories_added": [item]})
    assert (added.changes[0].repeats, decided.changes[0].repeats) == (False, True)


def test_the_set_fields_of_a_record_are_texts_and_the_telling_ones_come_first() -> None:
    record = {
        "memory_id": "a",
        "tags": ["x", "y"],
        "content": "c",
        "protected": False,
        "subject": "",
        "extra": {"k": 1},
    }
    assert record_fields(record) == [
        ("content", "c"),
        ("extra", "k: 1"),
        ("protected", "False"),
        ("tags", "x\ny"),
    ]

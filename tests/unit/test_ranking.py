import pytest

from memory_git.domain.ranking import Document, rank
from memory_git.domain.words import words

FILLER = "the house has a door and a window and a roof"


def ids(query: str, documents: list[Document], total: int | None = None) -> list[str]:
    return [found for found, _ in rank(words(query), documents, total or len(documents))]


def test_title_beats_summary_beats_tags_beats_body() -> None:
    documents = [
        Document("body", "roof", "roof", ("roof",), "ferry"),
        Document("tags", "roof", "roof", ("ferry",), "roof"),
        Document("summary", "roof", "ferry", ("roof",), "roof"),
        Document("title", "ferry", "roof", ("roof",), "roof"),
    ]
    assert ids("ferry", documents) == ["title", "summary", "tags", "body"]


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    documents = [Document(str(n), content=f"{FILLER} common") for n in range(9)]
    documents.append(Document("rare", content=f"{FILLER} scarce"))
    assert ids("common scarce", documents)[0] == "rare"


def test_a_document_without_a_matching_word_is_not_returned() -> None:
    documents = [Document("a", content="ferry"), Document("b", content="bridge")]
    assert ids("ferry", documents) == ["a"]
    assert ids("tunnel", documents) == []
    assert ids("", documents) == []
    assert rank(["ferry"], [], 0) == []


def test_a_word_that_every_document_holds_still_finds_them() -> None:
    documents = [Document("a", content="ferry"), Document("b", content="ferry")]
    assert ids("ferry", documents) == ["a", "b"]


def test_ties_keep_the_order_of_the_input() -> None:
    documents = [Document(name, content="same words here") for name in ("z", "m", "a")]
    assert ids("words", documents) == ["z", "m", "a"]
    assert ids("words", documents[::-1]) == ["a", "m", "z"]


def test_a_shorter_body_with_the_word_ranks_above_a_longer_one() -> None:
    documents = [
        Document("long", content=f"ferry {FILLER} {FILLER}"),
        Document("short", content="ferry timetable"),
    ]
    assert ids("ferry", documents) == ["short", "long"]


def test_a_repeated_word_in_the_query_changes_nothing() -> None:
    documents = [Document("a", content="ferry bridge"), Document("b", content="bridge bridge")]
    assert rank(["ferry", "ferry", "bridge"], documents, 2) == rank(["ferry", "bridge"], documents, 2)


def test_more_visible_documents_make_a_word_rarer_and_the_order_of_candidates_nothing() -> None:
    candidates = [
        Document("a", content="ferry at noon"),
        Document("b", content="ferry at night, every night"),
    ]
    few, many = rank(["ferry"], candidates, 2), rank(["ferry"], candidates, 200)
    assert few[0][1] < many[0][1]
    assert dict(rank(["ferry"], candidates[::-1], 2)) == dict(few)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("退票 手续费", ["zh-refund"]),
        ("座位保留", ["zh-seat"]),
        ("席", ["ja-seat"]),
        ("開演時間", ["ja-start", "ja-seat"]),
        ("strassen", ["de-street"]),
        ("ERMÄSSIGUNG für Schüler", ["de-discount", "de-street"]),
        ("seat", ["en-seat"]),
    ],
)
def test_memories_are_found_in_their_own_language(query: str, expected: list[str]) -> None:
    documents = [
        Document("zh-refund", content="演出开始前二十四小时可以退票，手续费每张一元五角"),
        Document("zh-seat", "座位", content="座位保留时间为十分钟"),
        Document("ja-start", "開演", content="開演は夜七時"),
        Document("ja-seat", content="指定席は開演までに"),
        Document("de-street", content="Umleitung für alle Straßen am Hafen"),
        Document("de-discount", "Ermäßigung", content="Gilt für Schüler und Studierende"),
        Document("en-seat", "seat-map", content="draws the hall"),
    ]
    assert ids(query, documents) == expected

from hypothesis import given
from hypothesis import strategies as st

from memory_git.domain.ranking import Document, rank
from memory_git.domain.words import words

TEXTS = st.text(max_size=60) | st.text(alphabet="ab ßÜ税金の、개 1.", max_size=30)
DOCUMENTS = st.lists(
    st.builds(Document, st.uuids().map(str), TEXTS, TEXTS, st.lists(TEXTS, max_size=3), TEXTS), max_size=6
)


@given(TEXTS)
def test_words_have_no_space_and_are_their_own_words(text: str) -> None:
    found = words(text)
    assert all(word and not word.isspace() for word in found)
    assert all(words(word) == [word] for word in found)


@given(TEXTS)
def test_words_do_not_depend_on_case(text: str) -> None:
    assert words(text.casefold()) == words(text)


@given(TEXTS, DOCUMENTS)
def test_exactly_the_documents_with_a_word_of_the_query_are_ranked(
    query: str, documents: list[Document]
) -> None:
    ranked = rank(words(query), documents, len(documents))
    assert [score for _, score in ranked] == sorted((score for _, score in ranked), reverse=True)
    asked = set(words(query))
    for document in documents:
        texts = [document.title, document.summary, *document.tags, document.content]
        held = {word for text in texts for word in words(text)}
        if asked & held:
            assert document.id in dict(ranked)
    assert ranked == rank(words(query), documents, len(documents))

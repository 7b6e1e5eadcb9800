"""Search at any head: each version is indexed once, and a hit counts if the head's tree says that version (8-lifecycle, recall).

What the audience may not see is gone before anything is counted or scored, so that no statistic speaks of it.
"""

from __future__ import annotations

from memory_git.domain.policy import Audience
from memory_git.domain.ranking import Document, rank
from memory_git.domain.record import Record
from memory_git.domain.trie import Entry
from memory_git.domain.words import words
from memory_git.lethe.session import StoredState, View, admits
from memory_git.storage import lethe_states

MAX_QUERY_WORDS = 32


def matches(
    view: View, state: StoredState, query: str, total_visible: int, audience: Audience | None
) -> list[tuple[Entry, Record, float]]:
    """Gives the active, visible memories of a state that hold a word of the query, best first, with their scores."""
    wanted = list(dict.fromkeys(words(query)))[:MAX_QUERY_WORDS]
    found: dict[str, tuple[Entry, Record]] = {}
    for row in _candidate_rows(view, wanted):
        entry = state.entry(view.version(row).memory_id)
        if entry is not None and entry.row == row:
            record = view.record(entry)
            if record.is_active and admits(record, audience):
                found[record.memory_id] = (entry, record)
    ranked = rank(wanted, [_document(record) for _, record in _in_order(found)], total_visible)
    return [(*found[memory_id], score) for memory_id, score in ranked]


def _in_order(found: dict[str, tuple[Entry, Record]]) -> list[tuple[Entry, Record]]:
    """Gives the found in the order of ties: newest change first, then id."""
    return sorted(found.values(), key=lambda pair: (-pair[0].changed, pair[1].memory_id))


def _candidate_rows(view: View, wanted: list[str]) -> list[int]:
    rows: dict[int, None] = {}
    for word in wanted:
        for row in lethe_states.versions_with_word(
            view.connection, view.project_id, view.project.number, word
        ):
            rows[row] = None
    return list(rows)


def _document(record: Record) -> Document:
    return Document(record.memory_id, record.title or "", record.summary or "", record.tags, record.content)

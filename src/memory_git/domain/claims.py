"""What a record claims, and when two records contradict (4-history, conflicts).

1. Claims are the keys of the projection by which candidates are found in a state that did not change; only what is active claims.
2. Facts speak of one thing when scope and fact key are the same (neither has one: the subject); decisions also when they are clearly
   alike in words. They contradict when their validity overlaps and they say different things. Scopes, keys and subjects are
   compared folded: `Port` and `port ` are one key.
3. Lineage joins two memories when one took the place of the other over any steps, or both took the place of a third. What stands
   beside its own successor again, added anew, is joined by nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol

from memory_git.domain import text, topics
from memory_git.domain.record import Record
from memory_git.domain.roots import duplicate_key
from memory_git.domain.times import parse_time

CONTRADICTING_KINDS = ("fact", "decision")
MOST_SHARED = 3

Lookup = Callable[[str], Record | None]


class Claims(Protocol):
    """Looks up who makes claims in a side's state."""

    def __call__(self, claims: Collection[str], at_least: int = 1) -> Sequence[Record]:
        """Gives the active records that make at least so many of the claims, by memory id."""
        ...


def claims_of(record: Record) -> frozenset[str]:
    """Gives the claims under which a record can be found; empty for one that has left active memory.

    `t\\0` its text, nearly; `k\\0` kind, scope, fact key; `s\\0` kind, scope, subject; `w\\0` scope and a word, for decisions without
    a key.
    """
    if not record.is_active:
        return frozenset()
    return frozenset((text_claim(record), *_key_claims(record), *_word_claims(record)))


def text_claim(record: Record) -> str:
    """Gives the claim that records of the same text share, and near-duplicates."""
    return f"t\0{duplicate_key(record.content)}"


def _key_claims(record: Record) -> tuple[str, ...]:
    if record.kind not in CONTRADICTING_KINDS:
        return ()
    place = f"{record.kind}\0{scope_of(record)}"
    if record.fact_key:
        return (f"k\0{place}\0{text.fold(record.fact_key)}",)
    if record.subject:
        return (f"s\0{place}\0{text.fold(record.subject)}",)
    return ()


def _word_claims(record: Record) -> tuple[str, ...]:
    """Gives claims by the words that say what a decision is about: so many that two alike ones share `_least_shared` of them.

    The longest come first, since those are rare (Wang, Li, Feng 2012: prefixes of one order that share enough).
    """
    if record.kind != "decision" or record.fact_key or record.subject:
        return ()
    topic = topics.topic_words(record.content)
    most = len(topic) - topics.least_shared(len(topic)) + _least_shared(len(topic))
    longest = sorted(topic, key=lambda word: (-len(word), word))
    return tuple(f"w\0{scope_of(record)}\0{word}" for word in longest[:most])


def _least_shared(size: int) -> int:
    return min(MOST_SHARED, topics.least_shared(size))


def candidates(record: Record, claims: Claims) -> list[Record]:
    """Gives the records that might contradict one, by its key, or decisions by the words of what they are about."""
    keys, words = _key_claims(record), _word_claims(record)
    found = claims(keys) if keys else ()
    if words:
        found = claims(words, _least_shared(len(topics.topic_words(record.content))))
    return [item for item in found if item.memory_id != record.memory_id]


def claimants_among(records: Iterable[Record]) -> Claims:
    """Gives the look-up of claims among some records."""
    made = {record.memory_id: record for record in records}
    by_claim: dict[str, list[str]] = {}
    for name, record in made.items():
        for claim in claims_of(record):
            by_claim.setdefault(claim, []).append(name)

    def claimants(claims: Collection[str], at_least: int = 1) -> list[Record]:
        hits = Counter(name for claim in claims for name in by_claim.get(claim, ()))
        return [made[name] for name in sorted(hits) if hits[name] >= at_least]

    return claimants


def scope_of(record: Record) -> str:
    """Gives a record's scope as it counts for equality."""
    return text.fold(record.scope) if record.scope else ""


def contradicts(one: Record, two: Record) -> bool:
    """Decides whether two active facts or decisions speak of the same thing and say different things.

    Lineage is asked apart (`related`).
    """
    if one.kind != two.kind or one.kind not in CONTRADICTING_KINDS:
        return False
    if scope_of(one) != scope_of(two) or not (one.is_active and two.is_active):
        return False
    if not _speak_of_one_thing(one, two) or not validity_overlaps(one, two):
        return False
    return not (text.is_duplicate(one.content, two.content) or text.restates(one.content, two.content))


def _speak_of_one_thing(one: Record, two: Record) -> bool:
    if one.fact_key or two.fact_key:
        return text.fold(one.fact_key or "") == text.fold(two.fact_key or "")
    if one.subject or two.subject:
        return text.fold(one.subject or "") == text.fold(two.subject or "")
    return one.kind == "decision" and topics.alike_topic(one.content, two.content)


def validity_overlaps(one: Record, two: Record) -> bool:
    """Decides whether two records are valid at some common instant; an absent bound is open, an end is exclusive."""
    return _starts_before(one.valid_from, two.valid_to) and _starts_before(two.valid_from, one.valid_to)


def _starts_before(start: str | None, end: str | None) -> bool:
    start_at, end_at = parse_time(start), parse_time(end)
    return start_at is None or end_at is None or start_at < end_at


def related(one: Record, two: Record, *lookups: Lookup) -> bool:
    """Decides whether lineage joins two memories, over any number of steps, as either side knows it (rule 3)."""
    if two.memory_id in _successors(one, lookups) or one.memory_id in _successors(two, lookups):
        return True
    before_one, before_two = _predecessors(one, lookups), _predecessors(two, lookups)
    return two.memory_id in before_one or one.memory_id in before_two or bool(before_one & before_two)


def _successors(record: Record, lookups: Sequence[Lookup]) -> set[str]:
    """Gives what took a memory's place on some side, over any steps."""
    found: set[str] = set()
    waiting = [record.memory_id]
    for current in waiting:
        for known in _known(current, lookups):
            name = known.lineage.successor()
            if name is not None and name not in found:
                found.add(name)
                waiting.append(name)
    return found


def _predecessors(record: Record, lookups: Sequence[Lookup]) -> set[str]:
    """Gives the memories whose place this one took, over any steps, and which stand retired for a successor on some side."""
    found: set[str] = set()
    waiting = [record]
    for current in waiting:
        for name in (*current.lineage.corrected_from, *current.lineage.supersedes):
            known = _known(name, lookups) if name not in found else []
            if any(before.lineage.successor() for before in known):
                found.add(name)
                waiting += known
    return found


def _known(memory_id: str, lookups: Sequence[Lookup]) -> list[Record]:
    return [found for lookup in lookups if (found := lookup(memory_id)) is not None]

"""What a record claims, and when two records contradict (4-history, conflicts).

1. Claims are the keys of the projection by which candidates are found in a state that did not change; only what is active claims.
2. Facts speak of one thing when scope and fact key are the same (neither has one: the subject); decisions also when they are clearly
   alike in words. They contradict when their validity overlaps and they say different things.
3. Lineage joins two memories when one took the place of the other over any steps, or both took the place of a third. What stands
   beside its own successor again, added anew, is joined by nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memory_git.domain import text
from memory_git.domain.canonical import digest
from memory_git.domain.reading import read
from memory_git.domain.record import Record
from memory_git.domain.times import parse_time

MOST_CLAIM_WORDS = 24
MOST_NEAR_CHARACTERS = 1024
"""Longer texts are compared for equality only."""

Claims = Callable[[str], Sequence[Record]]
"""Gives the active records of a side's state that make a claim; may be cut short only for word claims (`w\\0…`)."""
Lookup = Callable[[str], Record | None]


def claims_of(record: Record) -> frozenset[str]:
    """Gives the claims under which a record can be found; empty for one that has left active memory.

    `t\\0` its text; `n\\0` kind and content words; `k\\0` kind, scope, fact key; `s\\0` kind, scope, subject;
    `w\\0` scope and a word, for decisions.
    """
    if not record.is_active:
        return frozenset()
    claims = {text_claim(record), *near_claims(record)}
    if record.kind in ("fact", "decision"):
        claims |= _key_claims(record)
    if record.kind == "decision":
        claims |= set(_word_claims(record))
    return frozenset(claims)


def text_claim(record: Record) -> str:
    """Gives the claim that records of the same text share."""
    return f"t\0{text.text_digest(record.content)}"


def near_claims(record: Record) -> tuple[str, ...]:
    """Gives the claim that records of one kind and nearly the same text share; none for a long text.

    `text.is_duplicate` holds only for texts whose content words, words of time aside, are the same.
    """
    if len(record.content) > MOST_NEAR_CHARACTERS:
        return ()
    stems = sorted(token.stem for token in read(record.content).content if token.kind not in {"date", "time"})
    return (f"n\0{record.kind}\0{digest(stems)}",) if stems else ()


def _key_claims(record: Record) -> set[str]:
    place = f"{record.kind}\0{record.scope or ''}"
    if record.fact_key:
        return {f"k\0{place}\0{record.fact_key}"}
    if record.subject:
        return {f"s\0{place}\0{text.normalize(record.subject)}"}
    return set()


def _word_claims(record: Record) -> list[str]:
    """Gives claims by the words that say what a decision is about."""
    topic = dict.fromkeys(text.topic_words(record.content))
    return [f"w\0{record.scope or ''}\0{word}" for word in list(topic)[:MOST_CLAIM_WORDS]]


def candidates(record: Record, claims: Claims) -> list[Record]:
    """Gives the records that might contradict one, by its keys, and decisions by a word of what they are about."""
    found: dict[str, Record] = {}
    for claim in sorted(_key_claims(record)):
        found.update({item.memory_id: item for item in claims(claim)})
    if record.kind == "decision":
        for claim in _word_claims(record):
            found.update({item.memory_id: item for item in claims(claim)})
    found.pop(record.memory_id, None)
    return [found[name] for name in sorted(found)]


def contradicts(one: Record, two: Record) -> bool:
    """Decides whether two active facts or decisions speak of the same thing and say different things.

    Lineage is asked apart (`related`).
    """
    if one.kind != two.kind or one.kind not in ("fact", "decision"):
        return False
    if (one.scope or "") != (two.scope or "") or not (one.is_active and two.is_active):
        return False
    if text.is_duplicate(one.content, two.content):
        return False
    if one.fact_key or two.fact_key:
        same = one.fact_key == two.fact_key
    elif one.subject or two.subject:
        same = text.normalize(one.subject or "") == text.normalize(two.subject or "")
    else:
        same = one.kind == "decision" and text.alike_topic(one.content, two.content)
    return same and validity_overlaps(one, two)


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

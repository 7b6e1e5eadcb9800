"""Conflict detection between two heads and their base: pure, deterministic, symmetric (4-history, conflicts).

Each side brings its whole delta from the base, and a look-up into its unchanged state. The rules, in the order of the code:

concurrent_change        blocking   handed in by the merge: the same field changed differently, or changed against retired; or a memory
                                    was retired in favour of one that the other side took out of active memory
incompatible_fact        blocking   two active facts, same scope, same fact_key (neither has one: same subject), overlapping
                                    validity, different value, no lineage
contradictory_decision   blocking   two active decisions, same scope, same fact_key, else subject, else clearly alike in words,
                                    different content, no lineage
protected_decision       blocking   the same, and one of the two is protected or user-approved
duplicate_content        info       the same text, or nearly, with the similarity; never when a negation, number, date or name differs
trust_downgrade          blocking   a user-approved record changed or retired on the strength of an inference
boundary_violation       blocking for project and namespace, warning for topic and actor
scope_flow               blocking from private, else warning: a record is shown more widely than it, or what it came from, was at the base
stale_base               warning    the declared base is not an ancestor of a side, or both sides moved past it

Unrelated decisions in one scope are not a conflict. A pair is reported for what is new in it: a contradiction that stood at the base
already is not found again because one of the two got a tag. The trust, boundary and scope types speak of one side, and say which
(`one_side`); all others compare the sides and are symmetric.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from memory_git.domain import text
from memory_git.domain.canonical import canonical_bytes
from memory_git.domain.change import Change
from memory_git.domain.claims import (
    Claims,
    Lookup,
    candidates,
    claims_of,
    contradicts,
    related,
    scope_of,
    text_claim,
    validity_overlaps,
)
from memory_git.domain.conflict import (
    BLOCKING,
    CONFLICT_TYPES,
    INFO,
    OUTCOMES,
    SYMMETRIC_TYPES,
    WARNING,
    Authored,
    Conflict,
    Party,
    Side,
    conflict_id,
)
from memory_git.domain.one_side import one_sided_conflicts
from memory_git.domain.record import Conflicted, Record

__all__ = [
    "BLOCKING",
    "CONFLICT_TYPES",
    "INFO",
    "OUTCOMES",
    "SYMMETRIC_TYPES",
    "WARNING",
    "Authored",
    "Claims",
    "Conflict",
    "Party",
    "Side",
    "candidates",
    "claims_of",
    "conflict_id",
    "contradicts",
    "detect",
    "related",
    "validity_overlaps",
]

_CLAIMED_FIELDS = ("content", "kind", "scope", "fact_key", "subject", "valid_from", "valid_to")


def detect(base: str, left: Side, right: Side, concurrent: Iterable[Conflicted] = ()) -> list[Conflict]:
    """Gives every conflict between two sides of a base, sorted by type and identity."""
    found = [_concurrent(item, left, right) for item in concurrent]
    found += _lost_successions(left, right)
    found += _contradictions(left, right)
    found += _duplicates(left, right)
    found += one_sided_conflicts(left, "left")
    found += one_sided_conflicts(right, "right")
    found += _stale_base(base, left, right)
    unique: dict[tuple[str, bytes], Conflict] = {}
    for item in found:
        key = (item.conflict_type, canonical_bytes(dict(item.identity)))
        unique[key] = unique[key].joined(item) if key in unique else item
    return [unique[key] for key in sorted(unique)]


def _concurrent(found: Conflicted, left: Side, right: Side) -> Conflict:
    fields = sorted(found.fields)
    return Conflict(
        "concurrent_change",
        BLOCKING,
        {"memory_id": found.memory_id, "fields": fields},
        (found.memory_id,),
        (left.party(found.left),),
        (right.party(found.right),),
        f"both sides changed {', '.join(fields)}",
    )


def _lost_successions(left: Side, right: Side) -> Iterator[Conflict]:
    """Finds what one side retired in favour of a memory that is not active once the other side's changes are in.

    Two sides that each mark the other's choice as a duplicate would otherwise retire both.
    """
    for side, other in ((left, right), (right, left)):
        own: dict[str, bool] = {}
        merged: dict[str, bool] = {}
        for change in side.changes.values():
            retired, heir = change.after, change.after.lineage.successor() if change.after else None
            if retired is None or retired.is_active or heir is None:
                continue
            if change.before is None or not change.before.is_active:
                continue
            if _lives(heir, own, side.record) and not _lives(heir, merged, _merged_record(side, other)):
                yield _lost_succession(retired, other.record(heir), side, other, is_left=side is left)


def _merged_record(side: Side, other: Side) -> Lookup:
    def found(memory_id: str) -> Record | None:
        change = other.changes.get(memory_id)
        return change.after if change else side.record(memory_id)

    return found


def _lives(memory_id: str, known: dict[str, bool], record: Lookup) -> bool:
    """Decides whether a memory, or what took its place over any steps, is active; a circle is not."""
    path: dict[str, None] = {}
    name: str | None = memory_id
    while name is not None and name not in known and name not in path:
        path[name] = None
        found = record(name)
        if found is None or found.is_active:
            known[name] = found is not None
        else:
            name = found.lineage.successor()
    answer = known.get(name or "", False)
    known.update(dict.fromkeys(path, answer))
    return answer


def _lost_succession(
    retired: Record, heir: Record | None, side: Side, other: Side, *, is_left: bool
) -> Conflict:
    names = sorted({retired.memory_id, retired.lineage.successor() or ""})
    own, others = (side.party(retired),), (other.party(heir),) if heir is not None else ()
    return Conflict(
        "concurrent_change",
        BLOCKING,
        {"memory_ids": names, "fields": ["status"]},
        tuple(names),
        own if is_left else others,
        others if is_left else own,
        "one side retired a memory in favour of one that does not stay active",
    )


# facts and decisions that contradict


def _contradictions(left: Side, right: Side) -> Iterator[Conflict]:
    for side, other in ((left, right), (right, left)):
        for mine in _news(side):
            for theirs in candidates(mine, other.claims):
                if _is_own(theirs, side, other) or not contradicts(mine, theirs):
                    continue
                if not related(mine, theirs, side.record, other.record):
                    records = (mine, theirs) if side is left else (theirs, mine)
                    yield _contradiction(*records, left, right)


def _news(side: Side) -> Iterator[Record]:
    """Gives the active records of a delta that claim something which they did not claim at the base."""
    for change in side.changes.values():
        if change.after is not None and change.after.is_active and _claims_anew(change, change.after):
            yield change.after


def _claims_anew(change: Change, after: Record) -> bool:
    before = change.before
    if before is None or not before.is_active:
        return True
    return any(getattr(before, name) != getattr(after, name) for name in _CLAIMED_FIELDS)


def _is_own(theirs: Record, side: Side, other: Side) -> bool:
    """Decides whether a merge takes this side's own version of a record; a side is not compared with itself."""
    return theirs.memory_id in side.changes and theirs.memory_id not in other.changes


def _contradiction(mine: Record, theirs: Record, left: Side, right: Side) -> Conflict:
    is_protected = any(record.protected or record.is_user_approved for record in (mine, theirs))
    if mine.kind == "fact":
        conflict_type = "incompatible_fact"
    else:
        conflict_type = "protected_decision" if is_protected else "contradictory_decision"
    keys = [min(getattr(mine, name) or "", getattr(theirs, name) or "") for name in ("fact_key", "subject")]
    about = keys[0] or keys[1] or "the same thing"
    return Conflict(
        conflict_type,
        BLOCKING,
        {
            "memory_ids": sorted((mine.memory_id, theirs.memory_id)),
            "scope": scope_of(mine),
            "key": text.fold(mine.fact_key or ""),
        },
        tuple(sorted((mine.memory_id, theirs.memory_id))),
        (left.party(mine),),
        (right.party(theirs),),
        f"two active {mine.kind}s about {about} say different things",
    )


# the same text twice


def _duplicates(left: Side, right: Side) -> Iterator[Conflict]:
    """Finds one twin for each new record: as many conflicts as records, however often a text stands there."""
    for side, other in ((left, right), (right, left)):
        for mine in _news(side):
            theirs = next(_twins(mine, side, other), None)
            if theirs is not None:
                records = (mine, theirs) if side is left else (theirs, mine)
                yield _duplicate(*records, left, right)


def _twins(mine: Record, side: Side, other: Side) -> Iterator[Record]:
    for theirs in other.claims([text_claim(mine)]):
        if theirs.memory_id == mine.memory_id or _is_own(theirs, side, other):
            continue
        if not validity_overlaps(mine, theirs) or not text.is_duplicate(mine.content, theirs.content):
            continue
        if not related(mine, theirs, side.record, other.record):
            yield theirs


def _duplicate(mine: Record, theirs: Record, left: Side, right: Side) -> Conflict:
    similarity = round(text.compare(mine.content, theirs.content).similarity, 4)
    names = sorted((mine.memory_id, theirs.memory_id))
    return Conflict(
        "duplicate_content",
        INFO,
        {"memory_ids": names},
        tuple(names),
        (left.party(mine),),
        (right.party(theirs),),
        "two memories hold the same text" if similarity == 1 else "two memories hold nearly the same text",
        similarity,
    )


def _stale_base(base: str, left: Side, right: Side) -> Iterator[Conflict]:
    unrelated = not (left.base_is_ancestor and right.base_is_ancestor)
    if unrelated or base not in {left.head, right.head}:
        detail = (
            "the declared base is not an ancestor" if unrelated else "both sides moved past the declared base"
        )
        yield Conflict("stale_base", WARNING, {"base": base}, (), (), (), detail)

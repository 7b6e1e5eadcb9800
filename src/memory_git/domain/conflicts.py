"""Conflict detection between two heads and their base: pure, deterministic, symmetric (4-history, conflicts).

Each side brings its whole delta from the base, and a look-up into its unchanged state. The rules, in the order of the code:

concurrent_change        blocking   handed in by the merge: the same field changed differently, or changed against retired
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

Unrelated decisions in one scope are not a conflict. The first six types compare the sides and are symmetric; the others
speak of one side, and say which.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory_git.domain import text
from memory_git.domain.canonical import canonical_bytes, digest
from memory_git.domain.change import Change
from memory_git.domain.diff import shorten
from memory_git.domain.ids import parse_ref
from memory_git.domain.ops import Op, is_inference
from memory_git.domain.policy import is_wider
from memory_git.domain.record import Conflicted, Record
from memory_git.domain.times import parse_time
from memory_git.domain.words import words

BLOCKING, WARNING, INFO = "blocking", "warning", "info"
SYMMETRIC_TYPES = frozenset(
    {
        "concurrent_change",
        "incompatible_fact",
        "contradictory_decision",
        "protected_decision",
        "duplicate_content",
        "stale_base",
    }
)
CONFLICT_TYPES = SYMMETRIC_TYPES | {"trust_downgrade", "boundary_violation", "scope_flow"}
OUTCOMES = ("keep_left", "keep_right", "both", "edited")
MOST_CLAIM_WORDS = 24
MOST_CANDIDATES = 64
"""A word that more records than this have is too common to make a candidate."""
NEAR_DUPLICATE = 0.9

Claims = Callable[[str], Sequence[Record]]
"""Gives the active records of a side's state that make a claim; may be cut short only for word claims (`w\\0…`)."""


@dataclass(frozen=True, slots=True)
class Authored:
    """What detection needs of one changeset of a delta."""

    changeset_id: str
    project_id: str
    ref_name: str
    actor_id: str | None
    topic_id: str | None
    ops: tuple[Op, ...]


@dataclass(frozen=True, slots=True)
class Side:
    """One head against the base: its whole delta, the changesets that made it, and a look-up into its state."""

    head: str
    changes: Mapping[str, Change]
    changesets: tuple[Authored, ...]
    claims: Claims
    record: Callable[[str], Record | None]
    base_is_ancestor: bool = True


@dataclass(frozen=True, slots=True)
class Party:
    """A record's part in a conflict; digest and changeset are of the version that stands at its head."""

    memory_id: str
    record_digest: str | None
    summary: str
    changeset_id: str | None

    def to_json(self) -> dict[str, Any]:
        """Gives the wire form."""
        return {
            "memory_id": self.memory_id,
            "record_digest": self.record_digest,
            "summary": self.summary,
            "changeset_id": self.changeset_id,
        }


@dataclass(frozen=True, slots=True)
class Conflict:
    """A typed, deterministic finding about two heads and their base."""

    conflict_type: str
    severity: str
    identity: Mapping[str, Any]
    memory_ids: tuple[str, ...]
    left: tuple[Party, ...]
    right: tuple[Party, ...]
    detail: str
    similarity: float | None = None

    def to_json(self, project_id: str, base: str, left: str, right: str) -> dict[str, Any]:
        """Gives the wire form, with the id and the identity digest by which a resolution carries over."""
        shown: dict[str, Any] = {
            "conflict_id": conflict_id(project_id, base, left, right, self.conflict_type, self.identity),
            "conflict_type": self.conflict_type,
            "severity": self.severity,
            "project_id": project_id,
            "base_changeset_id": base,
            "left_changeset_id": left,
            "right_changeset_id": right,
            "identity": dict(self.identity),
            "identity_digest": self.identity_digest(),
            "memory_ids": list(self.memory_ids),
            "left": [party.to_json() for party in self.left],
            "right": [party.to_json() for party in self.right],
            "detail": self.detail,
        }
        if self.similarity is not None:
            shown["similarity"] = self.similarity
        return shown

    def identity_digest(self) -> str:
        """Gives what stays the same when heads move: type, identity, and the record digests of both sides."""
        sides = [
            sorted(party.record_digest or "" for party in parties) for parties in (self.left, self.right)
        ]
        if self.conflict_type in SYMMETRIC_TYPES:
            sides.sort()
        return digest([self.conflict_type, self.identity, sides])


def conflict_id(
    project_id: str, base: str, left: str, right: str, conflict_type: str, identity: Mapping[str, Any]
) -> str:
    """Gives the deterministic id of a conflict (FORMAT §9); for symmetric types left and right are sorted first."""
    if conflict_type in SYMMETRIC_TYPES:
        left, right = sorted((left, right))
    view = {
        "project_id": project_id,
        "base": base,
        "left": left,
        "right": right,
        "conflict_type": conflict_type,
        "identity": identity,
    }
    return hashlib.sha256(b"lethe/memory-conflict/v1\n" + canonical_bytes(view)).hexdigest()


def detect(base: str, left: Side, right: Side, concurrent: Iterable[Conflicted] = ()) -> list[Conflict]:
    """Gives every conflict between two sides of a base, sorted by type and identity."""
    found = [_concurrent(item, left, right) for item in concurrent]
    found += _contradictions(left, right)
    found += _duplicates(left, right)
    for side, name in ((left, "left"), (right, "right")):
        found += _trust_downgrades(side, name)
        found += _boundary_violations(side, name)
        found += _scope_flows(side, name)
    found += _stale_base(base, left, right)
    unique = {(item.conflict_type, canonical_bytes(dict(item.identity))): item for item in found}
    return [unique[key] for key in sorted(unique)]


# what a record claims: the keys of the projection that finds candidates in an unchanged state


def claims_of(record: Record) -> frozenset[str]:
    """Gives the claims under which a record can be found; empty for one that has left active memory.

    `t\\0` its text; `k\\0` kind, scope, fact key; `s\\0` kind, scope, subject; `w\\0` scope and a word, for decisions.
    """
    if not record.is_active:
        return frozenset()
    claims = {f"t\0{text.text_digest(record.content)}"}
    if record.kind in ("fact", "decision"):
        claims |= _key_claims(record)
    if record.kind == "decision":
        claims |= set(_word_claims(record))
    return frozenset(claims)


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


# facts and decisions that contradict


def _contradictions(left: Side, right: Side) -> Iterator[Conflict]:
    seen: set[tuple[str, str]] = set()
    for side, other in ((left, right), (right, left)):
        for change in side.changes.values():
            mine = change.after
            if mine is None or not mine.is_active or mine.kind not in ("fact", "decision"):
                continue
            for theirs in _opponents(mine, side, other):
                pair = (
                    (mine.memory_id, theirs.memory_id) if side is left else (theirs.memory_id, mine.memory_id)
                )
                if pair not in seen:
                    seen.add(pair)
                    records = (mine, theirs) if side is left else (theirs, mine)
                    yield _contradiction(*records, left, right)


def _opponents(mine: Record, side: Side, other: Side) -> Iterator[Record]:
    """Gives the other side's active records that a changed record contradicts, and that outlive a merge."""
    for theirs in candidates(mine, other.claims):
        changed = side.changes.get(theirs.memory_id)
        if changed is not None and (changed.after is None or not changed.after.is_active):
            continue  # this side retired it itself
        if contradicts(mine, theirs) and not related(mine, theirs, side.record, other.record):
            yield theirs


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


def related(one: Record, two: Record, *lookups: Callable[[str], Record | None]) -> bool:
    """Decides whether lineage joins two memories, over any number of steps, as either side knows it."""
    return two.memory_id in _kin(one, lookups) or one.memory_id in _kin(two, lookups)


def _kin(record: Record, lookups: Sequence[Callable[[str], Record | None]]) -> set[str]:
    found: set[str] = set()
    waiting = list(record.lineage.relatives())
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        for lookup in lookups:
            relative = lookup(name)
            if relative is not None:
                waiting += relative.lineage.relatives()
    return found


def _contradiction(mine: Record, theirs: Record, left: Side, right: Side) -> Conflict:
    is_protected = any(record.protected or record.is_user_approved for record in (mine, theirs))
    if mine.kind == "fact":
        conflict_type = "incompatible_fact"
    else:
        conflict_type = "protected_decision" if is_protected else "contradictory_decision"
    about = mine.fact_key or mine.subject or "the same thing"
    return Conflict(
        conflict_type,
        BLOCKING,
        {
            "memory_ids": sorted((mine.memory_id, theirs.memory_id)),
            "scope": mine.scope or "",
            "key": mine.fact_key or "",
        },
        tuple(sorted((mine.memory_id, theirs.memory_id))),
        (_party(mine, left),),
        (_party(theirs, right),),
        f"two active {mine.kind}s about {about} say different things",
    )


# the same text twice


def _duplicates(left: Side, right: Side) -> Iterator[Conflict]:
    seen: set[tuple[str, str]] = set()
    for side, other in ((left, right), (right, left)):
        for change in side.changes.values():
            mine = change.after
            if mine is None or not mine.is_active:
                continue
            near = _near_duplicates(mine, other)
            for theirs in [*other.claims(f"t\0{text.text_digest(mine.content)}"), *near]:
                pair = tuple(sorted((mine.memory_id, theirs.memory_id)))
                if theirs.memory_id == mine.memory_id or pair in seen:
                    continue
                if related(mine, theirs, side.record, other.record) or not validity_overlaps(mine, theirs):
                    continue
                seen.add((pair[0], pair[1]))
                records = (mine, theirs) if side is left else (theirs, mine)
                yield _duplicate(*records, left, right)


def _near_duplicates(mine: Record, other: Side) -> Iterator[Record]:
    """Gives active records of the other side's delta whose text is nearly the same; exact ones are found by claim."""
    own_words = set(words(mine.content))
    for change in other.changes.values():
        theirs = change.after
        if theirs is None or not theirs.is_active or theirs.kind != mine.kind:
            continue
        if len(own_words & _words_of(theirs)) * 2 < len(own_words):
            continue
        if text.is_duplicate(mine.content, theirs.content):
            yield theirs


def _words_of(record: Record) -> set[str]:
    return set(words(record.content))


def _duplicate(mine: Record, theirs: Record, left: Side, right: Side) -> Conflict:
    similarity = round(text.compare(mine.content, theirs.content).similarity, 4)
    names = sorted((mine.memory_id, theirs.memory_id))
    return Conflict(
        "duplicate_content",
        INFO,
        {"memory_ids": names},
        tuple(names),
        (_party(mine, left),),
        (_party(theirs, right),),
        "two memories hold the same text" if similarity == 1 else "two memories hold nearly the same text",
        similarity,
    )


# one side alone


def _concurrent(found: Conflicted, left: Side, right: Side) -> Conflict:
    fields = sorted(found.fields)
    return Conflict(
        "concurrent_change",
        BLOCKING,
        {"memory_id": found.memory_id, "fields": fields},
        (found.memory_id,),
        (_party(found.left, left),),
        (_party(found.right, right),),
        f"both sides changed {', '.join(fields)}",
    )


def _trust_downgrades(side: Side, name: str) -> Iterator[Conflict]:
    for change in side.changes.values():
        before, after = change.before, change.after
        if before is None or after is None or not before.is_user_approved:
            continue
        ops = [
            op for op in _ops_on(side, change.memory_id) if is_inference(op) and op.op_type in _DOWNGRADING
        ]
        if ops and before != after:
            yield _one_sided(
                "trust_downgrade", BLOCKING, change, side, name, "an inference changed what a user approved"
            )


_DOWNGRADING = frozenset(
    {
        "correct_memory",
        "supersede_memory",
        "mark_duplicate",
        "propose_deprecation",
        "set_status",
        "add_memory",
    }
)


def _ops_on(side: Side, memory_id: str) -> Iterator[Op]:
    for changeset in side.changesets:
        for op in changeset.ops:
            if memory_id in (op.target_event_id, op.resulting_event_id):
                yield op


def _boundary_violations(side: Side, name: str) -> Iterator[Conflict]:
    for changeset in side.changesets:
        ref = parse_ref(changeset.ref_name)
        if ref.space in ("agents", "sessions") and changeset.actor_id and changeset.actor_id != ref.owner:
            yield _violation(changeset, name, BLOCKING, "namespace", None)
        for op in changeset.ops:
            for key, own, severity in (
                ("project_id", changeset.project_id, BLOCKING),
                ("topic_id", changeset.topic_id, WARNING),
                ("actor_id", changeset.actor_id, WARNING),
            ):
                said = op.payload.get(key)
                if said and own and said != own:
                    yield _violation(changeset, name, severity, key.removesuffix("_id"), op.ordinal)


def _violation(changeset: Authored, name: str, severity: str, what: str, ordinal: int | None) -> Conflict:
    party = Party("", None, "", changeset.changeset_id)
    return Conflict(
        "boundary_violation",
        severity,
        {"changeset_id": changeset.changeset_id, "ordinal": ordinal, "boundary": what, "side": name},
        (),
        (party,) if name == "left" else (),
        (party,) if name == "right" else (),
        f"the {what} is not the changeset's",
    )


def _scope_flows(side: Side, name: str) -> Iterator[Conflict]:
    for change in side.changes.values():
        after = change.after
        if after is None:
            continue
        sources = [
            record for record in _came_from(change, side) if is_wider(after.visibility, record.visibility)
        ]
        if sources:
            from_private = any(record.visibility == "private" for record in sources)
            detail = f"would be shown as {after.visibility}, from {sources[0].visibility}"
            yield _one_sided("scope_flow", BLOCKING if from_private else WARNING, change, side, name, detail)


def _came_from(change: Change, side: Side) -> Iterator[Record]:
    """Gives the records whose text may flow into this one: itself before, those it succeeds, private ones of the same text."""
    after = change.present
    if change.before is not None:
        yield change.before
    elif after.lineage.corrected_from or after.lineage.supersedes:
        for name in (*after.lineage.corrected_from, *after.lineage.supersedes):
            source = side.changes.get(name)
            found = source.before if source is not None else side.record(name)
            if found is not None:
                yield found
    for twin in side.claims(f"t\0{text.text_digest(after.content)}"):
        if twin.memory_id != after.memory_id and twin.visibility == "private":
            yield twin


def _one_sided(
    conflict_type: str, severity: str, change: Change, side: Side, name: str, detail: str
) -> Conflict:
    party = (_party(change.present, side),)
    return Conflict(
        conflict_type,
        severity,
        {"memory_id": change.memory_id, "side": name},
        (change.memory_id,),
        party if name == "left" else (),
        party if name == "right" else (),
        detail,
    )


def _stale_base(base: str, left: Side, right: Side) -> Iterator[Conflict]:
    unrelated = not (left.base_is_ancestor and right.base_is_ancestor)
    if unrelated or base not in {left.head, right.head}:
        detail = (
            "the declared base is not an ancestor" if unrelated else "both sides moved past the declared base"
        )
        yield Conflict("stale_base", WARNING, {"base": base}, (), (), (), detail)


def _party(record: Record, side: Side) -> Party:
    change = side.changes.get(record.memory_id)
    return Party(
        record.memory_id,
        change.after_digest if change else None,
        shorten(record.summary or record.title or record.content),
        change.by.changeset_id if change else None,
    )

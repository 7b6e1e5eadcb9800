"""Conflicts that one side raises alone, against what stood at the base (4-history, conflicts).

trust_downgrade      a user-approved record changed or retired on the strength of an inference, by any op
boundary_violation   a payload's project, topic or actor isn't the changeset's, or a ref outside the author's namespace
scope_flow           a record is shown more widely than it, or what it came from, was; or to another owner
"""

from __future__ import annotations

from collections.abc import Iterator

from memory_git.domain.change import Change
from memory_git.domain.claims import text_claim
from memory_git.domain.conflict import BLOCKING, WARNING, Authored, Conflict, Party, Side
from memory_git.domain.ids import parse_ref
from memory_git.domain.ops import Op, is_inference
from memory_git.domain.policy import is_wider
from memory_git.domain.record import Record
from memory_git.domain.text import normalize

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


def one_sided_conflicts(side: Side, name: str) -> Iterator[Conflict]:
    """Gives what one side, called `left` or `right`, raises alone."""
    yield from _trust_downgrades(side, name)
    yield from _boundary_violations(side, name)
    yield from _scope_flows(side, name)


def _trust_downgrades(side: Side, name: str) -> Iterator[Conflict]:
    inferred = _changed_by_inference(side)
    for change in side.changes.values():
        before, after = change.before, change.after
        if before is None or after is None or before == after:
            continue
        if before.is_user_approved and change.memory_id in inferred:
            detail = "an inference changed what a user approved"
            yield _one_sided("trust_downgrade", BLOCKING, change, side, name, detail)


def _changed_by_inference(side: Side) -> frozenset[str]:
    return frozenset(
        memory_id
        for changeset in side.changesets
        for op in changeset.ops
        if op.op_type in _DOWNGRADING and is_inference(op)
        for memory_id in _changed_by(op)
    )


def _changed_by(op: Op) -> tuple[str, ...]:
    """Gives the memories whose value or standing an op changes; the canonical one of a duplicate keeps its own."""
    if op.op_type == "mark_duplicate":
        return (op.target_event_id or "",)
    return op.memory_ids()


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
        sources = [record for record in _came_from(change, after, side) if _shows_to_more(after, record)]
        if sources:
            source = min(sources, key=lambda record: (record.visibility != "private", record.memory_id))
            severity = BLOCKING if source.visibility == "private" else WARNING
            detail = f"would be shown as {after.visibility}, from {source.visibility}"
            yield _one_sided("scope_flow", severity, change, side, name, detail)


def _shows_to_more(record: Record, source: Record) -> bool:
    if record.visibility == source.visibility == "private":
        return record.owner_principal != source.owner_principal
    return is_wider(record.visibility, source.visibility)


def _came_from(change: Change, after: Record, side: Side) -> Iterator[Record]:
    """Gives the records whose text may flow into this one: itself before, those it succeeds, private ones of the same text."""
    known = change.before.lineage if change.before is not None else None
    if change.before is not None:
        yield change.before
    for name in (*after.lineage.corrected_from, *after.lineage.supersedes):
        if known is None or name not in (*known.corrected_from, *known.supersedes):
            source = side.changes.get(name)
            found = source.before or source.after if source is not None else side.record(name)
            if found is not None:
                yield found
    for twin in side.claims([text_claim(after)]):
        is_private = twin.memory_id != after.memory_id and twin.visibility == "private"
        if is_private and normalize(twin.content) == normalize(after.content):
            yield twin


def _one_sided(
    conflict_type: str, severity: str, change: Change, side: Side, name: str, detail: str
) -> Conflict:
    party = (side.party(change.present),)
    return Conflict(
        conflict_type,
        severity,
        {"memory_id": change.memory_id, "side": name},
        (change.memory_id,),
        party if name == "left" else (),
        party if name == "right" else (),
        detail,
    )

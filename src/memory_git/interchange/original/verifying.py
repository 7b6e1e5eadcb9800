"""Whether a project of the original holds together by the original's own rules: what `lethe verify-chain` of then would find, and more.

In the order of the code:
1. each changeset's id, idempotency key and digest, by the second algorithm, or the first where the database was never brought to the second;
2. each parent is a changeset of the same project, and no line of parents comes back to itself;
3. each ref's head is a changeset of the project; so is the baseline's root, and its events are there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from memory_git.domain.ids import is_uuid
from memory_git.interchange.original import go_json
from memory_git.interchange.original.cells import names_in
from memory_git.interchange.original.source import (
    OPTIONAL,
    OriginalChangeset,
    OriginalOp,
    OriginalProject,
)


@dataclass(frozen=True, slots=True)
class Damage:
    """Something that does not hold: what it is, which one, why."""

    kind: str
    object_id: str
    why: str

    def to_json(self) -> dict[str, str]:
        """Gives the wire form."""
        return {"kind": self.kind, "object_id": self.object_id, "why": self.why}


@dataclass(slots=True)
class Verified:
    """What was found: the algorithm of each sound digest, the changesets in an order that puts parents first, and the damage."""

    algorithms: dict[str, str] = field(default_factory=dict)
    order: list[OriginalChangeset] = field(default_factory=list)
    damage: list[Damage] = field(default_factory=list)


def verify(project: OriginalProject, *, digests_v2: bool) -> Verified:
    """Verifies one project; `order` holds the changesets that are sound, on sound parents."""
    found = Verified()
    sound: dict[str, OriginalChangeset] = {}
    known = {item.changeset_id for item in project.changesets}
    keys: set[tuple[str, str]] = set()
    for item in project.changesets:
        algorithm = algorithm_of(item, digests_v2=digests_v2)
        if algorithm is None:
            found.damage.append(
                Damage("changeset", item.changeset_id, "does not agree with its integrity digest")
            )
            continue
        why = _misnamed(item, keys)
        if why is not None:
            found.damage.append(Damage("changeset", item.changeset_id, why))
            continue
        absent = [name for name in item.parent_ids if name not in known]
        if absent:
            found.damage.append(
                Damage(
                    "changeset", item.changeset_id, f"its parent {absent[0]} is no changeset of the project"
                )
            )
            continue
        found.algorithms[item.changeset_id] = algorithm
        sound[item.changeset_id] = item
    found.order = _parents_first(sound)
    _check_line(project, found)
    _check_refs(project, found, known)
    _check_baseline(project, found, known)
    return found


def _misnamed(item: OriginalChangeset, keys: set[tuple[str, str]]) -> str | None:
    """Gives why a changeset's id or key can't be its own, if it can't; the key counts as taken from here on."""
    if not is_uuid(item.changeset_id):
        return "its id is no UUID"
    key = (item.author, item.idempotency_key)
    if key in keys:
        return "its author has used its idempotency key before"
    keys.add(key)
    return None


def algorithm_of(item: OriginalChangeset, *, digests_v2: bool) -> str | None:
    """Gives the algorithm by which a changeset's digest holds, `v2` or `v1`, or None."""
    for short_escapes in (True, False):
        if digest_of(item, short_escapes=short_escapes) == item.integrity_digest:
            return "v2"
        if not digests_v2:
            by_name = replace(item, parent_ids=tuple(sorted(item.parent_ids)))
            if digest_of(by_name, short_escapes=short_escapes) == item.integrity_digest:
                return "v1"
    return None


def digest_of(item: OriginalChangeset, *, short_escapes: bool = True) -> str:
    """Gives the digest that the original takes of a changeset."""
    view: Mapping[str, object] = {
        "schema_version": item.schema_version,
        "project_id": item.project_id,
        "ref_name": item.ref_name,
        "parent_ids": list(item.parent_ids) or None,
        "author_principal": item.author,
        **{name: item.optional.get(name, "") for name in OPTIONAL},
        "message": item.message,
        "idempotency_key": item.idempotency_key,
        "ops": [_op_view(op) for op in item.ops],
        "evidence": item.evidence,
        "verification": item.verification,
    }
    return hashlib.sha256(go_json.write(view, short_escapes=short_escapes)).hexdigest()


def _op_view(op: OriginalOp) -> go_json.Ordered:
    items: list[tuple[str, object]] = [("ordinal", op.ordinal), ("op_type", op.op_type)]
    for name, value in (
        ("target_event_id", op.target),
        ("resulting_event_id", op.result),
        ("payload", op.payload),
    ):
        if value:
            items.append((name, value))
    return go_json.Ordered(*items)


def _parents_first(sound: Mapping[str, OriginalChangeset]) -> list[OriginalChangeset]:
    """Gives the changesets whose whole line is sound, in the order of writing but never before a parent."""
    order: list[OriginalChangeset] = []
    done: set[str] = set()
    refused: set[str] = set()
    for start in sound.values():
        stack = [start]
        on_path: set[str] = set()
        while stack:
            item = stack[-1]
            if item.changeset_id in done or item.changeset_id in refused:
                stack.pop()
                continue
            on_path.add(item.changeset_id)
            waiting = [name for name in item.parent_ids if name not in done]
            if any(name in refused or name in on_path or name not in sound for name in waiting):
                refused.add(item.changeset_id)
            elif waiting:
                stack += [sound[name] for name in reversed(waiting)]
                continue
            else:
                done.add(item.changeset_id)
                order.append(item)
            on_path.discard(item.changeset_id)
            stack.pop()
    return order


def _check_line(project: OriginalProject, found: Verified) -> None:
    told = {damage.object_id for damage in found.damage}
    taken = {item.changeset_id for item in found.order}
    for item in project.changesets:
        if item.changeset_id not in taken and item.changeset_id not in told:
            found.damage.append(
                Damage("changeset", item.changeset_id, "stands on what is damaged, or on itself")
            )


def _check_refs(project: OriginalProject, found: Verified, known: set[str]) -> None:
    for row in project.refs:
        name, head = row["ref_name"], row["head_changeset_id"]
        if head not in known:
            found.damage.append(Damage("ref", name, "its head is no changeset of the project"))


def _check_baseline(project: OriginalProject, found: Verified, known: set[str]) -> None:
    if project.baseline is None:
        return
    table = "memory_legacy_baselines"
    root = project.baseline["root_changeset_id"]
    if root not in known:
        found.damage.append(Damage("baseline", project.project_id, "its root is no changeset of the project"))
    there = {event.event_id for event in project.events}
    for name in names_in(project.baseline, table, "event_ids_json"):
        if name not in there:
            found.damage.append(Damage("baseline", str(name), "its event is gone"))

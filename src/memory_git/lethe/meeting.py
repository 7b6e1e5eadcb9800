"""Two heads compared from their bases: how their states merge, and the two sides that conflict detection compares (4-history, conflicts).

Whatever detection asks of what the sides changed is read ahead, many rows in one statement.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from memory_git.domain import conflicts, trie
from memory_git.domain.change import Change
from memory_git.domain.conflicts import Conflict, Side
from memory_git.domain.errors import Clash, Invalid
from memory_git.domain.policy import Audience
from memory_git.domain.record import Record
from memory_git.domain.trie import Entry
from memory_git.lethe.changesets import authored
from memory_git.lethe.claimants import ClaimIndex
from memory_git.lethe.differences import ChangesetRefs, change_of
from memory_git.lethe.merging import (
    EntryChanges,
    Merged,
    ScratchView,
    base_roots,
    merge_states,
    refuse_erased,
)
from memory_git.lethe.op_refs import OpRefs
from memory_git.lethe.session import StoredState, View, admits


@dataclass(frozen=True, slots=True)
class Meeting:
    """Two heads, their bases, how their states merge, and the conflicts between them."""

    bases: tuple[str, ...]
    left: str
    right: str
    merged: Merged
    conflicts: list[Conflict]
    left_side: Side
    right_side: Side

    @property
    def base(self) -> str:
        """Gives the base's id by which conflicts are named: the first of the bases."""
        return self.bases[0] if self.bases else ""


def meet(
    view: View, left: str, right: str, declared_base: str | None = None, audience: Audience | None = None
) -> Meeting:
    """Compares two heads from their best common ancestors, or from a declared base, which both descend from."""
    graph = view.graph()
    if declared_base and not all(graph.is_ancestor(declared_base, head) for head in (left, right)):
        raise Invalid("not_a_base", "the base is not an ancestor of both heads")
    bases = (declared_base,) if declared_base else graph.best_common_ancestors(left, right)
    if not bases:
        raise Clash("unrelated_histories", "the two heads have no common ancestor")
    scratch = ScratchView(view)
    base = base_roots(scratch, bases)
    reader = scratch if len(bases) > 1 else view
    merged = merge_states(reader, base, view.roots(left), view.roots(right))
    refuse_erased(merged)
    sides = _sides(reader, merged, bases, (left, right), audience)
    concurrent = [
        item
        for item in merged.conflicted.values()
        if admits(item.left, audience) and admits(item.right, audience)
    ]
    found = conflicts.detect(bases[0], sides[0], sides[1], concurrent)
    return Meeting(bases, left, right, merged, found, sides[0], sides[1])


def _sides(
    view: View,
    merged: Merged,
    bases: Sequence[str],
    heads: tuple[str, str],
    audience: Audience | None,
) -> list[Side]:
    """Gives the two sides; whatever detection will ask of what they changed is read ahead, many rows in one statement."""
    entries = [
        item for pairs in merged.changed for pair in pairs.values() for item in pair if item is not None
    ]
    records = view.load(entries)
    names = {entry.key: records[entry.digest].memory_id for entry in entries}
    index = ClaimIndex(view.connection, view.project_id)
    index.know({entry.row: names[entry.key] for entry in entries})
    states = [StoredState(view, roots) for roots in (merged.left, merged.right)]
    for state, own, others in zip(states, merged.changed, merged.changed[::-1], strict=True):
        state.index = index
        unchanged = {key: pair[0] for key, pair in others.items() if key not in own}
        known = {**unchanged, **{key: after for key, (_, after) in own.items()}}
        state.know({names[key]: entry for key, entry in known.items() if entry is not None})
    afters = [after for pairs in merged.changed for _, after in pairs.values() if after is not None]
    index.read({claim for entry in afters for claim in view.claims(entry)})
    return [
        _side(view, _changes(view, changed, records, audience), state, bases, *of_two, audience)
        for changed, state, of_two in zip(merged.changed, states, (heads, heads[::-1]), strict=True)
    ]


def _side(
    view: View,
    changes: Mapping[str, Change],
    state: StoredState,
    bases: Sequence[str],
    head: str,
    other: str,
    audience: Audience | None,
) -> Side:
    graph = view.graph()
    delta = graph.reachable_not_from(head, [*bases, other])
    return Side(
        head,
        changes,
        tuple(authored(view, changeset_id) for changeset_id in delta),
        state.claimants if audience is None else _Shown(state, audience),
        partial(_shown_record, state, audience),
        all(graph.is_ancestor(base_id, head) for base_id in bases),
        partial(_record_digest, state),
    )


def _changes(
    view: View, changed: EntryChanges, records: Mapping[bytes, Record], audience: Audience | None
) -> Mapping[str, Change]:
    """Gives what an audience may see of the records that differ, by memory id."""
    refs = ChangesetRefs(view)
    found = {}
    for before, after in changed.values():
        old = _seen(before, records, audience)
        new = _seen(after, records, audience)
        present, entry = new or old, after or before
        if present is None or entry is None or _is_same(before, after):
            continue
        digests = (
            item.digest.hex() if item and record else None for item, record in ((before, old), (after, new))
        )
        found[present.memory_id] = Change(present.memory_id, old, new, refs.of(entry), *digests)
    return found


def _seen(entry: Entry | None, records: Mapping[bytes, Record], audience: Audience | None) -> Record | None:
    record = records[entry.digest] if entry is not None else None
    return record if record is not None and admits(record, audience) else None


def _is_same(before: Entry | None, after: Entry | None) -> bool:
    return before is not None and after is not None and before.digest == after.digest


@dataclass(frozen=True, slots=True)
class _Shown:
    """Looks up who makes claims in a state, as far as an audience may see."""

    state: StoredState
    audience: Audience

    def __call__(self, claims: Collection[str], at_least: int = 1) -> list[Record]:
        return [record for record in self.state.claimants(claims, at_least) if admits(record, self.audience)]


def _shown_record(state: StoredState, audience: Audience | None, memory_id: str) -> Record | None:
    record = state.plain_record(memory_id)
    return record if record is not None and admits(record, audience) else None


def _record_digest(state: StoredState, memory_id: str) -> str | None:
    entry = state.entry(memory_id)
    return entry.digest.hex() if entry else None


def changes_of_merge(view: View, meeting: Meeting, audience: Audience | None = None) -> list[Change]:
    """Gives what the merge would change in left: what right changed alone, and what was merged field by field."""
    refs = OpRefs(view, audience)
    scratch = ScratchView(view)
    merged = meeting.merged
    found: list[Change] = []
    settled_apart = {*merged.records, *merged.conflicted}
    for before, after in trie.diff(merged.nodes, merged.base[0], merged.right[0]):
        entry = after or before
        assert entry is not None, "a difference has an entry on one side"
        left = trie.get(view, merged.left[0], entry.key)
        result = merged.entries.get(entry.key, after)
        if entry.key not in merged.entries and view.record(entry).memory_id in settled_apart:
            continue
        if result is not None and (left is None or left.digest != result.digest):
            change = change_of(view, left, result, refs, audience)
            found += [change] if change else []
    for record, left, right in merged.records.values():
        change = change_of(scratch, left, scratch.keep(record, left, right), refs, audience)
        found += [change] if change and change.before != change.after else []
    return found

"""Writing a changeset: one transaction, from the idempotency key to the ref (5-lethe, writing).

In the order of the code: replay, project and parents, ref, base state, ops on it, rows, ref.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memory_git.domain import trie
from memory_git.domain.canonical import plain_bytes, sha256_hex
from memory_git.domain.changeset import (
    DIGEST_VERSION,
    CreateRequest,
    Salts,
    authored_bytes,
    integrity_digest,
    invalid_changeset,
    op_digest,
    request_digest,
)
from memory_git.domain.errors import Clash, Fault, Invalid, NotFound
from memory_git.domain.merge import unsettled_to_json
from memory_git.domain.ops import Op
from memory_git.domain.projector import Applied, Reach, apply
from memory_git.domain.record import Edge, Record, edge_digest
from memory_git.domain.state import Overlay
from memory_git.domain.state_root import edge_key, memory_key, state_root
from memory_git.domain.times import format_time
from memory_git.domain.trie import Entry
from memory_git.lethe.feed import Feed
from memory_git.lethe.idempotency import require_same_request
from memory_git.lethe.merging import (
    Merged,
    ScratchView,
    base_roots,
    merge_states,
    merged_view,
    refuse_erased,
    write_merged,
)
from memory_git.lethe.preparing import salts_of, signature_of
from memory_git.lethe.refs import create_ref, known_ref, move_ref, ref_moved, refuse_protected
from memory_git.lethe.session import Roots, StoredState, View
from memory_git.lethe.transaction import Transaction
from memory_git.storage import lethe_history, lethe_redaction
from memory_git.storage.lethe_history import ChangesetRow, OpRow, RefRow

_OPEN_REACH = Reach("public", "")
FEW_OPS = 16
"""More ops than this are worth a query and a walk for all of them."""


@dataclass(frozen=True, slots=True)
class Created:
    """A stored changeset, with the request, the rows of its ops and the ref that it moved; without them where an earlier equal
    request stored it."""

    row: ChangesetRow
    ops: tuple[OpRow, ...] = ()
    request: CreateRequest | None = None
    ref: RefRow | None = None


def create_changeset(transaction: Transaction, feed: Feed, request: CreateRequest) -> Created:
    """Stores a changeset and gives it; for a request that was answered before, the changeset of then."""
    earlier = lethe_history.changeset_of_key(
        transaction.connection, request.project_id, request.author_principal, request.idempotency_key
    )
    if earlier is not None:
        require_same_request(transaction, request, earlier)
        return Created(earlier)
    parents = _parents(transaction, request)
    ref = _target_ref(transaction, request, [parent.changeset_id for parent in parents])
    created = _store(transaction, request, parents)
    transaction.connection.memo["changeset", created.row.changeset_id] = created.row
    if request.advance_ref:
        moved = _advance(transaction, feed, request, ref, created.row.changeset_id)
        return replace(created, ref=moved)
    return created


def _parents(transaction: Transaction, request: CreateRequest) -> list[ChangesetRow]:
    names = request.parent_names()
    if not names:
        raise Invalid("parents_needed", "name the parent changeset(s), or the expected head", request.faults)
    found = []
    for name in names:
        row = transaction.connection.memo.get(("changeset", name)) or lethe_history.get_changeset(
            transaction.connection, transaction.project_id, name
        )
        if row is None or row.project_id != transaction.project_id:
            raise NotFound("changeset_not_found", "a parent is not a changeset of this project")
        found.append(row)
    return found


def _target_ref(transaction: Transaction, request: CreateRequest, parents: list[str]) -> RefRow | None:
    """Gives the ref that is to move, or None for one that is to be made; refuses what may not move."""
    row = known_ref(transaction, request.ref_name)
    if not request.advance_ref:
        return row
    refuse_protected(request.ref_name, row, asked=request.protected)
    if row is None:
        if not request.create_ref_if_missing:
            raise NotFound(
                "ref_not_found", "no such ref: make the branch, or ask for it with create_ref_if_missing"
            )
        return None
    if request.expected_head is None:
        raise Invalid("expected_head_needed", "say which head of the ref you saw", request.faults)
    if row.head_changeset_id != request.expected_head:
        raise ref_moved(row)
    if request.expected_head not in parents:
        raise Invalid("not_a_child", "the expected head must be a parent of the changeset", request.faults)
    return row


def _advance(
    transaction: Transaction, feed: Feed, request: CreateRequest, ref: RefRow | None, changeset_id: str
) -> RefRow:
    by = request.author_principal
    if ref is None:
        return create_ref(
            transaction, feed, request.ref_name, changeset_id, by, protected=False, reason="commit"
        )
    return move_ref(transaction, feed, ref, changeset_id, by, "commit")


@dataclass(frozen=True, slots=True)
class Base:
    """What ops are applied to: for a merge, how the two parents come together."""

    parents: tuple[StoredState, ...]
    merged: Merged | None


def _store(transaction: Transaction, request: CreateRequest, parents: list[ChangesetRow]) -> Created:
    changeset_row = transaction.next_row("changeset")
    base = base_of(transaction, parents)
    if base.merged is not None:
        refuse_erased(base.merged)
    if len(request.ops) > FEW_OPS:
        _foresee(transaction, request.ops, base)
    _refuse_redacted(transaction, request.ops)
    applied = apply_ops(transaction, request.ops, base, request.faults, presumed=request.presumed_ids)
    memories, edges = write_state(transaction, applied, base, changeset_row)
    transaction.flush((memories, edges))
    return write_changeset(transaction, request, parents, applied, (memories, edges), changeset_row)


def _foresee(transaction: Transaction, ops: Sequence[Op], base: Base) -> None:
    names = list(dict.fromkeys([name for op in ops for name in op.memory_ids()]))
    transaction.foresee(names)
    for state in base.parents:
        state.foresee(names)


def base_of(view: View, parents: list[ChangesetRow]) -> Base:
    """Gives what a changeset's ops apply to: the parent's state, or both parents' merged."""
    states = tuple(StoredState(view, view.roots_at(parent)) for parent in parents)
    if len(parents) == 1:
        return Base(states, None)
    first, second = parents
    bases = view.graph().best_common_ancestors(first.changeset_id, second.changeset_id)
    if not bases:
        raise Clash("unrelated_histories", "the two parents have no common ancestor")
    scratch = ScratchView(view)
    roots = base_roots(scratch, bases)
    tries = [(state.memories, state.edges) for state in states]
    return Base(states, merge_states(scratch, roots, *tries))


def _refuse_redacted(transaction: Transaction, ops: Sequence[Op]) -> None:
    """Refuses an op that names an erased memory, also where no parent holds it: what is erased does not come back by its id."""
    if not transaction.epoch:
        return
    at = (transaction.connection, transaction.project_id)
    for op in ops:
        if any(lethe_redaction.redaction_of(*at, memory_id) for memory_id in op.memory_ids()):
            raise Clash(
                "source_redacted", f"op {op.ordinal} names a memory that is erased", ordinal=op.ordinal
            )


def apply_ops(
    transaction: Transaction,
    ops: Sequence[Op],
    base: Base,
    faults: Sequence[Fault] = (),
    erased: Iterable[Record] = (),
    presumed: Iterable[str] = (),
) -> Applied:
    """Applies ops to a base; raises Invalid with all faults, or Clash `merge_conflicts` with what is left unsettled.

    `erased` are memories that verify knows to be there, though the ops that made them are erased.
    """
    state = base.parents[0] if base.merged is None else merged_view(transaction, base.merged)
    known_erased = {record.memory_id: record for record in erased}
    above = Overlay(state, {**known_erased}) if known_erased else state
    applied = apply(
        above,
        ops,
        salts=transaction.salt,
        events=transaction.event_content,
        conflicted=base.merged.conflicted.values() if base.merged else (),
        presumed=presumed,
    )
    all_faults = [*faults, *applied.faults]
    if all_faults:
        raise invalid_changeset(all_faults)
    if applied.unsettled:
        unsettled = [unsettled_to_json(item) for item in applied.unsettled]
        raise Clash(
            "merge_conflicts",
            f"{len(unsettled)} memories were changed differently on both sides: answer each by an op",
            conflicts=[_concurrent(item) for item in unsettled],
            unsettled=unsettled,
        )
    return applied


def _concurrent(unsettled: Mapping[str, Any]) -> dict[str, Any]:
    """Gives the conflict that a memory is in which a merge changeset left unsettled; it is stored nowhere and has no id."""
    detail = {"memory_id": unsettled["memory_id"], "fields": unsettled["fields"]}
    return {
        "conflict_type": "concurrent_change",
        "severity": "blocking",
        "memory_ids": [unsettled["memory_id"]],
        "detail": detail,
    }


def write_state(transaction: Transaction, applied: Applied, base: Base, changeset_row: int) -> Roots:
    """Keeps the new state's rows back and gives its roots."""
    if base.merged is None:
        memories, edges = base.parents[0].memories, base.parents[0].edges
    else:
        memories, edges = write_merged(transaction, base.merged, changeset_row, applied.records.keys())
    state = base.parents[0] if base.merged is None else StoredState(transaction, (memories, edges))
    puts: dict[bytes, Entry | None] = {}
    for memory_id, record in applied.records.items():
        first, second = _entries_before(memory_id, state, base)
        entry = transaction.add_version(
            record, changeset_row, applied.touched_by.get(memory_id), first, second
        )
        puts[memory_key(memory_id)] = entry
    edge_puts: dict[bytes, Entry | None] = {}
    for edge, stands in applied.edges.items():
        key = edge_key(edge.from_memory_id, edge.kind, edge.to_memory_id)
        edge_puts[key] = _edge_entry(transaction, applied, edge, changeset_row) if stands else None
    return trie.put_many(transaction, memories, puts), trie.put_many(transaction, edges, edge_puts)


def _edge_entry(transaction: Transaction, applied: Applied, edge: Edge, changeset_row: int) -> Entry:
    return transaction.add_edge(edge, edge_digest(edge), changeset_row, applied.edges_touched_by[edge])


def _entries_before(memory_id: str, state: StoredState, base: Base) -> tuple[Entry | None, Entry | None]:
    """Gives the entries that a new version follows: the one in the state, or both sides' of a conflict or field merge."""
    sides = base.merged.sides_of(memory_id) if base.merged is not None else None
    return sides if sides is not None else (state.entry(memory_id), None)


def write_changeset(
    transaction: Transaction,
    request: CreateRequest,
    parents: list[ChangesetRow],
    applied: Applied,
    roots: Roots,
    changeset_row: int,
) -> Created:
    """Writes a changeset whose state is written already, with its ops, fresh ids and salts."""
    sources = transaction.sources
    salts = salts_of(transaction, request)
    if salts is None:
        message, evidence, verification, *of_ops = sources.new_salts(3 + len(request.ops))
        salts = Salts(message, evidence, verification, tuple(of_ops))
    if not request.parent_ids:
        request = request.with_parents([parent.changeset_id for parent in parents])
    ops = _op_rows(request, salts, applied, changeset_row)
    op_digests = [op.op_digest for op in ops]
    view = authored_bytes(request, [parent.integrity_digest for parent in parents], salts, op_digests)
    authored, root = sha256_hex(view), state_root(roots[0].digest, roots[1].digest)
    changeset_id, created_at = sources.new_id(), format_time(sources.now())
    row = ChangesetRow(
        id=changeset_row,
        project_id=request.project_id,
        changeset_id=changeset_id,
        parent_ids=" ".join(request.parent_ids),
        ref_name=request.ref_name,
        author_principal=request.author_principal,
        idempotency_key=request.idempotency_key,
        authored_view=view,
        message=request.message,
        message_salt=salts.message,
        evidence=plain_bytes(request.evidence),
        evidence_salt=salts.evidence if request.evidence else None,
        verification=plain_bytes(request.verification),
        verification_salt=salts.verification if request.verification else None,
        created_at=created_at,
        state_root=root,
        memories_row=roots[0].row,
        memories_digest=roots[0].digest,
        memories_count=roots[0].count,
        edges_row=roots[1].row,
        edges_digest=roots[1].digest,
        edges_count=roots[1].count,
        authored_digest=authored,
        integrity_digest=integrity_digest(authored, changeset_id, created_at, root),
        digest_version=DIGEST_VERSION,
        author_signature=signature_of(request, view, authored),
        request_digest=request_digest(authored, request),
    )
    lethe_history.put_changeset(transaction.connection, row, ops)
    lethe_history.put_object(transaction.connection, changeset_id, request.project_id, "changeset")
    return Created(row, tuple(ops), request)


def _op_rows(request: CreateRequest, salts: Salts, applied: Applied, changeset_row: int) -> list[OpRow]:
    rows = []
    for op, salt in zip(request.ops, salts.ops, strict=True):
        reach = applied.reach.get(op.ordinal, _OPEN_REACH)
        rows.append(
            OpRow(
                request.project_id,
                changeset_row,
                op.ordinal,
                op.op_type,
                op.target_event_id,
                op.resulting_event_id,
                op.payload_bytes(),
                salt,
                op_digest(salt, op),
                reach.visibility,
                reach.owner_principal,
            )
        )
    return rows

"""Whether a request under a used idempotency key is the one that was stored under it (3-model, changeset; FORMAT §6.5)."""

from __future__ import annotations

from dataclasses import replace

from memory_git.domain.canonical import digest
from memory_git.domain.changeset import CreateRequest, Salts, authored_view, check_replay, request_digest
from memory_git.lethe.preparing import signature_text
from memory_git.lethe.transaction import Transaction
from memory_git.storage import lethe_history
from memory_git.storage.lethe_history import ChangesetRow


def require_same_request(transaction: Transaction, request: CreateRequest, stored: ChangesetRow) -> None:
    """Raises Clash `idempotency_mismatch` for another request than the one that was stored under its key.

    The same one has the stored digests under the stored salts, with the ids that the store gave then, and the stored signature. Where a salt is erased
    nobody can tell any more, and that is a mismatch too.
    """
    rows = lethe_history.ops_of(transaction.connection, transaction.project_id, stored.id)
    is_erased = stored.message_salt is None or any(row.salt is None for row in rows)
    if request.faults or is_erased or len(rows) != len(request.ops):
        check_replay(None, stored.request_digest, stored.changeset_id)
    salts = Salts(
        stored.message_salt or "",
        stored.evidence_salt or "",
        stored.verification_salt or "",
        tuple(row.salt or "" for row in rows),
    )
    ops = tuple(
        replace(op, resulting_event_id=row.resulting_event_id)
        if op.resulting_event_id in request.drawn_ids
        else op
        for op, row in zip(request.ops, rows, strict=True)
    )
    signature = request.author_signature and signature_text(request.author_signature)
    if request.parent_names() != stored.parents or signature != stored.author_signature:
        check_replay(None, stored.request_digest, stored.changeset_id)
    parents = [transaction.changeset(name) for name in stored.parents]
    known = replace(request, ops=ops).with_parents(stored.parents)
    view = authored_view(known, [parent.integrity_digest for parent in parents], salts)
    check_replay(request_digest(digest(view), request), stored.request_digest, stored.changeset_id)

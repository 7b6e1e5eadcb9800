"""Erasing a memory through every version (10-operations, redaction): text and salts go, digests and structure stay.

0. What is named is a memory, or an event that never became one.
1. The lineage is followed both ways, in records and in ops: corrections with a new id and supersessions hold the same text.
2. Versions, the payloads of ops that carry text, salts, event texts, claims, indexed words and stored conflicts are erased, in one
   transaction.
3. What is left is a row that says who ordered it and why. Backups made before still hold the text.
`redacted` is an overlay at read time, never in a state: roots and digests stay, and verify takes an erased record's digest as opaque.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from memory_git.domain import chain
from memory_git.domain.canonical import canonical_bytes, decode
from memory_git.domain.claims import claims_of
from memory_git.domain.errors import Invalid, NotFound
from memory_git.domain.record import Record, record_from_bytes
from memory_git.domain.times import format_time
from memory_git.lethe.transaction import Transaction
from memory_git.storage import lethe_conflicts, lethe_events, lethe_redaction
from memory_git.storage.lethe_redaction import RedactionRow


def redact(transaction: Transaction, memory_id: str, principal: str, reason: str) -> RedactionRow:
    """Erases a memory and its lineage, and records it."""
    if not reason.strip():
        raise Invalid("reason_needed", "say why the memory is erased")
    connection, project_id = transaction.connection, transaction.project_id
    names = _lineage(transaction, memory_id) or _event(transaction, memory_id)
    if not names:
        raise NotFound("memory_not_found", "no such memory or event, or it is erased already")
    lethe_conflicts.erase(connection, project_id, _conflicts_naming(transaction, set(names)))
    versions = ops = events = 0
    for name in names:
        bodies = lethe_redaction.bodies_of(connection, project_id, name)
        claims = {row: claims_of(record_from_bytes(body)) for row, body in bodies}
        lethe_redaction.erase_versions(connection, project_id, name, claims)
        versions += len(bodies)
        ops += lethe_redaction.erase_ops(connection, project_id, name)
        events += lethe_redaction.erase_events(connection, project_id, name)
    lethe_redaction.merge_words(connection)
    row = RedactionRow(
        project_id,
        lethe_redaction.epoch(connection, project_id) + 1,
        transaction.sources.new_id(),
        canonical_bytes(names).decode(),
        principal,
        reason,
        versions,
        ops,
        events,
        format_time(transaction.sources.now()),
        "",
    )
    earlier = lethe_redaction.list_redactions(connection, project_id)
    previous = earlier[-1].redaction_digest if earlier else None
    row = replace(row, redaction_digest=chain.link(previous, redaction_view(row)))
    lethe_redaction.put_redaction(connection, row, names)
    connection.forget()
    return row


def _lineage(transaction: Transaction, memory_id: str) -> list[str]:
    """Gives the memories that share a lineage with one, over all their versions; empty when it has no text left."""
    found: set[str] = set()
    waiting = {memory_id}
    while waiting:
        name = waiting.pop()
        bodies = lethe_redaction.bodies_of(transaction.connection, transaction.project_id, name)
        if not bodies:
            continue
        found.add(name)
        for _, body in bodies:
            waiting |= _clones(record_from_bytes(body)) - found
        waiting |= lethe_redaction.joined_by_ops(transaction.connection, transaction.project_id, name) - found
    return sorted(found)


def _event(transaction: Transaction, event_id: str) -> list[str]:
    """Gives an event that never became a memory, where it has its text."""
    event = lethe_events.get_event(transaction.connection, transaction.project_id, event_id)
    return [event_id] if event is not None and event.content else []


def _conflicts_naming(transaction: Transaction, names: set[str]) -> list[str]:
    """Gives the stored conflicts of some memories: they quote keys and subjects, and whoever settled them may quote more."""
    rows = lethe_conflicts.list_conflicts(transaction.connection, transaction.project_id, None, None)
    return [row.conflict_id for row in rows if names & set(decode(row.body)["memory_ids"])]


def _clones(record: Record) -> set[str]:
    lineage = record.lineage
    named = (*lineage.corrected_from, *lineage.supersedes, lineage.corrected_by, lineage.superseded_by)
    return {name for name in named if name}


def redaction_view(row: RedactionRow) -> dict[str, Any]:
    """Gives what the chain of redactions covers of one of them."""
    return {name: value for name, value in asdict(row).items() if name != "redaction_digest"}


def shown_redaction(row: RedactionRow) -> dict[str, Any]:
    """Gives the wire form of a redaction."""
    return {
        **redaction_view(row),
        "memory_ids": decode(row.memory_ids),
        "redaction_digest": row.redaction_digest,
    }

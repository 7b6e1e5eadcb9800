"""The event history: immutable, hash-chained rows; the legacy baseline is its beginning (5-lethe)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from memory_git.domain import chain
from memory_git.domain import ops as rules
from memory_git.domain.changeset import salted_digest
from memory_git.domain.errors import Clash, Invalid
from memory_git.domain.ids import SHARED_MAIN, is_memory_id
from memory_git.domain.policy import Audience
from memory_git.domain.record import Record
from memory_git.domain.times import format_time
from memory_git.domain.validate import byte_length, kind_of
from memory_git.lethe.refs import require_ref
from memory_git.lethe.session import View, admits
from memory_git.lethe.transaction import Transaction
from memory_git.storage import lethe_events, lethe_history, lethe_states
from memory_git.storage.lethe_events import EventRow

_REQUEST_KEYS = frozenset({"event_id", "event_type", "content", "memory_id", "actor"})
BASELINE_SOURCE = "legacy_event"
BATCH = 1_000


def append(transaction: Transaction, event: Mapping[str, Any]) -> EventRow:
    """Appends an event that a client reports; the same id with the same content is the same event."""
    _check(event)
    event_id = event.get("event_id") or transaction.sources.new_id()
    known = lethe_events.get_event(transaction.connection, transaction.project_id, event_id)
    if known is not None:
        if _is_same(known, event):
            return known
        raise Clash("event_exists", "an event with this id exists with another content", event_id=event_id)
    if lethe_history.is_taken(transaction.connection, event_id):
        raise Clash("event_exists", "the id is another object's", event_id=event_id)
    if lethe_states.get_salt(transaction.connection, transaction.project_id, event_id) is not None:
        raise Clash(
            "event_exists", "the id is a memory's, which did not come from an event", event_id=event_id
        )
    happening = Happening(
        event_id, event["event_type"], event["content"], event.get("memory_id"), event.get("actor")
    )
    return put(transaction, [happening])[0]


def _is_same(known: EventRow, event: Mapping[str, Any]) -> bool:
    return (known.content, known.event_type, known.memory_id, known.actor) == (
        event["content"],
        event["event_type"],
        event.get("memory_id"),
        event.get("actor"),
    )


@dataclass(frozen=True, slots=True)
class Happening:
    """What an event tells."""

    event_id: str
    event_type: str
    content: str
    memory_id: str | None
    actor: str | None
    changeset_id: str | None = None
    record_digest: str | None = None
    created_at: str | None = None
    """When it happened; None means now."""


def put(transaction: Transaction, happenings: Iterable[Happening]) -> list[EventRow]:
    """Appends events to the chain, in their order."""
    last = lethe_events.last_event(transaction.connection, transaction.project_id)
    rows: list[EventRow] = []
    for happening in happenings:
        last = _row_after(transaction, last, happening)
        rows.append(last)
    lethe_events.put_events(transaction.connection, rows)
    objects = [(row.event_id, row.project_id, "event") for row in rows]
    lethe_history.put_objects(transaction.connection, objects)
    return rows


def _row_after(transaction: Transaction, last: EventRow | None, happening: Happening) -> EventRow:
    salt = transaction.sources.new_salt()
    row = EventRow(
        transaction.project_id,
        last.seq + 1 if last else 1,
        happening.event_id,
        happening.event_type,
        happening.content,
        salt,
        salted_digest(salt, happening.content),
        happening.memory_id,
        happening.changeset_id,
        happening.record_digest,
        happening.actor,
        happening.created_at or format_time(transaction.sources.now()),
        "",
    )
    return row._replace(event_digest=chain.link(last.event_digest if last else None, event_view(row)))


def event_view(row: EventRow) -> dict[str, Any]:
    """Gives what the event chain covers of one event: the content by its salted digest (FORMAT §7)."""
    return {
        "project_id": row.project_id,
        "seq": row.seq,
        "event_id": row.event_id,
        "event_type": row.event_type,
        "content_digest": row.content_digest,
        "memory_id": row.memory_id,
        "changeset_id": row.changeset_id,
        "record_digest": row.record_digest,
        "actor": row.actor,
        "created_at": row.created_at,
    }


def shown_event(row: EventRow) -> dict[str, Any]:
    """Gives the wire form of an event."""
    return {**event_view(row), "content": row.content, "salt": row.salt, "event_digest": row.event_digest}


def all_events(view: View, upto: int | None = None) -> list[EventRow]:
    """Gives a project's events in order, to a position."""
    found: list[EventRow] = []
    while page := lethe_events.list_events(
        view.connection, view.project_id, found[-1].seq if found else 0, BATCH
    ):
        found += page
        if upto is not None and found[-1].seq >= upto:
            return [row for row in found if row.seq <= upto]
    return found


def visible_events(view: View, audience: Audience, after: int, limit: int) -> list[dict[str, Any]]:
    """Gives events beyond a position that an audience may see, filtered before the limit.

    An event of a memory is as visible as its record at the shared head; any other is internal.
    """
    state = view.state(require_ref(view, SHARED_MAIN).head_changeset_id)
    found: list[dict[str, Any]] = []
    while page := lethe_events.list_events(view.connection, view.project_id, after, BATCH):
        for row in page:
            record = state.plain_record(row.memory_id) if row.memory_id else None
            shown = admits(record, audience) if record else "internal" in audience.visibilities
            found += [shown_event(row)] if shown else []
            if len(found) == limit:
                return found
        after = page[-1].seq
    return found


def baseline_record(row: EventRow) -> Record:
    """Gives the active record that an event of the frozen baseline stands for."""
    return Record(
        memory_id=row.event_id,
        content=row.content or "",
        event_type=row.event_type,
        sources=(BASELINE_SOURCE,),
    )


def _check(event: Mapping[str, Any]) -> None:
    unknown = sorted(event.keys() - _REQUEST_KEYS)
    if unknown:
        raise Invalid(
            "invalid_event", f"unknown field(s) of an event: {', '.join(str(name)[:64] for name in unknown)}"
        )
    for name, most in (("content", rules.MAX_CONTENT_BYTES), ("event_type", rules.MAX_STRING_BYTES)):
        value = event.get(name)
        if not isinstance(value, str) or not value.strip():
            raise Invalid("invalid_event", f"{name} must be a non-empty string, not {kind_of(value)}")
        if byte_length(value) > most:
            raise Invalid("invalid_event", f"{name} has at most {most} bytes, not {byte_length(value)}")
    for name in ("event_id", "memory_id", "actor"):
        value = event.get(name)
        if value is not None and not is_memory_id(value):
            raise Invalid("invalid_event", f"{name} must be 1 to 1,024 bytes without control characters")

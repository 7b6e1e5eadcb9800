"""Accepted memory for a prompt at a head, and the manifests that pin what was given (7-context)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memory_git.domain import context as selecting
from memory_git.domain.canonical import decode
from memory_git.domain.context import Candidate
from memory_git.domain.errors import Invalid, NotFound
from memory_git.domain.policy import Audience
from memory_git.domain.times import format_time, parse_time
from memory_git.lethe.active import Active, ActiveIndex, ActiveIndexes
from memory_git.lethe.refs import require_ref
from memory_git.lethe.searching import matches
from memory_git.lethe.session import StoredState, View, changeset_names, shown_entry
from memory_git.lethe.sources import Sources
from memory_git.storage import lethe_conflicts

_REQUEST_KEYS = frozenset(
    {
        "ref_name",
        "head_changeset_id",
        "query",
        "limit",
        "max_tokens",
        "session_id",
        "actor_id",
        "principal",
        "create_manifest",
        "now",
    }
)


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """A context request that is well formed; `moment` is the time of evaluation."""

    ref_name: str
    head: str | None
    query: str
    limit: int
    max_tokens: int | None
    session_id: str | None
    actor_id: str | None
    principal: str | None
    create_manifest: bool
    moment: datetime

    @property
    def now(self) -> str:
        """Gives the time of evaluation in the wire form."""
        return format_time(self.moment)


def read_request(raw: Mapping[str, Any], sources: Sources) -> ContextRequest:
    """Reads a context request; raises Invalid `invalid_context_request`."""
    unknown = sorted(str(name)[:64] for name in raw.keys() - _REQUEST_KEYS)
    if unknown:
        raise _invalid(f"unknown field(s): {', '.join(unknown)}")
    limit: Any = selecting.DEFAULT_LIMIT if raw.get("limit") is None else raw["limit"]
    if not _is_count(limit) or not 1 <= limit <= selecting.MAX_LIMIT:
        raise _invalid(f"limit is a whole number from 1 to {selecting.MAX_LIMIT}")
    max_tokens = raw.get("max_tokens")
    if max_tokens is not None and (not _is_count(max_tokens) or max_tokens < 1):
        raise _invalid("max_tokens is a whole number from 1")
    moment = sources.now() if raw.get("now") is None else parse_time(raw["now"])
    if moment is None:
        raise _invalid("now is an RFC 3339 time")
    for name in ("ref_name", "head_changeset_id", "query", "session_id", "actor_id", "principal"):
        if not isinstance(raw.get(name), str | None):
            raise _invalid(f"{name} is a string")
    if not raw.get("ref_name"):
        raise _invalid("ref_name is needed")
    if not isinstance(raw.get("create_manifest"), bool | None):
        raise _invalid("create_manifest is true or false")
    return ContextRequest(
        raw["ref_name"],
        raw.get("head_changeset_id"),
        raw.get("query") or "",
        limit,
        max_tokens,
        raw.get("session_id"),
        raw.get("actor_id"),
        raw.get("principal"),
        bool(raw.get("create_manifest")),
        moment,
    )


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _invalid(why: str) -> Invalid:
    return Invalid("invalid_context_request", why)


@dataclass(frozen=True, slots=True)
class Context:
    """A context in the wire form, without a manifest, and what a manifest pins of it."""

    shown: dict[str, Any]
    pins: list[str]


def build_context(
    view: View, request: ContextRequest, indexes: ActiveIndexes, audience: Audience | None
) -> Context:
    """Gives the accepted memory at a head that the named ref reaches."""
    head = reachable_head(view, request.ref_name, request.head)
    row = view.changeset(head)
    state = StoredState(view, view.roots(head))
    reading = Reading(indexes.of(view, head), audience)
    withheld, open_conflicts = withheld_at(view, head, reading)
    ranked = _matching(view, state, request.query, reading) if request.query.strip() else reading.ranked()
    kept, selection = selecting.best(ranked, withheld, request.moment, request.limit)
    active = {item.memory_id: reading.require(item.memory_id) for item in kept}
    records = {name: view.record(item.entry) for name, item in active.items()}
    tokens = selecting.choose(kept, records, selection, request.max_tokens)
    entries = [active[name].entry for name in selection.chosen]
    names = changeset_names(view, entries)
    shown = {
        "project_id": view.project_id,
        "ref_name": request.ref_name,
        "head_changeset_id": head,
        "state_root": row.state_root,
        "projection_version": selecting.PROJECTION_VERSION,
        "evaluated_at": request.now,
        "total_active": reading.total,
        "memories": [shown_entry(view, entry, names) for entry in entries],
        "relationships": relationships_among(state, selection.chosen),
        "unresolved_conflicts": open_conflicts,
        "inclusion_reasons": selection.inclusion_reasons,
        "exclusion_reasons": selection.exclusion_reasons,
        "estimated_tokens": tokens,
    }
    return Context(shown, [name for name in selection.chosen if active[name].pinned])


class Reading:
    """The active memories of a state, as an audience reads them."""

    def __init__(self, index: ActiveIndex, audience: Audience | None) -> None:
        self.audience = audience
        self.total = index.count(audience)
        self._index = index

    def get(self, memory_id: str) -> Active | None:
        """Gives an active memory, or None."""
        return self._index.get(memory_id, self.audience)

    def require(self, memory_id: str) -> Active:
        """Gives a memory that is active."""
        found = self.get(memory_id)
        assert found is not None, "what was ranked is active"
        return found

    def ranked(self) -> Iterator[Candidate]:
        """Yields what may be selected without a query, best first."""
        return (item.candidate() for item in self._index.ranked(self.audience))

    def pinned(self) -> Iterator[Active]:
        """Yields the pinned ones."""
        return self._index.pinned(self.audience)


def _matching(view: View, state: StoredState, query: str, reading: Reading) -> list[Candidate]:
    """Gives what may be selected for a query, best first: what holds a word of it, and what is pinned."""
    found = [
        reading.require(record.memory_id).candidate(score)
        for _, record, score in matches(view, state, query, reading.total, reading.audience)
    ]
    known = {item.memory_id for item in found}
    found += [item.candidate(0.0) for item in reading.pinned() if item.memory_id not in known]
    return sorted(found, key=selecting.rank_key)


def reachable_head(view: View, ref_name: str, head: str | None) -> str:
    """Gives the head to read; a named one must be reachable from the ref, so that unmerged work can't pass for accepted."""
    ref = require_ref(view, ref_name)
    if head is None or head == ref.head_changeset_id:
        return ref.head_changeset_id
    view.changeset(head)
    if not view.graph().is_ancestor(head, ref.head_changeset_id):
        raise NotFound("head_not_reachable", "the head is not reachable from the named ref")
    return head


def withheld_at(view: View, head: str, reading: Reading) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Gives what open conflicts hold back at a head, and those conflicts: both their sides must be ancestors of it.

    So a proposal that is not merged withholds nothing. A conflict that names a memory the reader can't see is not told.
    """
    graph = view.graph()
    withheld: dict[str, str] = {}
    shown = []
    for row in lethe_conflicts.list_conflicts(view.connection, view.project_id, "open", None):
        body = decode(row.body)
        sides = (body["left_changeset_id"], body["right_changeset_id"])
        if body["severity"] != "blocking" or not all(graph.is_ancestor(side, head) for side in sides):
            continue
        if not all(reading.get(name) for name in body["memory_ids"]):
            continue
        shown.append(
            {
                "conflict_id": row.conflict_id,
                "conflict_type": body["conflict_type"],
                "memory_ids": body["memory_ids"],
            }
        )
        for memory_id in body["memory_ids"]:
            withheld.setdefault(memory_id, row.conflict_id)
    return withheld, shown


def relationships_among(state: StoredState, memory_ids: list[str]) -> list[dict[str, str]]:
    """Gives the relationships that stand between some memories, sorted."""
    among = set(memory_ids)
    found = set()
    for memory_id in memory_ids:
        for row in state.edges_of(memory_id):
            if row.from_memory_id in among and row.to_memory_id in among:
                found.add((row.from_memory_id, row.kind, row.to_memory_id))
    return [
        {"from_memory_id": from_id, "kind": kind, "to_memory_id": to_id}
        for from_id, kind, to_id in sorted(found)
    ]


def selected_digests(shown: Mapping[str, Any]) -> list[dict[str, str]]:
    """Gives the ids of the selected memories with their record digests: what a manifest pins."""
    return [
        {"memory_id": item["memory_id"], "record_digest": item["record_digest"]} for item in shown["memories"]
    ]

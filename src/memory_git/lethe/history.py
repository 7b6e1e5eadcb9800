"""Reading history: the log, one memory's versions, the memories of a state (4-history; 5-lethe)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import asdict
from typing import Any

from memory_git.domain import trie
from memory_git.domain.errors import Corrupt, Invalid, NotFound
from memory_git.domain.ids import is_uuid
from memory_git.domain.ops import KINDS
from memory_git.domain.policy import Audience
from memory_git.domain.proof import prove
from memory_git.domain.record import STATUSES
from memory_git.domain.trie import Entry
from memory_git.lethe.active import ActiveIndex
from memory_git.lethe.changesets import shown_changeset
from memory_git.lethe.log_cursor import Walk, bad_cursor, read_cursor, write_cursor
from memory_git.lethe.op_refs import OpRefs
from memory_git.lethe.originals import originals_of
from memory_git.lethe.pages import fitting
from memory_git.lethe.refs import require_ref
from memory_git.lethe.session import REDACTED, StoredState, View, admits, changeset_names, shown_entry
from memory_git.storage import lethe_history, lethe_states
from memory_git.storage.lethe_history import ChangesetRow
from memory_git.storage.lethe_states import VersionRow

MAX_LOG = 200
MAX_MEMORIES = 200


def check_limit(limit: int, most: int) -> int:
    """Gives a page's size back, or raises Invalid `bad_limit`."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= most:
        raise Invalid("bad_limit", f"limit is a whole number from 1 to {most}")
    return limit


def log(
    view: View,
    ref_name: str | None,
    head: str | None,
    limit: int,
    before: str | None,
    first_parent: bool,
    audience: Audience | None,
) -> dict[str, Any]:
    """Gives a page of a head's ancestors in topological order, newest first; `next` is where the following page begins."""
    check_limit(limit, MAX_LOG)
    if head is None:
        if ref_name is None:
            raise Invalid("ref_needed", "name a ref, or a head")
        head = require_ref(view, ref_name).head_changeset_id
    view.state_row(head)
    frontier = _frontier(view, before, head, first_parent) if before else None
    page = view.graph().log([head], limit, frontier, first_parent)
    told = fitting(with_originals(view, view.changeset(name), audience) for name in page.ids)
    if len(told) < len(page.ids):
        page = view.graph().log([head], len(told), frontier, first_parent)
    shown = {
        "changesets": told,
        "project": view.project_id,
        "ref": ref_name,
    }
    if not page.frontier:
        return shown
    return {**shown, "next": write_cursor(Walk(head, page.frontier, first_parent), view.project.cursor_salt)}


def with_originals(view: View, row: ChangesetRow, audience: Audience | None) -> dict[str, Any]:
    """Gives a changeset in the wire form, with the `originals` of what it copies, as far as the audience may see the ops."""
    shown = shown_changeset(view, row, audience)
    originals = originals_of(view, shown["ops"])
    return {**shown, "originals": originals} if originals else shown


def _frontier(view: View, before: str, head: str, first_parent: bool) -> tuple[str, ...]:
    """Gives where a walk from the head goes on; only what the head reaches is ever walked."""
    if is_uuid(before):
        walk = Walk(before, (before,), first_parent)
    else:
        walk = read_cursor(before, view.project.cursor_salt)
    graph = view.graph()
    if walk.first_parent != first_parent or walk.head not in graph:
        raise bad_cursor()
    if not graph.is_ancestor(walk.head, head):
        raise bad_cursor()
    return walk.frontier


def memories(
    view: View,
    head: str,
    limit: int,
    after: str | None,
    kind: str | None,
    status: str | None,
    audience: Audience | None,
    index: ActiveIndex,
) -> dict[str, Any]:
    """Gives a page of the memories of a state, in the order of keys, with the relationships among them; `index` counts the state's."""
    check_limit(limit, MAX_MEMORIES)
    _check_filter("kind", kind, KINDS)
    _check_filter("status", status, STATUSES | {REDACTED})
    state = StoredState(view, view.roots(head))
    wanted: list[Entry] = []
    for entry in trie.walk(view, state.memories, _cursor(after)):
        record = view.record(entry)
        if kind not in (None, "", record.kind) or status not in (None, "", record.status):
            continue
        wanted += [entry] if admits(record, audience) else []
        if len(wanted) > limit:
            break
    names = changeset_names(view, wanted[:limit])
    told = fitting(shown_entry(view, entry, names) for entry in wanted[:limit])
    page = wanted[: len(told)]
    shown = {
        "memories": told,
        "relationships": _relationships(state, page, audience),
        "total": index.count_all(audience, kind, status),
    }
    return {**shown, "next": page[-1].key.hex()} if len(wanted) > len(page) else shown


def _check_filter(name: str, value: str | None, known: Collection[str]) -> None:
    if value and value not in known:
        raise Invalid("bad_filter", f"{name} is one of {', '.join(sorted(known))}")


def _cursor(after: str | None) -> bytes | None:
    if not after:
        return None
    try:
        key = bytes.fromhex(after)
    except ValueError:
        key = b""
    if len(key) != 32:
        raise Invalid("bad_cursor", "`after` is the `next` of an earlier page")
    return key


def _relationships(
    state: StoredState, entries: list[Entry], audience: Audience | None
) -> list[dict[str, str]]:
    found = set()
    for entry in entries:
        memory_id = state.view.record(entry).memory_id
        for row in state.edges_of(memory_id):
            ends = (state.plain_record(row.from_memory_id), state.plain_record(row.to_memory_id))
            if all(end is not None and admits(end, audience) for end in ends):
                found.add((row.from_memory_id, row.kind, row.to_memory_id))
    return [
        {"from_memory_id": from_id, "kind": kind, "to_memory_id": to_id}
        for from_id, kind, to_id in sorted(found)
    ]


def require_entry(state: StoredState, memory_id: str, audience: Audience | None) -> Entry:
    """Gives a memory's entry, or raises NotFound `memory_not_found`, also for one that the audience may not see."""
    entry = state.entry(memory_id)
    if entry is None or not admits(state.view.record(entry), audience):
        raise NotFound("memory_not_found", "no such memory at this head")
    return entry


def memory(view: View, head: str, memory_id: str, audience: Audience | None) -> dict[str, Any]:
    """Gives one memory at a state, with its relationships and the proof of its presence."""
    state = StoredState(view, view.roots(head))
    entry = require_entry(state, memory_id, audience)
    return {
        **shown_entry(view, entry, changeset_names(view, [entry])),
        "relationships": _relationships(state, [entry], audience),
        "memories_root": state.memories.digest.hex(),
        "relationships_root": state.edges.digest.hex(),
        "proof": prove(view, state.memories, entry.key).to_json(),
    }


def records(
    view: View, heads: Collection[str], memory_ids: Collection[str]
) -> dict[str, list[dict[str, Any]]]:
    """Gives by memory id the records at any of the states."""
    found: dict[str, list[dict[str, Any]]] = {}
    for head in heads:
        state = StoredState(view, view.roots(head))
        for memory_id in memory_ids:
            entry = state.entry(memory_id)
            if entry is not None:
                found.setdefault(memory_id, []).append(view.record(entry).to_json())
    return found


def memory_history(view: View, head: str, memory_id: str, audience: Audience | None) -> dict[str, Any]:
    """Gives every version of a memory that is reachable from a head, newest first, as far as the audience may see.

    Where two sides of a merge made the same change, both are told, though the state holds the first one's.
    """
    state = StoredState(view, view.roots(head))
    entry = require_entry(state, memory_id, audience)
    followed = {version.id: version for version in _lineage(view, entry.row)}
    beside = {version.id: version for version in _beside(view, head, memory_id, followed)}
    versions = sorted((followed | beside).items(), reverse=True)
    shown = (_shown_version(view, version, audience) for _, version in versions)
    return {"memory_id": memory_id, "versions": [version for version in shown if version]}


def _beside(view: View, head: str, memory_id: str, followed: Collection[int]) -> Iterator[VersionRow]:
    """Gives the versions that a head reaches though no later version follows them; none is looked for where nothing else is stored."""
    rows = lethe_states.version_rows(view.connection, view.project_id, memory_id)
    others = [row for row in rows if row not in followed]
    if not others:
        return
    versions = lethe_states.get_versions(view.connection, view.project_id, others)
    rows_of_changesets = {version.changeset_row for version in versions}
    names = lethe_history.changeset_ids(view.connection, view.project_id, rows_of_changesets)
    reached = view.graph().reached(head, [*names.values()])
    yield from (version for version in versions if names[version.changeset_row] in reached)


def _lineage(view: View, row: int) -> Iterator[VersionRow]:
    """Gives a version and all before it, newest first: a version is stored after those that it follows."""
    waiting = {row}
    while waiting:
        version = view.version(max(waiting))
        waiting.remove(version.id)
        before = {row for row in (version.previous, version.second_previous) if row is not None}
        if any(row >= version.id for row in before):
            raise Corrupt("version", version.id, "follows a version that is not older")
        waiting |= before
        yield version


def _shown_version(view: View, version: VersionRow, audience: Audience | None) -> dict[str, Any] | None:
    """Gives one version with who made it, verified against its digest; its number is that of its changeset's state."""
    row = lethe_history.changeset_at(view.connection, view.project_id, version.changeset_row)
    assert row is not None, "a version's changeset is stored with it"
    entry = StoredState(view, view.roots(row.changeset_id)).entry(version.memory_id)
    if entry is None or entry.row != version.id:
        raise Corrupt("version", version.id, "is not in its changeset's state")
    record = view.record(entry)
    if not admits(record, audience):
        return None
    reaches = lethe_history.reaches_of(view.connection, view.project_id, row.id)
    told = audience is None or all(audience.admits(seen, owner or None) for seen, owner in reaches)
    originals = originals_of(view, [asdict(OpRefs(view, audience).of(entry))])
    shown = {
        "memory_id": record.memory_id,
        "record": record.to_json(),
        "record_digest": entry.digest.hex(),
        "version": entry.version,
        "changeset_id": row.changeset_id,
        "author_principal": row.author_principal,
        "created_at": row.created_at,
        "message": row.message if told else None,
    }
    return {**shown, "original": originals[0]} if originals else shown

"""Reads of history, states, context and manifests, each for the caller's audience (6-charon, reading)."""

from __future__ import annotations

from typing import Any

from memory_git.charon.caller import LOCAL_OPERATOR, Caller
from memory_git.charon.house import House, Passage
from memory_git.charon.refs import find_ref, head_of, place, require_changeset, visible_refs, working_ref
from memory_git.charon.seeing import seen_conflicts, seen_proposals, with_seen_proposals
from memory_git.domain.errors import Invalid, NotFound
from memory_git.domain.ids import SHARED_MAIN
from memory_git.domain.policy import Allowed, knows_project, may
from memory_git.domain.proposals import OPEN_STATUSES
from memory_git.lethe.protocol import Json

MAX_PAGE = 200
MAX_COUNTED = 1000
_COUNT_PAGE = 100
READ = "memory.read"
SEARCH = "memory.search"


def list_projects(house: House, caller: Caller) -> list[str]:
    """Gives the projects that the caller may know of, sorted."""
    identity = house.identify(caller)
    house.ledger.read(house.call(caller, "list_projects", None, {}), "shown", {})
    return [
        name
        for name in house.lethe.list_projects()
        if caller.principal_id == LOCAL_OPERATOR or knows_project(identity.standing, name)
    ]


def status(house: House, caller: Caller, project: str | None) -> Json:
    """Tells where the caller's working branch stands against accepted memory, and what is open."""
    with house.reads(caller, "status", project, READ) as passage:
        lethe, project_id = house.lethe, passage.project_id
        shared = str(lethe.resolve_ref(project_id, SHARED_MAIN)["head_changeset_id"])
        working = working_ref(passage) if passage.identity.actors else None
        own = find_ref(house, project_id, working) if working else None
        head = own["head_changeset_id"] if own else None
        now = house.time()
        open_proposals = sum(
            row.expires_at > now for row in seen_proposals(house, passage, tuple(sorted(OPEN_STATUSES)))
        )
        active = lethe.memories(project_id, shared, limit=1, status="active", audience=passage.audience)
        return {
            "project": project_id,
            "principal": passage.principal_id,
            "working_ref": working,
            "working_head": head,
            "shared_head": shared,
            "ahead": _beyond(house, project_id, head, shared) if head else 0,
            "behind": _beyond(house, project_id, shared, head) if head else 0,
            "open_proposals": open_proposals,
            "open_conflicts": len(seen_conflicts(house, passage, "open")),
            "total_active": active["total"],
            "recovery_readonly": house.recovery_readonly,
        }


def list_refs(house: House, caller: Caller, project: str | None) -> list[Json]:
    """Gives the refs that the caller may read, by name."""
    with house.reads(caller, "list_refs", project, READ) as passage:
        return visible_refs(house, passage)


def log(
    house: House,
    caller: Caller,
    project: str | None,
    ref: str | None,
    *,
    limit: int,
    before: str | None,
    first_parent: bool,
) -> Json:
    """Gives the ancestors of a ref's head, newest first: `{changesets, project, ref, next?}`."""
    request = {"ref": ref, "limit": limit, "before": before, "first_parent": first_parent}
    with house.reads(caller, "log", project, READ, **request) as passage:
        at = place(house, passage, ref, None)
        return house.lethe.log(
            passage.project_id,
            at.ref_name,
            head=at.head,
            limit=_page(limit),
            before=before,
            first_parent=first_parent,
            audience=passage.audience,
        )


def show(house: House, caller: Caller, project: str | None, changeset_id: str) -> Json:
    """Gives one changeset, its ops withheld where the caller may not see them."""
    with house.reads(caller, "show", project, READ, changeset_id=changeset_id) as passage:
        found = require_changeset(house, passage, changeset_id)
        passage.ids["changeset_id"] = changeset_id
        return found


def diff(
    house: House,
    caller: Caller,
    project: str | None,
    target: str,
    base: str | None,
    limit: int | None,
    after: str | None,
) -> Json:
    """Gives the semantic diff of two heads, each a ref's name or a changeset id; by default from the first parent.

    An unresolved conflict is told only with a proposal that the caller sees.
    """
    request = {"target": target, "base": base, "limit": limit, "after": after}
    with house.reads(caller, "diff", project, READ, **request) as passage:
        to = head_of(house, passage, target)
        since = head_of(house, passage, base) if base is not None else None
        passage.ids.update(target=to, base=since)
        found = house.lethe.diff(to, since, passage.audience, limit=limit, after=after)
        unresolved = with_seen_proposals(house, passage, found["unresolved_conflicts"])
        return {**found, "unresolved_conflicts": unresolved}


def memories(
    house: House,
    caller: Caller,
    project: str | None,
    ref: str | None,
    head: str | None,
    *,
    limit: int,
    after: str | None,
    kind: str | None,
    status_is: str | None,
) -> Json:
    """Gives the memories at a head, in the order of keys: `{memories, relationships, next?, total}` and where it looked."""
    request = {"ref": ref, "head": head, "limit": limit, "after": after, "kind": kind, "status": status_is}
    with house.reads(caller, "memories", project, READ, **request) as passage:
        at = place(house, passage, ref, head)
        found = house.lethe.memories(
            passage.project_id,
            at.head,
            limit=_page(limit),
            after=after,
            kind=kind,
            status=status_is,
            audience=passage.audience,
        )
        return {**found, "ref": at.ref_name, "head": at.head}


def memory(
    house: House, caller: Caller, project: str | None, memory_id: str, ref: str | None, head: str | None
) -> Json:
    """Gives one memory at a head, with its relationships and the proof that it stands there."""
    with house.reads(caller, "memory", project, READ, memory_id=memory_id, ref=ref, head=head) as passage:
        at = place(house, passage, ref, head)
        found = house.lethe.memory(passage.project_id, at.head, memory_id, passage.audience)
        return {**found, "ref": at.ref_name, "head": at.head}


def memory_history(
    house: House, caller: Caller, project: str | None, memory_id: str, ref: str | None, head: str | None
) -> Json:
    """Gives the versions of one memory that a head reaches, newest first."""
    with house.reads(
        caller, "memory_history", project, READ, memory_id=memory_id, ref=ref, head=head
    ) as passage:
        at = place(house, passage, ref, head)
        found = house.lethe.memory_history(passage.project_id, at.head, memory_id, passage.audience)
        return {**found, "ref": at.ref_name, "head": at.head}


def search(
    house: House,
    caller: Caller,
    project: str | None,
    query: str,
    ref: str | None,
    head: str | None,
    limit: int,
) -> Json:
    """Gives the active memories at a head that have a word of the query, best first."""
    request = {"query": query, "ref": ref, "head": head, "limit": limit}
    with house.reads(caller, "search", project, SEARCH, **request) as passage:
        at = place(house, passage, ref, head)
        found = house.lethe.search(
            passage.project_id, at.head, query, limit=_page(limit), audience=passage.audience
        )
        return {**found, "ref": at.ref_name, "head": at.head}


def context(
    house: House,
    caller: Caller,
    project: str | None,
    ref: str | None,
    head: str | None,
    *,
    create_manifest: bool,
    asked: dict[str, Any],
) -> Json:
    """Gives the accepted memory for a prompt at a head (7-context); a manifest of it is a mutation."""
    passes = house.changes if create_manifest else house.reads
    request = {**asked, "ref": ref, "head": head, "create_manifest": create_manifest}
    with passes(caller, "context", project, READ, **request) as passage:
        at = place(house, passage, ref, head)
        found = house.lethe.context(
            passage.project_id,
            _context_request(
                house, passage, at.ref_name, at.head, create_manifest=create_manifest, asked=asked
            ),
            passage.audience,
        )
        passage.ids.update(head=at.head, manifest_id=found.get("manifest_id"))
        return found


def manifest(house: House, caller: Caller, manifest_id: str, *, reproduce: bool) -> Json:
    """Gives a manifest, or the records that it pins, to its principal or an administrator; to anybody else it is not there.

    Its principal is told what is withheld today of what it was given; an administrator is shown what they may see themselves.
    """
    route = "reproduce" if reproduce else "manifest"
    found = _manifest_for(house, caller, route, manifest_id)
    with house.reads(caller, route, found["project_id"], READ, manifest_id=manifest_id) as passage:
        passage.ids["manifest_id"] = manifest_id
        is_own = found.get("principal") == passage.principal_id
        if not reproduce:
            return found if is_own else _manifest_as_seen(house, passage, found)
        shown = house.lethe.reproduce(manifest_id, passage.audience)
        if not is_own:
            shown["memories"] = [item for item in shown["memories"] if not item.get("withheld")]
        return shown


def _manifest_for(house: House, caller: Caller, route: str, manifest_id: str) -> Json:
    try:
        found = house.lethe.get_manifest(manifest_id)
    except NotFound:
        found = {"project_id": None}
    standing, project_id = house.identify(caller).standing, found["project_id"]
    is_theirs = found.get("principal") == caller.principal_id and knows_project(standing, str(project_id))
    if project_id is None or not (is_theirs or isinstance(may(standing, "admin", project_id), Allowed)):
        call = house.call(caller, route, project_id, {"manifest_id": manifest_id})
        house.deny(call, "no such manifest for this caller", known=False)
    return found


def _manifest_as_seen(house: House, passage: Passage, found: Json) -> Json:
    """Gives a manifest without what the audience does not admit; who it was made for knows it all."""
    reasons = ("inclusion_reasons", "exclusion_reasons")
    named = {item["memory_id"] for item in found.get("selected", ())}
    named.update(*(found.get(name, {}) for name in reasons))
    seen = {name for name in named if _admits(house, passage, found["head_changeset_id"], name)}
    shown: Json = {
        name: {key: why for key, why in found[name].items() if key in seen}
        for name in reasons
        if name in found
    }
    if "selected" in found:
        shown["selected"] = [item for item in found["selected"] if item["memory_id"] in seen]
    if found.get("unresolved_conflicts"):
        known = {item["conflict_id"] for item in seen_conflicts(house, passage)}
        shown["unresolved_conflicts"] = [name for name in found["unresolved_conflicts"] if name in known]
    return {**found, **shown}


def _admits(house: House, passage: Passage, head: str, memory_id: str) -> bool:
    try:
        house.lethe.memory(passage.project_id, head, memory_id, passage.audience)
    except NotFound:
        return False
    return True


def _context_request(
    house: House, passage: Passage, ref_name: str, head: str, *, create_manifest: bool, asked: dict[str, Any]
) -> Json:
    values = {
        **asked,
        "ref_name": ref_name,
        "head_changeset_id": head,
        "create_manifest": create_manifest,
        "principal": passage.principal_id,
        "actor_id": passage.caller.default_actor,
        "now": asked.get("now") or house.time(),
    }
    return {key: value for key, value in values.items() if value is not None}


def _beyond(house: House, project_id: str, head: str, other: str) -> int:
    """Counts the changesets that a head reaches and another doesn't, up to MAX_COUNTED."""
    if house.lethe.is_ancestor(project_id, head, other):
        return 0
    count, before = 0, None
    while count < MAX_COUNTED:
        page = house.lethe.log(project_id, head=head, limit=_COUNT_PAGE, before=before)
        beyond = [
            item
            for item in page["changesets"]
            if not house.lethe.is_ancestor(project_id, item["changeset_id"], other)
        ]
        count += len(beyond)
        before = page.get("next")
        if not beyond or before is None:
            break
    return min(count, MAX_COUNTED)


def _page(limit: int) -> int:
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_PAGE:
        raise Invalid("bad_limit", f"limit is a number from 1 to {MAX_PAGE}")
    return limit

"""Which refs and changesets a caller may read, and where a call without a ref stands (6-charon, ownership, reading).

1. A ref is read by whom the policy lets read it; refs/proposals/<id> besides by the reviewers of the project and the
   proposal's originator.
2. A changeset is read by its author, by who may read the ref it was made on, and by who may read a ref that reaches it.
3. What may not be read looks like what is not there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from memory_git.charon.house import NOT_FOUND, House, Passage
from memory_git.domain.errors import Invalid, NotFound
from memory_git.domain.ids import SHARED_MAIN, is_uuid, parse_ref
from memory_git.domain.policy import Denied, may_read_ref
from memory_git.lethe.protocol import Json
from memory_git.storage import charon_proposals

_ORDER = ("shared", "agents", "sessions", "topics", "repos", "proposals")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a read stands: a ref that exists, and a head."""

    ref_name: str
    head: str


def working_ref(passage: Passage) -> str:
    """Gives the caller's own working branch; raises Invalid for one that owns no actor."""
    actor = passage.caller.default_actor or next(iter(passage.identity.actors), None)
    if actor is None or actor not in passage.standing.actor_ids:
        raise Invalid("actor_needed", "the principal owns no actor, so it has no working branch: name a ref")
    return f"refs/agents/{actor}/main"


def may_read(house: House, passage: Passage, ref_name: str) -> bool:
    """Decides whether a caller may read a ref (rule 1)."""
    if not isinstance(may_read_ref(passage.standing, passage.project_id, ref_name), Denied):
        return True
    ref = parse_ref(ref_name)
    if ref.space != "proposals":
        return False
    return (
        passage.may("memory.review")
        or _originator(house, passage.project_id, ref.owner) == passage.principal_id
    )


def find_ref(house: House, project_id: str, ref_name: str) -> Json | None:
    """Gives a ref, or None when it doesn't exist."""
    try:
        return house.lethe.resolve_ref(project_id, ref_name)
    except NotFound:
        return None


def require_ref(house: House, passage: Passage, ref_name: str) -> Json:
    """Gives a ref that the caller may read."""
    found = find_ref(house, passage.project_id, ref_name) if may_read(house, passage, ref_name) else None
    if found is None:
        raise NotFound("not_found", NOT_FOUND)
    return found


def visible_refs(house: House, passage: Passage) -> list[Json]:
    """Gives the refs that the caller may read, by name."""
    return [
        ref for ref in house.lethe.list_refs(passage.project_id) if may_read(house, passage, ref["ref_name"])
    ]


def place(house: House, passage: Passage, ref_name: str | None, head: str | None) -> Place:
    """Gives where a read stands: the ref named, else the working branch, else accepted memory; at its head or the one named.

    A named head is reachable from the ref, so that unmerged work can't pass for accepted; without a ref it may be of any.
    """
    ref = require_ref(house, passage, ref_name) if ref_name is not None else _own_or_shared(house, passage)
    if head is None:
        return Place(ref["ref_name"], ref["head_changeset_id"])
    changeset = require_changeset(house, passage, head)
    if house.lethe.is_ancestor(passage.project_id, head, ref["head_changeset_id"]):
        return Place(ref["ref_name"], head)
    if ref_name is not None:
        raise NotFound("head_not_reachable", "the head is not reachable from the named ref")
    return Place(changeset["ref_name"], head)


def head_of(house: House, passage: Passage, name: str) -> str:
    """Gives the changeset that a ref's name or a changeset id stands for, if the caller may read it."""
    if name.startswith("refs/"):
        return str(require_ref(house, passage, name)["head_changeset_id"])
    return str(require_changeset(house, passage, name)["changeset_id"])


def require_changeset(house: House, passage: Passage, changeset_id: str) -> Json:
    """Gives a changeset of the project that the caller may read, as its audience sees it (rule 2)."""
    changeset = _find_changeset(house, passage, changeset_id) if is_uuid(changeset_id) else None
    if changeset is None or changeset["project_id"] != passage.project_id:
        raise NotFound("not_found", NOT_FOUND)
    if not _reaches(house, passage, changeset):
        raise NotFound("not_found", NOT_FOUND)
    return changeset


def shared_head(house: House, project_id: str) -> str:
    """Gives the head of accepted memory."""
    return str(house.lethe.resolve_ref(project_id, SHARED_MAIN)["head_changeset_id"])


def _find_changeset(house: House, passage: Passage, changeset_id: str) -> Json | None:
    try:
        return house.lethe.get_changeset(changeset_id, passage.audience)
    except NotFound:
        return None


def _own_or_shared(house: House, passage: Passage) -> Json:
    own: Json | None = None
    if passage.identity.actors:
        own = find_ref(house, passage.project_id, working_ref(passage))
    return own or house.lethe.resolve_ref(passage.project_id, SHARED_MAIN)


def _reaches(house: House, passage: Passage, changeset: dict[str, Any]) -> bool:
    if changeset["author_principal"] == passage.principal_id or may_read(
        house, passage, changeset["ref_name"]
    ):
        return True
    refs = visible_refs(house, passage)
    refs.sort(key=lambda ref: ref["ref_name"], reverse=True)
    refs.sort(key=lambda ref: _ORDER.index(parse_ref(ref["ref_name"]).space))
    return any(
        house.lethe.is_ancestor(passage.project_id, changeset["changeset_id"], ref["head_changeset_id"])
        for ref in refs
    )


def _originator(house: House, project_id: str, owner: str) -> str | None:
    with house.database.read() as connection:
        row = charon_proposals.get(connection, project_id, owner.partition(".")[0])
    return row.originator if row is not None else None

"""Who may read what, write where, and judge whose work. Pure: a verdict always comes with its reason.

1. A private record is its owner's alone. The other visibilities are read by whoever's audience names them.
2. Visibilities that a grant opens: exact: internal, shared, public; wildcard: shared, public; signed in: public.
3. A wildcard grant is read-only: every mutation needs an exact, case-sensitive project grant.
4. A ref under agents/ or sessions/ is written by the principal that owns the actor; topics/ and repos/ by their creator;
   proposals/ by Charon's service principal; shared/ by signed merges alone.
5. A ref of somebody else's is read only if it is shared, or a grant names it.
6. Nobody reviews or merges what they wrote, unless the project's policy lets a person merge alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from memory_git.domain.ids import parse_ref

VISIBILITIES = ("private", "internal", "shared", "public")
SCOPES = (
    "memory.search",
    "memory.read",
    "memory.branch",
    "memory.commit",
    "memory.propose",
    "memory.review",
    "memory.merge",
    "memory.write",
    "memory.redact",
    "admin",
)
READ_SCOPES = frozenset({"memory.search", "memory.read"})
PROFILES: dict[str, frozenset[str]] = {
    "readonly": READ_SCOPES,
    "propose": READ_SCOPES | {"memory.branch", "memory.commit", "memory.propose"},
    "review": READ_SCOPES | {"memory.review", "memory.merge"},
    "write": frozenset(SCOPES) - {"memory.redact"},
}
SERVICE_PRINCIPAL = "charon"
"""The principal that Charon acts as: merge changesets, refs/proposals/*, attestations of a rejection."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """The caller may do it; the reason names the rule that lets them."""

    reason: str


@dataclass(frozen=True, slots=True)
class Denied:
    """The caller may not do it; the reason goes into the ledger, and to the caller only where they may know."""

    reason: str


Verdict = Allowed | Denied


@dataclass(frozen=True, slots=True)
class Audience:
    """For whom records are read: a principal, and the visibilities that are open to them (private means their own)."""

    principal_id: str
    visibilities: frozenset[str]

    def admits(self, visibility: str, owner_principal: str | None) -> bool:
        """Decides whether a record of this visibility and owner may be shown (rule 1)."""
        if visibility == "private":
            return owner_principal is not None and owner_principal == self.principal_id
        return visibility in self.visibilities

    def to_json(self) -> dict[str, Any]:
        """Gives the wire form."""
        return {"principal": self.principal_id, "visibilities": sorted(self.visibilities)}


@dataclass(frozen=True, slots=True)
class Grant:
    """What a principal may do in a project; `project_id` is exact, or "*" for all (read-only).

    `refs` are patterns of others' refs that it opens for reading.
    """

    project_id: str
    scopes: frozenset[str]
    refs: tuple[str, ...] = ()

    @property
    def is_wildcard(self) -> bool:
        """Says whether the grant names all projects."""
        return self.project_id == "*"

    def names(self, project_id: str) -> bool:
        """Decides whether this is an exact grant on a project; a wildcard is none, whatever project is asked for."""
        return self.project_id == project_id and not self.is_wildcard


@dataclass(frozen=True, slots=True)
class Standing:
    """All that decides for one caller: identity, scopes of the token, grants, the actors and refs it owns."""

    principal_id: str
    kind: str
    scopes: frozenset[str]
    grants: tuple[Grant, ...] = ()
    actor_ids: frozenset[str] = frozenset()
    created_refs: frozenset[tuple[str, str]] = field(default_factory=frozenset)
    """(project_id, ref_name) of topic and repo refs that it created."""


def may(standing: Standing, scope: str, project_id: str) -> Verdict:
    """Decides whether a caller has a scope in a project: its token, then an exact grant, then a wildcard for reads."""
    if scope not in standing.scopes:
        return Denied(f"the token lacks the scope {scope}")
    for grant in standing.grants:
        if grant.names(project_id) and scope in grant.scopes:
            return Allowed(f"exact grant on {project_id}")
    for grant in standing.grants:
        if grant.is_wildcard and scope in grant.scopes & READ_SCOPES:
            return Allowed("wildcard grant (read-only)")
    return Denied(f"no grant of {scope} on this project")


def knows_project(standing: Standing, project_id: str) -> bool:
    """Decides whether a caller may learn that a project exists: it holds any grant that covers it."""
    return any(grant.is_wildcard or grant.names(project_id) for grant in standing.grants)


def audience(standing: Standing, project_id: str) -> Audience:
    """Gives what a caller may read in a project (rules 1 and 2)."""
    opened = {"public"}
    for grant in standing.grants:
        if grant.names(project_id) and grant.scopes & READ_SCOPES:
            opened |= {"internal", "shared"}
        elif grant.is_wildcard and grant.scopes & READ_SCOPES:
            opened |= {"shared"}
    return Audience(standing.principal_id, frozenset(opened))


def may_write_ref(standing: Standing, project_id: str, ref_name: str) -> Verdict:
    """Decides whether a caller may commit to a ref (rule 4); scopes and grants are asked apart."""
    ref = parse_ref(ref_name)
    if ref.is_protected_by_name:
        return Denied("a protected ref moves only by a reviewed merge: propose one")
    if ref.space in ("agents", "sessions"):
        if ref.owner in standing.actor_ids:
            return Allowed(f"owns the actor {ref.owner}")
        return Denied(f"the actor {ref.owner} is not yours")
    if ref.space in ("topics", "repos"):
        if (project_id, ref_name) in standing.created_refs:
            return Allowed("created the ref")
        return Denied("the ref was created by another principal")
    if standing.principal_id == SERVICE_PRINCIPAL:
        return Allowed("service principal")
    return Denied("refs/proposals/ is kept by the service")


def may_read_ref(standing: Standing, project_id: str, ref_name: str) -> Verdict:
    """Decides whether a caller may read what only this ref reaches (rule 5)."""
    ref = parse_ref(ref_name)
    if ref.space == "shared":
        return Allowed("shared")
    written = may_write_ref(standing, project_id, ref_name)
    if isinstance(written, Allowed):
        return written
    for grant in standing.grants:
        if grant.names(project_id) and any(fnmatchcase(ref_name, pattern) for pattern in grant.refs):
            return Allowed("a grant names the ref")
    return Denied("the ref is another's")


SOMEBODY_ELSE = (
    "somebody else must, unless the project's policy lets a person merge alone (lone_person_may_merge)"
)


def may_judge(
    judge: str, authors: Collection[str], *, lone_person_may_merge: bool, judge_kind: str
) -> Verdict:
    """Decides whether a principal may review or merge work by these authors (rule 6)."""
    if judge not in authors:
        return Allowed("wrote none of it")
    if lone_person_may_merge and judge_kind == "human":
        return Allowed("policy: a person may merge alone")
    return Denied("self review")


def narrowest(visibilities: Iterable[str]) -> str:
    """Gives the narrowest of some visibilities (private < internal < shared < public).

    >>> narrowest(["public", "internal"])
    'internal'
    """
    return min(visibilities, key=VISIBILITIES.index)


def is_wider(visibility: str, than: str) -> bool:
    """Decides whether one visibility shows a record to more readers than another."""
    return VISIBILITIES.index(visibility) > VISIBILITIES.index(than)

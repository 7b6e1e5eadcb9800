"""The start of a project, and what the faces ask of the gate itself."""

from __future__ import annotations

from memory_git.charon.caller import LOCAL_OPERATOR, Caller
from memory_git.charon.house import House, Passage
from memory_git.charon.refs import may_read
from memory_git.charon.seeing import sees, sees_all
from memory_git.charon.standings import scopes_of
from memory_git.domain.errors import Refused
from memory_git.domain.ids import check_project_id
from memory_git.domain.policy import Denied, may
from memory_git.lethe.feed import FeedEvent
from memory_git.lethe.protocol import Json
from memory_git.lethe.store import LetheStore
from memory_git.storage import charon_identity, charon_proposals
from memory_git.storage.charon_identity import GrantRow
from memory_git.storage.charon_schema import CHARON_SCHEMA


def init_project(house: House, caller: Caller, project: str) -> Json:
    """Starts a project, which an administrator may, and who was granted branches on it beforehand; repeatable.

    An administrator who has no grant on it gets one of all its scopes. Gives `{changeset, ref}`.
    """
    project_id = check_project_id(project)
    identity = house.identify(caller)
    granted = not isinstance(may(identity.standing, "memory.branch", project_id), Denied)
    if granted and not caller.local_operator:
        with house.changes(caller, "init_project", project_id, "memory.branch") as passage:
            return _init(house, passage, project_id)
    with house.administers(caller, "init_project", project_id) as passage:
        made = _init(house, passage, project_id)
        if not granted and passage.principal_id != LOCAL_OPERATOR:
            scopes = tuple(sorted(scopes_of(passage.identity.principal)))
            row = GrantRow(project_id, passage.principal_id, scopes, (), passage.principal_id, house.time())
            house.ledger.write(lambda connection: charon_identity.set_grant(connection, row))
        return made


def may_see(house: House, caller: Caller, event: FeedEvent) -> bool:
    """Decides whether a caller may learn of an event of the live feed."""
    if not event.project_id:
        return True
    try:
        identity = house.identify(caller)
    except Refused:
        return False
    if isinstance(may(identity.standing, "memory.read", event.project_id), Denied):
        return False
    ref_name, proposal_id = event.facts.get("ref_name"), event.facts.get("proposal_id")
    passage = house.reader(caller, identity, event.project_id)
    if isinstance(proposal_id, str):
        with house.database.read() as connection:
            row = charon_proposals.get(connection, event.project_id, proposal_id)
        return sees_all(passage) or (row is not None and sees(house, passage, row))
    return may_read(house, passage, ref_name) if isinstance(ref_name, str) else True


def ready(house: House) -> Json:
    """Gives `{status, engine, schema_version, lethe, recovery_readonly}`, or raises Unavailable."""
    durability = house.database.check()
    return {
        "status": "ok",
        "engine": house.database.name,
        "durability": durability,
        "schema_version": len(CHARON_SCHEMA.migrations),
        "lethe": house.lethe.ready(),
        "recovery_readonly": house.recovery_readonly,
    }


def figures(house: House, caller: Caller) -> dict[str, float]:
    """Gives the gate's counters, and an embedded store's, by their metrics' names, to an administrator."""
    with house.administers(caller, "figures", reads=True):
        stored = house.lethe.figures() if isinstance(house.lethe, LetheStore) else {}
        return {
            **stored,
            **house.figures.told(),
            "charon_audit_append_failures_total": float(house.ledger.trail_failures),
            "charon_authz_denials_total": float(house.ledger.denials),
            "charon_audit_outbox_backlog": float(house.ledger.backlog()),
        }


def _init(house: House, passage: Passage, project_id: str) -> Json:
    made = house.lethe.init_project(project_id)
    passage.ids.update(project_id=project_id, changeset_id=made["changeset"]["changeset_id"])
    return made

"""Redaction: the one path that erases (10-operations, redaction). Its scope is never implied by another."""

from __future__ import annotations

from memory_git.charon.caller import Caller
from memory_git.charon.house import House
from memory_git.lethe.protocol import Json

SCOPE = "memory.redact"


def redact(house: House, caller: Caller, project: str | None, memory_id: str, reason: str) -> Json:
    """Erases a memory with its lineage and gives the redaction's record."""
    with house.changes(caller, "redact", project, SCOPE, memory_id=memory_id, reason=reason) as passage:
        done = house.lethe.redact(
            passage.project_id, memory_id, principal=passage.principal_id, reason=reason
        )
        passage.ids.update(redaction_id=done["redaction_id"], memory_id=memory_id)
        return done


def redactions(house: House, caller: Caller, project: str | None) -> list[Json]:
    """Gives the redactions of a project, oldest first."""
    with house.reads(caller, "redactions", project, SCOPE) as passage:
        return house.lethe.list_redactions(passage.project_id)

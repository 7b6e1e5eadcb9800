"""Redaction: the one path that erases (10-operations, redaction). Its scope is never implied by another."""

from __future__ import annotations

from memory_git.charon import refusals
from memory_git.charon.caller import Caller
from memory_git.charon.house import House
from memory_git.charon.journal import REDACTED
from memory_git.lethe.protocol import Json
from memory_git.storage import charon_journal

SCOPE = "memory.redact"


def redact(house: House, caller: Caller, project: str | None, memory_id: str, reason: str) -> Json:
    """Erases a memory with its lineage and gives the redaction's record."""
    with house.changes(caller, "redact", project, SCOPE, memory_id=memory_id, reason=reason) as passage:
        try:
            done = house.lethe.redact(
                passage.project_id, memory_id, principal=passage.principal_id, reason=reason
            )
        finally:
            journal_redactions(house, passage.project_id)
        refusals.forget(house, passage.project_id, done["memory_ids"])
        passage.ids.update(redaction_id=done["redaction_id"], memory_id=memory_id)
        return done


def journal_redactions(house: House, project_id: str) -> list[str]:
    """Journals what was erased and isn't journalled yet, also by a call that was cut off; gives the memories."""
    noted = unjournalled(house, project_id)
    for item in noted:
        house.journal.note(
            REDACTED,
            project_id=project_id,
            memory_id=item["memory_ids"][0],
            principal_id=item["principal"],
            reason=item["reason"],
        )
    return [item["memory_ids"][0] for item in noted]


def unjournalled(house: House, project_id: str) -> list[Json]:
    """Gives the redactions of a store that a restore would not know of."""
    done = house.lethe.list_redactions(project_id)
    if not done:
        return []
    with house.database.read() as connection:
        rows = charon_journal.rows_after(connection, 0)
    known = {
        row.view["memory_id"]
        for row in rows
        if row.view["kind"] == REDACTED and row.view["project_id"] == project_id
    }
    return [item for item in done if not known & set(item["memory_ids"])]


def redactions(house: House, caller: Caller, project: str | None) -> list[Json]:
    """Gives the redactions of a project, oldest first."""
    with house.reads(caller, "redactions", project, SCOPE) as passage:
        return house.lethe.list_redactions(passage.project_id)

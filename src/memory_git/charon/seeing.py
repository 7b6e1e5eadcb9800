"""Whose proposals and conflicts a caller may see (6-charon, reading).

1. A proposal is seen by its originator, by who may review or merge in the project, and by who may read its source ref:
   what isn't accepted yet is no more open than the branch that it stands on. A token that may not read sees none of another's.
2. A conflict is seen with a proposal that meets it. Of what may not be seen, not even the count is told.
"""

from __future__ import annotations

from collections.abc import Iterator

from memory_git.charon.house import House, Passage
from memory_git.charon.refs import may_read
from memory_git.lethe.protocol import Json
from memory_git.storage import charon_proposals
from memory_git.storage.charon_proposals import ProposalRow

MAX_CONFLICTS = 1000
_PAGE_ROWS = 200


def sees_all(passage: Passage) -> bool:
    """Decides whether a caller sees every proposal of the project."""
    return passage.may("memory.review") or passage.may("memory.merge")


def sees(house: House, passage: Passage, row: ProposalRow) -> bool:
    """Decides whether a caller sees a proposal (rule 1)."""
    return (
        sees_all(passage)
        or row.originator == passage.principal_id
        or (passage.may("memory.read") and may_read(house, passage, row.source_ref))
    )


def seen_proposals(
    house: House, passage: Passage, statuses: tuple[str, ...], before: str | None = None
) -> Iterator[ProposalRow]:
    """Gives the proposals that a caller sees, newest first."""
    while True:
        with house.database.read() as connection:
            rows = charon_proposals.page(connection, passage.project_id, statuses, _PAGE_ROWS, before)
        yield from (row for row in rows if sees(house, passage, row))
        if len(rows) < _PAGE_ROWS:
            return
        before = rows[-1].proposal_id


def seen_conflicts(
    house: House, passage: Passage, status: str | None = None, proposal_id: str | None = None
) -> list[Json]:
    """Gives the stored conflicts that a caller sees, each with the proposals that it sees (rule 2)."""
    found = house.lethe.list_conflicts(
        passage.project_id,
        status=status,
        proposal_id=proposal_id,
        limit=MAX_CONFLICTS,
        audience=passage.audience,
    )
    return with_seen_proposals(house, passage, found)


def with_seen_proposals(house: House, passage: Passage, found: list[Json]) -> list[Json]:
    """Gives stored conflicts with the proposals of each that the caller sees; none without one (rule 2)."""
    if sees_all(passage):
        return found
    named = {name for item in found for name in item["proposal_ids"]}
    with house.database.read() as connection:
        rows = [charon_proposals.get(connection, passage.project_id, name) for name in sorted(named)]
    seen = {row.proposal_id for row in rows if row is not None and sees(house, passage, row)}
    shown = [
        {**item, "proposal_ids": [name for name in item["proposal_ids"] if name in seen]} for item in found
    ]
    return [item for item in shown if item["proposal_ids"]]

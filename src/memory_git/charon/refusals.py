"""Rejection kept as knowledge: what was refused before, and why, beside a proposal of the same value (6-charon, proposals).

1. A rejection notes the values that it refused as digests under the ledger's key: no text, nothing to guess a text from.
2. A value counts as the same by its normalized text and scope, whoever proposes it, under whatever id, from whatever branch.
3. It is told to whoever may see the rejected proposal, and of memories that they may see: to nobody else, not even as a count.
4. It is told, and refuses nothing: the reason may have gone. What is erased is forgotten here too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memory_git.charon.house import House, Passage
from memory_git.charon.seeing import sees
from memory_git.domain.canonical import hmac_hex
from memory_git.domain.refused_values import proposed_values
from memory_git.lethe.protocol import Json
from memory_git.storage import charon_proposals, charon_refusals
from memory_git.storage.charon_proposals import ProposalRow
from memory_git.storage.connection import Connection

MAX_TOLD = 20
_DOMAIN = b"refused/v1\0"


def note_in(house: House, connection: Connection, row: ProposalRow, diff: Mapping[str, Any]) -> None:
    """Notes what a rejection refuses, in the transaction that ends the proposal (rule 1)."""
    key_id, secret = house.keys.ledger.secrets[0]
    rows = [
        (_digest(secret, row.project_id, value), memory_id, key_id)
        for value, memory_ids in proposed_values(diff).items()
        for memory_id in memory_ids
    ]
    charon_refusals.add(connection, row.project_id, row.proposal_id, rows)


def refused_before(house: House, passage: Passage, row: ProposalRow, diff: Mapping[str, Any]) -> list[Json]:
    """Gives the rejections of values that a proposal brings again, newest first; `diff` is as the caller may see it (rule 3)."""
    told: dict[str, set[str]] = {}
    with house.database.read() as connection:
        for value, memory_ids in proposed_values(diff).items():
            for _, secret in house.keys.ledger.secrets:
                digest = _digest(secret, row.project_id, value)
                for name in charon_refusals.proposals_with(connection, row.project_id, digest):
                    told.setdefault(name, set()).update(memory_ids)
        earlier = [
            charon_proposals.get(connection, row.project_id, name) for name in sorted(told, reverse=True)
        ]
    seen = [
        item
        for item in earlier
        if item and item.proposal_id != row.proposal_id and sees(house, passage, item)
    ]
    return [_shown(house, item, sorted(told[item.proposal_id])) for item in seen[:MAX_TOLD]]


def forget(house: House, project_id: str, memory_ids: list[str]) -> None:
    """Forgets what was refused of memories that are erased (rule 4)."""
    house.ledger.write(lambda connection: charon_refusals.forget(connection, project_id, memory_ids))


def _shown(house: House, row: ProposalRow, memory_ids: list[str]) -> Json:
    with house.database.read() as connection:
        reviews = charon_proposals.reviews(connection, row.project_id, row.proposal_id)
    said = next((item for item in reversed(reviews) if item.verdict == "reject"), None)
    return {
        "proposal_id": row.proposal_id,
        "memory_ids": memory_ids,
        "reviewer": said.reviewer if said else row.closed_by,
        "reason": said.comment if said else "",
        "refused_at": said.created_at if said else row.updated_at,
    }


def _digest(secret: str, project_id: str, value: bytes) -> str:
    return hmac_hex(secret.encode(), _DOMAIN + project_id.encode() + b"\0" + value)

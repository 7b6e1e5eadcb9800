"""The withdrawal of a proposal (6-charon, proposals)."""

from __future__ import annotations

from memory_git.charon.caller import Caller
from memory_git.charon.house import House
from memory_git.charon.merges import settle_attempts
from memory_git.charon.proposals import close, detail, project_of, require_open, require_seen
from memory_git.lethe.protocol import Json


def cancel(house: House, caller: Caller, proposal_id: str) -> Json:
    """Withdraws an open proposal; its originator may, and an administrator of the project."""
    project_id = project_of(house, caller, "cancel", proposal_id)
    with house.changes(caller, "cancel", project_id, "memory.propose", proposal_id=proposal_id) as passage:
        passage.ids["proposal_id"] = proposal_id
        seen = require_seen(house, passage, proposal_id)
        if seen.originator != passage.principal_id and not passage.may("admin"):
            house.forbid("only its originator cancels a proposal")
        settle_attempts(house, project_id, proposal_id)
        row = require_open(house, require_seen(house, passage, proposal_id))
        return detail(house, close(house, row, "canceled", passage.principal_id), passage)

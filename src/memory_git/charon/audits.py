"""The ledger, read by administrators (6-charon, audit ledger)."""

from __future__ import annotations

from collections.abc import Iterator

from memory_git.charon.caller import Caller
from memory_git.charon.house import House
from memory_git.domain.errors import Invalid
from memory_git.domain.ids import check_project_id
from memory_git.lethe.protocol import Json

MAX_ROWS = 1000


def ledger_tail(house: House, caller: Caller, project: str | None, limit: int) -> list[Json]:
    """Gives a chain's last rows, oldest first; without a project, of the calls that name none."""
    with house.administers(caller, "ledger_tail", project, reads=True, limit=limit):
        if not 1 <= limit <= MAX_ROWS:
            raise Invalid("bad_limit", f"limit is a number from 1 to {MAX_ROWS}")
        return house.ledger.tail(_chain(project), limit)


def ledger_verify(house: House, caller: Caller, project: str | None) -> Json:
    """Recomputes a chain, or all, against the anchor: `{ok, checked: {chain: rows}, faults}`."""
    with house.administers(caller, "ledger_verify", project, reads=True):
        return house.ledger.verify(None if project is None else check_project_id(project))


def ledger_export(house: House, caller: Caller, project: str | None) -> Iterator[Json]:
    """Gives all rows of a chain, or of all chains, each with its links."""
    with house.administers(caller, "ledger_export", project, reads=True):
        chains = house.ledger.chains() if project is None else [check_project_id(project)]
    for chain in chains:
        yield from house.ledger.export(chain)


def _chain(project: str | None) -> str:
    return "" if project is None else check_project_id(project)

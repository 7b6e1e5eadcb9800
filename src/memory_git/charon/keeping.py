"""What the gate itself writes into the store for a proposal, as its service principal (3-model, refs; 6-charon, proposals).

1. `refs/proposals/<id>` keeps a proposal's head reachable; a rebased head, which does not descend from the first, is kept
   at `refs/proposals/<id>.<n>`.
2. A rejection is attested there, with the reviewer and the reason.
3. A closed proposal lets go of its open conflicts. All of it may be repeated: after a crash, reconcile does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memory_git.charon.house import House
from memory_git.charon.judging import reviews_of
from memory_git.domain.canonical import digest
from memory_git.domain.errors import Clash
from memory_git.domain.policy import SERVICE_PRINCIPAL
from memory_git.domain.proposals import CONFLICT_STATUS, FINAL_STATUSES
from memory_git.lethe.protocol import Json
from memory_git.storage import charon_proposals
from memory_git.storage.charon_proposals import ProposalRow


def keep(house: House, project_id: str, ref_name: str, head: str) -> str:
    """Keeps a head reachable under a ref of the gate's; gives the ref's name."""
    house.lethe.create_branch(project_id, ref_name, head, SERVICE_PRINCIPAL)
    return ref_name


def kept_ref(proposal_id: str, place: int) -> str:
    """Gives the name of the ref that keeps a proposal's n-th head.

    >>> kept_ref("p", 0), kept_ref("p", 2)
    ('refs/proposals/p', 'refs/proposals/p.2')
    """
    return f"refs/proposals/{proposal_id}{f'.{place}' if place else ''}"


def make_changeset(
    house: House,
    project_id: str,
    ref_name: str,
    *,
    parents: Sequence[str],
    ops: Sequence[Any],
    message: str,
    key: str,
    advance_from: str | None = None,
) -> Json:
    """Makes a changeset in the gate's own name; on no ref yet, unless it advances one."""
    request: dict[str, Any] = {
        "project_id": project_id,
        "ref_name": ref_name,
        "parent_ids": list(parents),
        "author_principal": SERVICE_PRINCIPAL,
        "surface": "charon",
        "message": message,
        "idempotency_key": key,
        "ops": list(ops),
    }
    if advance_from is not None:
        request.update(expected_head=advance_from, advance_ref=True)
    changeset, _ = house.lethe.create_changeset(request)
    return changeset


def pick_candidate(house: House, row: ProposalRow, onto: str, plan: Json) -> str:
    """Makes the cherry-pick of a proposal's selected ops on a head and gives its id; refused ops are a Clash."""
    return make_pick(house, row, onto, plan, extra=(), message=f"Selected for proposal {row.proposal_id}")


def make_pick(
    house: House, row: ProposalRow, onto: str, plan: Json, *, extra: Sequence[Json], message: str
) -> str:
    """Makes one changeset of a planned cherry-pick, with ops of the gate's own after it."""
    if plan["refused"]:
        raise Clash(
            "ops_refused",
            f"{len(plan['refused'])} selected op(s) can't stand on the target: select what they need too",
            refused=plan["refused"],
            current_head=onto,
        )
    ops = [*(op for step in plan["steps"] for op in step["ops"]), *extra]
    changeset = make_changeset(
        house,
        row.project_id,
        row.kept_ref,
        parents=[onto],
        ops=ops,
        message=message,
        key=f"pick:{row.proposal_id}:{onto}:{digest(ops)[:16]}",
    )
    return str(changeset["changeset_id"])


def follow_up(house: House, row: ProposalRow) -> ProposalRow:
    """Does in the store what the end of a proposal asks for, and notes that it is done."""
    changes: dict[str, Any] = {"followed_up": True}
    if row.status == "rejected":
        changes["attestation_changeset_id"] = _attest_rejection(house, row)
    house.lethe.retire_conflicts(row.project_id, row.proposal_id, CONFLICT_STATUS[row.status])
    house.ledger.write(
        lambda connection: charon_proposals.change(connection, row, tuple(FINAL_STATUSES), **changes)
    )
    return reload(house, row)


def reload(house: House, row: ProposalRow) -> ProposalRow:
    """Gives a proposal as it is stored now."""
    with house.database.read() as connection:
        return charon_proposals.get(connection, row.project_id, row.proposal_id) or row


def _attest_rejection(house: House, row: ProposalRow) -> str:
    rejection = next(item for item in reversed(reviews_of(house, row)) if item.verdict == "reject")
    payload = {
        "kind": "review",
        "summary": f"Rejected: proposal {row.proposal_id}",
        "rejected_from": row.target_ref,
        "reviewer": rejection.reviewer,
        "proposal_id": row.proposal_id,
        "status": "rejected",
        "note": rejection.comment,
    }
    changeset = make_changeset(
        house,
        row.project_id,
        row.kept_ref,
        parents=[row.head_changeset_id],
        ops=[{"op_type": "attach_verification", "payload": payload}],
        message=f"Rejection of proposal {row.proposal_id}",
        key=f"rejection:{row.proposal_id}",
        advance_from=row.head_changeset_id,
    )
    return str(changeset["changeset_id"])

"""Which side knows what, after a crash or a restore (6-charon, merge; 10-operations, recovery). Repeating it changes nothing.

What is compared, in the order of the code; `repair` mends what can be mended:

1. `attempt_open`       a signed merge of which nobody noted what became: the store's advances say (mended); one whose
                        authorization could still be used, for two minutes at most, is under way and no fault
2. `advance_unknown`    the store moved a protected ref for a proposal that the gate does not know as merged
3. `head_differs`       an accepted head's integrity digest is not the one in the keyed ledger, or it is gone or broken
4. `advance_lost`       the ledger knows an accepted head that the store has not
5. `ref_differs`        a protected ref does not stand where its last advance put it
6. `follow_up_open`     a closed proposal whose attestation or conflicts were not written (mended)
7. `proposal_overdue`   an open proposal whose time is over (mended)
8. `outcome_missing`    an intent in the ledger without an outcome (mended: settled as interrupted)
9. `proposal_orphan`    work kept for a proposal that was never stored: its conflicts are let go of (mended)
10. `project_lost`      the ledger has a chain of a project that the store has not
11. `redaction_unjournalled` something was erased and a restore would not know of it (mended)
12. `backup_differs`    the store lacks a head, or the ledger a link, that the manifest of the restored backup names
13. `journal_missing`, `journal_damaged`, `journal_differs`, `database_set_back`: what `recovery` says of the journal's file
14. what `ledger verify` finds
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memory_git.charon import keeping, recovery
from memory_git.charon.caller import Caller
from memory_git.charon.house import House
from memory_git.charon.ledger import Call
from memory_git.charon.merges import became, settle
from memory_git.charon.proposals import as_of, close
from memory_git.charon.redactions import journal_redactions, unjournalled
from memory_git.domain.errors import Corrupt, NotFound
from memory_git.domain.ids import parse_ref
from memory_git.lethe.adopting import IMPORTED_VERSION
from memory_git.lethe.protocol import Json
from memory_git.storage import charon_ledger, charon_proposals
from memory_git.storage.charon_ledger import LedgerRow

MENDABLE = frozenset(
    {
        "attempt_open",
        "follow_up_open",
        "proposal_overdue",
        "outcome_missing",
        "proposal_orphan",
        "redaction_unjournalled",
    }
)


def reconcile(
    house: House, caller: Caller, *, repair: bool, without_journal: bool, manifest: Json | None
) -> Json:
    """Compares both sides: `{ok, faults, repaired, checked}`; with `repair` mends first, then compares.

    `manifest` is that of the backup which was restored. `without_journal` goes on where the journal is lost for good.
    """
    asked: dict[str, Any] = {"repair": repair, "without_journal": without_journal}
    with house.administers(caller, "reconcile", reads=True, **asked), house.turnstile.closed():
        house.ledger.flush()
        repaired = [recovery.give_up_journal(house)] if without_journal and house.recovery_fault else []
        repaired += _mend(house) if repair else []
        faults = [*_faults(house), *_backup_faults(house, manifest or {})]
        if house.recovery_fault:
            faults.append(_fault(house.recovery_fault, "", why=house.recovery_why))
        ledger = house.ledger.verify()
        faults += [{"kind": "ledger_broken", **fault} for fault in ledger["faults"]]
        checked = {
            "projects": len(house.lethe.list_projects()),
            "ledger_rows": sum(ledger["checked"].values()),
        }
        return {"ok": not faults, "faults": faults, "repaired": repaired, "checked": checked}


def _mend(house: House) -> list[Json]:
    done: list[Json] = []
    if not house.recovery_fault:
        house.journal.copy()
    pending: set[tuple[str, str]] = set()
    with house.database.read() as connection:
        attempts = charon_proposals.intended_attempts(connection)
    for attempt in attempts:
        became = settle(house, attempt)
        if became == "pending":
            pending.add((attempt.project_id, attempt.proposal_id))
        done.append(
            _fault("attempt_open", attempt.project_id, proposal_id=attempt.proposal_id, became=became)
        )
    with house.database.read() as connection:
        overdue = charon_proposals.overdue(connection, house.time())
    for row in overdue:
        if (row.project_id, row.proposal_id) in pending:
            continue
        close(house, as_of(house, row), "expired", "system")
        done.append(_fault("proposal_overdue", row.project_id, proposal_id=row.proposal_id))
    with house.database.read() as connection:
        unfinished = charon_proposals.unfinished(connection)
    for row in unfinished:
        keeping.follow_up(house, row)
        done.append(_fault("follow_up_open", row.project_id, proposal_id=row.proposal_id))
    for project_id, proposal_id in _orphans(house):
        if house.lethe.retire_conflicts(project_id, proposal_id, "canceled"):
            done.append(_fault("proposal_orphan", project_id, proposal_id=proposal_id))
    with house.database.read() as connection:
        intents = charon_ledger.intents_without_outcome(connection)
    for intent in intents:
        house.ledger.settle(_call_of(intent), intent.seq, "interrupted", {})
        done.append(_fault("outcome_missing", intent.project_id, seq=intent.seq))
    for project_id in house.lethe.list_projects():
        for memory_id in journal_redactions(house, project_id):
            done.append(_fault("redaction_unjournalled", project_id, memory_id=memory_id))
    house.ledger.flush()
    return done


def _faults(house: House) -> Iterator[Json]:
    with house.database.read() as connection:
        attempts = charon_proposals.intended_attempts(connection)
        unfinished = charon_proposals.unfinished(connection)
        overdue = charon_proposals.overdue(connection, house.time())
        intents = charon_ledger.intents_without_outcome(connection)
        chains = charon_ledger.heads(connection)
    pending = set()
    for attempt in attempts:
        if became(house, attempt) == "pending":
            pending.add((attempt.project_id, attempt.proposal_id))
        else:
            yield _fault("attempt_open", attempt.project_id, proposal_id=attempt.proposal_id)
    for project_id in house.lethe.list_projects():
        yield from _project_faults(house, project_id)
        for item in unjournalled(house, project_id):
            yield _fault("redaction_unjournalled", project_id, memory_id=item["memory_ids"][0])
    for kind, rows in (("follow_up_open", unfinished), ("proposal_overdue", overdue)):
        for row in rows:
            if kind == "proposal_overdue" and (row.project_id, row.proposal_id) in pending:
                continue
            yield _fault(kind, row.project_id, proposal_id=row.proposal_id)
    for intent in intents:
        yield _fault("outcome_missing", intent.project_id, seq=intent.seq)
    for project_id, proposal_id in _orphans(house):
        if house.lethe.list_conflicts(project_id, status="open", proposal_id=proposal_id, limit=1):
            yield _fault("proposal_orphan", project_id, proposal_id=proposal_id)
    for project_id in sorted(chains.keys() - {"", *house.lethe.list_projects()}):
        yield _fault("project_lost", project_id)


def _project_faults(house: House, project_id: str) -> Iterator[Json]:
    """Compares a project's protected advances with the gate's proposals and the heads in the keyed ledger.

    What was imported was accepted elsewhere: no gate of ours knows of it.
    """
    advances = [item for item in house.lethe.list_advances(project_id) if item["version"] != IMPORTED_VERSION]
    with house.database.read() as connection:
        noted = {
            row.view["ids"]["head"]: row.view["ids"]
            for row in charon_ledger.of_kind(connection, project_id, "head")
        }
        merged = {
            item["proposal_id"]: charon_proposals.get(connection, project_id, item["proposal_id"])
            for item in advances
        }
    last: dict[str, str] = {}
    for item in advances:
        head, proposal_id = item["to_head"], item["proposal_id"]
        last[item["ref_name"]] = head
        row = merged[proposal_id]
        if head not in noted or row is None or row.merged_changeset_id != head:
            yield _fault("advance_unknown", project_id, proposal_id=proposal_id, head=head)
        elif _integrity_of(house, head) != noted[head]["integrity_digest"]:
            yield _fault("head_differs", project_id, proposal_id=proposal_id, head=head)
    for head in sorted(noted.keys() - {item["to_head"] for item in advances}):
        yield _fault("advance_lost", project_id, proposal_id=noted[head]["proposal_id"], head=head)
    for ref_name, head in sorted(last.items()):
        if _head_of(house, project_id, ref_name) != head:
            yield _fault("ref_differs", project_id, ref_name=ref_name, head=head)


def _backup_faults(house: House, manifest: Json) -> Iterator[Json]:
    for project_id, refs in manifest.get("heads", {}).items():
        for ref_name, head in refs.items():
            if _head_of(house, project_id, ref_name) is None or _integrity_of(house, head) is None:
                yield _fault("backup_differs", project_id, ref_name=ref_name, head=head)
    for project_id, head in manifest.get("ledger_heads", {}).items():
        with house.database.read() as connection:
            link = charon_ledger.link_at(connection, project_id, head["seq"])
        if link != head["link"]:
            yield _fault("backup_differs", project_id, seq=head["seq"])


def _head_of(house: House, project_id: str, ref_name: str) -> str | None:
    try:
        return str(house.lethe.resolve_ref(project_id, ref_name)["head_changeset_id"])
    except NotFound:
        return None


def _integrity_of(house: House, head: str) -> str | None:
    """Gives a head's integrity digest; None for one that is gone or broken, which is a finding here, not the end."""
    try:
        return str(house.lethe.get_changeset(head)["integrity_digest"])
    except (NotFound, Corrupt):
        return None


def _orphans(house: House) -> list[tuple[str, str]]:
    """Gives (project, proposal id) of kept work whose proposal was never stored."""
    found: set[tuple[str, str]] = set()
    for project_id in house.lethe.list_projects():
        kept = [
            parse_ref(ref["ref_name"]).owner.partition(".")[0]
            for ref in house.lethe.list_refs(project_id)
            if ref["ref_name"].startswith("refs/proposals/")
        ]
        with house.database.read() as connection:
            found |= {
                (project_id, name)
                for name in set(kept)
                if charon_proposals.get(connection, project_id, name) is None
            }
    return sorted(found)


def _call_of(intent: LedgerRow) -> Call:
    view = intent.view
    return Call(
        intent.project_id,
        view["principal_id"],
        view["obol_id"],
        "reconcile",
        view["route"],
        view["project"],
        view["request_digest"],
    )


def _fault(kind: str, project_id: str, **facts: Any) -> Json:
    return {"kind": kind, "project_id": project_id, **facts}

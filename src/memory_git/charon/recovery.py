"""How a gate whose databases were set back comes to serve again (10-operations, backup and recovery).

1. A marker in the data directory keeps a restored gate read-only until reconcile finds nothing. It names the restore, and the
   backup's manifest.
2. Before anything is served, what the journal's file has beyond the database is done again: erased text, revoked tokens and
   disabled principals do not come back.
3. Each restore starts a new token epoch, once: sessions and sign-in links of the backup end, no process takes what it remembers
   of callers for true, and the ledger's anchor follows the databases back. The journal says which links were anchored.
4. Without the journal, or with one that is not this gate's, and where the anchor is ahead of a database of which nobody said that
   it was restored, the gate stays read-only. Whoever has lost the journal for good gives it up: every token ends.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_git.charon import journal
from memory_git.charon.anchor import Anchor, Heads
from memory_git.charon.caller import LOCAL_OPERATOR
from memory_git.charon.house import House
from memory_git.charon.journal_file import JOURNAL, JournalFile
from memory_git.charon.ledger import Call
from memory_git.charon.side_file import write_durably
from memory_git.domain.envelope import MergeKeys
from memory_git.domain.errors import NotFound, Unavailable
from memory_git.lethe.protocol import Json
from memory_git.storage import charon_identity, charon_journal, charon_ledger, charon_oauth, charon_sessions
from memory_git.storage.charon_journal import JournalRow
from memory_git.storage.connection import Connection

MARKER = "recovery-readonly"
MARKER_FORMAT = "memory-git-restore/v1"

MISSING = "journal_missing"
DAMAGED = "journal_damaged"
DIFFERS = "journal_differs"
SET_BACK = "database_set_back"
WHY = {
    MISSING: "the journal beside the ledger's anchor is missing, or older than the backup: bring anchor/ as it was last",
    DAMAGED: "the journal beside the ledger's anchor does not verify: bring it, and keys/, as they were last",
    DIFFERS: "the journal beside the ledger's anchor is another gate's, or goes on otherwise than the database's",
    SET_BACK: "the ledger's anchor is ahead of the database: say that it was restored (`charon restore --in-place`)",
}


@dataclass(frozen=True, slots=True)
class Marker:
    """What keeps a gate read-only; `restore_id` is None where somebody only touched the file."""

    restore_id: str | None
    manifest: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Assessment:
    """What is to be done before a gate serves: `behind` are entries to do again, `fault` one of WHY or empty."""

    fault: str
    behind: Sequence[JournalRow]
    begins_epoch: bool


def write_marker(data_dir: Path, manifest: dict[str, Any] | None) -> None:
    """Marks a data directory as restored, once more."""
    marked = {"format": MARKER_FORMAT, "restore_id": secrets.token_hex(16), "manifest": manifest}
    write_durably(data_dir / MARKER, json.dumps(marked, indent=1, sort_keys=True).encode())


def read_marker(path: Path) -> Marker | None:
    """Gives the marker of a data directory, None where there is none."""
    try:
        content = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
    try:
        marked = json.loads(content)
        return Marker(marked["restore_id"], marked["manifest"])
    except (ValueError, KeyError, TypeError):
        return Marker(None, None)


def assess(house: House, marker: Marker | None, anchor: Anchor, keys: MergeKeys) -> Assessment:
    """Decides what an opened house needs before it serves."""
    file = house.journal.file
    anchored = anchor.heads()
    try:
        rows = file.read(keys)
    except Unavailable:
        return Assessment(DAMAGED, (), begins_epoch=False)
    with house.database.read() as connection:
        stored = charon_journal.rows_after(connection, 0)
        heads = charon_ledger.heads(connection)
    fault = _fault(marker, rows, stored, _ahead(anchored, heads))
    if fault:
        return Assessment(fault, (), begins_epoch=False)
    begins = marker is not None and marker.restore_id is not None and not _epoch_of(marker, [*stored, *rows])
    return Assessment("", rows[len(stored) :], begins)


def replay(house: House, rows: Sequence[JournalRow]) -> None:
    """Does again what entries say, in the store first: what is cut off between the two is begun anew."""
    for row in rows:
        if row.view["kind"] == journal.REDACTED:
            _erase(house, row.view)
    house.journal.adopt(rows)


def begin_epoch(house: House, marker: Marker, anchor: Anchor) -> None:
    """Starts the token epoch of a restore (rule 3)."""
    with house.database.read() as connection:
        heads = charon_ledger.heads(connection)
    ahead = _ahead(anchor.heads(), heads)
    manifest = marker.manifest or {}
    what = {
        "restore_id": marker.restore_id,
        "backup_created_at": manifest.get("created_at"),
        "anchored": {name: {"seq": seq, "link": link} for name, (seq, link) in ahead.items()},
    }
    anchor.set_back({name: heads.get(name) for name in ahead})
    _end_sign_ins(house, "restore", journal.RESTORED, what)


def give_up_journal(house: House) -> Json:
    """Goes on without the journal's file: every token ends, for any may have been revoked. The old file is put aside."""
    fault = house.recovery_fault
    house.journal.file.put_aside()
    _end_sign_ins(house, "reconcile", journal.JOURNAL_LOST, {"fault": fault}, tokens=True)
    house.recovery_fault = house.recovery_why = ""
    return {"kind": fault, "project_id": "", "became": "every token revoked, a new journal begun"}


def _end_sign_ins(house: House, route: str, kind: str, what: dict[str, Any], *, tokens: bool = False) -> None:
    call = Call("", LOCAL_OPERATOR, None, "cli", route, None, house.ledger.request_digest({"kind": kind}))
    ids = {"restore_id": what.get("restore_id")}

    def end(connection: Connection, intent_seq: int) -> None:
        if tokens:
            charon_identity.revoke_obols(connection, house.time())
        charon_sessions.end_all(connection)
        charon_oauth.end_all(connection)
        charon_identity.jump_epoch(connection, int(house.now().timestamp() * 1000))
        house.journal.note_in(connection, kind, **what)
        house.ledger.settle_in(connection, call, intent_seq, kind, ids)

    house.ledger.intend(call, ids, end)
    house.journal.copy()


def _fault(
    marker: Marker | None, rows: Sequence[JournalRow], stored: Sequence[JournalRow], ahead: Heads
) -> str:
    restored = marker is not None and marker.restore_id is not None
    if any(one.link != other.link for one, other in zip(rows, stored, strict=False)):
        return DIFFERS
    if restored and marker is not None:
        needed = ((marker.manifest or {}).get("journal") or {}).get("seq", _before(marker, stored))
        if not rows or len(rows) < needed:
            return MISSING
    return SET_BACK if ahead and not restored else ""


def _epoch_of(marker: Marker, rows: Sequence[JournalRow]) -> bool:
    return any(row.view.get("restore_id") == marker.restore_id for row in rows)


def _before(marker: Marker, stored: Sequence[JournalRow]) -> int:
    """Counts the entries that the database had before this restore made its own: one that was cut off has them in no file yet."""
    own = (place for place, row in enumerate(stored) if row.view.get("restore_id") == marker.restore_id)
    return next(own, len(stored))


def _ahead(anchored: Heads, heads: Heads) -> Heads:
    return {name: head for name, head in anchored.items() if head[0] > heads.get(name, (0, ""))[0]}


def _erase(house: House, view: dict[str, Any]) -> None:
    try:
        house.lethe.redact(
            view["project_id"], view["memory_id"], principal=view["principal_id"], reason=view["reason"]
        )
    except NotFound:
        return
    except Unavailable as error:
        raise Unavailable(
            "journal_unreplayed",
            f"the store can't erase again what was erased since the backup ({error.code}): start it once for writing",
        ) from error


def journal_file(anchor: Anchor) -> JournalFile:
    """Gives the journal's file beside an anchor."""
    return JournalFile(anchor.path.parent / JOURNAL)

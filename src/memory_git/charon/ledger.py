"""The audit ledger: append-only chains, one a project and one for calls that name none (6-charon, audit ledger).

1. An intent is durable before its mutation begins; if it can't be written, the mutation is refused.
2. Outcomes, reads and denials are batched: they trail by at most a second, and ride along with the next intent.
3. A link is HMAC-SHA256 under the ledger key; the last links are anchored in a file outside the database.
4. Rows hold ids and digests, no content. A request's digest is keyed, so that a short text can't be guessed from it.
5. In recovery nothing is written to the database: rows go to a file beside it, chained alike.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from memory_git.charon.anchor import Anchor
from memory_git.charon.keys import Keys
from memory_git.charon.side_file import SideFile
from memory_git.charon.steps import Step, Told
from memory_git.domain.canonical import canonical_bytes, hmac_hex
from memory_git.domain.chain import link_keyed
from memory_git.domain.errors import Refused, Unavailable
from memory_git.domain.times import format_time
from memory_git.storage import charon_identity, charon_ledger
from memory_git.storage.charon_ledger import LedgerRow
from memory_git.storage.connection import Connection
from memory_git.storage.engine import ANY, Database, Turn
from memory_git.storage.errors import ConstraintBroken

T = TypeVar("T")
Ids = Mapping[str, Any]
FLUSH_S = 0.5
MAX_BACKLOG_ROWS = 20_000
_PLACE = "ledger"
"""What the end of a chain is called where writers take turns."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Call:
    """One call at the gate, as the ledger names it; `chain` is the project whose chain it stands in, or empty."""

    chain: str
    principal_id: str
    obol_id: str | None
    surface: str
    route: str
    project: str | None
    request_digest: str


class Ledger:
    """Writes the chains of one process; every method may be called from any thread."""

    def __init__(
        self,
        database: Database,
        keys: Keys,
        anchor: Anchor,
        now: Callable[[], datetime],
        side_file: SideFile | None,
    ) -> None:
        self._database = database
        self._keys = keys
        self._anchor = anchor
        self._now = now
        self._side_file = side_file
        self._lock = threading.Lock()
        self._waiting: list[tuple[str, dict[str, Any]]] = []
        self._used: dict[str, str] = {}
        self._moved: dict[str, tuple[int, str]] = {}
        self._wake = threading.Event()
        self._pause = threading.Event()
        self._stopping = False
        self._trailing: list[Callable[[], None]] = []
        self.denials = 0
        self.trail_failures = 0
        self._thread = threading.Thread(target=self._trail, name="ledger", daemon=True)
        if side_file is None:
            self._thread.start()

    def follow(self, trailing: Callable[[], None]) -> None:
        """Has something else done each time that what waits is written."""
        self._trailing.append(trailing)

    def request_digest(self, request: Mapping[str, Any]) -> str:
        """Gives the keyed digest of a call's arguments (rule 4)."""
        try:
            text = canonical_bytes(dict(request))
        except Refused:
            text = b"not I-JSON"
        return hmac_hex(self._signing()[1], b"request\0" + text)

    def intend(self, call: Call, ids: Ids, work: Callable[[Connection, int], T]) -> T:
        """Writes an intent and what belongs to it in one durable transaction; `work` gets the intent's seq."""
        view = self._view(call, "intent", decision="allowed", ids=ids)

        def write(connection: Connection) -> T:
            return work(connection, self._append(connection, call.chain, view))

        with _audit_failures():
            return self.write(write, call.chain)

    def intending(self, call: Call, ids: Ids) -> Step[int]:
        """Gives the step of writing an intent; its answer is the intent's seq."""

        def soon(told: Told) -> Callable[[], int]:
            view = self._view(call, "intent", decision="allowed", ids=ids)
            together = _Together(
                self, lambda connection: self._append(connection, call.chain, view), call.chain
            )
            with _audit_failures(), together.kept():
                done = self._database.write_soon(together, told, self._turn(call.chain))

            def answer() -> int:
                with _audit_failures(), together.kept():
                    return done()

            return answer

        return Step(lambda: self.intend(call, ids, lambda _, seq: seq), soon)

    def write(self, work: Callable[[Connection], T], chain: str | None = None) -> T:
        """Runs a work in one durable transaction, with the rows that wait before it.

        Where the database is shared, no transaction spans two projects: only rows of the same chain go along. A work that touches
        one chain alone waits for no other's.
        """
        together = _Together(self, work, chain)
        with together.kept():
            return self._database.write(together, self._turn(chain))

    def _take(self, chain: str | None) -> list[tuple[str, dict[str, Any]]]:
        if not self._database.is_shared:
            taken, self._waiting = self._waiting, []
            return taken
        taken = [row for row in self._waiting if row[0] == chain]
        self._waiting = [row for row in self._waiting if row[0] != chain]
        return taken

    def _turn(self, chain: str | None) -> Turn:
        if chain is None:
            return ANY
        return Turn(chain, _PLACE, lambda connection: _ask_head(connection, chain))

    def settle(self, call: Call, intent_seq: int, outcome: str, ids: Ids, reason: str = "") -> None:
        """Notes what became of an intent, within a second."""
        self._later(call.chain, self._outcome(call, intent_seq, outcome, ids, reason), always=True)

    def settle_in(self, connection: Connection, call: Call, intent_seq: int, outcome: str, ids: Ids) -> None:
        """Notes what became of an intent inside a transaction of the caller's."""
        self._append(connection, call.chain, self._outcome(call, intent_seq, outcome, ids, ""))

    def note_in(self, connection: Connection, call: Call, kind: str, ids: Ids) -> None:
        """Adds a row of another kind inside a transaction of the caller's: `head` for a protected head that moved."""
        self._append(connection, call.chain, self._view(call, kind, decision="allowed", ids=ids))

    def read(self, call: Call, outcome: str, ids: Ids) -> None:
        """Notes a read, within a second; refuses when too many rows wait."""
        self._later(call.chain, self._view(call, "read", decision="allowed", outcome=outcome, ids=ids))

    def deny(self, call: Call, reason: str) -> None:
        """Notes a call that was not allowed, and why."""
        self.denials += 1
        self._later(call.chain, self._view(call, "denied", decision="denied", reason=reason))

    def token_used(self, obol_id: str) -> None:
        """Notes that a token was used just now."""
        with self._lock:
            self._used[obol_id] = format_time(self._now())
        self._wake.set()

    def backlog(self) -> int:
        """Counts the rows that wait."""
        return len(self._waiting)

    def flush(self) -> None:
        """Writes what waits, and anchors the heads."""
        if self._side_file is not None:
            return
        with self._lock:
            used, self._used = self._used, {}
        if self._waiting or used:
            self._write_waiting(used)
        with self._lock:
            moved, self._moved = self._moved, {}
        if moved:
            self._anchor.move(moved)
        for trailing in self._trailing:
            trailing()

    def close(self) -> None:
        """Writes what waits, and ends the thread."""
        self._stopping = True
        self._wake.set()
        self._pause.set()
        if self._thread.is_alive():
            self._thread.join()
        self.flush()
        if self._side_file is not None:
            self._side_file.close()

    def tail(self, project_id: str, limit: int) -> list[dict[str, Any]]:
        """Gives a chain's last rows, oldest first, those that waited included."""
        self.flush()
        with self._database.read() as connection:
            return [_shown(row) for row in charon_ledger.tail(connection, project_id, limit)]

    def export(self, project_id: str) -> Iterator[dict[str, Any]]:
        """Gives a whole chain, each row with its links."""
        self.flush()
        with self._database.read() as connection:
            for row in charon_ledger.rows(connection, project_id):
                yield _shown(row)

    def chains(self) -> list[str]:
        """Gives the projects that have a chain; the empty one is of calls that name none."""
        with self._database.read() as connection:
            return sorted(charon_ledger.heads(connection))

    def verify(self, project_id: str | None = None) -> dict[str, Any]:
        """Recomputes one chain, or all, and compares each with its anchor: `{ok, checked: {chain: rows}, faults}`."""
        self.flush()
        anchored = self._anchor.heads()
        chains = sorted({*self.chains(), *anchored}) if project_id is None else [project_id]
        checked: dict[str, int] = {}
        faults: list[dict[str, Any]] = []
        for chain in chains:
            rows, found = self._verify_chain(chain, anchored.get(chain))
            checked[chain] = rows
            faults += found
        return {"ok": not faults, "checked": checked, "faults": faults}

    def _write_waiting(self, used: dict[str, str]) -> None:
        if self._database.is_shared:
            with self._lock:
                chains = sorted({chain for chain, _ in self._waiting})
            for chain in chains:
                self.write(lambda _: None, chain)
        if self._database.is_shared and not used:
            return
        try:
            self.write(lambda connection: charon_identity.set_last_used(connection, used.items()))
        except BaseException:
            with self._lock:
                self._used = {**used, **self._used}
            raise

    def _verify_chain(
        self, chain: str, anchored: tuple[int, str] | None
    ) -> tuple[int, Sequence[dict[str, Any]]]:
        previous: str | None = None
        seq = 0
        faults: list[dict[str, Any]] = []
        with self._database.read() as connection:
            for row in charon_ledger.rows(connection, chain):
                seq += 1
                why = self._fault(row, seq, previous)
                if not why and anchored and anchored[0] == seq and anchored[1] != row.link:
                    why = "anchor_differs"
                if why:
                    faults.append({"project_id": chain, "seq": row.seq, "why": why})
                    break
                previous = row.link
        if not faults and anchored and anchored[0] > seq:
            faults.append({"project_id": chain, "seq": seq, "why": "cut_before_anchor"})
        return seq, faults

    def _fault(self, row: LedgerRow, seq: int, previous: str | None) -> str:
        view = row.view
        if row.previous != previous:
            return "previous_differs"
        secret = self._keys.ledger.secret(str(view.get("key_id")))
        if secret is None:
            return "key_unknown"
        if link_keyed(secret, previous, view) != row.link:
            return "link_differs"
        copied = (view["project_id"], view["seq"], view["kind"], view["intent_seq"])
        return (
            ""
            if copied == (row.project_id, seq, row.kind, row.intent_seq) and row.seq == seq
            else "row_differs"
        )

    def _view(self, call: Call, kind: str, *, decision: str, **more: Any) -> dict[str, Any]:
        return {
            "at": format_time(self._now()),
            "kind": kind,
            "principal_id": call.principal_id,
            "obol_id": call.obol_id,
            "surface": call.surface,
            "route": call.route,
            "project": call.project,
            "request_digest": call.request_digest,
            "decision": decision,
            "reason": more.get("reason", ""),
            "outcome": more.get("outcome"),
            "ids": dict(more.get("ids") or {}),
            "intent_seq": more.get("intent_seq"),
        }

    def _outcome(self, call: Call, intent_seq: int, outcome: str, ids: Ids, reason: str) -> dict[str, Any]:
        decision = "denied" if reason else "allowed"
        more = {"outcome": outcome, "ids": ids, "reason": reason, "intent_seq": intent_seq}
        return self._view(call, "outcome", decision=decision, **more)

    def _later(self, chain: str, view: dict[str, Any], *, always: bool = False) -> None:
        if self._side_file is not None:
            self._side_file.append(view)
            return
        with self._lock:
            if len(self._waiting) >= MAX_BACKLOG_ROWS and not always:
                raise Unavailable(
                    "audit_backlog", "the audit can't be written; nothing is answered unrecorded"
                )
            self._waiting.append((chain, view))
        self._wake.set()

    def _append(self, connection: Connection, chain: str, view: Mapping[str, Any]) -> int:
        connection.lock("ref", chain, _PLACE)
        last, previous = charon_ledger.head(connection, chain)
        key_id, secret = self._signing()
        full = {**view, "project_id": chain, "seq": last + 1, "key_id": key_id}
        link = link_keyed(secret, previous, full)
        row = LedgerRow(chain, last + 1, previous, link, full, full["kind"], full["intent_seq"])
        charon_ledger.append(connection, row)
        connection.after_commit(lambda: self._move(chain, last + 1, link))
        return last + 1

    def _move(self, chain: str, seq: int, link: str) -> None:
        with self._lock:
            self._moved[chain] = (seq, link)
        self._wake.set()

    def _signing(self) -> tuple[str, bytes]:
        """Gives the key that signs now, with its id; the file is looked at once."""
        ring = self._keys.ledger
        secret = ring.secret(ring.signing_key_id)
        if secret is None:
            raise Unavailable("key_damaged", "the ledger key is absent")
        return ring.signing_key_id, secret

    def _trail(self) -> None:
        while not self._stopping:
            self._wake.wait()
            self._pause.wait(FLUSH_S)
            self._wake.clear()
            try:
                self.flush()
            except (Refused, ConstraintBroken, OSError) as error:
                self.trail_failures += 1
                _log.error("the ledger trails: %s", error)
                self._wake.set()


class _Together(Generic[T]):
    """A work with the rows that waited before it, which wait again if it fails."""

    def __init__(self, ledger: Ledger, work: Callable[[Connection], T], chain: str | None) -> None:
        self._ledger = ledger
        self._work = work
        self._chain = chain
        self._taken: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, connection: Connection) -> T:
        with self._ledger._lock:
            self._taken.extend(self._ledger._take(self._chain))
        for other, view in self._taken:
            self._ledger._append(connection, other, view)
        return self._work(connection)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Gives the rows back if what is inside fails."""
        try:
            yield
        except BaseException:
            with self._ledger._lock:
                self._ledger._waiting[:0] = self._taken
            raise


@contextmanager
def _audit_failures() -> Iterator[None]:
    try:
        yield
    except ConstraintBroken as error:
        raise Unavailable("audit_failed", "the ledger can't be written, so nothing is changed") from error


def _ask_head(connection: Connection, chain: str) -> None:
    charon_ledger.head(connection, chain)


def _shown(row: LedgerRow) -> dict[str, Any]:
    return {**row.view, "previous": row.previous, "link": row.link}

"""What a restore must not undo, kept outside the databases (10-operations, backup and recovery).

1. Revoked tokens, disabled principals, changed grants and erased memories each make an entry: in charon.db, in one transaction
   with the change, and in a file beside the ledger's anchor before the change is acknowledged.
2. An entry names ids and says who was let or kept from what; it holds no content. Its link is keyed like the ledger's.
3. Whichever of the two is ahead tells the other: the file of a machine follows the database, and a database that was set back to
   a backup follows the file before anything is served (`recovery`).
4. The first entry begins the journal: a file of another gate, or none, is known as such.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from memory_git.charon.journal_file import JournalFile
from memory_git.charon.keys import Keys
from memory_git.charon.ledger import Ledger
from memory_git.domain.chain import link_keyed
from memory_git.domain.errors import Unavailable
from memory_git.domain.times import format_time
from memory_git.storage import charon_identity, charon_journal, charon_sessions
from memory_git.storage.charon_identity import GrantRow
from memory_git.storage.charon_journal import JournalRow
from memory_git.storage.connection import Connection
from memory_git.storage.engine import Database

T = TypeVar("T")
BEGUN = "begun"
TOKEN_REVOKED = "token_revoked"  # noqa: S105 (the name of an entry)
PRINCIPAL_DISABLED = "principal_disabled"
PRINCIPAL_ENABLED = "principal_enabled"
GRANT_SET = "grant_set"
GRANT_REVOKED = "grant_revoked"
REDACTED = "redacted"
RESTORED = "restored"
JOURNAL_LOST = "journal_lost"


class Journal:
    """The journal of one process; every method may be called from any thread."""

    def __init__(
        self,
        database: Database,
        ledger: Ledger,
        keys: Keys,
        file: JournalFile,
        now: Callable[[], datetime],
    ) -> None:
        self.file = file
        self._database = database
        self._ledger = ledger
        self._keys = keys
        self._now = now
        self._copied = 0

    def change(self, work: Callable[[Connection], T], kind: str, **what: Any) -> T:
        """Runs a work and journals it in one durable transaction, and returns when the file has it too.

        A work that gives False has changed nothing, and makes no entry.
        """

        def together(connection: Connection) -> T:
            done = work(connection)
            if done is not False:
                self.note_in(connection, kind, **what)
            return done

        done = self._ledger.write(together)
        self.copy()
        return done

    def note(self, kind: str, **what: Any) -> None:
        """Journals what was done elsewhere."""
        self.change(lambda _: None, kind, **what)

    def note_in(self, connection: Connection, kind: str, **what: Any) -> None:
        """Adds an entry inside a transaction of the caller's, who calls `copy` after it."""
        charon_journal.take_turn(connection)
        seq, previous = charon_journal.last(connection)
        key_id = self._keys.ledger.signing_key_id
        view = {"kind": kind, "at": format_time(self._now()), "key_id": key_id, **what}
        charon_journal.append(
            connection, JournalRow(seq + 1, previous, link_keyed(self._secret(key_id), previous, view), view)
        )

    def begin(self) -> None:
        """Makes the first entry, where there is none yet."""

        def first(connection: Connection) -> None:
            charon_journal.take_turn(connection)
            if charon_journal.last(connection) == (0, None):
                self.note_in(connection, BEGUN, journal_id=secrets.token_hex(16))

        with self._database.read() as connection:
            begun = charon_journal.last(connection)[0] > 0
        if not begun:
            self._ledger.write(first)
        self.copy()

    def copy(self) -> None:
        """Brings the file up to the database."""
        with self._database.read() as connection:
            last, _ = charon_journal.last(connection)
        if last <= self._copied and self.file.exists():
            return
        try:
            with self.file.held(), self._database.read() as connection:
                rows = charon_journal.rows_after(connection, self.file.last_seq())
                if rows:
                    self.file.append(rows)
        except OSError as error:
            raise Unavailable(
                "journal_unwritable",
                f"the change stands, but {self.file.path} can't be written, so a restore would undo it: {error.strerror}. "
                "Mend that, and repeat the call",
            ) from error
        self._copied = last

    def adopt(self, rows: Sequence[JournalRow]) -> None:
        """Does in the gate's database what entries say that it does not have yet, and stores them."""

        def redo(connection: Connection) -> None:
            charon_journal.take_turn(connection)
            last, _ = charon_journal.last(connection)
            for row in rows:
                if row.seq > last:
                    _REDONE[row.view["kind"]](connection, row.view)
                    charon_journal.append(connection, row)

        unknown = sorted({row.view["kind"] for row in rows} - _REDONE.keys())
        if unknown:
            raise Unavailable(
                "journal_newer", f"the journal has entries of a newer memory-git: {', '.join(unknown)}"
            )
        self._ledger.write(redo)

    def _secret(self, key_id: str) -> bytes:
        secret = self._keys.ledger.secret(key_id)
        if secret is None:
            raise Unavailable("key_damaged", "the ledger key is absent")
        return secret


def _revoke_token(connection: Connection, view: Mapping[str, Any]) -> None:
    charon_identity.revoke_obol(connection, view["obol_id"], view["at"])


def _disable(connection: Connection, view: Mapping[str, Any]) -> None:
    charon_identity.set_disabled(connection, view["principal_id"], True)
    charon_sessions.end_sessions_of(connection, view["principal_id"])


def _enable(connection: Connection, view: Mapping[str, Any]) -> None:
    charon_identity.set_disabled(connection, view["principal_id"], False)


def _set_grant(connection: Connection, view: Mapping[str, Any]) -> None:
    """A principal that the backup does not have yet gets nothing."""
    if charon_identity.principal(connection, view["principal_id"]) is not None:
        charon_identity.set_grant(
            connection,
            GrantRow(
                view["project_id"],
                view["principal_id"],
                tuple(view["scopes"]),
                tuple(view["refs"]),
                view["granted_by"],
                view["at"],
            ),
        )


def _revoke_grant(connection: Connection, view: Mapping[str, Any]) -> None:
    charon_identity.revoke_grant(connection, view["principal_id"], view["project_id"])


def _revoke_all_tokens(connection: Connection, view: Mapping[str, Any]) -> None:
    charon_identity.revoke_obols(connection, view["at"])


def _nothing(_connection: Connection, _view: Mapping[str, Any]) -> None:
    """What a store erases, it erases itself; the rest is only told."""


_REDONE: dict[str, Callable[[Connection, Mapping[str, Any]], None]] = {
    BEGUN: _nothing,
    TOKEN_REVOKED: _revoke_token,
    PRINCIPAL_DISABLED: _disable,
    PRINCIPAL_ENABLED: _enable,
    GRANT_SET: _set_grant,
    GRANT_REVOKED: _revoke_grant,
    REDACTED: _nothing,
    RESTORED: _nothing,
    JOURNAL_LOST: _revoke_all_tokens,
}

"""What PostgreSQL answers, translated in one function (10-operations, durability).

    busy                    no turn or no connection in time, a deadlock, a full server; a retry may succeed
    storage_full            no room; nothing was written
    database_unreachable    the server is away, starting, stopping, or only a standby; nothing was written
    outcome_unknown         the connection broke after COMMIT was sent, and nobody could say since what came of it
    not_text                a text that PostgreSQL can't hold: a lone surrogate, or a NUL
    ConstraintBroken        a constraint refused a row; the caller of the statement says what that means

Anything else is a mistake in the statement.
"""

from __future__ import annotations

from memory_git.domain.errors import Invalid, Unavailable
from memory_git.storage.errors import ConstraintBroken, busy

_AGAIN = frozenset({"40001", "40P01", "23505"})
_AWAY = frozenset({"57P01", "57P02", "57P03", "25006"})
_TEXT = frozenset({"22021", "22P05"})


class StatementFailed(Exception):
    """PostgreSQL refused a statement that should stand: a fault of ours."""


class Lost(Exception):
    """The connection is gone, or the server takes no work; what was sent in an open transaction is undone."""


def translate(state: str, message: str) -> Exception:
    """Gives the exception for an SQLSTATE, as the engine and the upper floors know it."""
    if state.startswith("23"):
        return UniqueBroken(message) if state == "23505" else ConstraintBroken(message)
    if state in _AWAY or state.startswith("08"):
        return Lost(message)
    if state == "53100":
        return Unavailable("storage_full", "the disk of the database server is full", retry_after_s=5)
    if state in _AGAIN:
        return Collided(message)
    if state == "55P03" or state.startswith("53"):
        return busy("other writers have held the database all the while")
    if state in _TEXT:
        return Invalid("not_text", "a text holds a NUL, which the database can't store")
    return StatementFailed(f"{state} {message}")


class Collided(Exception):
    """Two transactions were in each other's way and this one gave in: nothing of it is written."""


class UniqueBroken(ConstraintBroken, Collided):
    """A unique key is taken: perhaps by a transaction that committed meanwhile, which a second try will see."""


class NotItsTurn(Exception):
    """Somebody else has the ref: a work that only looked wants to write."""


def unreachable(message: str) -> Unavailable:
    """Gives the refusal while the server is away."""
    return Unavailable("database_unreachable", f"the database can't be reached: {message}", retry_after_s=1)


def outcome_unknown() -> Unavailable:
    """Gives the refusal for a commit of which nobody knows."""
    return Unavailable(
        "outcome_unknown",
        "the database went away while it committed: ask again with the same idempotency key, or read the head",
        retry_after_s=1,
    )

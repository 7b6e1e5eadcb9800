"""Where the store takes time, ids and salts from: the only impure inputs of a write, named so that a script can fix them."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import uuid_utils


def _now() -> datetime:
    return datetime.now(UTC)


def _new_id() -> str:
    return str(uuid_utils.uuid7())


def _new_salt() -> str:
    return secrets.token_hex(SALT_BYTES)


SALT_BYTES = 16


@dataclass(frozen=True, slots=True)
class Sources:
    """`now` gives an aware time, `new_id` a UUIDv7, `new_salt` 16 random bytes as 32 hex digits."""

    now: Callable[[], datetime] = _now
    new_id: Callable[[], str] = _new_id
    new_salt: Callable[[], str] = _new_salt

    def new_salts(self, count: int) -> tuple[str, ...]:
        """Gives several salts, with one call for randomness unless a script makes them."""
        if self.new_salt is not _new_salt:
            return tuple(self.new_salt() for _ in range(count))
        drawn = secrets.token_hex(SALT_BYTES * count)
        return tuple(drawn[at : at + 2 * SALT_BYTES] for at in range(0, len(drawn), 2 * SALT_BYTES))

"""Every refusal, as one tree; and corruption, which is not a refusal.

    Refused                     an input or request is not accepted; `code` is stable, `status` is HTTP's
    ├── Invalid          400    the input breaks a rule; `faults` lists every one
    ├── Unauthenticated  401    no or a bad bearer
    ├── NotAllowed       403    protected_ref, invalid_authorization, denied
    ├── NotFound         404    absent, or not for this caller to know of
    ├── Clash            409    ref_moved, idempotency_mismatch, merge_conflicts … with what is needed to go on
    ├── TooLarge         413
    ├── TooMany          429
    └── Unavailable      503    busy, recovery_readonly, storage_failed
    Corrupt                     a stored object does not agree with its digest; never caught inside

Texts may change, codes may not. `facts` go into the problem document as they are, so they hold only JSON values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


class Refused(Exception):
    """An input or request is not accepted; nothing was changed."""

    status = 400

    def __init__(self, code: str, message: str, **facts: Any) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.facts = facts

    def to_problem(self) -> dict[str, Any]:
        """Gives the RFC 9457 problem document, with `error`, `message`, `code` and the facts beside."""
        return {
            "type": f"urn:memory-git:error:{self.code}",
            "title": self.code.replace("_", " "),
            "status": self.status,
            "detail": self.message,
            "error": self.message,
            "message": self.message,
            "code": self.code,
            **self.facts,
        }


@dataclass(frozen=True, slots=True)
class Fault:
    """One broken rule: which op (None = the changeset itself), which field, which rule, what was found.

    `found` names the size or kind of the offending value, never the value: it may be a secret.
    """

    ordinal: int | None
    field: str
    rule: str
    found: str = ""

    def to_json(self) -> dict[str, Any]:
        """Gives the wire form, an item of `faults[]`."""
        return {"ordinal": self.ordinal, "field": self.field, "rule": self.rule, "found": self.found}


class Invalid(Refused):
    """The input breaks one or more rules; all of them are in `faults`."""

    def __init__(self, code: str, message: str, faults: Sequence[Fault] = (), **facts: Any) -> None:
        if faults:
            facts["faults"] = [fault.to_json() for fault in faults]
        super().__init__(code, message, **facts)
        self.faults = tuple(faults)


class Unauthenticated(Refused):
    """The bearer is absent or not known."""

    status = 401


class NotAllowed(Refused):
    """The caller may know of the object but may not do this to it."""

    status = 403


class NotFound(Refused):
    """The object is absent, or the caller has no right to know of it; both look the same."""

    status = 404


class Clash(Refused):
    """The request lost to another state of things; the facts say what the caller needs to go on."""

    status = 409


class TooLarge(Refused):
    """The request is larger than the cap that `facts` names."""

    status = 413


class TooMany(Refused):
    """The caller is over a rate or a quota; `facts["retry_after_s"]` says when to come back."""

    status = 429


class Unavailable(Refused):
    """The store can't take this now; a retry may succeed."""

    status = 503


class Corrupt(Exception):
    """A stored object does not agree with its digest, or a row that must exist is absent."""

    def __init__(self, kind: str, object_id: object, why: str) -> None:
        super().__init__(f"{kind} {object_id}: {why}")
        self.kind = kind
        self.object_id = object_id
        self.why = why

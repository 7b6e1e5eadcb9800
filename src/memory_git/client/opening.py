"""What stands behind a place: a gate of one's own on a folder or on PostgreSQL, or a Charon that runs somewhere (10-operations).

1. `http://` and `https://` name a running Charon; its token says who calls.
2. `postgresql://` names the databases; the keys stay in a folder of this machine. Anything else is a folder with everything in it.
3. On a place of one's own a token says who calls; without one, a principal by name, else the first person added, else the operator.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from memory_git.client.remote import RemoteGate
from memory_git.domain.errors import Invalid, Unauthenticated

if TYPE_CHECKING:
    from memory_git.charon.gate import Caller, Gate

    AnyGate: TypeAlias = Gate | RemoteGate

_HTTP = ("http://", "https://")
_POSTGRES = ("postgresql://", "postgres://")
SURFACE = "python"


def open_place(
    place: Path | str, token: str | None, *, keys: Path | None = None, lethe: str | None = None
) -> AnyGate:
    """Opens what a place names (rules 1 and 2); `lethe` is the store's own database, by default the same."""
    named = str(place)
    if named.startswith(_HTTP):
        if token is None:
            raise Unauthenticated("token_needed", "a Charon at an address needs a token")
        return RemoteGate(named, token)
    from memory_git.charon.gate import Gate, GateSettings

    if not named.startswith(_POSTGRES):
        return Gate.open(Path(named).expanduser())
    if keys is None:
        raise Invalid("keys_needed", "name the folder of the keys: a database in PostgreSQL holds none")
    return Gate.open(GateSettings(keys, database_url=named, lethe_database_url=lethe or named))


def caller_at(gate: AnyGate, token: str | None, principal: str | None) -> Caller:
    """Gives who calls (rule 3)."""
    if isinstance(gate, RemoteGate) or token is None:
        return acting(gate, principal)
    caller = gate.authenticate(token, SURFACE)
    if principal not in (None, caller.principal_id):
        raise Invalid("bad_principal", "the token is another principal's")
    return caller


def acting(gate: AnyGate, principal: str | None) -> Caller:
    """Gives who a program acts as: a named principal, else the first person added, else nobody but the operator.

    At an address it is the token that says who.
    """
    if principal is not None:
        return gate.as_principal(principal)
    operator = gate.as_operator()
    if isinstance(gate, RemoteGate):
        return operator
    person = first_person(gate)
    return gate.as_principal(person) if person else operator


def first_person(gate: AnyGate) -> str | None:
    """Gives who was the first person added, of those not disabled, or None where there is nobody."""
    people = [
        (item["created_at"], item["principal_id"])
        for item in gate.principals(gate.as_operator())
        if item["kind"] == "human" and not item["disabled"]
    ]
    return str(min(people)[1]) if people else None

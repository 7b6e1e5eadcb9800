"""Who calls, and what is known of them (6-charon, principals)."""

from __future__ import annotations

from dataclasses import dataclass

from memory_git.domain.policy import Standing

LOCAL_OPERATOR = "local-operator"
"""The principal in whose name the owner of the data directory administers, before there is any other."""


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated caller at one face. `standing` is what held at sign-in; each call asks anew.

    `local_operator`: whoever can open the data directory may administer.
    """

    principal_id: str
    kind: str
    standing: Standing
    surface: str
    obol_id: str | None = None
    default_project: str | None = None
    default_actor: str | None = None
    local_operator: bool = False

"""What a project asks of a merge into its protected refs (6-charon, per-project policy). Pure values.

A policy is part of what reviewers judge: a change of it makes them judge again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from memory_git.domain.errors import Fault, Invalid
from memory_git.domain.ops import KINDS

SEVERITIES = ("info", "warning", "blocking")
MAX_APPROVALS = 20
MAX_LIFETIME_S = 366 * 24 * 3600
MIN_LIFETIME_S = 60


@dataclass(frozen=True, slots=True)
class ProjectPolicy:
    """One project's rules for merges.

    `verified_kinds`: memories of these kinds need a verification before they are accepted.
    `blocking_severities`: open conflicts of these severities block; `blocking` always does.
    """

    approvals_needed: int = 1
    human_must_approve: bool = False
    lone_person_may_merge: bool = False
    verified_kinds: tuple[str, ...] = ()
    blocking_severities: tuple[str, ...] = ("blocking",)
    proposal_lifetime_s: int = 30 * 24 * 3600

    def to_json(self) -> dict[str, Any]:
        """Gives the wire form."""
        shown = asdict(self)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in shown.items()}

    def changed(self, changes: Mapping[str, Any]) -> ProjectPolicy:
        """Gives the policy with some fields set; raises Invalid `bad_policy` with every fault."""
        faults = [Fault(None, name, "unknown field of a policy") for name in sorted(changes.keys() - _FIELDS)]
        faults += [fault for name in _FIELDS if name in changes and (fault := _fault(name, changes[name]))]
        if faults:
            raise Invalid("bad_policy", "the policy breaks a rule", faults)
        return policy_from_json({**self.to_json(), **changes})


_FIELDS = tuple(item.name for item in fields(ProjectPolicy))


def policy_from_json(stored: Mapping[str, Any]) -> ProjectPolicy:
    """Reads a policy that was checked before; fields that a later version added take their defaults."""
    values = {name: stored[name] for name in _FIELDS if name in stored}
    for name in ("verified_kinds", "blocking_severities"):
        if name in values:
            values[name] = tuple(sorted(set(values[name])))
    return ProjectPolicy(**values)


def _fault(name: str, value: object) -> Fault | None:
    rule = _RULES[name](value)
    return Fault(None, name, rule, type(value).__name__) if rule else None


def _count(value: object) -> str:
    fits = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_APPROVALS
    return "" if fits else f"a number from 1 to {MAX_APPROVALS}"


def _flag(value: object) -> str:
    return "" if isinstance(value, bool) else "true or false"


def _lifetime(value: object) -> str:
    fits = (
        isinstance(value, int) and not isinstance(value, bool) and MIN_LIFETIME_S <= value <= MAX_LIFETIME_S
    )
    return "" if fits else f"seconds from {MIN_LIFETIME_S} to {MAX_LIFETIME_S}"


def _kinds(value: object) -> str:
    fits = isinstance(value, list | tuple) and all(kind in KINDS for kind in value)
    return "" if fits else f"a list of {', '.join(KINDS)}"


def _severities(value: object) -> str:
    fits = (
        isinstance(value, list | tuple) and all(item in SEVERITIES for item in value) and "blocking" in value
    )
    return "" if fits else f"a list of {', '.join(SEVERITIES)}, with blocking"


_RULES = {
    "approvals_needed": _count,
    "human_must_approve": _flag,
    "lone_person_may_merge": _flag,
    "verified_kinds": _kinds,
    "blocking_severities": _severities,
    "proposal_lifetime_s": _lifetime,
}

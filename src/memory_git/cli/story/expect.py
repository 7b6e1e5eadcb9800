"""How a step says what it expects, and how a refusal is caught."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memory_git.domain.errors import Refused


class StepFailed(Exception):
    """Something came back that the step did not expect."""


def expect(holds: object, what: str) -> None:
    """Raises StepFailed unless something holds; `what` says what should be."""
    if not holds:
        raise StepFailed(what)


def expect_equal(found: Any, wanted: Any, what: str) -> None:
    """Raises StepFailed unless two values are equal, showing the beginning of both."""
    if found != wanted:
        raise StepFailed(f"{what}: found {str(found)[:300]!r}, expected {str(wanted)[:300]!r}")


def refusal(act: Callable[[], Any], code: str, what: str) -> Refused:
    """Gives the refusal with which an act fails; raises StepFailed if it succeeds, or fails with another code."""
    try:
        act()
    except Refused as error:
        expect_equal(error.code, code, what)
        return error
    raise StepFailed(f"{what}: was let through")

"""How many examples a property is tried on: the deep profile of `make test-all` tries ten times as many."""

from __future__ import annotations

import os

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "usual")


def examples(usual: int) -> int:
    """Gives how many examples to try where the fast suite tries so many.

    >>> examples(60) in (60, 600)
    True
    """
    return usual * 10 if PROFILE == "deep" else usual

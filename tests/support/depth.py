"""How many examples a property is tried on: ten times as many in `make test-all`, a fifth for each mutant in `make mutation`."""

from __future__ import annotations

import os

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "usual")


def examples(usual: int) -> int:
    """Gives how many examples to try where the fast suite tries so many.

    >>> examples(60) in (600, 60, 12)
    True
    """
    return {"deep": usual * 10, "mutation": usual // 5}.get(PROFILE, usual)

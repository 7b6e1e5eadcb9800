"""What every kind of test may ask for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parent.parent

# No deadline: other processes may have the processor meanwhile. What a test says for itself: `support/depth.py`.
settings.register_profile("usual", deadline=None)
settings.register_profile("deep", deadline=None, max_examples=1_000)
settings.register_profile("mutation", deadline=None, max_examples=20, derandomize=True, database=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """Gives the folder of shared material beside the repository, or skips."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("the shared material is not beside this repository")
    return folder

"""What every kind of test may ask for."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """Gives the folder of shared material beside the repository, or skips."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("the shared material is not beside this repository")
    return folder

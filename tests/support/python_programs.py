"""Outside Python packages in pinned versions, in a virtual environment of their own, so that ours stays what its lock says."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest


def python_with(*packages: str) -> str:
    """Gives the interpreter of an environment that has `name==version`s; made once, in the temporary files of this machine."""
    name = re.sub(r"[^a-z0-9.]+", "-", "-".join(packages).lower())
    folder = Path(tempfile.gettempdir()) / f"memory-git-{name}"
    ready = folder / "ready"
    python = folder / "bin" / "python"
    if not ready.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True, timeout=120)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
        done = subprocess.run(pip, check=False, capture_output=True, text=True, timeout=300)
        if done.returncode:
            pytest.skip(f"pip could not fetch {', '.join(packages)}: {done.stderr[-300:]}")
        ready.touch()
    return str(python)

"""The bundled sample: memories of Foyer, an invented ticket-booking service, in the memory server's official form."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def sample_path() -> Path:
    """Gives the path of the bundled memory file."""
    return Path(str(files(__name__) / "sample.memory.jsonl"))

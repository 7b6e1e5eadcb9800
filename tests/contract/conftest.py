"""Every test of the contract runs on both engines, every time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from postgres_server import Schemas

from memory_git.storage.lethe_schema import SCHEMA

ENGINES = ["sqlite", "postgresql"]


@pytest.fixture(params=ENGINES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Gives where a new store is: a file, or the URL of a schema."""
    if request.param == "sqlite":
        return tmp_path / "lethe.db"
    schemas: Schemas = request.getfixturevalue("schemas")
    return schemas.new(SCHEMA)


@pytest.fixture(scope="module", params=ENGINES)
def place_of_module(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path | str]:
    """Gives where a new store is that the tests of a module share."""
    if request.param == "sqlite":
        yield tmp_path_factory.mktemp("module") / "lethe.db"
        return
    schemas = Schemas(request.getfixturevalue("postgres"))
    yield schemas.new(SCHEMA)
    schemas.drop()

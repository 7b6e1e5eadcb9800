"""What every kind of test may ask for."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent / "support"))

from postgres_server import Schemas, Server, leave, shared_server

from memory_git.storage.lethe_schema import SCHEMA

ROOT = Path(__file__).parent.parent
ENGINES = ["sqlite", "postgresql"]

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


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Gives the PostgreSQL of this run, which all workers share; a machine without one fails the test."""
    run = tmp_path_factory.getbasetemp()
    run = run.parent if "PYTEST_XDIST_WORKER" in os.environ else run
    server = shared_server(run)
    yield server
    leave(run, server)


@pytest.fixture
def schemas(postgres: Server) -> Iterator[Schemas]:
    """Gives what makes schemas in it, dropped in the end."""
    made = Schemas(postgres)
    yield made
    made.drop()


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

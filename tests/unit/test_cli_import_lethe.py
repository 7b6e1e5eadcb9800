"""`lethe import-lethe` on the command line: a preview, an import, and refusals that say what to do (5-lethe)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from original_db import OriginalDb, add

from memory_git.cli import lethe
from memory_git.cli.exits import Exit
from memory_git.cli.program import run

BRANCH = "refs/agents/ann/main"


@pytest.fixture(autouse=True)
def no_settings_around(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith(("LETHE_", "CHARON_", "MEMORY_GIT_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    db = OriginalDb(tmp_path / "old.db")
    db.event("from before")
    head = db.changeset(BRANCH, [db.root()], [add("m/one", "tabs", valid_from="soon")])
    db.ref(BRANCH, head)
    return db.close()


class Shell:
    """Runs `lethe` on a data directory in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str], data_dir: Path) -> None:
        self.capsys = capsys
        self.data_dir = data_dir

    def __call__(self, *words: object, ends: int = Exit.DONE) -> str:
        code = run(lethe.program, [*map(str, words), "--data-dir", str(self.data_dir)])
        out, err = self.capsys.readouterr()
        assert code == ends, out + err
        return out + err

    def json(self, *words: object, ends: int = Exit.DONE) -> Any:
        return json.loads(self(*words, "--json", ends=ends))


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Shell:
    return Shell(capsys, tmp_path / "data")


def test_a_preview_makes_no_file_and_tells_what_would_be(shell: Shell, file: Path) -> None:
    said = shell("import-lethe", file, "--preview")
    assert "nothing: this is a preview" in said
    assert "next:" not in said
    assert not shell.data_dir.exists()


def test_an_import_makes_the_store_and_tells_what_was_taken_and_what_follows(
    shell: Shell, file: Path
) -> None:
    said = shell("import-lethe", file)
    assert f"next: lethe verify-chain atlas --data-dir {shell.data_dir}" in said
    assert f"next: charon project init atlas --data-dir {shell.data_dir}" in said
    assert "valid_from" in said
    shell("verify-chain", "atlas")
    (project,) = shell.json("import-lethe", file)["projects"]
    assert sum(project["taken"].values()) == 0
    assert project["there"]["changesets"] == 2
    assert [item["field"] for item in project["warnings"]] == []


def test_the_report_as_a_document_names_what_was_not_taken(shell: Shell, file: Path) -> None:
    report = shell.json("import-lethe", file, "--preview")
    assert (report["schema_version"], report["preview"], report["digests_verified"]) == (13, True, {"v2": 2})
    (project,) = report["projects"]
    assert (project["project"], project["taken"]["changesets"], project["skipped"]) == ("atlas", 2, [])
    (warning,) = project["warnings"]
    assert warning["field"] == "valid_from"


def test_a_damaged_file_is_refused_with_what_to_do_and_leaves_no_trace(shell: Shell, tmp_path: Path) -> None:
    db = OriginalDb(tmp_path / "damaged.db")
    db.changeset(BRANCH, [db.root()], [add("m/one", "tabs")])
    db.connection.execute("UPDATE memory_changesets SET message = 'other' WHERE author_principal = 'ann'")
    db.connection.commit()
    problem = shell.json("import-lethe", db.close(), ends=Exit.REFUSED)
    assert problem["code"] == "import_digest_wrong"
    assert "--skip-damaged" in problem["message"]
    assert not shell.data_dir.exists()
    shell("import-lethe", db.path, "--skip-damaged")
    shell("verify-chain", "atlas")


def test_a_project_is_renamed_and_chosen(shell: Shell, file: Path) -> None:
    report = shell.json("import-lethe", file, "--project", "atlas", "--rename", "atlas=globe")
    assert [item["project"] for item in report["projects"]] == ["globe"]
    shell("import-lethe", file, "--rename", "atlas", ends=Exit.USAGE)
    shell("import-lethe", file, "--project", "none", ends=Exit.REFUSED)


def test_a_server_elsewhere_is_not_written_by_this(
    shell: Shell, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LETHE_API_URL", "http://127.0.0.1:1")
    code = run(lethe.program, ["import-lethe", str(file), "--json"])
    assert code != Exit.DONE
    assert json.loads(shell.capsys.readouterr()[0])["code"] == "local_only"

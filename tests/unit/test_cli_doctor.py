"""`charon config show`, `charon secret` and `charon doctor`: what a person looks at when something is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memory_git.charon.backup import restore
from memory_git.charon.gate import Gate
from memory_git.cli import charon
from memory_git.cli.exits import Exit
from memory_git.cli.program import run


class Desk:
    """Somebody who types `charon …` on one data directory."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def types(self, *words: object) -> tuple[Exit, Any]:
        self._capsys.readouterr()
        code = run(charon.program, [*map(str, words), "--json"])
        return Exit(code), json.loads(self._capsys.readouterr().out)

    def finding(self, check: str, *words: object) -> tuple[str, str]:
        _, found = self.types("doctor", *words)
        return next((item["state"], item["detail"]) for item in found["findings"] if item["check"] == check)


@pytest.fixture
def desk(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setenv("CHARON_DATA_DIR", str(tmp_path / "data"))
    return Desk(capsys)


@pytest.fixture
def begun(desk: Desk) -> Desk:
    assert desk.types("project", "init", "demo")[0] == Exit.DONE
    return desk


def test_every_setting_is_shown_with_where_it_came_from_and_no_secret(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.toml"
    config.write_text("[lethe]\nrequests_per_s = 7\n")
    monkeypatch.setenv("CHARON_TOKEN", "obol_very_secret")
    monkeypatch.setenv("LETHE_SERVICE_HOST_OF_AN_ORCHESTRATOR", "10.0.0.1")
    code, shown = desk.types("--config", config, "config", "show")
    rows = {row["name"]: row for row in shown["settings"]}
    assert code == Exit.DONE
    assert (rows["lethe.requests_per_s"]["value"], rows["lethe.requests_per_s"]["origin"]) == (
        7,
        f"file {config}",
    )
    assert rows["charon.token"]["value"] == "(set)" and "very_secret" not in json.dumps(shown)
    assert rows["charon.http"]["origin"] == "default"
    assert shown["unknown"] == ["LETHE_SERVICE_HOST_OF_AN_ORCHESTRATOR"]


@pytest.mark.parametrize("name", ["CHARON_MERGE_HMAC_KEYZ", "LETHE_DATADIR", "CHARON_RECOVERY_READ_ONLY"])
def test_a_misspelt_variable_is_refused_by_its_name(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "1")
    code, problem = desk.types("config", "show")
    assert (code, problem["code"], problem["faults"][0]["field"]) == (Exit.REFUSED, "invalid_setting", name)
    assert "did you mean" in problem["faults"][0]["rule"]


def test_a_sound_installation_has_no_broken_check(begun: Desk, tmp_path: Path) -> None:
    code, found = begun.types("doctor", "--deep")
    assert (code, found["ok"]) == (Exit.DONE, True)
    assert {"programs", "data directory", "keys", "disk", "database", "store", "reconcile"} <= {
        item["check"] for item in found["findings"]
    }


def test_before_the_first_start_the_doctor_says_how_to_begin_and_begins_nothing(
    desk: Desk, tmp_path: Path
) -> None:
    state, detail = desk.finding("database")
    assert (state, "charon serve" in detail) == ("warning", True)
    assert not (tmp_path / "data").exists()


def test_open_keys_are_broken(begun: Desk, tmp_path: Path) -> None:
    (tmp_path / "data" / "keys" / "token").chmod(0o644)
    assert begun.finding("keys")[0] == "broken"
    assert begun.types("doctor")[0] == Exit.FINDING


def test_a_truncated_database_is_broken_and_named(begun: Desk, tmp_path: Path) -> None:
    (tmp_path / "data" / "lethe.db").write_bytes(b"cut")
    state, detail = begun.finding("database")
    assert (state, "lethe.db" in detail) == ("broken", True)


def test_a_restored_gate_says_what_keeps_it_read_only(begun: Desk, tmp_path: Path) -> None:
    begun.types("backup", "--out", tmp_path / "backup", "--with-keys")
    restore(tmp_path / "backup", tmp_path / "restored")
    state, detail = begun.finding("recovery", "--data-dir", tmp_path / "restored")
    assert state == "broken" and "anchor/" in detail


def test_a_key_that_waits_to_be_retired_is_a_warning_until_it_is(begun: Desk, tmp_path: Path) -> None:
    rotated = begun.types("secret", "rotate", "merge")[1]
    assert begun.finding("keys")[0] == "warning"
    old = rotated["verifies"][0]
    assert begun.types("secret", "retire", "merge", old)[1]["key_id"] == old
    assert begun.finding("keys")[0] == "ok"
    listed = begun.types("secret", "list")[1]["secrets"]
    assert [item["key_id"] for item in listed if item["name"] == "merge"] == [rotated["key_id"]]
    gate = Gate.open(tmp_path / "data")
    assert rotated["key_id"] == gate._house.keys.merge.signing_key_id
    gate.close()

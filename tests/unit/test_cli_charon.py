"""The commands of `charon` on a data directory of the test's: what they print, how they end, what they leave behind."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from memory_git.charon.gate import Gate
from memory_git.cli import charon
from memory_git.cli.exits import Exit
from memory_git.cli.program import run
from memory_git.domain.ops import MAX_OPS
from memory_git.http.charon_app import create_charon_app
from memory_git.http.serving import running

PROJECT = "atlas"
MAIN = "refs/shared/main"
IMPORTED = "refs/agents/one/import"
OPERATOR_READS = (
    ("principal", "list"),
    ("obol", "list"),
    ("grant", "list"),
    ("ledger", "tail"),
    ("ledger", "verify"),
    ("ledger", "export"),
)


@pytest.fixture(autouse=True)
def settings_of_the_test_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith(("LETHE_", "CHARON_", "MEMORY_GIT_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("CHARON_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("LETHE_DATA_DIR", str(tmp_path / "data"))


class Shell:
    """Somebody who types `charon …`."""

    def __init__(self, capsys: pytest.CaptureFixture[str], data_dir: Path) -> None:
        self._capsys = capsys
        self.data_dir = data_dir

    def ends(self, *arguments: object) -> tuple[Exit, str, str]:
        """Gives exit code, stdout and stderr."""
        self._capsys.readouterr()
        code = run(charon.program, [str(argument) for argument in arguments])
        out, err = self._capsys.readouterr()
        return Exit(code), out, err

    def does(self, *arguments: object) -> Any:
        """Gives the document of a command that shall succeed."""
        code, out, _ = self.ends(*arguments, "--json")
        assert code == Exit.DONE, out
        return json.loads(out)

    def refused(self, *arguments: object) -> tuple[Exit, Any]:
        """Gives exit code and problem document of a command that shall not."""
        code, out, _ = self.ends(*arguments, "--json")
        assert code != Exit.DONE, out
        return code, json.loads(out)


@pytest.fixture
def bare(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Shell:
    return Shell(capsys, tmp_path / "data")


@pytest.fixture
def shell(bare: Shell) -> Shell:
    """A project with a reviewer `ann`, a second one `bob`, and agents `one` and `two`."""
    bare.does("project", "init", PROJECT)
    for name, kind, profile in (
        ("ann", "human", "review"),
        ("bob", "human", "review"),
        ("one", "agent", "propose"),
        ("two", "agent", "propose"),
    ):
        bare.does("principal", "add", name, "--kind", kind, "--profile", profile)
        bare.does("grant", "add", name, "--project", PROJECT)
    return bare


@pytest.fixture
def memories(tmp_path: Path) -> Path:
    """A file of the MCP memory server: two entities, one relation, one line that can't be read."""
    path = tmp_path / "memory.jsonl"
    rows = [
        {"type": "entity", "name": "Retry", "entityType": "fact", "observations": ["three times"]},
        {"type": "entity", "name": "Queue", "entityType": "fact", "observations": ["then it waits"]},
        {"type": "relation", "from": "Retry", "to": "Queue", "relationType": "feeds"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + "not json\n", encoding="utf-8")
    return path


def imported(shell: Shell, path: Path, name: str = "one") -> Any:
    return shell.does("import", path, "--project", PROJECT, "--as", name)


def proposed(shell: Shell, name: str = "one") -> str:
    made = shell.does(
        *("proposal", "create", "--project", PROJECT, "--as", name),
        *("--ref", f"refs/agents/{name}/import", "-m", "please"),
    )
    return str(made["proposal_id"])


def accepted(shell: Shell, name: str = "one") -> Any:
    proposal_id = proposed(shell, name)
    shell.does("proposal", "review", proposal_id, "--verdict", "approve")
    return shell.does("proposal", "merge", proposal_id)


def ledger_rows(shell: Shell) -> int:
    return sum(shell.does("ledger", "verify")["checked"].values())


# --- who may do what


def test_a_principal_is_added_listed_disabled_and_enabled(bare: Shell) -> None:
    added = bare.does("principal", "add", "one", "--kind", "agent", "--actor", "left", "--actor", "right")
    assert (added["principal_id"], added["actor_ids"]) == ("one", ["left", "right"])
    assert bare.does("principal", "disable", "one")["disabled"] is True
    assert [item["disabled"] for item in bare.does("principal", "list")["principals"]] == [True]
    assert bare.does("principal", "disable", "one", "--undo")["disabled"] is False


def test_a_command_acts_as_the_person_who_was_added_first_whatever_the_names(bare: Shell) -> None:
    for name in ("zoe", "abe"):
        bare.does("principal", "add", name, "--kind", "human", "--profile", "write")
    bare.does("project", "init", PROJECT, "--as", "zoe")
    bare.does("grant", "add", "abe", "--project", PROJECT)
    bare.does("project", "policy", PROJECT)
    rows = bare.does("ledger", "tail", "--project", PROJECT)["rows"]
    assert (rows[-1]["route"], rows[-1]["principal_id"]) == ("project_policy", "zoe")


def test_a_token_is_shown_once_and_holds_until_it_is_revoked(shell: Shell) -> None:
    minted = shell.does("obol", "mint", "one", "--expires", "7d", "--scope", "memory.read")
    secret = minted["token"].rpartition("_")[2]
    assert minted["token"].startswith(f"obol_{minted['obol_id']}_")
    code, listed, _ = shell.ends("obol", "list", "--json")
    assert (code, secret in listed) == (Exit.DONE, False)
    gate = Gate.open(shell.data_dir)
    assert gate.authenticate(minted["token"], "http").standing.scopes == {"memory.read"}
    gate.close()
    assert shell.does("obol", "revoke", minted["obol_id"])["revoked_at"] is not None


def test_a_minted_token_alone_is_on_standard_output(shell: Shell) -> None:
    code, out, err = shell.ends("obol", "mint", "one")
    assert (code, out.startswith("obol_"), out.count("\n")) == (Exit.DONE, True, 1)
    assert "only now" in err
    assert shell.does("obol", "list")["obols"][0]["expires_at"] is not None


def test_a_grant_on_a_project_that_is_not_there_yet_says_so(shell: Shell) -> None:
    assert shell.ends("grant", "add", "one", "--project", PROJECT)[2] == ""
    code, _, told = shell.ends("grant", "add", "one", "--project", "atals")
    assert code == Exit.DONE and told == "There is no project atals yet: charon project init makes it.\n"


def test_a_grant_is_by_default_all_that_the_profile_holds(shell: Shell) -> None:
    grants = {item["principal_id"]: item["scopes"] for item in shell.does("grant", "list")["grants"]}
    assert grants["ann"] == ["memory.merge", "memory.read", "memory.review", "memory.search"]
    narrow = shell.does(
        *("grant", "add", "one", "--project", PROJECT, "--scope", "memory.read"),
        *("--ref", "refs/topics/*"),
    )
    assert (narrow["scopes"], narrow["refs"]) == (["memory.read"], ["refs/topics/*"])
    assert shell.does("grant", "revoke", "one", "--project", PROJECT)["revoked"] is True
    code, problem = shell.refused("grant", "revoke", "one", "--project", PROJECT)
    assert (code, problem["code"]) == (Exit.REFUSED, "not_found")


def test_a_project_begun_in_somebodys_name_is_theirs(shell: Shell) -> None:
    shell.does("project", "init", "second", "--as", "bob")
    assert shell.does("project", "list", "--as", "bob")["projects"] == [PROJECT, "second"]
    assert shell.does("project", "list", "--as", "ann")["projects"] == [PROJECT]


def test_a_policy_is_set_by_fields_and_shown(shell: Shell) -> None:
    changed = shell.does(
        *("project", "policy", PROJECT, "--set", "approvals_needed=2"),
        *("--set", "verified_kinds=fact,decision", "--set", "human_must_approve=true"),
    )
    assert (changed["approvals_needed"], changed["verified_kinds"]) == (2, ["decision", "fact"])
    assert shell.does("project", "policy", PROJECT) == changed
    code, problem = shell.refused("project", "policy", PROJECT, "--set", "approvals_needed=0", "--set", "a=1")
    assert (code, {fault["field"] for fault in problem["faults"]}) == (
        Exit.REFUSED,
        {"approvals_needed", "a"},
    )
    assert shell.does("project", "policy", PROJECT) == changed


# --- import


def test_an_import_is_committed_with_where_it_comes_from(shell: Shell, memories: Path) -> None:
    report = imported(shell, memories)
    assert report["ref"] == IMPORTED
    assert (report["taken"], report["links"], len(report["changesets"])) == (2, 1, 1)
    assert [item["where"] for item in report["skipped"]] == ["memory.jsonl:4"]
    gate = Gate.open(shell.data_dir)
    changeset = gate.show(gate.as_principal("one"), PROJECT, report["head"])
    found = gate.memories(gate.as_principal("one"), PROJECT, head=report["head"])
    gate.close()
    assert changeset["evidence"] == [{"kind": "import", "source": "memory.jsonl:1-2"}]
    assert changeset["author_principal"] == "one"
    assert {item["record"]["sources"][0] for item in found["memories"]} == {
        "memory.jsonl:1",
        "memory.jsonl:2",
    }
    assert len(found["relationships"]) == 1


def test_importing_twice_gives_no_second_changeset(shell: Shell, memories: Path) -> None:
    first = imported(shell, memories)
    again = imported(shell, memories)
    assert (again["changesets"], again["ops"], again["head"]) == ([], 0, first["head"])


def test_an_import_again_commits_only_what_the_source_has_changed(shell: Shell, memories: Path) -> None:
    first = imported(shell, memories)
    memories.write_text(memories.read_text("utf-8").replace("three times", "five times"), encoding="utf-8")
    again = imported(shell, memories)
    assert (again["ops"], len(again["changesets"])) == (1, 1)
    assert again["head"] != first["head"]


def test_an_import_stands_on_what_was_accepted_and_repeats_none_of_it(shell: Shell, memories: Path) -> None:
    imported(shell, memories)
    accepted(shell)
    assert imported(shell, memories, "two")["ops"] == 0


def test_the_next_command_that_an_import_prints_proposes_it(shell: Shell, memories: Path) -> None:
    _, out, _ = shell.ends("import", memories, "--project", PROJECT, "--as", "one")
    following = re.search(r"^next +charon (.*)$", out, re.MULTILINE)
    assert following is not None
    assert shell.does(*shlex.split(following[1]))["source_ref"] == IMPORTED


def test_a_preview_commits_nothing_and_makes_no_branch(shell: Shell, memories: Path) -> None:
    report = shell.does("import", memories, "--project", PROJECT, "--as", "one", "--preview")
    assert (report["ops"], report["changesets"]) == (3, [])
    code, problem = shell.refused(
        "proposal", "create", "--project", PROJECT, "--as", "one", "--ref", IMPORTED, "-m", "x"
    )
    assert (code, problem["code"]) == (Exit.REFUSED, "not_found")


@pytest.mark.slow
def test_a_large_import_is_a_chain_of_changesets(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "large.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number in range(MAX_OPS + 1):
            row = {"type": "entity", "name": f"e{number}", "entityType": "fact", "observations": ["x"]}
            file.write(json.dumps(row) + "\n")
    report = imported(shell, path)
    assert len(report["changesets"]) == 2
    assert report["head"] == report["changesets"][-1]
    assert imported(shell, path)["ops"] == 0


@pytest.mark.parametrize(
    ("content", "code"),
    [(None, "import_unreadable"), (b"plain text", "import_unknown_form")],
    ids=["an absent path", "another form"],
)
def test_a_path_that_cant_be_imported_changes_nothing(
    shell: Shell, tmp_path: Path, content: bytes | None, code: str
) -> None:
    path = tmp_path / "memories.bin"
    if content is not None:
        path.write_bytes(content)
    before = ledger_rows(shell)
    ended, problem = shell.refused("import", path, "--project", PROJECT, "--as", "one")
    assert (ended, problem["code"]) == (Exit.REFUSED, code)
    assert ledger_rows(shell) == before + 1, "only the verification itself was noted"


def test_an_import_by_one_without_a_grant_is_not_found(shell: Shell, memories: Path) -> None:
    shell.does("principal", "add", "stranger", "--kind", "agent")
    code, problem = shell.refused("import", memories, "--project", PROJECT, "--as", "stranger")
    assert (code, problem["code"]) == (Exit.REFUSED, "not_found")


# --- proposals and conflicts


def test_work_is_proposed_reviewed_merged_and_taken_back(shell: Shell, memories: Path) -> None:
    head = imported(shell, memories)["head"]
    proposal_id = proposed(shell)
    shown = shell.does("proposal", "show", proposal_id)
    assert (shown["head_changeset_id"], shown["verdict"]["mergeable"]) == (head, False)
    reviewed = shell.does(
        *("proposal", "review", proposal_id, "--verdict", "approve"),
        *("--comment", "read", "--judged", shown["judged_digest"]),
    )
    assert (reviewed["status"], reviewed["reviews"][0]["reviewer"]) == ("approved", "ann")
    merged = shell.does("proposal", "merge", proposal_id, "--key", "once")
    assert (merged["status"], merged["merged_head"]) == ("merged", head)
    assert shell.does("proposal", "merge", proposal_id, "--key", "once")["replayed"] is True
    listed = shell.does("proposal", "list", "--project", PROJECT, "--status", "merged")
    assert [item["proposal_id"] for item in listed["proposals"]] == [proposal_id]
    revert = shell.does("proposal", "revert", head, "--as", "two", "-m", "it was wrong")
    assert (revert["kind"], revert["status"]) == ("revert", "pending")


def test_a_person_reads_what_a_proposal_changes_and_lacks(shell: Shell, memories: Path) -> None:
    imported(shell, memories)
    code, out, _ = shell.ends("proposal", "show", proposed(shell))
    assert code == Exit.DONE
    assert "memories added" in out
    assert "Retry" in out
    assert "to be merged it lacks: " in out


def test_only_the_selected_op_is_accepted(shell: Shell, memories: Path) -> None:
    head = imported(shell, memories)["head"]
    made = shell.does(
        *("proposal", "create", "--as", "one", "--head", head),
        *("--select", f"{head}:0", "-m", "only this"),
    )
    assert made["selected_ops"] == [{"changeset_id": head, "ordinal": 0}]
    assert len(made["diff"]["memories_added"]) == 1
    canceled = shell.does("proposal", "cancel", made["proposal_id"], "--as", "one")
    assert canceled["status"] == "canceled"
    code, problem = shell.refused("proposal", "merge", made["proposal_id"])
    assert (code, problem["code"]) == (Exit.CONFLICT, "proposal_closed")


@pytest.fixture
def disagreement(shell: Shell) -> tuple[str, str]:
    """`one`'s decision is accepted, `two`'s contradicts it: the proposal of `two` and its conflict."""
    gate = Gate.open(shell.data_dir)
    for name, day in (("one", "on Fridays"), ("two", "never on Fridays")):
        payload = {"memory_id": f"deploy/{name}", "content": f"We deploy {day}", "kind": "decision"}
        op = {"op_type": "add_memory", "payload": {**payload, "scope": "ops", "fact_key": "deploy day"}}
        gate.commit(gate.as_principal(name), PROJECT, message="m", ops=[op], ref=f"refs/agents/{name}/import")
    gate.close()
    waiting = proposed(shell, "two")
    accepted(shell, "one")
    shell.does("proposal", "review", waiting, "--verdict", "approve")
    code, problem = shell.refused("proposal", "merge", waiting)
    assert code == Exit.CONFLICT
    return waiting, str(problem["conflicts"][0]["conflict_id"])


def test_a_conflict_blocks_until_somebody_settles_it(shell: Shell, disagreement: tuple[str, str]) -> None:
    waiting, conflict_id = disagreement
    found = shell.does("conflict", "list", "--status", "open", "--proposal", waiting)["conflicts"]
    assert conflict_id in {item["conflict_id"] for item in found if item["severity"] == "blocking"}
    code, out, _ = shell.ends("conflict", "list")
    assert (code, "deploy/one: " in out, "deploy/two: " in out) == (Exit.DONE, True, True)
    settled = shell.does("conflict", "resolve", conflict_id, "--outcome", "both", "--note", "two teams")
    assert (settled["status"], settled["resolved_by"]) == ("resolved", "ann")
    assert shell.does("proposal", "merge", waiting)["strategy"] == "merge_commit"


def test_a_stale_proposal_is_rebased_by_its_author(shell: Shell, disagreement: tuple[str, str]) -> None:
    rebased = shell.does("proposal", "rebase", disagreement[0], "--as", "two")
    assert (rebased["rebased"], rebased["stale"]) == (True, False)


# --- audit, backup, erasure


def test_the_ledger_names_each_call_and_verifies(shell: Shell) -> None:
    shell.does("project", "policy", PROJECT)
    rows = shell.does("ledger", "tail", "--project", PROJECT, "--limit", "2")["rows"]
    assert rows[-1]["route"] == "project_policy"
    report = shell.does("ledger", "verify")
    assert report["ok"] is True
    exported = shell.does("ledger", "export", "--project", PROJECT)["rows"]
    code, lines, _ = shell.ends("ledger", "export", "--project", PROJECT)
    assert code == Exit.DONE
    assert [json.loads(line)["seq"] for line in lines.splitlines()][: len(exported)] == [
        row["seq"] for row in exported
    ]


def test_a_ledger_that_was_cut_ends_with_a_finding(shell: Shell) -> None:
    connection = apsw.Connection(str(shell.data_dir / "charon.db"))
    for (name,) in connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'ledger'"
    ).fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute("DELETE FROM ledger WHERE seq > 3")
    connection.close()
    code, out, _ = shell.ends("ledger", "verify", "--json")
    assert (code, json.loads(out)["ok"]) == (Exit.FINDING, False)
    code, out, _ = shell.ends("reconcile", "--json")
    assert (code, json.loads(out)["ok"]) == (Exit.FINDING, False)


def test_what_is_restored_is_read_only_until_it_is_reconciled(
    shell: Shell, memories: Path, tmp_path: Path
) -> None:
    imported(shell, memories)
    token = shell.does("obol", "mint", "one")["token"]
    head = accepted(shell)["merged_head"]
    manifest = shell.does("backup", "--out", tmp_path / "backup", "--with-keys")
    assert manifest["heads"][PROJECT][MAIN] == head
    restored = tmp_path / "restored"
    anchor = shell.data_dir / "anchor"
    told = shell.does("restore", "--from", tmp_path / "backup", "--anchor", anchor, "--data-dir", restored)
    assert (told["recovery_readonly"], told["journal"]) == (True, "replayed")
    code, problem = shell.refused("principal", "disable", "one", "--data-dir", restored)
    assert (code, problem["code"]) == (Exit.UNAVAILABLE, "recovery_readonly")
    assert shell.does("proposal", "list", "--data-dir", restored)["proposals"] != []
    report = shell.does("reconcile", "--data-dir", restored)
    assert (report["ok"], report["recovery_lifted"]) == (True, True)
    shell.does("project", "init", "next", "--data-dir", restored)
    gate = Gate.open(restored)
    assert gate.authenticate(token, "http").principal_id == "one"
    gate.close()


def test_a_backup_or_restore_overwrites_nothing(shell: Shell, tmp_path: Path) -> None:
    shell.does("backup", "--out", tmp_path / "backup")
    code, problem = shell.refused("backup", "--out", tmp_path / "backup")
    assert (code, problem["code"]) == (Exit.CONFLICT, "backup_exists")
    code, problem = shell.refused("restore", "--from", tmp_path / "backup")
    assert (code, problem["code"]) == (Exit.CONFLICT, "data_directory_in_use")
    (tmp_path / "backup" / "lethe.db").write_bytes(b"cut")
    code, problem = shell.refused(
        "restore", "--from", tmp_path / "backup", "--data-dir", tmp_path / "restored"
    )
    assert (code, problem["code"], (tmp_path / "restored").exists()) == (
        Exit.REFUSED,
        "backup_damaged",
        False,
    )


def test_a_memory_is_erased_by_who_was_given_the_scope(shell: Shell, memories: Path) -> None:
    imported(shell, memories)
    erase = ("redact", "entity/Retry", "--project", PROJECT, "--reason", "asked for")
    code, problem = shell.refused(*erase)
    assert (code, problem["code"]) == (Exit.NOT_ALLOWED, "denied")
    shell.does("principal", "add", "officer", "--kind", "human", "--scope", "memory.redact")
    shell.does("grant", "add", "officer", "--project", PROJECT)
    done = shell.does(*erase, "--as", "officer")
    assert done["memory_ids"] == ["entity/Retry"]
    listed = shell.does("redact", "--list", "--project", PROJECT, "--as", "officer")["redactions"]
    assert [item["reason"] for item in listed] == ["asked for"]


# --- how they end


@pytest.mark.parametrize(
    "arguments",
    [
        ("obol", "mint", "one", "--expires", "7 days"),
        ("principal", "add", "x", "--kind", "robot"),
        ("proposal", "create", "-m", "x", "--select", "nowhere"),
        ("project", "policy", PROJECT, "--set", "approvals_needed"),
        ("redact",),
        ("redact", "m", "--list", "--reason", "r"),
        ("restore",),
        ("proposal", "create", "-m", "\udcff"),
        ("grant", "add", "one", "--project", PROJECT, "--ref", "refs/\udcff"),
        ("principal", "disable", "\udcff"),
        ("backup", "--out", "\udcff"),
    ],
    ids=lambda arguments: " ".join(arguments).encode("ascii", "replace").decode(),
)
def test_a_wrong_command_line_is_usage_and_changes_nothing(shell: Shell, arguments: tuple[str, ...]) -> None:
    before = ledger_rows(shell)
    code, problem = shell.refused(*arguments)
    assert (code, problem["code"]) == (Exit.USAGE, "usage")
    assert ledger_rows(shell) == before + 1, "only the verification itself was noted"


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (("proposal", "show", "nothing"), Exit.REFUSED, "not_found"),
        (("grant", "add", "nobody", "--project", PROJECT), Exit.REFUSED, "not_found"),
        (("proposal", "list", "--as", "nobody"), Exit.REFUSED, "not_found"),
        (("principal", "add", "a/b", "--kind", "agent"), Exit.REFUSED, "bad_principal"),
        (("principal", "add", "one", "--kind", "agent"), Exit.CONFLICT, "principal_exists"),
        (("principal", "add", "x", "--kind", "agent", "--actor", "one"), Exit.CONFLICT, "actor_taken"),
        (("proposal", "create", "--as", "ann", "-m", "x"), Exit.NOT_ALLOWED, "denied"),
        (("project", "init", "with space"), Exit.REFUSED, "bad_project_id"),
        (("ledger", "tail", "--limit", "0"), Exit.REFUSED, "bad_limit"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_refusal_ends_with_the_code_of_its_kind(
    shell: Shell, arguments: tuple[str, ...], code: Exit, reason: str
) -> None:
    ended, problem = shell.refused(*arguments)
    assert (ended, problem["code"]) == (code, reason)
    assert "x" not in {item["principal_id"] for item in shell.does("principal", "list")["principals"]}


def test_a_disabled_principal_is_nobody_to_act_as(shell: Shell) -> None:
    shell.does("principal", "disable", "ann")
    code, problem = shell.refused("proposal", "list", "--as", "ann")
    assert (code, problem["code"]) == (Exit.NOT_ALLOWED, "unauthenticated")
    assert shell.does("proposal", "list")["proposals"] == [], "the next person is the default"


@pytest.mark.parametrize("arguments", OPERATOR_READS, ids=" ".join)
def test_a_command_on_an_absent_data_directory_makes_none(bare: Shell, arguments: tuple[str, ...]) -> None:
    code, problem = bare.refused(*arguments)
    assert (code, problem["code"]) == (Exit.REFUSED, "data_directory_absent")
    assert not bare.data_dir.exists()


@pytest.mark.parametrize("arguments", OPERATOR_READS, ids=" ".join)
def test_every_list_has_a_plain_form(shell: Shell, arguments: tuple[str, ...]) -> None:
    code, out, _ = shell.ends(*arguments)
    assert code == Exit.DONE
    assert out or arguments == ("obol", "list")


def test_stored_text_can_not_steer_the_terminal(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "notes"
    path.mkdir()
    (path / "note.md").write_text("a \x1b[2J\u202e note", encoding="utf-8")
    imported(shell, path)
    proposal_id = proposed(shell)
    for arguments in (("proposal", "show", proposal_id), ("proposal", "show", proposal_id, "--json")):
        code, out, _ = shell.ends(*arguments)
        assert code == Exit.DONE
        assert "\x1b" not in out
        assert "\u202e" not in out


@pytest.fixture
def server(shell: Shell) -> Iterator[Gate]:
    """A server on the same data directory."""
    gate = Gate.open(shell.data_dir)
    with running(create_charon_app(gate), on_stop=gate.feed.close):
        yield gate
    gate.close()


def test_the_commands_work_while_a_server_runs_on_the_same_directory(
    shell: Shell, server: Gate, memories: Path
) -> None:
    token = shell.does("obol", "mint", "two")["token"]
    caller = server.authenticate(token, "http")
    imported(shell, memories)
    merged = accepted(shell)
    found: Callable[..., Any] = server.memories
    assert found(caller, PROJECT, ref=MAIN)["head"] == merged["merged_head"]
    shell.does("grant", "revoke", "two", "--project", PROJECT)
    assert server.list_projects(caller) == []
    assert shell.does("reconcile")["ok"] is True

"""What a restore must not undo: revocations and erasures since the backup come with the journal beside the anchor."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from gate_world import MAIN, PROJECT, GateWorld

from memory_git.charon.backup import restore
from memory_git.charon.gate import Caller, Gate, GateSettings
from memory_git.charon.recovery import write_marker
from memory_git.domain.errors import NotAllowed, NotFound, Refused, Unauthenticated, Unavailable


@pytest.fixture
def backed_up(world: GateWorld, tmp_path: Path) -> Path:
    """A backup with an accepted memory in it, of a gate where everybody may still do everything."""
    world.add("one", "m/1", "a sentence to be erased")
    world.accept("one")
    out = tmp_path / "backup"
    world.gate.backup(world.operator, out, with_keys=True)
    return out


def restored(world: GateWorld, backed_up: Path, **settings: bool) -> Gate:
    """The backup in a new folder, with the anchor as it is now."""
    new = world.folder.parent / "restored"
    restore(backed_up, new, world.folder / "anchor")
    return Gate.open(GateSettings(data_dir=new, **settings), world.now)


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(Refused) as refused:
        call()
    return refused.value.code


def test_a_revoked_token_does_not_come_back_with_a_backup(world: GateWorld, backed_up: Path) -> None:
    world.gate.revoke_obol(world.operator, world.caller("one").obol_id or "")
    gate = restored(world, backed_up)
    with pytest.raises(Unauthenticated, match="revoked"):
        gate.authenticate(world.tokens["one"], "http")
    assert gate.authenticate(world.tokens["two"], "http").principal_id == "two"
    report = gate.reconcile(gate.as_operator())
    assert (report["ok"], report["recovery_lifted"]) == (True, True), report
    gate.close()


def test_a_disabled_principal_does_not_come_back_and_one_enabled_again_does(
    world: GateWorld, backed_up: Path
) -> None:
    for name in ("one", "two"):
        world.gate.disable_principal(world.operator, name)
    world.gate.disable_principal(world.operator, "two", disabled=False)
    gate = restored(world, backed_up)
    with pytest.raises(Unauthenticated, match="disabled"):
        gate.authenticate(world.tokens["one"], "http")
    gate.authenticate(world.tokens["two"], "http")
    gate.close()


def test_a_grant_that_was_revoked_or_narrowed_stays_so(world: GateWorld, backed_up: Path) -> None:
    world.gate.revoke_grant(world.operator, "one", PROJECT)
    world.gate.grant(world.operator, "two", PROJECT, scopes=["memory.read"])
    gate = restored(world, backed_up, reconciling=True)
    one, two = (gate.authenticate(world.tokens[name], "http") for name in ("one", "two"))
    with pytest.raises(NotFound):
        gate.log(one, PROJECT)
    gate.log(two, PROJECT, ref=MAIN)
    with pytest.raises(NotAllowed):
        gate.commit(two, PROJECT, message="w", ops=[], read_head=True)
    gate.close()


def test_what_was_erased_since_the_backup_is_erased_before_anything_is_served(
    world: GateWorld, backed_up: Path
) -> None:
    world.gate.add_principal(world.operator, "eraser", "human", profile="write", scopes=["memory.redact"])
    world.gate.grant(world.operator, "eraser", PROJECT)
    world.gate.redact(world.gate.as_principal("eraser"), PROJECT, "m/1", "asked for")
    gate = restored(world, backed_up)
    with pytest.raises(NotFound):
        gate.memory(gate.authenticate(world.tokens["bob"], "http"), PROJECT, "m/1", ref=MAIN)
    assert gate.reconcile(gate.as_operator())["ok"]
    gate.close()
    for path in (world.folder.parent / "restored").glob("lethe.db*"):
        assert b"a sentence to be erased" not in path.read_bytes()


def test_a_restore_ends_the_sessions_of_the_backup_once(world: GateWorld, tmp_path: Path) -> None:
    cookie = world.gate.use_sign_in(world.gate.mint_sign_in(world.operator, "bob")["code"])
    link = world.gate.mint_sign_in(world.operator, "bob")["code"]
    world.gate.backup(world.operator, tmp_path / "backup", with_keys=True)
    world.gate.end_session(cookie)
    gate = restored(world, tmp_path / "backup")
    with pytest.raises(Unauthenticated):
        gate.web_session(cookie)
    assert gate.reconcile(gate.as_operator())["recovery_lifted"]
    gate.close()
    gate = Gate.open(GateSettings(data_dir=world.folder.parent / "restored"), world.now)
    with pytest.raises(Unauthenticated):
        gate.use_sign_in(link)
    fresh = gate.use_sign_in(gate.mint_sign_in(gate.as_operator(), "bob")["code"])
    gate.close()
    gate = Gate.open(GateSettings(data_dir=world.folder.parent / "restored"), world.now)
    assert gate.web_session(fresh).caller.principal_id == "bob"
    gate.close()


def test_the_anchor_follows_a_restore_back_and_the_journal_says_where_it_was(
    world: GateWorld, backed_up: Path
) -> None:
    world.add("one", "m/2", "lost with the restore")
    world.accept("one")
    world.gate.close()
    anchored = json.loads((world.folder / "anchor" / "ledger-heads.json").read_text())["heads"]
    gate = restored(world, backed_up)
    report = gate.reconcile(gate.as_operator())
    assert report["ok"], report
    gate.close()
    entries = [json.loads(line)["view"] for line in journal(world.folder.parent / "restored").splitlines()]
    assert [entry["anchored"][PROJECT] for entry in entries if entry["kind"] == "restored"] == [
        anchored[PROJECT]
    ]
    world.gate = world._open()


def journal(folder: Path) -> str:
    return (folder / "anchor" / "journal.jsonl").read_text()


def test_without_the_journal_a_restored_gate_stays_read_only_until_it_is_given_up(
    world: GateWorld, backed_up: Path
) -> None:
    new = world.folder.parent / "restored"
    restore(backed_up, new)
    gate = Gate.open(GateSettings(data_dir=new), world.now)
    report = gate.reconcile(gate.as_operator())
    assert ([fault["kind"] for fault in report["faults"]], report["recovery_lifted"]) == (
        ["journal_missing"],
        False,
    )
    gate.context(gate.authenticate(world.tokens["one"], "http"), PROJECT)
    gate.close()
    gate = Gate.open(GateSettings(data_dir=new, reconciling=True), world.now)
    report = gate.reconcile(gate.as_operator(), without_journal=True)
    assert (report["ok"], report["recovery_lifted"]) == (True, True), report
    with pytest.raises(Unauthenticated, match="revoked"):
        gate.authenticate(world.tokens["one"], "http")
    gate.close()
    gate = Gate.open(GateSettings(data_dir=new), world.now)
    token = gate.mint_obol(gate.as_operator(), "one")["token"]
    gate.log(gate.authenticate(token, "http"), PROJECT, ref=MAIN)
    gate.close()


def test_an_older_journal_than_the_backup_is_no_journal(world: GateWorld, tmp_path: Path) -> None:
    shutil.copytree(world.folder / "anchor", tmp_path / "old-anchor")
    world.gate.revoke_grant(world.operator, "two", PROJECT)
    world.gate.backup(world.operator, tmp_path / "backup", with_keys=True)
    restore(tmp_path / "backup", tmp_path / "new", tmp_path / "old-anchor")
    gate = Gate.open(GateSettings(data_dir=tmp_path / "new"), world.now)
    assert [fault["kind"] for fault in gate.reconcile(gate.as_operator())["faults"]] == ["journal_missing"]
    gate.close()


@pytest.mark.parametrize("how", ["changed", "foreign", "unreadable"])
def test_a_journal_that_is_not_this_gates_is_not_believed(
    world: GateWorld, backed_up: Path, tmp_path: Path, how: str
) -> None:
    world.gate.revoke_obol(world.operator, world.caller("one").obol_id or "")
    file = world.folder / "anchor" / "journal.jsonl"
    if how == "changed":
        file.write_text(file.read_text().replace("token_revoked", "begun"))
    elif how == "unreadable":
        file.write_text(file.read_text() + "no entry\n")
    else:
        other = GateWorld(tmp_path / "other")
        other.close()
        file.write_bytes((tmp_path / "other" / "anchor" / "journal.jsonl").read_bytes())
    gate = restored(world, backed_up)
    kinds = [fault["kind"] for fault in gate.reconcile(gate.as_operator())["faults"]]
    assert kinds == ["journal_damaged"]
    caller = gate.authenticate(world.tokens["two"], "http")
    with pytest.raises(Unavailable, match="journal"):
        gate.commit(caller, PROJECT, message="w", ops=[], read_head=True)
    gate.close()


def test_a_line_that_a_crash_cut_off_is_written_anew(world: GateWorld) -> None:
    world.gate.close()
    file = world.folder / "anchor" / "journal.jsonl"
    whole = file.read_bytes()
    file.write_bytes(whole[:-20])
    world.gate = world._open()
    assert file.read_bytes() == whole
    assert world.gate.reconcile(world.operator)["ok"]


def test_a_database_put_back_by_hand_is_read_only_until_somebody_says_so(
    world: GateWorld, backed_up: Path
) -> None:
    world.gate.revoke_obol(world.operator, world.caller("one").obol_id or "")
    world.add("two", "m/2", "later")
    world.gate.close()
    for name in ("charon.db", "lethe.db"):
        for path in world.folder.glob(f"{name}*"):
            path.unlink()
        shutil.copy(backed_up / name, world.folder / name)
    gate = Gate.open(world.settings, world.now)
    caller: Caller = gate.authenticate(world.tokens["two"], "http")
    assert refusal(lambda: gate.create_branch(caller, PROJECT, "refs/agents/two/x")) == "recovery_readonly"
    assert {fault["kind"] for fault in gate.reconcile(gate.as_operator())["faults"]} >= {"database_set_back"}
    gate.close()
    write_marker(world.folder, None)
    gate = Gate.open(world.settings, world.now)
    with pytest.raises(Unauthenticated, match="revoked"):
        gate.authenticate(world.tokens["one"], "http")
    assert gate.reconcile(gate.as_operator())["recovery_lifted"]
    gate.close()
    world.gate = world._open()
    assert world.gate.status(world.caller("two"), PROJECT)["recovery_readonly"] is False


def test_a_gate_whose_database_is_gone_is_not_begun_anew_over_its_journal(world: GateWorld) -> None:
    world.gate.close()
    for path in world.folder.glob("charon.db*"):
        path.unlink()
    with pytest.raises(Unavailable) as refused:
        Gate.open(world.settings)
    assert refused.value.code == "database_absent"
    assert not (world.folder / "charon.db").exists()


def test_a_revocation_is_in_the_file_before_it_is_acknowledged(
    world: GateWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = world.folder / "anchor" / "journal.jsonl"
    obol_id = world.caller("one").obol_id or ""
    file.chmod(0o400)
    file.rename(file.with_name("moved"))
    file.mkdir()
    assert refusal(lambda: world.gate.revoke_obol(world.operator, obol_id)) == "journal_unwritable"
    file.rmdir()
    file.with_name("moved").rename(file)
    file.chmod(0o600)
    world.gate.revoke_obol(world.operator, obol_id)
    assert obol_id in file.read_text()


def test_an_erasure_that_was_cut_off_before_its_entry_is_journalled_by_reconcile(world: GateWorld) -> None:
    world.add("one", "m/1", "text")
    world.lethe.redact(PROJECT, "m/1", principal="ann", reason="asked for")
    assert [f["kind"] for f in world.gate.reconcile(world.operator)["faults"]] == ["redaction_unjournalled"]
    assert world.gate.reconcile(world.operator, repair=True)["ok"]
    assert '"redacted"' in journal(world.folder)


def test_a_head_or_a_link_that_the_manifest_names_and_nobody_has_is_found(
    world: GateWorld, backed_up: Path
) -> None:
    new = world.folder.parent / "restored"
    restore(backed_up, new, world.folder / "anchor")
    marker = json.loads((new / "recovery-readonly").read_text())
    marker["manifest"]["heads"][PROJECT][MAIN] = "c" * 32
    (new / "recovery-readonly").write_text(json.dumps(marker))
    gate = Gate.open(GateSettings(data_dir=new), world.now)
    assert [fault["kind"] for fault in gate.reconcile(gate.as_operator())["faults"]] == ["backup_differs"]
    gate.close()

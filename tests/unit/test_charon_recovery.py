"""Backup while serving, restore into an empty folder, read-only until reconciled."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from gate_world import MAIN, PROJECT, GateWorld

from memory_git.charon.backup import restore
from memory_git.charon.gate import Gate, GateSettings
from memory_git.domain.errors import Clash, Invalid, Unavailable
from memory_git.lethe.store import LetheStore


def backed_up(world: GateWorld, out: Path) -> dict[str, Any]:
    return world.gate.backup(world.operator, out, with_keys=True)


def test_a_restored_gate_shows_the_same_and_goes_on_after_a_clean_reconcile(
    world: GateWorld, tmp_path: Path
) -> None:
    world.add("one", "m/1", "kept")
    world.accept("one")
    pinned = world.gate.context(world.caller("one"), PROJECT, ref=MAIN, create_manifest=True)
    before = world.gate.reproduce(world.caller("one"), pinned["manifest_id"])
    manifest = backed_up(world, tmp_path / "out")
    assert manifest["heads"][PROJECT][MAIN] == world.head()
    restore(tmp_path / "out", tmp_path / "new", world.folder / "anchor")
    gate = Gate.open(GateSettings(data_dir=tmp_path / "new"))
    caller = gate.authenticate(world.tokens["one"], "http")
    assert gate.reproduce(caller, pinned["manifest_id"]) == before
    assert gate.status(caller, PROJECT)["recovery_readonly"] is True
    report = gate.reconcile(gate.as_operator())
    assert report["ok"] and report["recovery_lifted"]
    gate.close()
    gate = Gate.open(GateSettings(data_dir=tmp_path / "new"))
    op = {"op_type": "add_memory", "payload": {"memory_id": "m/2", "content": "new"}}
    gate.commit(
        gate.authenticate(world.tokens["one"], "http"), PROJECT, message="w", ops=[op], read_head=True
    )
    assert gate.ledger_verify(gate.as_operator())["ok"]
    gate.close()


def test_in_recovery_every_write_is_refused_and_every_read_works_and_nothing_is_written(
    world: GateWorld,
) -> None:
    world.add("one", "m/1", "text")
    proposal_id = world.propose("one")["proposal_id"]
    world.gate.close()
    (world.folder / "recovery-readonly").touch()
    world.gate = world._open()
    files = {name: (world.folder / name).read_bytes() for name in ("charon.db", "lethe.db")}
    one, bob, ann = (world.caller(name) for name in ("one", "bob", "ann"))
    head = world.head("refs/agents/one/main")
    op = {"op_type": "add_memory", "payload": {"content": "x"}}
    gate = world.gate
    writes: list[Callable[[], Any]] = [
        lambda: gate.commit(one, PROJECT, message="w", ops=[op], read_head=True),
        lambda: gate.create_branch(one, PROJECT, "refs/agents/one/b"),
        lambda: gate.propose(one, PROJECT, message="p"),
        lambda: gate.review(bob, proposal_id, "approve"),
        lambda: gate.merge(bob, proposal_id),
        lambda: gate.cancel(one, proposal_id),
        lambda: gate.rebase(one, proposal_id),
        lambda: gate.context(one, PROJECT, create_manifest=True),
        lambda: gate.mint_obol(ann, "one"),
        lambda: gate.add_principal(ann, "x", "agent"),
        lambda: gate.grant(ann, "bob", "other"),
        lambda: gate.revoke_obol(ann, one.obol_id or ""),
        lambda: gate.project_policy(ann, PROJECT, {"approvals_needed": 2}),
        lambda: gate.init_project(ann, "fresh"),
        lambda: gate.mint_sign_in(ann, "bob"),
        lambda: gate.use_sign_in("code"),
        lambda: (
            gate.redact(ann, PROJECT, "m/1", "asked")
            if "memory.redact" in ann.standing.scopes
            else gate.open_session(ann)
        ),
    ]
    for write in writes:
        with pytest.raises(Unavailable) as refused:
            write()
        assert refused.value.code == "recovery_readonly"
    gate.status(one, PROJECT)
    gate.log(one, PROJECT)
    gate.show(one, PROJECT, head)
    gate.diff(one, PROJECT, head)
    gate.memory(one, PROJECT, "m/1")
    gate.search(one, PROJECT, "text")
    gate.context(one, PROJECT)
    gate.proposal(bob, proposal_id)
    gate.conflicts(bob, PROJECT)
    assert gate.ledger_verify(ann)["ok"]
    world.gate.close()
    assert files == {name: (world.folder / name).read_bytes() for name in files}
    lines = [json.loads(line) for line in (world.folder / "recovery-reads.jsonl").read_text().splitlines()]
    assert "proposal" in {line["view"]["route"] for line in lines}
    assert [line["previous"] for line in lines[1:]] == [line["link"] for line in lines[:-1]]
    (world.folder / "recovery-readonly").unlink()
    world.gate = world._open()


def test_a_backup_is_consistent_while_agents_commit_and_merge(world: GateWorld, tmp_path: Path) -> None:
    done = threading.Event()
    errors: list[BaseException] = []

    def work() -> None:
        try:
            place = 0
            while not done.is_set():
                world.add("one", f"m/{place}", f"text {place}")
                world.accept("one")
                place += 1
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    for place in range(3):
        backed_up(world, tmp_path / f"out{place}")
    done.set()
    thread.join()
    assert not errors
    for place in range(3):
        restore(tmp_path / f"out{place}", tmp_path / f"new{place}", world.folder / "anchor")
        gate = Gate.open(GateSettings(data_dir=tmp_path / f"new{place}"))
        report = gate.reconcile(gate.as_operator())
        assert report["ok"], report
        gate.close()


@pytest.mark.parametrize("name", ["charon.db", "lethe.db"])
def test_a_flipped_byte_in_a_backup_is_refused_and_nothing_is_restored(
    world: GateWorld, tmp_path: Path, name: str
) -> None:
    backed_up(world, tmp_path / "out")
    content = bytearray((tmp_path / "out" / name).read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "out" / name).write_bytes(content)
    with pytest.raises(Invalid) as refused:
        restore(tmp_path / "out", tmp_path / "new")
    assert (refused.value.code, refused.value.facts["file"]) == ("backup_damaged", name)
    assert not (tmp_path / "new").exists()


def test_a_restore_never_overwrites_and_a_backup_neither(world: GateWorld, tmp_path: Path) -> None:
    backed_up(world, tmp_path / "out")
    with pytest.raises(Clash):
        restore(tmp_path / "out", world.folder)
    with pytest.raises(Clash):
        backed_up(world, tmp_path / "out")
    with pytest.raises(Invalid, match=r"holds no manifest\.json"):
        restore(tmp_path / "nothing", tmp_path / "new")


def test_a_manifest_that_names_a_path_outside_is_refused(world: GateWorld, tmp_path: Path) -> None:
    manifest = backed_up(world, tmp_path / "out")
    manifest["files"][0]["name"] = "../charon.db"
    (tmp_path / "out" / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(Invalid, match="named by a path"):
        restore(tmp_path / "out", tmp_path / "new")


def test_a_store_older_than_the_gate_is_found_and_stays_read_only(world: GateWorld, tmp_path: Path) -> None:
    world.add("one", "m/1", "first")
    world.accept("one")
    backed_up(world, tmp_path / "old")
    world.add("one", "m/2", "second")
    world.accept("one")
    backed_up(world, tmp_path / "new")
    manifest = json.loads((tmp_path / "new" / "manifest.json").read_text())
    old = json.loads((tmp_path / "old" / "manifest.json").read_text())
    manifest["files"][1] = old["files"][1]
    (tmp_path / "new" / "manifest.json").write_text(json.dumps(manifest))
    (tmp_path / "new" / "lethe.db").write_bytes((tmp_path / "old" / "lethe.db").read_bytes())
    restore(tmp_path / "new", tmp_path / "mixed", world.folder / "anchor")
    gate = Gate.open(GateSettings(data_dir=tmp_path / "mixed"))
    report = gate.reconcile(gate.as_operator())
    assert {fault["kind"] for fault in report["faults"]} >= {"advance_lost"}
    assert not report["recovery_lifted"]
    gate.close()
    assert (tmp_path / "mixed" / "recovery-readonly").exists()


def without_store(world: GateWorld) -> None:
    world.gate.close()
    for path in world.folder.glob("lethe.db*"):
        path.unlink()


def test_a_gate_whose_store_is_gone_is_not_opened_on_an_empty_one(world: GateWorld) -> None:
    without_store(world)
    with pytest.raises(Unavailable) as refused:
        Gate.open(GateSettings(data_dir=world.folder))
    assert (refused.value.code, PROJECT in refused.value.message) == ("database_absent", True)
    assert not (world.folder / "lethe.db").exists()


def test_an_empty_store_under_a_gate_that_knows_a_project_is_found(world: GateWorld) -> None:
    without_store(world)
    LetheStore.open(world.folder / "lethe.db", merge_keys=None).close()
    world.gate = world._open()
    faults = world.gate.reconcile(world.operator, repair=True)["faults"]
    assert {"kind": "project_lost", "project_id": PROJECT} in faults


def test_a_gate_older_than_the_store_is_found(world: GateWorld, tmp_path: Path) -> None:
    backed_up(world, tmp_path / "old")
    world.add("one", "m/1", "first")
    world.accept("one")
    world.gate.close()
    (world.folder / "charon.db").write_bytes((tmp_path / "old" / "charon.db").read_bytes())
    for name in ("charon.db-wal", "charon.db-shm"):
        (world.folder / name).unlink(missing_ok=True)
    world.gate = world._open()
    kinds = {fault["kind"] for fault in world.gate.reconcile(world.operator)["faults"]}
    assert "advance_unknown" in kinds
    assert "ledger_broken" in kinds


def test_a_history_rewritten_in_the_store_does_not_meet_the_keyed_ledger(world: GateWorld) -> None:
    world.add("one", "m/1", "first")
    world.accept("one")
    world.gate.close()
    raw = apsw.Connection(str(world.folder / "lethe.db"))
    tables = {row[0] for row in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert "ref" in tables
    raw.execute(
        "UPDATE ref SET head_changeset_id = (SELECT root_changeset_id FROM project) WHERE ref_name = ?",
        (MAIN,),
    )
    raw.close()
    world.gate = world._open()
    kinds = {fault["kind"] for fault in world.gate.reconcile(world.operator)["faults"]}
    assert kinds == {"ref_differs"}


def test_a_backup_is_the_files_of_its_manifest_and_nothing_else(world: GateWorld, tmp_path: Path) -> None:
    manifest = world.gate.backup(world.operator, tmp_path / "out")
    named = {"manifest.json", *(item["name"] for item in manifest["files"])}
    assert {path.name for path in (tmp_path / "out").iterdir()} == named


def test_a_gate_that_lost_its_epoch_says_so(world: GateWorld) -> None:
    driver = apsw.Connection(str(world.folder / "charon.db"))
    driver.execute("DELETE FROM identity_epoch")
    driver.close()
    with pytest.raises(Unavailable) as refused:
        world.caller("one")
    assert refused.value.code == "database_damaged"

"""The ledger: intents before mutations, chains that show every change, and no content."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import apsw
import pytest
from gate_world import PROJECT, GateWorld

from memory_git.domain.errors import NotAllowed, NotFound, Unavailable


def raw(world: GateWorld) -> apsw.Connection:
    return apsw.Connection(str(world.folder / "charon.db"))


def test_a_mutation_leaves_an_intent_and_an_outcome_and_a_read_leaves_a_row(world: GateWorld) -> None:
    world.add("one", "m/1", "text")
    world.gate.status(world.caller("one", "mcp"), PROJECT)
    rows = world.gate.ledger_tail(world.operator, PROJECT, 3)
    assert [(row["kind"], row["route"], row["outcome"]) for row in rows] == [
        ("intent", "commit", None),
        ("outcome", "commit", "done"),
        ("read", "status", "shown"),
    ]
    assert rows[1]["intent_seq"] == rows[0]["seq"]
    assert rows[1]["ids"]["ref_name"] == "refs/agents/one/main"
    assert (rows[2]["principal_id"], rows[2]["surface"]) == ("one", "mcp")
    assert rows[2]["obol_id"] in world.tokens["one"]


def test_a_denial_is_in_the_ledger_with_the_reason_that_its_caller_does_not_hear(world: GateWorld) -> None:
    world.gate.add_principal(world.operator, "stranger", "agent")
    token = world.gate.mint_obol(world.operator, "stranger")["token"]
    with pytest.raises(NotFound) as refused:
        world.gate.status(world.gate.authenticate(token, "mcp"), PROJECT)
    assert "grant" not in refused.value.message
    row = world.gate.ledger_tail(world.operator, PROJECT, 1)[0]
    assert (row["kind"], row["decision"], row["principal_id"]) == ("denied", "denied", "stranger")
    assert "no grant of memory.read" in row["reason"]


def test_a_denial_inside_a_call_stands_in_its_outcome(world: GateWorld) -> None:
    with pytest.raises(NotAllowed):
        world.commit("one", [], ref="refs/agents/two/main")
    row = world.gate.ledger_tail(world.operator, PROJECT, 1)[0]
    assert (row["kind"], row["decision"], row["reason"]) == (
        "outcome",
        "denied",
        "the actor two is not yours",
    )


def test_a_mutation_whose_intent_cannot_be_written_does_not_happen(world: GateWorld) -> None:
    before = world.lethe.list_refs(PROJECT)
    raw(world).execute("CREATE TRIGGER shut BEFORE INSERT ON ledger BEGIN SELECT RAISE(ABORT, 'shut'); END")
    with pytest.raises(Unavailable) as refused:
        world.add("one", "m/1", "text")
    assert refused.value.code == "audit_failed"
    assert world.lethe.list_refs(PROJECT) == before
    raw(world).execute("DROP TRIGGER shut")
    world.add("one", "m/1", "text")
    assert world.gate.ledger_verify(world.operator)["ok"]


def test_no_content_is_in_the_ledger(world: GateWorld) -> None:
    world.add("one", "m/1", "plantedword in the content")
    world.gate.search(world.caller("one"), PROJECT, "plantedword")
    proposal_id = world.propose("one", title="plantedword in the title")["proposal_id"]
    world.gate.review(world.caller("bob"), proposal_id, "approve", comment="plantedword in the comment")
    rows = list(world.gate.ledger_export(world.operator))
    assert len(rows) > 10
    assert "plantedword" not in json.dumps(rows)


def test_equal_requests_have_equal_digests_that_need_the_key_to_be_guessed(world: GateWorld) -> None:
    import hashlib

    caller = world.caller("one")
    for query in ("alpha", "alpha", "beta"):
        world.gate.search(caller, PROJECT, query)
    rows = world.gate.ledger_tail(world.operator, PROJECT, 3)
    digests = [row["request_digest"] for row in rows]
    assert digests[0] == digests[1] != digests[2]
    request = {"project": PROJECT, "query": "alpha", "ref": None, "head": None, "limit": 20}
    plain = json.dumps(request, sort_keys=True, separators=(",", ":")).encode()
    assert hashlib.sha256(plain).hexdigest() not in digests


TAMPERED = [
    pytest.param("UPDATE ledger SET view = replace(view, 'allowed', 'denied') WHERE seq = 5", id="a view"),
    pytest.param("UPDATE ledger SET view = 'no json' WHERE seq = 5", id="a view that is no JSON"),
    pytest.param(
        "UPDATE ledger SET link = replace(link, substr(link, 1, 4), 'ffff') WHERE seq = 5", id="a link"
    ),
    pytest.param("UPDATE ledger SET previous = NULL WHERE seq = 5", id="a previous link"),
    pytest.param("UPDATE ledger SET kind = 'read' WHERE seq = 5 AND kind <> 'read'", id="a copied column"),
    pytest.param("UPDATE ledger SET intent_seq = 1 WHERE seq = 5", id="a copied number"),
    pytest.param("DELETE FROM ledger WHERE seq = 5", id="a row taken out"),
    pytest.param("DELETE FROM ledger WHERE seq >= 5", id="the end cut off"),
    pytest.param("DELETE FROM ledger", id="all of it"),
]


@pytest.mark.parametrize("statement", TAMPERED)
def test_any_change_of_a_row_is_found(world: GateWorld, statement: str) -> None:
    for place in range(5):
        world.add("one", f"m/{place}", f"text {place}")
    assert world.gate.ledger_verify(world.operator, PROJECT)["ok"]
    world.gate.close()
    raw(world).execute(f"{statement} {'AND' if 'WHERE' in statement else 'WHERE'} project_id = '{PROJECT}'")
    world.restart()
    report = world.gate.ledger_verify(world.operator, PROJECT)
    assert not report["ok"]
    assert report["faults"][0]["project_id"] == PROJECT


def test_a_chain_made_anew_with_the_same_key_does_not_meet_its_anchor(
    world: GateWorld, tmp_path: Path
) -> None:
    world.add("one", "m/1", "text")
    world.gate.ledger_verify(world.operator)
    world.gate.close()
    anchor = (world.folder / "anchor" / "ledger-heads.json").read_text()
    raw(world).execute(f"DELETE FROM ledger WHERE project_id = '{PROJECT}'")
    (world.folder / "anchor" / "ledger-heads.json").unlink()
    world.restart()
    for place in range(20):
        world.add("one", f"m/n{place}", "text")
    assert world.gate.ledger_verify(world.operator, PROJECT)["ok"]
    world.gate.close()
    (world.folder / "anchor" / "ledger-heads.json").write_text(anchor)
    world.restart()
    faults = world.gate.ledger_verify(world.operator, PROJECT)["faults"]
    assert [fault["why"] for fault in faults] == ["anchor_differs"]


def test_chains_hold_while_many_threads_read_and_write(world: GateWorld) -> None:
    errors: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for place in range(10):
                world.add(name, f"{name}/{place}", "text")
                world.gate.status(world.caller(name), PROJECT)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("one", "two", "ann")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    report = world.gate.ledger_verify(world.operator)
    assert report["ok"]
    rows = [row for row in world.gate.ledger_export(world.operator, PROJECT) if row["principal_id"] == "two"]
    assert sum(row["route"] == "status" for row in rows) == 10
    assert sum(row["outcome"] == "done" for row in rows) == 10


def test_calls_about_a_project_that_is_not_there_stand_in_the_chain_of_none(world: GateWorld) -> None:
    with pytest.raises(NotFound):
        world.gate.status(world.caller("one"), "ghost")
    assert world.gate.ledger_tail(world.operator, None, 1)[0]["project"] in ("ghost", None)
    assert world.gate.ledger_tail(world.operator, "ghost") == []

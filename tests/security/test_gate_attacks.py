"""Holes that an attacker of the gate once found, each by the name of what it must not be able to do again."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from gate_world import MAIN, PROJECT, GateWorld

from memory_git.domain.errors import Clash, Refused


def proposed(world: GateWorld, memory_id: str = "m/1") -> str:
    world.add("one", memory_id, f"text of {memory_id}")
    proposal_id = str(world.propose("one")["proposal_id"])
    world.approve(proposal_id)
    return proposal_id


def refused(call: Callable[[], Any]) -> Refused:
    with pytest.raises(Refused) as found:
        call()
    return found.value


# what was answered holds


ENDINGS: dict[str, Callable[[GateWorld, str], Any]] = {
    "cancel": lambda world, name: world.gate.cancel(world.caller("one"), name),
    "reject": lambda world, name: world.gate.review(world.caller("cy"), name, "reject", comment="no"),
    "object": lambda world, name: world.gate.review(
        world.caller("cy"), name, "request_changes", comment="no"
    ),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_nothing_else_ends_a_proposal_while_its_merge_is_under_way(world: GateWorld, ending: str) -> None:
    proposal_id = proposed(world)
    answers: list[Refused] = []
    lethe, land = world.lethe, world.lethe.merge_ref

    def meanwhile(*args: Any) -> Any:
        answers.append(refused(lambda: ENDINGS[ending](world, proposal_id)))
        return land(*args)

    lethe.merge_ref = meanwhile
    assert world.merge(proposal_id)["status"] == "merged"
    assert [item.code for item in answers] == ["merge_under_way"]
    assert world.gate.proposal(world.caller("bob"), proposal_id)["status"] == "merged"
    assert world.gate.reconcile(world.operator)["ok"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_merge_does_not_begin_on_a_proposal_that_ended_while_it_was_judged(
    world: GateWorld, ending: str
) -> None:
    proposal_id = proposed(world)
    lethe, plan = world.lethe, world.lethe.plan_merge
    ended: list[Any] = []

    def meanwhile(*args: Any) -> Any:
        found = plan(*args)
        if not ended:
            ended.append(None)
            ended.append(ENDINGS[ending](world, proposal_id))
        return found

    lethe.plan_merge = meanwhile
    refusal = refused(lambda: world.merge(proposal_id))
    assert isinstance(refusal, Clash) and refusal.code in ("proposal_closed", "not_approved")
    assert len(ended) == 2 and world.lethe.list_advances(PROJECT) == []
    assert world.gate.reconcile(world.operator)["ok"]


def test_an_attempt_that_lands_while_it_is_asked_about_does_not_count_as_failed(world: GateWorld) -> None:
    proposal_id = proposed(world)
    lethe, land, resolve = world.lethe, world.lethe.merge_ref, world.lethe.resolve_ref
    landing: list[tuple[Any, ...]] = []

    def later(*args: Any) -> Any:
        landing.append(args)
        return None

    def resolved(*args: Any) -> Any:
        if landing:
            land(*landing.pop())
        return resolve(*args)

    lethe.merge_ref, lethe.get_changeset, kept = later, _gone, lethe.get_changeset
    with pytest.raises(ConnectionError):
        world.merge(proposal_id)
    lethe.get_changeset, lethe.merge_ref, lethe.resolve_ref = kept, land, resolved
    assert refused(lambda: world.gate.cancel(world.caller("one"), proposal_id)).code == "proposal_closed"
    assert world.gate.proposal(world.caller("bob"), proposal_id)["status"] == "merged"
    assert world.gate.reconcile(world.operator, repair=True)["ok"]


def _gone(*_: Any) -> Any:
    raise ConnectionError


# what is private stays so


def test_a_revert_on_a_granted_branch_brings_no_private_value_under_a_wider_record(world: GateWorld) -> None:
    world.gate.grant(world.operator, "two", PROJECT, refs=["refs/agents/one/*"])
    world.add("one", "m/1", "the secret", visibility="private")
    changed = world.correct("one", "m/1", content="for everybody")["changeset"]["changeset_id"]
    world.correct("one", "m/1", visibility="shared")
    two = world.caller("two")
    assert world.content("m/1", "two", "refs/agents/one/main") == "for everybody"
    refusal = refused(
        lambda: world.gate.propose_revert(two, PROJECT, changed, target_ref="refs/agents/one/main")
    )
    assert refusal.code == "target_not_protected"
    assert [ref["ref_name"] for ref in world.gate.list_refs(two, PROJECT)] == ["refs/agents/one/main", MAIN]


def test_who_may_merge_but_not_read_is_told_no_text_by_a_refusal(world: GateWorld) -> None:
    proposal_id = contradicting(world)
    world.gate.add_principal(world.operator, "blind", "human", profile="review")
    world.gate.grant(world.operator, "blind", PROJECT, scopes=["memory.merge", "memory.review"])
    blind = world.gate.as_principal("blind")
    refusal = refused(lambda: world.gate.merge(blind, proposal_id))
    assert refusal.code == "merge_conflicts" and refusal.facts["conflicts"] == []
    seen = refused(lambda: world.merge(proposal_id)).facts["conflicts"]
    assert [item["conflict_type"] for item in seen] == ["incompatible_fact"]


def test_the_holder_of_admin_elsewhere_reads_no_manifest_of_somebody_else(world: GateWorld) -> None:
    world.gate.add_principal(world.operator, "reads", "human", profile="write")
    world.gate.grant(world.operator, "reads", PROJECT, scopes=["memory.read"])
    made = world.gate.context(world.caller("one"), PROJECT, ref=MAIN, query="a secret", create_manifest=True)
    reads = world.gate.as_principal("reads")
    assert refused(lambda: world.gate.manifest(reads, made["manifest_id"])).code == "not_found"


# unmerged work can't pass for accepted


READS: dict[str, Callable[..., Any]] = {
    "memories": lambda gate, caller, **at: gate.memories(caller, PROJECT, **at),
    "memory": lambda gate, caller, **at: gate.memory(caller, PROJECT, "m/1", **at),
    "memory_history": lambda gate, caller, **at: gate.memory_history(caller, PROJECT, "m/1", **at),
    "search": lambda gate, caller, **at: gate.search(caller, PROJECT, "text", **at),
    "context": lambda gate, caller, **at: gate.context(caller, PROJECT, **at),
}


@pytest.mark.parametrize("name", READS)
def test_unmerged_work_is_not_read_under_the_name_of_accepted_memory(world: GateWorld, name: str) -> None:
    unmerged = world.add("one", "m/1", "text")["changeset"]["changeset_id"]
    one, read = world.caller("one"), READS[name]
    assert refused(lambda: read(world.gate, one, ref=MAIN, head=unmerged)).code == "head_not_reachable"
    found = read(world.gate, one, head=unmerged)
    assert (found.get("ref") or found["ref_name"]) == "refs/agents/one/main"


# nothing is merged that nobody reviewed


def contradicting(world: GateWorld) -> str:
    """Gives a proposal of `two` that contradicts an accepted fact."""
    ref = world.sync("two")["ref_name"]
    world.add("one", "m/1", "The port is 1", kind="fact", fact_key="port")
    world.accept("one")
    payload = {"memory_id": "m/2", "content": "The port is 2", "kind": "fact", "fact_key": "port"}
    world.commit("two", [{"op_type": "add_memory", "payload": payload}], ref=ref)
    return str(world.propose("two", source_ref=ref)["proposal_id"])


def concurrent(world: GateWorld, outcome: str) -> str:
    """Gives an approved proposal that changed what was changed meanwhile, settled by an outcome."""
    world.add("one", "m/1", "said before")
    world.accept("one")
    ref = world.sync("two")["ref_name"]
    op = {"op_type": "correct_memory", "target_event_id": "m/1", "payload": {"content": "right says"}}
    world.commit("two", [op], ref=ref)
    world.correct("one", "m/1", content="left says")
    world.add("one", "m/2", "The port is 1", kind="fact", fact_key="port")
    world.accept("one")
    made = world.propose("two", source_ref=ref)
    for item in made["conflicts"]:
        if item["severity"] == "blocking":
            world.gate.resolve_conflict(world.caller("cy"), PROJECT, item["conflict_id"], outcome, "because")
    world.approve(made["proposal_id"])
    return str(made["proposal_id"])


def answer(**payload: Any) -> dict[str, Any]:
    return {"op_type": "correct_memory", "target_event_id": "m/1", "payload": payload}


@pytest.mark.parametrize("outcome", ["keep_left", "keep_right"])
def test_who_merges_says_nothing_else_than_the_recorded_resolution(world: GateWorld, outcome: str) -> None:
    proposal_id = concurrent(world, outcome)
    refusal = refused(lambda: world.merge(proposal_id, resolutions=[answer(content="my own words")]))
    assert "settles this memory" in refusal.message
    assert world.content("m/1") == "left says"


@pytest.mark.parametrize(
    "more", [{"kind": "decision"}, {"visibility": "public"}, {"clear": ["title"]}, {"protected": True}]
)
def test_who_merges_changes_nothing_on_which_the_sides_agree(world: GateWorld, more: dict[str, Any]) -> None:
    proposal_id = concurrent(world, "edited")
    refusal = refused(lambda: world.merge(proposal_id, resolutions=[answer(content="both say", **more)]))
    assert refusal.code == "invalid_changeset" and "the sides agree" in refusal.message
    assert world.content("m/1") == "left says"


def test_the_words_of_who_merges_name_them(world: GateWorld) -> None:
    proposal_id = concurrent(world, "edited")
    merged = world.merge(proposal_id, resolutions=[answer(content="both say")])["merged_head"]
    ops = world.gate.show(world.caller("cy"), PROJECT, merged)["ops"]
    assert ops[0]["payload"]["reviewer"] == "bob"


def test_the_words_of_who_merges_contradict_nothing_accepted(world: GateWorld) -> None:
    ref = world.sync("two")["ref_name"]
    for name, at, fact_key, value in (("one", None, "m1", 1), ("two", ref, "m1", 2)):
        payload = {"memory_id": "m/1", "content": f"The {fact_key} is {value}", "kind": "fact"}
        world.commit(
            name, [{"op_type": "add_memory", "payload": {**payload, "fact_key": str(value)}}], ref=at
        )
    world.add("one", "m/2", "The port is 1", kind="fact", fact_key="port")
    world.accept("one")
    made = world.propose("two", source_ref=ref)
    for item in made["conflicts"]:
        if item["severity"] == "blocking":
            world.gate.resolve_conflict(world.caller("cy"), PROJECT, item["conflict_id"], "edited", "why")
    world.approve(made["proposal_id"])
    resolution = answer(content="The port is 9", fact_key="port")
    refusal = refused(lambda: world.merge(made["proposal_id"], resolutions=[resolution]))
    assert refusal.code == "merge_conflicts" and refusal.facts["conflicts"][0]["memory_ids"] == ["m/1", "m/2"]


@pytest.mark.parametrize(
    "op", [{"op_type": []}, {"op_type": {}}, [], "x", answer(content="x") | {"payload": 1}]
)
def test_no_resolution_breaks_a_merge(world: GateWorld, op: Any) -> None:
    proposal_id = concurrent(world, "edited")
    assert refused(lambda: world.merge(proposal_id, resolutions=[op])).code == "invalid_changeset"


# the ledger holds no content


TEXT = "what-somebody-said"
NAMELESS: dict[str, Callable[[GateWorld], Any]] = {
    "show": lambda world: world.gate.show(world.caller("one"), PROJECT, TEXT),
    "resolve": lambda world: world.gate.resolve_conflict(
        world.caller("bob"), PROJECT, TEXT, "both", "because"
    ),
    "policy": lambda world: world.gate.project_policy(world.caller("one"), f"{TEXT} !", {"approvals": 2}),
    "grant": lambda world: world.gate.grant(world.caller("one"), TEXT, f"{TEXT} !"),
    "revoke_grant": lambda world: world.gate.revoke_grant(world.operator, TEXT, f"{TEXT} !"),
    "revoke_obol": lambda world: world.gate.revoke_obol(world.operator, TEXT),
    "mint": lambda world: world.gate.mint_obol(world.caller("one"), TEXT, project=f"{TEXT} !"),
    "branch": lambda world: world.gate.create_branch(world.caller("one"), PROJECT, f"refs/topics/{TEXT} !"),
    "commit": lambda world: world.commit("one", [], ref=f"refs/topics/{TEXT} !"),
    "note": lambda world: world.gate.resolve_conflict(
        world.caller("bob"), PROJECT, TEXT, "both", TEXT * 1000
    ),
}


@pytest.mark.parametrize("name", NAMELESS)
def test_what_names_nothing_leaves_no_text_in_the_ledger(world: GateWorld, name: str) -> None:
    refused(lambda: NAMELESS[name](world))
    assert TEXT not in str(list(world.gate.ledger_export(world.operator)))


# an administrator of one project is none of another


ADMINISTRATION: dict[str, Callable[[GateWorld, Any], Any]] = {
    "grant itself": lambda world, mal: world.gate.grant(mal, "mal", PROJECT),
    "grant itself all": lambda world, mal: world.gate.grant(mal, "mal", "*"),
    "take a grant away": lambda world, mal: world.gate.revoke_grant(mal, "bob", PROJECT),
    "see the grants": lambda world, mal: world.gate.grants(mal),
    "mint a token": lambda world, mal: world.gate.mint_obol(mal, "bob"),
    "mint a link": lambda world, mal: world.gate.mint_sign_in(mal, "bob"),
    "see the tokens": lambda world, mal: world.gate.obols(mal),
    "disable": lambda world, mal: world.gate.disable_principal(mal, "bob", True),
    "add a principal": lambda world, mal: world.gate.add_principal(mal, "new", "human"),
    "take an actor": lambda world, mal: world.gate.add_actor(mal, "mal", "other"),
    "set a policy": lambda world, mal: world.gate.project_policy(
        mal, PROJECT, {"lone_person_may_merge": True}
    ),
    "read the ledger": lambda world, mal: world.gate.ledger_tail(mal, PROJECT),
    "read the other ledger": lambda world, mal: world.gate.ledger_tail(mal),
    "start another project": lambda world, mal: world.gate.init_project(mal, "third"),
    "start that project anew": lambda world, mal: world.gate.init_project(mal, PROJECT),
}


@pytest.mark.parametrize("act", ADMINISTRATION)
def test_an_administrator_of_one_project_administers_no_other(world: GateWorld, act: str) -> None:
    world.gate.init_project(world.operator, "evil")
    world.gate.add_principal(world.operator, "mal", "human", profile="write")
    world.gate.grant(world.operator, "mal", "evil")
    mal = world.gate.authenticate(world.gate.mint_obol(world.operator, "mal")["token"], "http")
    assert world.gate.grant(mal, "bob", "evil")["granted_by"] == "mal"
    assert world.gate.ledger_tail(mal, "evil")
    assert refused(lambda: ADMINISTRATION[act](world, mal)).code == "denied"
    assert refused(lambda: world.gate.memories(mal, PROJECT)).code == "not_found"


def test_the_words_about_a_private_op_are_as_closed_as_the_op(world: GateWorld) -> None:
    world.gate.grant(world.operator, "two", PROJECT, refs=["refs/agents/one/*"])
    private = {"memory_id": "m/p", "content": "the secret", "visibility": "private"}
    said = [
        {"op_type": "add_memory", "payload": item} for item in ({"memory_id": "m/1", "content": "x"}, private)
    ]
    quoted = [{"kind": "quote", "source": "s", "note": "the secret"}]
    made = world.gate.commit(
        world.caller("one"),
        PROJECT,
        message="the secret",
        ops=said,
        read_head=True,
        evidence=quoted,
        verification=quoted,
    )["changeset"]
    two, ref = world.caller("two"), "refs/agents/one/main"
    seen = [
        world.gate.show(two, PROJECT, made["changeset_id"]),
        world.gate.log(two, PROJECT, ref)["changesets"][0],
        world.gate.memory_history(two, PROJECT, "m/1", ref)["versions"][0],
    ]
    assert [item["message"] for item in seen] == [None, None, None]
    assert "the secret" not in str(seen)
    own = world.gate.show(world.caller("one"), PROJECT, made["changeset_id"])
    assert (own["message"], own["evidence"][0]["note"]) == ("the secret", "the secret")


# no contradiction is accepted silently


def test_nobody_hides_a_contradiction_behind_a_flood_on_a_branch_of_their_own(world: GateWorld) -> None:
    def decision(memory_id: str, content: str, **more: Any) -> dict[str, Any]:
        payload = {"memory_id": memory_id, "content": content, "kind": "decision", **more}
        return {"op_type": "add_memory", "payload": payload}

    world.commit("one", [decision("d/1", "We use Postgres as the database for billing")])
    world.accept("one")
    words = "We use Postgres MySQL as the database for billing"
    flood = [decision(f"f/{n}", f"{words} part{n}", visibility="private") for n in range(300)]
    world.commit("two", flood, ref="refs/agents/two/flood")
    world.commit("two", [decision("d/2", "We use MySQL as the database for billing")])
    made = world.propose("two")
    assert "contradictory_decision" in [item["conflict_type"] for item in made["conflicts"]]


# reconcile reports what is broken


@pytest.mark.parametrize("table", ["changeset", "op"])
def test_reconcile_reports_an_accepted_head_that_is_gone_or_broken(world: GateWorld, table: str) -> None:
    world.add("one", "m/1", "text")
    head = world.accept("one")["merged_head"]
    world.gate.close()
    with closing(sqlite3.connect(world.folder / "lethe.db")) as connection:
        row = connection.execute("SELECT id FROM changeset WHERE changeset_id = ?", (head,)).fetchone()[0]
        column = "id" if table == "changeset" else "changeset_row"
        connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (row,))
        connection.commit()
    world.gate = world._open()
    report = world.gate.reconcile(world.operator)
    assert not report["ok"]
    assert ("head_differs", head) in [(item["kind"], item.get("head")) for item in report["faults"]]
    assert not world.lethe.verify(PROJECT)["ok"]


# what a reading of history gives away


def test_a_log_of_a_readable_ref_never_goes_on_into_anothers_branch(world: GateWorld) -> None:
    world.add("one", "m/1", "accepted")
    world.accept("one")
    hidden = world.add("one", "m/secret", "not for two yet")["changeset"]["changeset_id"]
    of_hidden = world.gate.log(world.caller("one"), PROJECT, "refs/agents/one/main", limit=1)["next"]
    for cursor in (hidden, of_hidden):
        answer = refused(lambda at=cursor: world.gate.log(world.caller("two"), PROJECT, MAIN, before=at))
        assert answer.code == "bad_cursor"


def test_an_open_conflict_shows_in_a_diff_only_beside_a_proposal_that_the_caller_sees(
    world: GateWorld,
) -> None:
    world.add("one", "m/1", "former")
    world.accept("one")
    start = world.head()
    world.correct("one", "m/1", content="from one")
    world.correct("two", "m/1", content="from two")
    world.accept("two")
    proposal_id = world.propose("one")["proposal_id"]

    def told(name: str) -> list[list[str]]:
        diff = world.gate.diff(world.caller(name), PROJECT, MAIN, start)
        assert diff["corrections_proposed"]
        return [item["proposal_ids"] for item in diff["unresolved_conflicts"]]

    assert [proposal_id] in told("bob")
    assert [proposal_id] in told("one")
    assert told("two") == []

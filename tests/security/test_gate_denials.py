"""What an agent may not do, see or claim, tried in every way that the gate has."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from gate_world import MAIN, PROJECT, GateWorld

from memory_git.charon.gate import Caller
from memory_git.domain.errors import Invalid, NotAllowed, NotFound, Refused

SECRET = "plantedsecret"
UNKNOWN = "01a22f2e-7f5a-778d-8906-1958f3b9e80e"


def add(**payload: Any) -> dict[str, Any]:
    return {"op_type": "add_memory", "payload": {"content": "text", **payload}}


@pytest.mark.parametrize(
    ("ref", "code"),
    [
        pytest.param(MAIN, "protected_ref", id="accepted memory"),
        pytest.param("refs/shared/other", "protected_ref", id="another accepted line"),
        pytest.param("refs/agents/two/main", "denied", id="another agent's branch"),
        pytest.param("refs/sessions/two/s1", "denied", id="another agent's session"),
        pytest.param("refs/proposals/x", "denied", id="a proposal's work"),
        pytest.param("refs/heads/main", "bad_ref_name", id="no ref of ours"),
    ],
)
def test_an_agent_writes_only_refs_of_its_own(world: GateWorld, ref: str, code: str) -> None:
    before = world.lethe.list_refs(PROJECT)
    calls: list[Callable[[], Any]] = [
        lambda: world.commit("one", [add()], ref=ref),
        lambda: world.gate.create_branch(world.caller("one"), PROJECT, ref),
    ]
    for call in calls:
        with pytest.raises((NotAllowed, Invalid)) as refused:
            call()
        assert refused.value.code == code
    assert world.lethe.list_refs(PROJECT) == before


def test_a_topic_belongs_to_who_made_it(world: GateWorld) -> None:
    world.commit("one", [add()], ref="refs/topics/design")
    with pytest.raises(NotAllowed, match="created by another"):
        world.commit("two", [add()], ref="refs/topics/design")
    world.commit("one", [add()], ref="refs/topics/design")


@pytest.mark.parametrize(
    ("op", "field"),
    [
        (add(approval="user_approved"), "payload.approval"),
        (add(approval=""), "payload.approval"),
        (add(owner_principal="two"), "payload.owner_principal"),
        (add(reviewer="bob"), "payload.reviewer"),
        (add(proposal_id=UNKNOWN), "payload.proposal_id"),
        (add(rejected_from="x"), "payload.rejected_from"),
        (add(source_trust="human"), "payload.source_trust"),
        (add(source_trust="user_approved"), "payload.source_trust"),
        (add(source_trust="verified"), "payload.source_trust"),
        (
            {"op_type": "correct_memory", "target_event_id": "m", "payload": {"clear": ["approval"]}},
            "payload.clear.approval",
        ),
        (
            {
                "op_type": "set_status",
                "target_event_id": "m",
                "payload": {"status": "active", "source_trust": "human"},
            },
            "payload.source_trust",
        ),
        (
            {"op_type": "attach_verification", "payload": {"summary": "Approved", "reviewer": "bob"}},
            "payload.reviewer",
        ),
    ],
)
def test_an_agent_claims_no_authority(world: GateWorld, op: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        world.commit("one", [add(), op])
    assert [(fault.ordinal, fault.field) for fault in refused.value.faults] == [(1, field)]


def test_claims_and_faults_of_form_are_told_together(world: GateWorld) -> None:
    with pytest.raises(Invalid) as refused:
        world.commit("one", [add(approval="user_approved"), {"op_type": "nonsense"}, add(colour="red")])
    assert [fault.ordinal for fault in refused.value.faults] == [0, 1, 2]


def test_trust_comes_from_who_commits(world: GateWorld) -> None:
    ann = world.gate.as_principal("ann")
    by_agent = world.commit(
        "one", [add(memory_id="m/1"), add(memory_id="m/2", source_trust="model_inference")]
    )
    by_person = world.gate.commit(ann, PROJECT, message="w", ops=[add(memory_id="m/3")])
    trusts = [
        op["payload"]["source_trust"] for made in (by_agent, by_person) for op in made["changeset"]["ops"]
    ]
    assert trusts == ["inference", "model_inference", "human"]
    owners = [op["payload"]["owner_principal"] for op in by_agent["changeset"]["ops"]]
    assert owners == ["one", "one"]


def test_verification_in_a_changeset_names_no_reviewer(world: GateWorld) -> None:
    with pytest.raises(Invalid) as refused:
        world.commit("one", [add()], verification=[{"kind": "review", "reviewer": "bob"}])
    assert refused.value.faults[0].field == "verification.reviewer"


def hidden_world(world: GateWorld) -> dict[str, str]:
    """Puts a private memory of `one` beside an open one, and gives the ids of what was made."""
    made = world.commit(
        "one",
        [
            add(memory_id="m/open", content="open text", visibility="internal"),
            add(memory_id="m/secret", content=SECRET, visibility="private"),
        ],
    )
    return {"changeset": made["changeset"]["changeset_id"], "ref": made["ref"]["ref_name"]}


def outputs(world: GateWorld, caller: Caller, made: dict[str, str]) -> list[Callable[[], Any]]:
    gate = world.gate
    ref, changeset = made["ref"], made["changeset"]
    return [
        lambda: gate.status(caller, PROJECT),
        lambda: gate.list_refs(caller, PROJECT),
        lambda: gate.log(caller, PROJECT, ref),
        lambda: gate.show(caller, PROJECT, changeset),
        lambda: gate.diff(caller, PROJECT, changeset),
        lambda: gate.memories(caller, PROJECT, ref=ref),
        lambda: gate.memories(caller, PROJECT, head=changeset),
        lambda: gate.memory(caller, PROJECT, "m/secret", ref=ref),
        lambda: gate.memory_history(caller, PROJECT, "m/secret", ref=ref),
        lambda: gate.search(caller, PROJECT, SECRET, ref=ref),
        lambda: gate.search(caller, PROJECT, SECRET),
        lambda: gate.context(caller, PROJECT, ref=ref),
        lambda: gate.context(caller, PROJECT, query=SECRET),
        lambda: gate.conflicts(caller, PROJECT),
        lambda: gate.proposals(caller, PROJECT),
        lambda: gate.list_projects(caller),
        lambda: gate.whoami(caller),
    ]


def answer(call: Callable[[], Any]) -> str:
    try:
        return json.dumps(call(), default=str)
    except Refused as refusal:
        return json.dumps(refusal.to_problem(), default=str)


@pytest.mark.parametrize("name", ["two", "bob", "ann"])
def test_a_private_memory_shows_in_no_output_to_anybody_else(world: GateWorld, name: str) -> None:
    made = hidden_world(world)
    world.gate.grant(world.operator, "two", PROJECT, refs=["refs/agents/one/*"])
    for call in outputs(world, world.caller(name), made):
        found = answer(call)
        assert SECRET not in found
        assert '"m/secret"' not in found
    assert world.content("m/secret", "one", made["ref"]) == SECRET


def test_a_granted_ref_is_read_and_its_open_memory_seen(world: GateWorld) -> None:
    made = hidden_world(world)
    two = world.caller("two")
    with pytest.raises(NotFound):
        world.gate.memories(two, PROJECT, ref=made["ref"])
    world.gate.grant(world.operator, "two", PROJECT, refs=["refs/agents/one/*"])
    shown = world.gate.memories(two, PROJECT, ref=made["ref"])
    assert [item["memory_id"] for item in shown["memories"]] == ["m/open"]
    assert shown["total"] == 1
    ops = world.gate.show(two, PROJECT, made["changeset"])["ops"]
    assert [op.get("withheld", False) for op in ops] == [False, True]


@pytest.mark.parametrize(
    "op",
    [
        {"op_type": "correct_memory", "target_event_id": "m/secret", "payload": {"visibility": "internal"}},
        {
            "op_type": "correct_memory",
            "target_event_id": "m/secret",
            "resulting_event_id": "m/mine",
            "payload": {"visibility": "internal"},
        },
        {
            "op_type": "supersede_memory",
            "target_event_id": "m/secret",
            "payload": {"content": "x", "memory_id": "m/mine"},
        },
        {
            "op_type": "set_status",
            "target_event_id": "m/secret",
            "payload": {"status": "retracted", "reason": "x"},
        },
        {"op_type": "mark_duplicate", "payload": {"duplicate_id": "m/open", "duplicate_of": "m/secret"}},
        {
            "op_type": "add_relationship",
            "payload": {"kind": "about", "from_memory_id": "m/open", "to_memory_id": "m/secret"},
        },
        {"op_type": "attach_evidence", "target_event_id": "m/secret", "payload": {"note": "x"}},
    ],
)
def test_what_may_not_be_seen_may_not_be_named(world: GateWorld, op: dict[str, Any]) -> None:
    made = hidden_world(world)
    world.gate.grant(world.operator, "two", PROJECT, refs=["refs/agents/one/*"])
    two = world.caller("two")
    world.gate.create_branch(two, PROJECT, "refs/agents/two/b", from_ref=made["ref"])
    head = world.head("refs/agents/two/b")
    hidden = json.loads(json.dumps(op))
    absent = json.loads(json.dumps(op).replace("m/secret", "m/absent"))
    told = []
    for attempt in (hidden, absent):
        with pytest.raises(Invalid) as refused:
            world.gate.commit(
                two, PROJECT, message="w", ops=[attempt], ref="refs/agents/two/b", expected_head=head
            )
        told.append([(fault.ordinal, fault.field, fault.rule) for fault in refused.value.faults])
    assert told[0] == told[1]


def test_an_id_that_hides_somebody_elses_memory_is_not_free(world: GateWorld) -> None:
    made = hidden_world(world)
    world.gate.grant(world.operator, "two", PROJECT, refs=["refs/agents/one/*"])
    two = world.caller("two")
    world.gate.create_branch(two, PROJECT, "refs/agents/two/b", from_ref=made["ref"])
    with pytest.raises(Invalid):
        world.gate.commit(
            two,
            PROJECT,
            message="w",
            ops=[add(memory_id="m/secret")],
            ref="refs/agents/two/b",
            read_head=True,
        )


def test_another_agents_head_is_no_parent(world: GateWorld) -> None:
    made = hidden_world(world)
    own = world.add("two", "m/2", "mine")["changeset"]["changeset_id"]
    with pytest.raises(NotFound):
        world.commit("two", [add()], expected_head=own, parent_ids=[own, made["changeset"]])
    with pytest.raises(NotFound):
        world.gate.create_branch(world.caller("two"), PROJECT, "refs/agents/two/b", head=made["changeset"])
    with pytest.raises(NotFound):
        world.propose("two", head_changeset_id=made["changeset"])


def test_what_one_may_not_know_of_looks_like_what_is_not_there(world: GateWorld) -> None:
    world.add("one", "m/1", "text")
    proposal_id = world.propose("one")["proposal_id"]
    manifest_id = world.gate.context(world.caller("one"), PROJECT, create_manifest=True)["manifest_id"]
    world.gate.add_principal(world.operator, "stranger", "agent", profile="write")
    stranger = world.gate.as_principal("stranger", "mcp")
    gate = world.gate
    pairs: list[tuple[Callable[[], Any], Callable[[], Any]]] = [
        (lambda: gate.status(stranger, PROJECT), lambda: gate.status(stranger, "ghost")),
        (lambda: gate.proposal(stranger, proposal_id), lambda: gate.proposal(stranger, UNKNOWN)),
        (lambda: gate.merge(stranger, proposal_id), lambda: gate.merge(stranger, UNKNOWN)),
        (lambda: gate.cancel(stranger, proposal_id), lambda: gate.cancel(stranger, UNKNOWN)),
        (lambda: gate.rebase(stranger, proposal_id), lambda: gate.rebase(stranger, UNKNOWN)),
        (
            lambda: gate.review(stranger, proposal_id, "approve"),
            lambda: gate.review(stranger, UNKNOWN, "approve"),
        ),
        (lambda: gate.manifest(stranger, manifest_id), lambda: gate.manifest(stranger, UNKNOWN)),
        (lambda: gate.reproduce(stranger, manifest_id), lambda: gate.reproduce(stranger, UNKNOWN)),
    ]
    for hidden, absent in pairs:
        assert answer(hidden) == answer(absent)
        with pytest.raises(NotFound):
            hidden()


def test_a_manifest_is_its_principals_or_an_administrators(world: GateWorld) -> None:
    world.add("one", "m/1", "text")
    manifest_id = world.gate.context(world.caller("one"), PROJECT, create_manifest=True)["manifest_id"]
    for verb in (world.gate.manifest, world.gate.reproduce):
        assert verb(world.caller("one"), manifest_id)
        with pytest.raises(NotFound):
            verb(world.caller("bob"), manifest_id)
    assert world.gate.manifest(world.gate.as_principal("ann"), manifest_id)


def test_a_stolen_authorization_is_used_once(world: GateWorld) -> None:
    world.add("one", "m/1", "text")
    proposal_id = world.propose("one")["proposal_id"]
    world.approve(proposal_id)
    sent: list[Any] = []
    real = world.lethe.merge_ref

    def listening(project_id: str, request: Any) -> Any:
        sent.append(request)
        return real(project_id, request)

    world.lethe.merge_ref = listening
    world.merge(proposal_id)
    with pytest.raises(Refused) as refused:
        real(PROJECT, sent[0])
    assert refused.value.code == "authorization_replayed"
    assert len(world.lethe.list_advances(PROJECT)) == 1


def test_an_agent_reviews_and_merges_nothing(world: GateWorld) -> None:
    world.add("one", "m/1", "text")
    proposal_id = world.propose("one")["proposal_id"]
    for call, code in (
        (lambda: world.gate.review(world.caller("one"), proposal_id, "approve"), "denied"),
        (lambda: world.merge(proposal_id, "one"), "denied"),
        (lambda: world.gate.review(world.caller("two"), proposal_id, "approve"), "not_found"),
        (lambda: world.merge(proposal_id, "two"), "not_found"),
    ):
        with pytest.raises((NotAllowed, NotFound)) as refused:
            call()
        assert refused.value.code == code
    assert world.lethe.list_advances(PROJECT) == []


def test_a_redaction_takes_its_own_scope(world: GateWorld) -> None:
    world.add("one", "m/1", "text")
    world.accept("one")
    with pytest.raises(NotAllowed, match=r"memory\.redact"):
        world.gate.redact(world.gate.as_principal("ann"), PROJECT, "m/1", "asked for")
    world.gate.add_principal(world.operator, "officer", "human", profile="readonly", scopes=["memory.redact"])
    world.gate.grant(world.operator, "officer", PROJECT)
    officer = world.gate.as_principal("officer")
    done = world.gate.redact(officer, PROJECT, "m/1", "asked for")
    assert [item["redaction_id"] for item in world.gate.redactions(officer, PROJECT)] == [
        done["redaction_id"]
    ]
    assert "text" not in answer(lambda: world.gate.memory_history(world.caller("bob"), PROJECT, "m/1"))


def test_an_unaccepted_proposal_is_as_closed_as_its_branch(world: GateWorld) -> None:
    world.add("one", "m/1", "We deploy on Fridays", kind="decision", scope="ops", fact_key="day")
    world.accept("one")
    before = [answer(call) for call in _proposal_outputs(world)]
    ref = world.sync("one")["ref_name"]
    words = f"We never deploy on Fridays {SECRET}"
    world.commit(
        "one", [add(memory_id="m/2", content=words, kind="decision", scope="ops", fact_key="day")], ref=ref
    )
    proposal_id = world.propose("one", source_ref=ref, title=SECRET)["proposal_id"]
    assert [answer(call) for call in _proposal_outputs(world)] == before
    with pytest.raises(NotFound):
        world.gate.proposal(world.caller("two"), proposal_id)
    for name in ("one", "bob"):
        assert world.gate.proposal(world.caller(name), proposal_id)["title"] == SECRET
        assert world.gate.status(world.caller(name), PROJECT)["open_proposals"] == 1
    start = f"{world.gate.feed.position.partition('-')[0]}-0"
    events = [item for item in world.gate.feed.after(start) if item.facts.get("proposal_id") == proposal_id]
    assert {item.event_type for item in events} >= {"proposal_opened"}
    assert all(world.gate.may_see(world.caller("bob"), item) for item in events)
    assert not any(world.gate.may_see(world.caller("two"), item) for item in events)


def _proposal_outputs(world: GateWorld) -> list[Callable[[], Any]]:
    gate, two = world.gate, world.caller("two")
    return [
        lambda: gate.status(two, PROJECT),
        lambda: gate.proposals(two, PROJECT, status="open"),
        lambda: gate.proposals(two, PROJECT),
        lambda: gate.conflicts(two, PROJECT),
        lambda: gate.list_refs(two, PROJECT),
        lambda: gate.search(two, PROJECT, "plantedsecret"),
    ]

"""Every way to move the shared ref that must not work, against a real store with real envelopes (5-lethe, protected merges; 11, step 15).

After each refusal the ref and the advances are as they were. Whether a nonce row is left is part of what is asserted: none for what
fails before the nonce is burnt, one for what fails after.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from store_world import BRANCH, KEYS, OTHER_KEYS, PROJECT, PROPOSAL, Json, StoreWorld, add, correct

from memory_git.domain.envelope import Envelope, MergeKeys, sign
from memory_git.domain.errors import Clash, Invalid, NotAllowed, NotFound, Refused, Unavailable
from memory_git.domain.ids import SHARED_MAIN
from memory_git.domain.project_policy import ProjectPolicy
from memory_git.lethe.store import LetheStore
from memory_git.storage.lethe_receipts import list_nonces

SIDE = "refs/agents/tester/main"
RETRACTED = {"status": "retracted", "reason": "not reviewed"}
ABSENT = "018f0000-0000-7000-8000-000000000000"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[StoreWorld]:
    made = StoreWorld(tmp_path)
    yield made
    assert made.faults() == []
    made.close()


@pytest.fixture
def work(world: StoreWorld) -> str:
    """Gives a changeset that could be merged."""
    return world.commit(BRANCH, world.root, add("a", "one"))


def nonces(world: StoreWorld) -> int:
    with world.store._database.read() as connection:
        return len(list_nonces(connection, PROJECT))


def refused(world: StoreWorld, request: Json, *, burns: bool) -> Refused:
    """Gives the refusal of a merge request, having seen that nothing moved and whether its nonce is burnt."""
    head, advances, burnt = world.head(), world.store.list_advances(PROJECT), nonces(world)
    events = world.store.list_events(PROJECT)
    with pytest.raises(Refused) as caught:
        world.store.merge_ref(PROJECT, request)
    assert world.head() == head
    assert world.store.list_advances(PROJECT) == advances
    assert world.store.list_events(PROJECT) == events
    assert nonces(world) - burnt == burns
    return caught.value


def opened(request: Json) -> tuple[Envelope, str]:
    wire = json.loads(request["merge_authorization"])
    return Envelope(**wire["envelope"]), wire["signature"]


def with_envelope(request: Json, envelope: Envelope, signature: str | None = None) -> Json:
    """Gives the request with another envelope, signed with the right key unless a signature is given."""
    if signature is None:
        return {**request, "merge_authorization": sign(envelope, KEYS)}
    wire = json.dumps({"envelope": asdict(envelope), "signature": signature})
    return {**request, "merge_authorization": wire}


# what works


def test_a_signed_merge_moves_the_ref_and_leaves_its_nonce_its_advance_and_an_event_for_each_record(
    world: StoreWorld, work: str
) -> None:
    moved = world.merge(work)
    assert (moved["head_changeset_id"], moved["protected"], moved["updated_by"]) == (work, True, "reviewer")
    (advance,) = world.store.list_advances(PROJECT)
    assert (advance["from_head"], advance["to_head"], advance["strategy"]) == (
        world.root,
        work,
        "fast_forward",
    )
    assert nonces(world) == 1
    (event,) = world.store.list_events(PROJECT)
    assert (event["event_type"], event["memory_id"], event["changeset_id"]) == ("memory_accepted", "a", work)
    assert event["record_digest"] == world.store.memory(PROJECT, work, "a")["record_digest"]
    assert event["content"] == ""


def test_an_envelope_that_a_retired_key_signed_still_holds_while_the_key_is_known(
    tmp_path: Path, world: StoreWorld, work: str
) -> None:
    request = world.merge_request(work)
    world.close()
    keys = MergeKeys((("new", "the-next-merge-key-of-more-than-32-chars"), *KEYS.secrets))
    world.store = LetheStore.open(world.path, merge_keys=keys)
    assert world.store.merge_ref(PROJECT, request)["head_changeset_id"] == work


# what leaves no nonce

FORGED: dict[str, Callable[[Envelope, str], tuple[Envelope, str | None]]] = {
    "a signature of zeros": lambda envelope, _: (envelope, "0" * 64),
    "a signature with one digit changed": lambda envelope, signature: (
        envelope,
        ("1" if signature[0] == "0" else "0") + signature[1:],
    ),
    "an unknown key": lambda envelope, signature: (replace(envelope, key_id="k2"), signature),
}
for _name in ("expected_head", "new_head", "reviewer_principal", "merger_principal", "proposal_id", "nonce"):
    FORGED[f"{_name} changed after signing"] = lambda envelope, signature, name=_name: (
        replace(envelope, **{name: "f" * 32}),
        signature,
    )
FORGED["strategy changed after signing"] = lambda envelope, signature: (
    replace(envelope, strategy="cherry_pick"),
    signature,
)
FORGED["expiry changed after signing"] = lambda envelope, signature: (
    replace(envelope, expires_at="2099-01-01T00:00:00.000000Z"),
    signature,
)


@pytest.mark.parametrize("forgery", FORGED)
def test_a_forged_envelope_is_refused_and_leaves_no_nonce(world: StoreWorld, work: str, forgery: str) -> None:
    request = world.merge_request(work)
    refusal = refused(world, with_envelope(request, *FORGED[forgery](*opened(request))), burns=False)
    assert (type(refusal), refusal.code) == (NotAllowed, "invalid_authorization")
    assert world.store.merge_ref(PROJECT, request)["head_changeset_id"] == work


def test_an_envelope_of_a_foreign_key_under_our_id_is_refused(world: StoreWorld, work: str) -> None:
    refusal = refused(world, world.merge_request(work, keys=OTHER_KEYS), burns=False)
    assert (refusal.code, refusal.facts["reason"]) == ("invalid_authorization", "bad_signature")


@pytest.mark.parametrize(
    "field", ["ref_name", "expected_head", "new_head", "merge_proposal_id", "reviewer_principal"]
)
def test_a_request_that_states_another_field_than_was_signed_is_refused(
    world: StoreWorld, work: str, field: str
) -> None:
    other = {"ref_name": BRANCH, "expected_head": work, "new_head": world.root}.get(field, "another")
    refusal = refused(world, {**world.merge_request(work), field: other}, burns=False)
    assert (refusal.code, refusal.facts["reason"]) == ("invalid_authorization", "field_mismatch")


def test_an_envelope_of_another_project_is_refused(world: StoreWorld, work: str) -> None:
    root = world.store.init_project("other")["changeset"]["changeset_id"]
    with pytest.raises(NotAllowed) as caught:
        world.store.merge_ref("other", {**world.merge_request(work), "expected_head": root})
    assert caught.value.facts["reason"] == "field_mismatch"


@pytest.mark.parametrize(
    ("age", "lifetime", "reason"),
    [
        (timedelta(minutes=4), timedelta(minutes=2), "expired"),
        (timedelta(minutes=-2), timedelta(minutes=2), "issued_in_future"),
        (timedelta(0), timedelta(minutes=16), "lifetime_too_long"),
    ],
)
def test_an_envelope_out_of_its_time_is_refused_and_leaves_no_nonce(
    world: StoreWorld, work: str, age: timedelta, lifetime: timedelta, reason: str
) -> None:
    request = world.merge_request(work, now=world.now() - age, lifetime=lifetime)
    refusal = refused(world, request, burns=False)
    assert (refusal.code, refusal.facts["reason"]) == ("invalid_authorization", reason)


def test_a_clock_that_is_a_little_off_is_borne(world: StoreWorld, work: str) -> None:
    world.merge(work, now=world.now() + timedelta(seconds=50))


@pytest.mark.parametrize(
    "wire", ["", "{}", "[]", "nothing", '{"envelope":{},"signature":""}', "x" * 20_000, "\ud800"]
)
def test_an_authorization_that_is_none_is_refused(world: StoreWorld, work: str, wire: str) -> None:
    refusal = refused(world, {**world.merge_request(work), "merge_authorization": wire}, burns=False)
    assert refusal.code in ("invalid_authorization", "invalid_merge_request")


@pytest.mark.parametrize(
    "state",
    [
        {"judged": {"policy": ProjectPolicy(lone_person_may_merge=True).to_json()}, "reviews": []},
        {"judged": {}, "reviews": []},
        {"judged": {"policy": {}}, "reviews": [1]},
        {"judged": [], "reviews": {}},
        [],
        "state",
    ],
    ids=str,
)
def test_a_proposal_state_that_was_not_signed_is_refused(world: StoreWorld, work: str, state: Any) -> None:
    refusal = refused(world, {**world.merge_request(work), "proposal_state": state}, burns=False)
    assert (type(refusal), refusal.code) == (NotAllowed, "invalid_authorization")


def test_a_signed_state_without_a_policy_is_refused_not_stumbled_over(world: StoreWorld, work: str) -> None:
    """It was a KeyError behind the envelope's checks."""
    request = world.merge_request(work, state={"judged": {}, "reviews": []})
    assert refused(world, request, burns=False).code == "invalid_authorization"


def test_a_store_without_a_key_merges_nothing_and_says_so(world: StoreWorld, work: str) -> None:
    request = world.merge_request(work)
    world.close()
    world.store = LetheStore.open(world.path, merge_keys=None)
    refusal = refused(world, request, burns=False)
    assert (type(refusal), refusal.code) == (Unavailable, "merges_unavailable")


def test_an_unprotected_ref_takes_no_merge(world: StoreWorld, work: str) -> None:
    refusal = refused(world, world.merge_request(work, ref=BRANCH, expected=work), burns=False)
    assert (type(refusal), refusal.code) == (Invalid, "ref_not_protected")
    absent = world.merge_request(work, ref="refs/shared/absent")
    assert isinstance(refused(world, absent, burns=False), NotFound)


@pytest.mark.parametrize("field", ["new_head", "expected_head"])
def test_heads_that_are_no_changeset_ids_are_refused(world: StoreWorld, work: str, field: str) -> None:
    facts = {"expected": "head"} if field == "expected_head" else {}
    request = world.merge_request("head" if field == "new_head" else work, **facts)
    assert isinstance(refused(world, request, burns=False), Invalid)


# what burns the nonce


def test_a_replay_is_refused_and_leaves_one_row(world: StoreWorld, work: str) -> None:
    request = world.merge_request(work)
    world.store.merge_ref(PROJECT, request)
    refusal = refused(world, request, burns=False)
    assert (type(refusal), refusal.code) == (Clash, "authorization_replayed")
    assert refusal.facts["current_head"] == world.head()
    world.restart()
    assert refused(world, request, burns=False).code == "authorization_replayed"
    assert nonces(world) == 1


def test_a_lost_race_burns_the_nonce_and_names_the_current_head(world: StoreWorld, work: str) -> None:
    other = world.commit(SIDE, world.root, add("b", "two"), author="tester")
    lost = world.merge_request(other)
    world.merge(work)
    refusal = refused(world, lost, burns=True)
    assert (type(refusal), refusal.code, refusal.facts["current_head"]) == (Clash, "ref_moved", work)
    assert refused(world, lost, burns=False).code == "authorization_replayed"


def test_an_envelope_that_failed_is_no_good_once_what_failed_it_is_mended(
    world: StoreWorld, work: str
) -> None:
    """Else a captured envelope could be used once the ref cycles back to the same head."""
    later = world.commit(BRANCH, work, add("b", "two"))
    request = world.merge_request(later, expected=work)
    assert refused(world, request, burns=True).code == "ref_moved"
    world.merge(work)
    assert refused(world, request, burns=False).code == "authorization_replayed"


def wrong_shapes(world: StoreWorld, work: str) -> dict[str, tuple[str, str]]:
    """Gives new heads with a strategy that they are not."""
    side = world.commit(SIDE, world.root, add("b", "two"), author="tester")
    merged = world.loose([work, side], author="charon")
    return {
        "the head itself is no fast-forward": ("fast_forward", world.root),
        "a child is no merge commit": ("merge_commit", work),
        "a merge with the head second": ("merge_commit", world.loose([side, world.root], author="charon")),
        "a merge of two others": ("merge_commit", merged),
        "a merge is no cherry-pick": ("cherry_pick", world.loose([world.root, side], author="charon")),
        "a grandchild is no cherry-pick": ("cherry_pick", world.loose(work, add("d", "x"))),
    }


@pytest.mark.parametrize(
    "shape",
    [
        "the head itself is no fast-forward",
        "a child is no merge commit",
        "a merge with the head second",
        "a merge of two others",
        "a merge is no cherry-pick",
        "a grandchild is no cherry-pick",
    ],
)
def test_a_wrong_shape_burns_the_nonce(world: StoreWorld, work: str, shape: str) -> None:
    strategy, new = wrong_shapes(world, work)[shape]
    refusal = refused(world, world.merge_request(new, strategy), burns=True)
    assert (type(refusal), refusal.code) == (Clash, "wrong_merge_shape")


def test_what_does_not_descend_from_the_head_is_no_fast_forward(world: StoreWorld, work: str) -> None:
    sibling = world.commit(SIDE, world.root, add("b", "two"), author="tester")
    world.merge(work)
    refusal = refused(world, world.merge_request(sibling), burns=True)
    assert refusal.code == "wrong_merge_shape"


def test_a_head_of_another_project_is_not_found_and_burns_the_nonce(world: StoreWorld, work: str) -> None:
    elsewhere = world.store.init_project("other")["changeset"]["changeset_id"]
    assert isinstance(refused(world, world.merge_request(elsewhere), burns=True), NotFound)
    assert isinstance(refused(world, world.merge_request(ABSENT), burns=True), NotFound)


@pytest.mark.parametrize("role", ["reviewer", "merger"])
def test_an_author_neither_reviews_nor_merges(world: StoreWorld, work: str, role: str) -> None:
    refusal = refused(world, world.merge_request(work, **{role: "builder"}), burns=True)
    assert (type(refusal), refusal.code) == (NotAllowed, "denied")


def test_an_author_may_where_the_signed_policy_lets_a_lone_person(world: StoreWorld, work: str) -> None:
    state = {"judged": {"policy": ProjectPolicy(lone_person_may_merge=True).to_json()}, "reviews": []}
    world.merge(work, reviewer="builder", merger="builder", state=state)


def test_the_author_of_an_earlier_changeset_is_an_author(world: StoreWorld, work: str) -> None:
    head = world.commit(BRANCH, work, add("b", "two"), author="another")
    refusal = refused(world, world.merge_request(head, reviewer="builder"), burns=True)
    assert refusal.code == "denied"


def test_the_author_of_what_a_merge_brings_is_an_author_and_the_merger_is_not(
    world: StoreWorld, work: str
) -> None:
    world.merge(work)
    side = world.commit(SIDE, world.root, add("b", "two"), author="tester")
    merged = world.loose([work, side], author="reviewer")
    refusal = refused(world, world.merge_request(merged, "merge_commit", reviewer="tester"), burns=True)
    assert refusal.code == "denied"
    world.merge(merged, "merge_commit")


def test_a_merge_changeset_smuggles_nothing_in(world: StoreWorld, work: str) -> None:
    world.merge(work)
    side = world.commit(SIDE, world.root, add("b", "two"), author="tester")
    for op in (
        add("c", "never reviewed"),
        {"op_type": "set_status", "target_event_id": "a", "payload": RETRACTED},
    ):
        merged = world.loose([work, side], op, author="charon")
        refusal = refused(world, world.merge_request(merged, "merge_commit"), burns=True)
        assert (refusal.code, refusal.facts["ordinal"]) == ("wrong_merge_shape", 0)


def copied(world: StoreWorld, origin: str, onto: str, author: str, **more: Any) -> str:
    """Gives a changeset with a copy of the first op of another."""
    plan = world.store.plan_cherry_pick(PROJECT, [{"changeset_id": origin, "ordinal": 0}], onto)
    assert plan["refused"] == []
    ops = [{**op, "payload": {**op["payload"], **more}} for op in plan["steps"][0]["ops"]]
    return world.loose(onto, *ops, author=author)


def test_the_author_of_what_was_copied_is_an_author_over_any_number_of_copies(
    world: StoreWorld, work: str
) -> None:
    """A copy of a copy named only the first copier."""
    other = world.commit(SIDE, world.root, add("z", "zed"), author="tester")
    once = copied(world, work, other, "charon")
    twice = copied(world, once, world.root, "charon")
    request = world.merge_request(twice, "cherry_pick", reviewer="builder")
    assert refused(world, request, burns=True).code == "denied"
    assert world.store.authors(PROJECT, twice, world.root) == ["builder", "charon"]
    world.merge(twice, "cherry_pick")


@pytest.mark.parametrize("change", [{"content": "not what was written"}, {"cherrypicked_from": ABSENT}])
def test_who_changes_a_copy_is_an_author_of_it(world: StoreWorld, work: str, change: Json) -> None:
    """Whatever was merged as a cherry-pick was nobody's, so its author could review it."""
    made = copied(world, work, world.root, "copier", **change)
    request = world.merge_request(made, "cherry_pick", reviewer="copier")
    assert refused(world, request, burns=True).code == "denied"


def test_who_copies_faithfully_is_no_author(world: StoreWorld, work: str) -> None:
    made = copied(world, work, world.root, "copier", source_trust="inference")
    world.merge(made, "cherry_pick", reviewer="copier", merger="copier")


def test_what_is_merged_as_a_cherry_pick_and_copied_from_nowhere_is_its_authors(
    world: StoreWorld, work: str
) -> None:
    own = world.loose(world.root, add("x", "smuggled"), author="copier")
    request = world.merge_request(own, "cherry_pick", reviewer="copier")
    assert refused(world, request, burns=True).code == "denied"


SECRET = add("s", "the launch is on Friday", visibility="private", owner_principal="builder")


def test_a_private_record_never_becomes_reachable(world: StoreWorld, work: str) -> None:
    head = world.commit(BRANCH, work, SECRET)
    refusal = refused(world, world.merge_request(head), burns=True)
    assert (type(refusal), refusal.code) == (Clash, "private_in_delta")
    assert refusal.facts["private_ops"] == [{"changeset_id": head, "ordinal": 0}]
    assert world.store.plan_merge(PROJECT, world.root, head)["private_memory_count"] > 0


def test_nor_does_an_earlier_private_op_though_its_record_was_widened_since(
    world: StoreWorld, work: str
) -> None:
    head = world.commit(BRANCH, world.commit(BRANCH, work, SECRET), correct("s", visibility="shared"))
    assert refused(world, world.merge_request(head), burns=True).code == "private_in_delta"


def test_nor_does_what_a_merge_brings(world: StoreWorld, work: str) -> None:
    world.merge(work)
    side = world.commit(SIDE, world.root, SECRET, author="tester")
    merged = world.loose([work, side], author="charon")
    assert refused(world, world.merge_request(merged, "merge_commit"), burns=True).code == "private_in_delta"


def test_the_rest_of_a_changeset_with_a_private_op_can_be_picked(world: StoreWorld) -> None:
    mixed = world.commit(BRANCH, world.root, add("a", "one"), SECRET)
    assert refused(world, world.merge_request(mixed), burns=True).code == "private_in_delta"
    world.merge(copied(world, mixed, world.root, "charon"), "cherry_pick")
    assert sorted(world.records(world.head())) == ["a"]


def decision(memory_id: str, content: str) -> Json:
    return add(memory_id, content, kind="decision", scope="ops", subject="deploying")


@pytest.fixture
def contradiction(world: StoreWorld) -> tuple[str, str]:
    """Gives the shared head and a branch that contradicts what was accepted there long ago."""
    accepted = world.commit(BRANCH, world.root, decision("hand", "We deploy by hand."))
    world.merge(accepted)
    later = world.commit(BRANCH, accepted, add("other", "The office is in Bern."))
    world.merge(later)
    return later, world.commit(SIDE, world.root, decision("robot", "Robots deploy."), author="tester")


def test_an_open_contradiction_is_found_by_the_store_itself_and_burns_the_nonce(
    world: StoreWorld, contradiction: tuple[str, str]
) -> None:
    target, source = contradiction
    merged = world.loose([target, source], author="charon")
    refusal = refused(world, world.merge_request(merged, "merge_commit"), burns=True)
    assert (type(refusal), refusal.code) == (Clash, "merge_conflicts")
    (conflict,) = refusal.facts["conflicts"]
    assert (conflict["conflict_type"], conflict["memory_ids"]) == (
        "contradictory_decision",
        ["hand", "robot"],
    )
    assert all(party["record_digest"] for party in (*conflict["left"], *conflict["right"]))


def test_a_recorded_resolution_lets_it_pass(world: StoreWorld, contradiction: tuple[str, str]) -> None:
    target, source = contradiction
    world.settle(target, source)
    world.merge(world.loose([target, source], author="charon"), "merge_commit")


def test_a_resolution_does_not_outlive_a_change_of_either_record(
    world: StoreWorld, contradiction: tuple[str, str]
) -> None:
    target, source = contradiction
    world.settle(target, source)
    moved = world.commit(BRANCH, target, correct("hand", "We deploy by hand, on Mondays."))
    world.merge(moved)
    merged = world.loose([moved, source], author="charon")
    assert refused(world, world.merge_request(merged, "merge_commit"), burns=True).code == "merge_conflicts"


def test_a_resolution_does_not_carry_over_to_another_value_of_the_accepted_record(
    world: StoreWorld, contradiction: tuple[str, str]
) -> None:
    """A record that its side had not changed had no digest in the conflict's identity, so a rebase carried any value past."""
    target, _ = contradiction
    robot = decision("robot", "Robots deploy.")
    world.settle(target, world.loose(target, robot, author="tester"))
    settled = world.loose(target, robot, author="somebody else")
    moved = world.commit(BRANCH, target, correct("hand", "We deploy by hand, on Mondays."))
    world.merge(moved)
    rebased = world.loose(moved, robot, author="tester")
    refusal = refused(world, world.merge_request(rebased), burns=True)
    assert refusal.code == "merge_conflicts"
    digests = {
        party["record_digest"]
        for head in (settled, rebased)
        for item in world.store.plan_merge(PROJECT, world.store.merge_base(PROJECT, head, moved)[0], head)[
            "conflicts"
        ]
        for party in item["left"]
    }
    assert len(digests) == 2
    assert None not in digests


def test_a_finding_that_is_made_up_settles_nothing(world: StoreWorld, contradiction: tuple[str, str]) -> None:
    """What was handed in was stored as it came: parties without authors let an author settle their own conflict."""
    target, source = contradiction
    (found,) = [
        item
        for item in world.store.plan_merge(PROJECT, target, source)["conflicts"]
        if item["severity"] == "blocking"
    ]
    forged = {**found, "severity": "info", "left": [], "right": [], "identity_digest": "0" * 64}
    world.store.persist_conflicts(PROJECT, PROPOSAL, [forged])
    (stored,) = world.store.list_conflicts(PROJECT)
    assert (stored["severity"], stored["identity_digest"]) == ("blocking", found["identity_digest"])
    with pytest.raises(NotAllowed):
        world.settle(target, source, principal="tester")
    with pytest.raises(Invalid) as invalid:
        world.store.persist_conflicts(PROJECT, PROPOSAL, [{**found, "conflict_id": "0" * 64}])
    assert invalid.value.code == "bad_conflict"


# races


def test_one_envelope_used_by_many_threads_at_once_works_once(world: StoreWorld, work: str) -> None:
    request = world.merge_request(work)
    start = threading.Barrier(8)
    told: list[str] = []

    def attempt() -> None:
        start.wait(30)
        try:
            world.store.merge_ref(PROJECT, request)
            told.append("merged")
        except Refused as refusal:
            told.append(refusal.code)

    threads = [threading.Thread(target=attempt) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(told) == [*["authorization_replayed"] * 7, "merged"]
    assert nonces(world) == len(world.store.list_advances(PROJECT)) == 1


def test_of_many_envelopes_for_one_head_one_wins_and_each_is_burnt(world: StoreWorld, work: str) -> None:
    heads = [world.loose(work, add(f"m{number}", "x")) for number in range(6)]
    requests = [world.merge_request(head) for head in heads]
    start = threading.Barrier(len(heads))
    told: list[str] = []

    def attempt(request: Json) -> None:
        start.wait(30)
        try:
            world.store.merge_ref(PROJECT, request)
            told.append("merged")
        except Refused as refusal:
            told.append(refusal.code)

    threads = [threading.Thread(target=attempt, args=(request,)) for request in requests]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(told) == ["merged", *["ref_moved"] * 5]
    assert (nonces(world), len(world.store.list_advances(PROJECT))) == (6, 1)


# the other doors


def test_no_other_verb_moves_the_shared_ref(world: StoreWorld, work: str) -> None:
    store = world.store
    attempts: dict[str, Callable[[], Any]] = {
        "advance": lambda: store.advance_ref(PROJECT, SHARED_MAIN, world.root, work),
        "branch": lambda: store.create_branch(PROJECT, SHARED_MAIN, work, "builder"),
        "branch, protected": lambda: store.create_branch(PROJECT, "refs/shared/x", work, "builder", True),
        "a branch of one's own, protected": lambda: store.create_branch(
            PROJECT, "refs/topics/x", work, "builder", True
        ),
        "commit": lambda: world.commit(SHARED_MAIN, world.root, add("x", "x")),
        "commit to a new shared ref": lambda: world.commit("refs/shared/new", world.root, add("x", "x")),
        "commit, protected": lambda: world.commit("refs/topics/y", world.root, add("x", "x"), protected=True),
    }
    for name, attempt in attempts.items():
        with pytest.raises(NotAllowed) as caught:
            attempt()
        assert caught.value.code == "protected_ref", name
    assert world.head() == world.root
    assert [row["ref_name"] for row in store.list_refs(PROJECT)] == [BRANCH, SHARED_MAIN]

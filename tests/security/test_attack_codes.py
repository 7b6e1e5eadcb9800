"""Attacks on tokens and on proposals, each refused with its code; THREATS.md lists them by the same names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gate_world import MAIN, PROJECT, GateWorld

from memory_git.domain.errors import Refused

Attack = Callable[[GateWorld], Any]
ABSENT = "018f0000-0000-7000-8000-000000000000"
ADD = {"op_type": "add_memory", "payload": {"memory_id": "m/x", "content": "x"}}


def bearer(change: Callable[[str], str]) -> Attack:
    """Shows a token that was made of `one`'s."""
    return lambda world: world.gate.whoami(world.gate.authenticate(change(world.tokens["one"]), "http"))


def then(before: Callable[[GateWorld], Any], attack: Attack) -> Attack:
    """Does one thing, then attacks."""

    def both(world: GateWorld) -> Any:
        before(world)
        return attack(world)

    return both


def whoami(world: GateWorld) -> Any:
    return world.gate.whoami(world.caller("one"))


def opened_before(change: Callable[[GateWorld], Any], call: Callable[[GateWorld, Any], Any]) -> Attack:
    """Signs in, then loses something, then calls with what was known at sign-in."""

    def attack(world: GateWorld) -> Any:
        caller = world.caller("one")
        change(world)
        return call(world, caller)

    return attack


def obol_of(world: GateWorld, name: str) -> str:
    return str(world.tokens[name].split("_")[1])


def narrow(scopes: list[str], call: Callable[[GateWorld, Any], Any]) -> Attack:
    """Calls with a token that holds less than its principal."""

    def attack(world: GateWorld) -> Any:
        token = world.gate.mint_obol(world.operator, "one", scopes=scopes)["token"]
        return call(world, world.gate.authenticate(token, "http"))

    return attack


def expired(world: GateWorld) -> Any:
    token = world.gate.mint_obol(world.operator, "one", expires_s=60)["token"]
    world.later(seconds=61)
    return world.gate.authenticate(token, "http")


def twice_used_link(world: GateWorld) -> Any:
    code = world.gate.mint_sign_in(world.operator, "bob")["code"]
    world.gate.use_sign_in(code)
    return world.gate.use_sign_in(code)


def ended_session(world: GateWorld) -> Any:
    cookie = world.gate.open_session(world.caller("bob"))
    world.gate.end_session(cookie)
    return world.gate.session_caller(cookie)


def foreign_form(world: GateWorld) -> Any:
    mine, theirs = (
        world.gate.web_session(world.gate.open_session(world.caller(name))) for name in ("bob", "cy")
    )
    return mine.require_csrf(theirs.csrf_token)


def commits(world: GateWorld, caller: Any) -> Any:
    return world.gate.commit(caller, PROJECT, message="m", ops=[ADD], read_head=True)


TOKENS: dict[str, tuple[Attack, str]] = {
    "an empty bearer": (bearer(lambda token: ""), "unauthenticated"),
    "a bearer that is no token": (bearer(lambda token: "obol_zz_zz"), "unauthenticated"),
    "a token of 100,000 characters": (bearer(lambda token: "x" * 100_000), "unauthenticated"),
    "a token with a lone surrogate": (bearer(lambda token: "obol_\ud800"), "unauthenticated"),
    "a token with a NUL": (bearer(lambda token: token + "\0"), "unauthenticated"),
    "an unknown token": (bearer(lambda token: f"obol_{'0' * 16}_{'0' * 64}"), "unauthenticated"),
    "a known id with another secret": (bearer(lambda token: token[:-64] + "0" * 64), "unauthenticated"),
    "a token with its last digit cut": (bearer(lambda token: token[:-1]), "unauthenticated"),
    "a token with a digit more": (bearer(lambda token: token + "0"), "unauthenticated"),
    "a token in upper case": (bearer(lambda token: token.upper()), "unauthenticated"),
    "the secret of one under the id of another": (
        lambda world: world.gate.authenticate(
            "_".join(["obol", obol_of(world, "two"), world.tokens["one"].split("_")[2]]), "http"
        ),
        "unauthenticated",
    ),
    "an expired token": (expired, "unauthenticated"),
    "a revoked token": (
        then(lambda world: world.gate.revoke_obol(world.operator, obol_of(world, "one")), whoami),
        "unauthenticated",
    ),
    "a token that was revoked since sign-in": (
        opened_before(
            lambda world: world.gate.revoke_obol(world.operator, obol_of(world, "one")),
            lambda world, caller: world.gate.whoami(caller),
        ),
        "unauthenticated",
    ),
    "a token of a disabled principal": (
        then(lambda world: world.gate.disable_principal(world.operator, "one"), whoami),
        "unauthenticated",
    ),
    "a grant that was revoked since sign-in": (
        opened_before(lambda world: world.gate.revoke_grant(world.operator, "one", PROJECT), commits),
        "not_found",
    ),
    "a commit by a token that may only read": (narrow(["memory.read"], commits), "denied"),
    "a token that mints a token": (
        lambda world: world.gate.mint_obol(world.caller("one"), "ann"),
        "denied",
    ),
    "a token that widens its own grant": (
        lambda world: world.gate.grant(world.caller("one"), "one", PROJECT, scopes=["memory.merge"]),
        "denied",
    ),
    "a token for more than its principal holds": (
        lambda world: world.gate.mint_obol(world.operator, "one", scopes=["memory.merge"]),
        "bad_obol",
    ),
    "a sign-in link used twice": (twice_used_link, "unauthenticated"),
    "a cookie of an ended session": (ended_session, "unauthenticated"),
    "a form with another session's token": (foreign_form, "bad_csrf"),
}


def proposed(world: GateWorld, **keywords: Any) -> str:
    world.add("one", "m/1", "one thing")
    return str(world.propose("one", **keywords)["proposal_id"])


def on_proposal(attack: Callable[[GateWorld, str], Any], *before: Callable[[GateWorld, str], Any]) -> Attack:
    """Makes a proposal of `one`'s, does what comes before, then attacks it."""

    def whole(world: GateWorld) -> Any:
        name = proposed(world)
        for act in before:
            act(world, name)
        return attack(world, name)

    return whole


def approves(world: GateWorld, name: str) -> Any:
    return world.approve(name)


def rejects(world: GateWorld, name: str) -> Any:
    return world.gate.review(world.caller("bob"), name, "reject", comment="no")


def merges(world: GateWorld, name: str) -> Any:
    return world.merge(name)


def cancels(world: GateWorld, name: str) -> Any:
    return world.gate.cancel(world.caller("one"), name)


def late(world: GateWorld, name: str) -> None:
    world.later(days=31)


def reads_all(world: GateWorld) -> None:
    """Lets `one` hold every scope, as a person might who grants too much."""
    world.gate.add_principal(world.operator, "both", "human", profile="write")
    world.gate.grant(world.operator, "both", PROJECT)
    world.tokens["both"] = world.gate.mint_obol(world.operator, "both")["token"]


def own_work(act: Callable[[GateWorld, str], Any]) -> Attack:
    def attack(world: GateWorld) -> Any:
        reads_all(world)
        world.add("both", "m/1", "one thing")
        return act(world, str(world.propose("both")["proposal_id"]))

    return attack


def anothers_work(world: GateWorld) -> Any:
    reads_all(world)
    world.gate.grant(world.operator, "both", PROJECT, refs=["refs/agents/one/*"])
    world.add("one", "m/1", "one thing")
    name = world.propose("both", source_ref="refs/agents/one/main")["proposal_id"]
    return world.approve(name, "both")


def private(world: GateWorld) -> Any:
    world.add("one", "m/1", "one thing", visibility="private")
    return world.propose("one")


def with_new_words(world: GateWorld, name: str) -> Any:
    return world.gate.propose(world.caller("one"), PROJECT, message="other words")


def on_stale_digest(world: GateWorld, name: str) -> Any:
    return world.gate.review(world.caller("bob"), name, "approve", judged_digest="0" * 64)


PROPOSALS: dict[str, tuple[Attack, str]] = {
    "a merge without an approval": (on_proposal(merges), "not_approved"),
    "a merge against an objection": (
        on_proposal(
            merges,
            lambda world, name: world.gate.review(world.caller("cy"), name, "request_changes", comment="c"),
            approves,
        ),
        "not_approved",
    ),
    "a merge with an approval whose maker lost the grant": (
        on_proposal(
            lambda world, name: world.merge(name, "cy"),
            approves,
            lambda world, name: world.gate.revoke_grant(world.operator, "bob", PROJECT),
        ),
        "not_approved",
    ),
    "a review of one's own work": (own_work(lambda world, name: world.approve(name, "both")), "denied"),
    "a merge of one's own work": (
        own_work(lambda world, name: (world.approve(name), world.merge(name, "both"))),
        "denied",
    ),
    "an approval of what one proposed of another's": (anothers_work, "denied"),
    "a review without the scope": (
        on_proposal(lambda world, name: world.approve(name, "one")),
        "denied",
    ),
    "a merge without the scope": (
        on_proposal(lambda world, name: world.merge(name, "one"), approves),
        "denied",
    ),
    "a review of a proposal that one may not see": (
        on_proposal(lambda world, name: world.approve(name, "two")),
        "not_found",
    ),
    "a withdrawal of another's proposal": (
        on_proposal(lambda world, name: world.gate.cancel(world.caller("two"), name)),
        "not_found",
    ),
    "a rebase of another's proposal": (
        on_proposal(lambda world, name: world.gate.rebase(world.caller("two"), name)),
        "not_found",
    ),
    "a review of what was judged otherwise": (on_proposal(on_stale_digest), "judged_changed"),
    "a review of a rejected proposal": (on_proposal(approves, rejects), "proposal_closed"),
    "a merge of a rejected proposal": (on_proposal(merges, approves, rejects), "proposal_closed"),
    "a merge of a withdrawn proposal": (on_proposal(merges, approves, cancels), "proposal_closed"),
    "a merge of an expired proposal": (on_proposal(merges, approves, late), "proposal_closed"),
    "a rejection of what is merged": (on_proposal(rejects, approves, merges), "proposal_closed"),
    "a withdrawal of what is merged": (on_proposal(cancels, approves, merges), "proposal_closed"),
    "a second merge": (
        on_proposal(lambda world, name: world.merge(name, "cy"), approves, merges),
        "proposal_closed",
    ),
    "a rejection without a reason": (
        on_proposal(lambda world, name: world.gate.review(world.caller("bob"), name, "reject")),
        "bad_review",
    ),
    "the same head under other words": (on_proposal(with_new_words), "already_proposed"),
    "an idempotency key used for other work": (
        lambda world: (
            proposed(world, idempotency_key="k"),
            world.gate.propose(world.caller("one"), PROJECT, message="other", idempotency_key="k"),
        ),
        "idempotency_mismatch",
    ),
    "a proposal of private memory": (private, "private_in_delta"),
    "a proposal of another's branch": (
        lambda world: (
            world.add("two", "m/2", "x"),
            world.propose("one", source_ref="refs/agents/two/main"),
        ),
        "not_found",
    ),
    "a proposal of a changeset that is not there": (
        lambda world: world.propose("one", head_changeset_id=ABSENT),
        "not_found",
    ),
    "a proposal for a ref that takes no merge": (
        lambda world: (world.add("one", "m/1", "x"), world.propose("one", target_ref="refs/agents/one/main")),
        "target_not_protected",
    ),
    "ops selected that the head does not reach": (
        lambda world: (
            world.add("one", "m/1", "x"),
            world.propose("one", selected_ops=[{"changeset_id": world.head(), "ordinal": 7}]),
        ),
        "op_not_found",
    ),
    "a merge in a shape that it has not": (
        on_proposal(lambda world, name: world.merge(name, strategy="cherry_pick"), approves),
        "wrong_merge_shape",
    ),
    "a commit to accepted memory": (lambda world: world.commit("one", [ADD], ref=MAIN), "protected_ref"),
    "a claim of a person's approval": (
        lambda world: world.commit(
            "one", [{**ADD, "payload": {**ADD["payload"], "approval": "user_approved"}}]
        ),
        "invalid_changeset",
    ),
}


@pytest.mark.parametrize(("attack", "code"), [pytest.param(*item, id=name) for name, item in TOKENS.items()])
def test_an_attack_on_a_token_is_refused_with_its_code(world: GateWorld, attack: Attack, code: str) -> None:
    with pytest.raises(Refused) as refused:
        attack(world)
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("attack", "code"), [pytest.param(*item, id=name) for name, item in PROPOSALS.items()]
)
def test_an_attack_on_a_proposal_is_refused_with_its_code(
    world: GateWorld, attack: Attack, code: str
) -> None:
    with pytest.raises(Refused) as refused:
        attack(world)
    assert refused.value.code == code
    assert len(world.lethe.list_advances(PROJECT)) <= 1
    assert world.gate.ledger_verify(world.operator)["ok"]


def test_a_token_of_another_gate_is_refused_with_its_code(world: GateWorld, tmp_path: Path) -> None:
    other = GateWorld(tmp_path / "other")
    with pytest.raises(Refused) as refused:
        world.gate.authenticate(other.tokens["one"], "http")
    other.close()
    assert refused.value.code == "unauthenticated"

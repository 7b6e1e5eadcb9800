"""Who may read what, write where, and judge whose work (6-charon, scopes and grants, reading, ownership)."""

from __future__ import annotations

import pytest

from memory_git.domain.policy import (
    PROFILES,
    READ_SCOPES,
    SCOPES,
    SERVICE_PRINCIPAL,
    VISIBILITIES,
    Allowed,
    Audience,
    Denied,
    Grant,
    Standing,
    audience,
    is_wider,
    knows_project,
    may,
    may_judge,
    may_read_ref,
    may_write_ref,
    narrowest,
)

ALL = frozenset(SCOPES)
EXACT = Grant("shop", ALL)
EVERYWHERE = Grant("*", ALL)
MAIN, OWN, OTHERS = "refs/shared/main", "refs/agents/builder/main", "refs/agents/other/main"


def standing(*grants: Grant, scopes: frozenset[str] = ALL, **more: object) -> Standing:
    return Standing("ada", "agent", scopes, grants, **more)  # type: ignore[arg-type]


SCOPED = {
    "an exact grant": (standing(EXACT), "memory.commit", "shop", True),
    "another project": (standing(EXACT), "memory.commit", "blog", False),
    "another case": (standing(EXACT), "memory.commit", "Shop", False),
    "a grant that lacks the scope": (standing(Grant("shop", READ_SCOPES)), "memory.commit", "shop", False),
    "a token that lacks the scope": (standing(EXACT, scopes=READ_SCOPES), "memory.commit", "shop", False),
    "a wildcard reads": (standing(EVERYWHERE), "memory.read", "shop", True),
    "a wildcard searches": (standing(EVERYWHERE), "memory.search", "shop", True),
    "a wildcard commits nowhere": (standing(EVERYWHERE), "memory.commit", "shop", False),
    "a wildcard administers nothing": (standing(EVERYWHERE), "admin", "shop", False),
    "a wildcard and an exact one": (
        standing(EVERYWHERE, Grant("shop", frozenset({"memory.commit"}))),
        "memory.commit",
        "shop",
        True,
    ),
    "a wildcard is no project of that name": (standing(EVERYWHERE), "memory.commit", "*", False),
    "no grant": (standing(), "memory.read", "shop", False),
    "a scope that is none": (standing(EXACT), "memory.everything", "shop", False),
}


@pytest.mark.parametrize(("who", "scope", "project", "allowed"), SCOPED.values(), ids=SCOPED.keys())
def test_a_scope_needs_the_token_and_a_grant(who: Standing, scope: str, project: str, allowed: bool):
    verdict = may(who, scope, project)
    assert isinstance(verdict, Allowed if allowed else Denied)
    assert verdict.reason


@pytest.mark.parametrize("scope", sorted(ALL - READ_SCOPES))
def test_no_mutation_goes_by_a_wildcard(scope: str):
    assert isinstance(may(standing(EVERYWHERE), scope, "shop"), Denied)


OPENED = {
    "nobody": (standing(), {"public"}),
    "an exact grant": (standing(EXACT), {"internal", "shared", "public"}),
    "an exact grant elsewhere": (standing(Grant("blog", ALL)), {"public"}),
    "an exact grant that reads nothing": (standing(Grant("shop", frozenset({"memory.commit"}))), {"public"}),
    "a wildcard": (standing(EVERYWHERE), {"shared", "public"}),
    "both": (standing(EVERYWHERE, EXACT), {"internal", "shared", "public"}),
}


@pytest.mark.parametrize(("who", "visibilities"), OPENED.values(), ids=OPENED.keys())
def test_a_grant_opens_visibilities(who: Standing, visibilities: set[str]):
    assert audience(who, "shop") == Audience("ada", frozenset(visibilities))


SHOWN = {
    "one's own private record": ("private", "ada", True),
    "another's private record": ("private", "bob", False),
    "a private record of nobody": ("private", None, False),
    "a private record of an empty name": ("private", "", False),
    "an internal record": ("internal", "bob", True),
    "a shared record": ("shared", None, True),
    "a public record": ("public", None, True),
}


@pytest.mark.parametrize(("visibility", "owner", "shown"), SHOWN.values(), ids=SHOWN.keys())
def test_a_record_is_shown_by_its_visibility_and_owner(visibility: str, owner: str | None, shown: bool):
    assert Audience("ada", frozenset({"internal", "shared", "public"})).admits(visibility, owner) is shown


def test_private_is_the_owners_alone_whatever_an_audience_claims():
    assert not Audience("ada", frozenset(VISIBILITIES)).admits("private", "bob")
    assert not Audience("ada", frozenset()).admits("public", "ada")


def test_an_audience_has_one_wire_form():
    assert Audience("ada", frozenset({"shared", "public"})).to_json() == {
        "principal": "ada",
        "visibilities": ["public", "shared"],
    }


TOPIC = "refs/topics/billing"
WRITTEN = {
    "accepted memory": (standing(EXACT), MAIN, False),
    "another shared ref": (standing(EXACT), "refs/shared/next", False),
    "an own actor's branch": (standing(EXACT, actor_ids=frozenset({"builder"})), OWN, True),
    "an own actor's session": (
        standing(EXACT, actor_ids=frozenset({"builder"})),
        "refs/sessions/builder/s1",
        True,
    ),
    "another's branch": (standing(EXACT, actor_ids=frozenset({"builder"})), OTHERS, False),
    "an actor of almost that name": (
        standing(EXACT, actor_ids=frozenset({"builder"})),
        "refs/agents/builder2/main",
        False,
    ),
    "a topic that one made": (standing(EXACT, created_refs=frozenset({("shop", TOPIC)})), TOPIC, True),
    "a topic of that name elsewhere": (
        standing(EXACT, created_refs=frozenset({("blog", TOPIC)})),
        TOPIC,
        False,
    ),
    "another's topic": (standing(EXACT), TOPIC, False),
    "another's repository ref": (standing(EXACT), "refs/repos/shop/main", False),
    "a proposal's ref": (standing(EXACT), "refs/proposals/p1", False),
}


@pytest.mark.parametrize(("who", "ref", "allowed"), WRITTEN.values(), ids=WRITTEN.keys())
def test_a_ref_is_written_by_whom_it_belongs_to(who: Standing, ref: str, allowed: bool):
    assert isinstance(may_write_ref(who, "shop", ref), Allowed if allowed else Denied)


def test_the_service_writes_proposals_and_nothing_that_is_protected():
    service = Standing(SERVICE_PRINCIPAL, "service", ALL, (EXACT,))
    assert isinstance(may_write_ref(service, "shop", "refs/proposals/p1"), Allowed)
    assert isinstance(may_write_ref(service, "shop", MAIN), Denied)
    assert isinstance(may_write_ref(service, "shop", OWN), Denied)


READ = {
    "accepted memory": (standing(EXACT), MAIN, True),
    "an own branch": (standing(EXACT, actor_ids=frozenset({"builder"})), OWN, True),
    "another's branch": (standing(EXACT), OTHERS, False),
    "another's branch, granted by name": (standing(Grant("shop", ALL, (OTHERS,))), OTHERS, True),
    "another's branch, granted by pattern": (standing(Grant("shop", ALL, ("refs/agents/*",))), OTHERS, True),
    "another's branch, granted elsewhere": (standing(Grant("blog", ALL, ("refs/*",)), EXACT), OTHERS, False),
    "another's branch, by a wildcard grant": (standing(Grant("*", ALL, ("refs/*",))), OTHERS, False),
    "a pattern of another case": (standing(Grant("shop", ALL, ("REFS/*",))), OTHERS, False),
    "a proposal's ref": (standing(EXACT), "refs/proposals/p1", False),
}


@pytest.mark.parametrize(("who", "ref", "allowed"), READ.values(), ids=READ.keys())
def test_a_ref_of_somebody_else_is_read_only_if_shared_or_granted(who: Standing, ref: str, allowed: bool):
    assert isinstance(may_read_ref(who, "shop", ref), Allowed if allowed else Denied)


JUDGES = {
    "a stranger to the work": ("bob", False, "agent", True),
    "its author": ("ada", False, "human", False),
    "its author, where a person may merge alone": ("ada", True, "human", True),
    "an agent, where a person may merge alone": ("ada", True, "agent", False),
    "a service, where a person may merge alone": ("ada", True, "service", False),
}


@pytest.mark.parametrize(("judge", "alone", "kind", "allowed"), JUDGES.values(), ids=JUDGES.keys())
def test_nobody_judges_their_own_work(judge: str, alone: bool, kind: str, allowed: bool):
    verdict = may_judge(judge, {"ada", "eve"}, lone_person_may_merge=alone, judge_kind=kind)
    assert isinstance(verdict, Allowed if allowed else Denied)


KNOWN = {
    "an exact grant": (standing(EXACT), True),
    "a wildcard": (standing(EVERYWHERE), True),
    "a grant elsewhere": (standing(Grant("blog", ALL)), False),
    "none": (standing(), False),
}


@pytest.mark.parametrize(("who", "known"), KNOWN.values(), ids=KNOWN.keys())
def test_a_project_is_known_to_who_holds_a_grant_on_it(who: Standing, known: bool):
    assert knows_project(who, "shop") is known


def test_profiles_are_as_wide_as_the_design_says_and_redaction_is_in_none():
    assert PROFILES["readonly"] < PROFILES["propose"]
    assert not PROFILES["review"] & {"memory.branch", "memory.commit", "memory.propose"}
    assert not PROFILES["propose"] & {"memory.review", "memory.merge"}
    assert all("memory.redact" not in scopes for scopes in PROFILES.values())
    assert all(scopes <= ALL for scopes in PROFILES.values())


def test_visibilities_are_ordered():
    assert [narrowest(VISIBILITIES[start:]) for start in range(4)] == list(VISIBILITIES)
    for place, visibility in enumerate(VISIBILITIES):
        assert [is_wider(visibility, than) for than in VISIBILITIES] == [place > other for other in range(4)]

"""One gate with every kind of principal, ref and visibility, and a dictionary model of who may see what of it.

The model is written from the design (6-charon, principals and reading), not from the code: tables, and a loop over them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memory_git.charon.gate import Caller, Gate, GateSettings

PROJECT = "demo"
OTHER = "elsewhere"
MAIN = "refs/shared/main"
WORK = "refs/agents/one/main"
SESSION = "refs/sessions/one/s1"
TOPIC = "refs/topics/plan"
REPO = "refs/repos/code/trunk"
KEPT = "kept"
"""Stands for refs/proposals/<id>, whose name is known once the proposal is made."""
VISIBILITIES = ("private", "internal", "shared", "public")
READS = frozenset({"memory.read", "memory.search"})
WRITES = frozenset({"memory.branch", "memory.commit", "memory.propose"})
JUDGES = frozenset({"memory.review", "memory.merge"})
ALL = READS | WRITES | JUDGES | {"memory.write", "admin"}


@dataclass(frozen=True, slots=True)
class Person:
    """A principal of the model: what its token and its grant on the project hold."""

    name: str
    kind: str
    profile: str
    scopes: frozenset[str]
    """What token and grant hold together on the project; empty without a grant."""
    grant: str
    """exact, wildcard or none."""
    refs: tuple[str, ...] = ()
    granted: frozenset[str] = frozenset()
    """What the grant alone holds, where the token holds less."""


PEOPLE = {
    person.name: person
    for person in (
        Person("ann", "human", "write", ALL, "exact"),
        Person("bob", "human", "review", READS | JUDGES, "exact"),
        Person("one", "agent", "propose", READS | WRITES, "exact"),
        Person("two", "agent", "propose", READS | WRITES, "exact"),
        Person("guest", "agent", "readonly", READS, "exact", (WORK, "refs/topics/*")),
        Person("finder", "agent", "readonly", frozenset({"memory.search"}), "exact"),
        Person(
            "thin",
            "agent",
            "propose",
            frozenset({"memory.search"}),
            "exact",
            ("refs/*",),
            granted=READS | WRITES,
        ),
        Person("wild", "agent", "readonly", READS, "wildcard"),
        Person("away", "agent", "write", frozenset(), "none"),
        Person("nobody", "human", "review", frozenset(), "none"),
    )
}
"""`one` wrote everything; `thin` may read all refs and holds a token that only searches; `away` administers another project and has no grant on this one."""
READERS = {
    MAIN: {"ann", "bob", "one", "two", "guest", "wild"},
    WORK: {"one", "guest"},
    SESSION: {"one"},
    TOPIC: {"one", "guest"},
    REPO: {"one"},
    KEPT: {"one", "ann", "bob"},
}
"""Who may read what only this ref reaches: shared by all who read; else its owner or maker, a grant that names it, and the
reviewers and the originator for a proposal's."""
SEARCHERS = {ref: people | {"thin"} for ref, people in READERS.items()}
SEARCHERS[MAIN] = SEARCHERS[MAIN] | {"finder"}
SEES_PROPOSAL = {"one", "ann", "bob", "guest"}
"""The originator, the reviewers, and who may read the branch that it stands on."""
OPEN_TO = {"exact": {"internal", "shared", "public"}, "wildcard": {"shared", "public"}, "none": set()}


def admits(who: str, visibility: str) -> bool:
    """Says whether a person may be shown a record of `one`'s of a visibility."""
    if visibility == "private":
        return who == "one"
    return visibility in OPEN_TO[PEOPLE[who].grant]


@dataclass(unsafe_hash=True)
class Planted:
    """One memory, whose one word stands in its id, its text, its title, its tags, and the message of its changeset."""

    ref: str
    visibility: str
    word: str
    memory_id: str
    changeset_id: str = ""
    head: str = ""


@dataclass
class PolicyWorld:
    """The gate, the tokens, and everything that was planted; `plant` False leaves all private and internal words out."""

    folder: Path
    gate: Gate = field(init=False)
    tokens: dict[str, str] = field(default_factory=dict)
    planted: list[Planted] = field(default_factory=list)
    refs: dict[str, str] = field(default_factory=dict)
    proposal_id: str = ""
    manifest_id: str = ""

    def __post_init__(self) -> None:
        self.gate = Gate.open(GateSettings(data_dir=self.folder))
        operator = self.gate.as_operator()
        for person in PEOPLE.values():
            self.gate.add_principal(operator, person.name, person.kind, profile=person.profile)
        self.gate.init_project(self.gate.as_principal("ann"), PROJECT)
        self.gate.init_project(operator, OTHER)
        for person in PEOPLE.values():
            self._grant(operator, person)
            held = sorted(person.scopes) if person.granted else None
            minted = self.gate.mint_obol(operator, person.name, project=PROJECT, scopes=held)
            self.tokens[person.name] = minted["token"]
        self._plant()

    def caller(self, who: str, surface: str = "mcp") -> Caller:
        return self.gate.authenticate(self.tokens[who], surface)

    def at(self, ref: str) -> Iterator[Planted]:
        """Gives what was planted on a ref alone."""
        return (item for item in self.planted if item.ref == ref)

    def words(self, who: str, ref: str, readers: dict[str, set[str]] = READERS) -> set[str]:
        """Gives the words that a person may be told of the state at a ref: its own, and those of accepted memory below it."""
        if who not in readers[ref]:
            return set()
        here = {MAIN, TOPIC if ref == KEPT else ref}
        return {item.word for item in self.planted if item.ref in here and admits(who, item.visibility)}

    def everything(self, who: str) -> set[str]:
        """Gives all words that a person may be told by any output."""
        told: set[str] = set()
        for ref in READERS:
            told |= self.words(who, ref, SEARCHERS)
        if who in SEES_PROPOSAL:
            told |= {"wordproposal", "wordreview"} | self.words_of_proposal(who)
        return told

    def words_of_proposal(self, who: str) -> set[str]:
        """Gives the words that a proposal's own changes may tell a person who sees it."""
        return {item.word for item in self.at(TOPIC) if admits(who, item.visibility)}

    def close(self) -> None:
        self.gate.close()

    def _grant(self, operator: Caller, person: Person) -> None:
        if person.name == "away":
            self.gate.grant(operator, person.name, OTHER)
        elif person.grant == "wildcard":
            self.gate.grant(operator, person.name, "*")
        elif person.grant == "exact":
            scopes = sorted(person.granted or person.scopes)
            self.gate.grant(operator, person.name, PROJECT, scopes=scopes, refs=person.refs)

    def _plant(self) -> None:
        one = self.caller("one")
        self._commit("refs/agents/one/first", MAIN, ("internal", "shared", "public"))
        made = self.gate.propose(one, PROJECT, message="begin", source_ref="refs/agents/one/first")
        self.gate.review(self.caller("bob"), made["proposal_id"], "approve")
        self.gate.merge(self.caller("bob"), made["proposal_id"])
        for ref in (WORK, SESSION, REPO):
            self._commit(ref, ref, VISIBILITIES)
        self._commit(TOPIC, TOPIC, ("internal", "shared", "public"))
        self.proposal_id = self.gate.propose(
            one, PROJECT, title="wordproposal", message="wordproposal", source_ref=TOPIC
        )["proposal_id"]
        self.gate.review(self.caller("bob"), self.proposal_id, "request_changes", comment="wordreview")
        self.refs = {ref: ref for ref in (MAIN, WORK, SESSION, TOPIC, REPO)}
        self.refs[KEPT] = f"refs/proposals/{self.proposal_id}"
        self.manifest_id = self.gate.context(one, PROJECT, ref=WORK, create_manifest=True)["manifest_id"]
        self.gate.create_branch(self.caller("two"), PROJECT, "refs/agents/two/main")

    def _commit(self, ref: str, where: str, visibilities: tuple[str, ...]) -> None:
        space = where.split("/")[1]
        for visibility in visibilities:
            word = f"word{space}{visibility}"
            payload = {
                "memory_id": f"m/{word}",
                "content": f"{word} is a fact",
                "title": word,
                "tags": [word],
                "visibility": visibility,
            }
            made = self.gate.commit(
                self.caller("one"),
                PROJECT,
                ref=ref,
                message=f"about {word}",
                ops=[{"op_type": "add_memory", "payload": payload}],
                read_head=True,
            )
            changeset_id = made["changeset"]["changeset_id"]
            self.planted.append(Planted(where, visibility, word, payload["memory_id"], changeset_id))


def words_in(text: Any) -> set[str]:
    """Gives the planted words that stand in a text."""
    return set(re.findall(r"word[a-z]+", str(text))) - {"words"}

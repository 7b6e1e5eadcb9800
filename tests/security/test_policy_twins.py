"""Twin worlds: one with a secret, one without it, one with another; whoever may not see it can't tell them apart by any output.

What differs from run to run (ids, digests, salts, times, nonces) is named by the order in which it appears. Two things that
THREATS.md says may be told are left out: that an op of a changeset is withheld (compared between two secrets instead), and
the proof of a memory with the roots of its state, which cover all that stands there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from policy_outputs import EVERY, Desk, Output, Told
from policy_world import MAIN, PROJECT, WORK, Planted, PolicyWorld

from memory_git.http.charon_app import create_charon_app
from memory_git.http.serving import running
from memory_git.web.app import create_pages

HIDDEN = "refs/agents/one/hidden"
SECRETS = {
    "private": ("guest", "two", "bob", "ann", "wild", "finder", "away", "nobody"),
    "internal": ("wild", "away", "nobody"),
    "branch": ("two", "guest", "wild", "finder", "away", "nobody"),
}
"""What is secret, and who may not see it: a private memory on a branch that others read, an internal one in accepted memory,
a branch with a contradicting proposal."""
TEXTS = ("wordsharedshared is a fact of old", "nothing the like was ever said wordtopicsshared")
HISTORY = {
    "http GET /api/v1/projects/{project}/changesets",
    "http GET /api/v1/projects/{project}/changesets/{changeset_id}",
    "tool memory_log",
    "tool memory_show",
    "resource memory://{project}/changesets/{changeset_id}",
}
"""Outputs that show changesets themselves, where an op may be told to be withheld."""


def add(memory_id: str, content: str, **payload: Any) -> dict[str, Any]:
    return {"op_type": "add_memory", "payload": {"memory_id": memory_id, "content": content, **payload}}


def commit(world: PolicyWorld, ref: str, *ops: dict[str, Any], key: str | None = None) -> None:
    world.gate.commit(
        world.caller("one"),
        PROJECT,
        ref=ref,
        message="work",
        ops=list(ops),
        read_head=True,
        idempotency_key=key,
    )


def accept(world: PolicyWorld, ref: str) -> None:
    made = world.gate.propose(world.caller("one"), PROJECT, message="please", source_ref=ref)
    world.gate.review(world.caller("bob"), made["proposal_id"], "approve")
    world.gate.merge(world.caller("bob"), made["proposal_id"])


def hide(world: PolicyWorld, kind: str, text: str | None) -> None:
    """Does the same work in each twin; with a text, the secret stands beside it."""
    fields = {"kind": "fact", "fact_key": "deploy/day", "title": text, "tags": ["wordsharedshared"]}
    link = {"kind": "about", "from_memory_id": "m/beside", "to_memory_id": "m/secret"}
    relation = {"op_type": "add_relationship", "payload": link}
    told = add("m/beside", "deploys go out on Fridays", kind="fact", visibility="shared")
    if kind == "branch":
        accept_first = "refs/agents/one/second"
        commit(
            world, accept_first, add("m/day", "deploys go out on Fridays", kind="fact", fact_key="deploy/day")
        )
        accept(world, accept_first)
        if text is not None:
            commit(
                world, HIDDEN, add("m/secret", text, **{**fields, "visibility": "internal"}), key="the key"
            )
            world.gate.propose(world.caller("one"), PROJECT, title=text, message=text, source_ref=HIDDEN)
            world.gate.context(world.caller("one"), PROJECT, ref=HIDDEN, create_manifest=True)
        return
    ref = WORK if kind == "private" else "refs/agents/one/second"
    secret = [] if text is None else [add("m/secret", text, **{**fields, "visibility": kind}), relation]
    commit(world, ref, told, *secret, key="the key")
    if kind == "internal":
        accept(world, ref)


def probes() -> dict[str, Output]:
    """Gives calls besides those of the faces' lists: pages of one, scores, budgets, and writes that could meet the secret."""

    def asks(work: Callable[[Any, Any], Any]) -> Output:
        def ask(desk: Desk, who: str, at: Any) -> Told:
            from memory_git.domain.errors import Refused

            try:
                return Told("ok", json.dumps(work(desk.world.gate, desk.world.caller(who))))
            except Refused as refusal:
                return Told(refusal.code, json.dumps(refusal.to_problem()))

        return Output(ask)

    def pages(read: Callable[..., dict[str, Any]], name: str, **asked: Any) -> list[Any]:
        found: list[Any] = []
        after = None
        while len(found) < 40:
            page = read(limit=1, after=after, **asked)
            found.append((page[name], page.get("total")))
            after = page.get("next")
            if after is None:
                break
        return found

    def first(**more: Any) -> dict[str, Any]:
        return {"message": "m", "ref": "refs/agents/two/b", "read_head": True, **more}

    made: dict[str, Output] = {}
    for ref in (MAIN, WORK):
        for words in ("deploys Fridays", "wordsharedshared", "secret said nothing"):
            made[f"search {ref} {words}"] = asks(
                lambda gate, who, ref=ref, words=words: gate.search(who, PROJECT, words, ref=ref)
            )
        made[f"pages {ref}"] = asks(
            lambda gate, who, ref=ref: pages(
                lambda **asked: gate.memories(who, PROJECT, ref=ref, **asked), "memories"
            )
        )
        made[f"kind {ref}"] = asks(
            lambda gate, who, ref=ref: gate.memories(who, PROJECT, ref=ref, kind="fact")
        )
        made[f"budget {ref}"] = asks(
            lambda gate, who, ref=ref: gate.context(who, PROJECT, ref=ref, query="deploys", max_tokens=60)
        )
        made[f"one {ref}"] = asks(lambda gate, who, ref=ref: gate.memory(who, PROJECT, "m/secret", ref=ref))
        made[f"beside {ref}"] = asks(
            lambda gate, who, ref=ref: gate.memory(who, PROJECT, "m/beside", ref=ref)
        )
        made[f"history {ref}"] = asks(
            lambda gate, who, ref=ref: gate.memory_history(who, PROJECT, "m/secret", ref=ref)
        )
    made["proposals"] = asks(
        lambda gate, who: pages(lambda **a: gate.proposals(who, PROJECT, **a), "proposals")
    )
    made["hidden ref"] = asks(lambda gate, who: gate.log(who, PROJECT, ref=HIDDEN))
    made["branch from it"] = asks(
        lambda gate, who: gate.create_branch(who, PROJECT, "refs/agents/two/c", from_ref=HIDDEN)
    )
    made["commit"] = asks(lambda gate, who: gate.commit(who, PROJECT, **first(ops=[add("m/own", "x")])))
    made["same key"] = asks(
        lambda gate, who: gate.commit(who, PROJECT, **first(ops=[add("m/k", "x")], idempotency_key="the key"))
    )
    made["propose"] = asks(
        lambda gate, who: gate.propose(who, PROJECT, message="m", source_ref="refs/agents/two/b")
    )
    made["details"] = asks(
        lambda gate, who: [
            gate.proposal(who, item["proposal_id"]) for item in gate.proposals(who, PROJECT)["proposals"]
        ]
    )
    made["conflicts"] = asks(lambda gate, who: gate.conflicts(who, PROJECT))
    return made


# one form for both twins

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_VARYING = re.compile(
    rf"{_UUID}|\d{{4}}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?Z?|(?<![\w.])[0-9a-f]{{16,}}\b|(?<=form_token\" value=\")[\w-]+"
)


class Names:
    """Names what varies by the order of its appearance."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def plain(self, text: str) -> str:
        return _VARYING.sub(self._name, text)

    def _name(self, found: re.Match[str]) -> str:
        text = found[0]
        if re.match(r"\d{4}-\d\d-\d\d[T ]", text):
            return "TIME"
        return self._names.setdefault(text, f"#{len(self._names)}")


def shape(text: str) -> str:
    """Gives a text with what may differ left out: proofs, and the roots of whole states."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return json.dumps(_stripped(value), sort_keys=True)


def _stripped(value: Any) -> Any:
    if isinstance(value, list):
        return [_stripped(item) for item in value]
    if not isinstance(value, dict):
        return value
    shown = {name: _stripped(item) for name, item in value.items() if name != "proof"}
    return {name: "ROOT" if name.endswith("_root") else item for name, item in shown.items()}


class Twin:
    """One of the worlds, and what each person was told in it."""

    def __init__(self, folder: Path, kind: str, text: str | None, stack: ExitStack) -> None:
        self.kind, self.text = kind, text
        self.world = PolicyWorld(folder / "data")
        stack.callback(self.world.close)
        hide(self.world, kind, text)
        app = create_charon_app(self.world.gate, pages=create_pages(self.world.gate))
        where = stack.enter_context(running(app, on_stop=self.world.gate.feed.close))
        self.desk = Desk(self.world, where.url)
        stack.callback(self.desk.close)

    def told(self, who: str, *, history: bool) -> dict[str, Any]:
        """Gives what a person is told by every output; with `history` by those that show changesets themselves."""
        found: dict[str, Any] = {}
        for name, output in (*EVERY.items(), *probes().items()):
            if (name in HISTORY) != history:
                continue
            for at in asked_about(output, self.world):
                answer = output.ask(self.desk, who, at)
                plain = Names().plain(shape(answer.text).replace(self.desk.url, "URL"))
                about = at.word if isinstance(at, Planted) else at
                found[f"{name} {about}"] = (answer.code, plain)
        return found


def asked_about(output: Output, world: PolicyWorld) -> list[Any]:
    if output.about == "ref":
        return list(output.refs)
    if output.about == "memory":
        return [item for item in world.planted if item.ref in output.refs]
    return [None]


def told_apart(
    folder: Path, kind: str, people: tuple[str, ...], texts: list[str | None], *, history: bool
) -> list[str]:
    with ExitStack() as stack:
        twins = [Twin(folder / str(place), kind, text, stack) for place, text in enumerate(texts)]
        return [
            fault
            for who in people
            for fault in differing(who, *(twin.told(who, history=history) for twin in twins))
        ]


NEAREST = [(kind, people[:1]) for kind, people in SECRETS.items()]
OTHERS = [pytest.param(kind, people[1:], marks=pytest.mark.deep) for kind, people in SECRETS.items()]


@pytest.mark.parametrize(("kind", "people"), [*NEAREST, *OTHERS])
def test_worlds_with_and_without_a_secret_are_told_alike_to_whoever_may_not_see_it(
    tmp_path: Path, kind: str, people: tuple[str, ...]
) -> None:
    wrong = told_apart(tmp_path, kind, people, [None, TEXTS[0]], history=False)
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong)


@pytest.mark.parametrize("kind", SECRETS)
def test_one_secret_is_told_like_another_even_in_the_history_itself(tmp_path: Path, kind: str) -> None:
    wrong = told_apart(tmp_path, kind, SECRETS[kind], list(TEXTS), history=True)
    assert not wrong, f"{len(wrong)}\n" + "\n".join(wrong)


def differing(who: str, left: dict[str, Any], right: dict[str, Any]) -> list[str]:
    """Gives the outputs that tell two worlds apart, each with the place where they part."""
    assert left.keys() == right.keys()
    found = []
    for name, (code, text) in left.items():
        other_code, other = right[name]
        if (code, text) != (other_code, other):
            at = next((i for i, pair in enumerate(zip(text, other, strict=False)) if pair[0] != pair[1]), 0)
            cut = slice(max(at - 80, 0), at + 120)
            found.append(f"{who} {name}: {code} {other_code}\n   {text[cut]}\n   {other[cut]}")
    return found

"""A reader written from docs/FORMAT.md alone: it recomputes every digest of a stored project from what the store serves.

Nothing of the product is imported but what makes the project and serves it. Each check names its paragraph.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import apsw
import pytest
import rfc8785
from history_program import Writer, fixed_sources
from store_world import BRANCH, KEYS, PROJECT, StoreWorld, add, correct, edge

from memory_git.lethe.store import LetheStore

Json = dict[str, Any]
SIDE = "refs/agents/tester/main"
SECRET = {"k1": b"a-merge-key-of-more-than-32-characters"}


# FORMAT, in the order of its paragraphs


def sha(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def h(value: Any) -> str:
    """H(x): the digest of the canonical bytes of a JSON value (1.1)."""
    return sha(rfc8785.dumps(value)).hex()


def record_digest(salt: str, record: Json) -> str:
    """4.6."""
    return h([salt, record])


def edge_digest(ends: list[str]) -> str:
    """4.8."""
    return h(ends)


def op_digest(op: Json) -> str:
    """5.3."""
    names = ("op_type", "target_event_id", "resulting_event_id", "payload")
    return h([op["op_salt"], {name: op[name] for name in names}])


AUTHORED_NAMES = [
    "schema_version",
    "project_id",
    "ref_name",
    "author_principal",
    "persona_id",
    "actor_id",
    "surface",
    "model",
    "environment",
    "session_id",
    "topic_id",
    "context_manifest_id",
    "idempotency_key",
    "message_digest",
    "evidence_digests",
    "verification_digests",
]


def authored_digest(changeset: Json, integrity_of: dict[str, str]) -> str:
    """6.1, 6.3."""
    parents = [
        {"changeset_id": name, "integrity_digest": integrity_of[name]} for name in changeset["parent_ids"]
    ]
    view = {name: changeset[name] for name in AUTHORED_NAMES}
    return h({**view, "parents": parents, "op_digests": [op["op_digest"] for op in changeset["ops"]]})


def integrity_digest(changeset: Json) -> str:
    """6.4."""
    return h(
        {name: changeset[name] for name in ("authored_digest", "changeset_id", "created_at", "state_root")}
    )


TRUSTS = ["model_inference", "inference", "verified", "human", "user_approved"]
CONTENT_KEYS = {
    "content",
    "kind",
    "event_type",
    "scope",
    "visibility",
    "tags",
    "confidence",
    "fact_key",
    "subject",
    "valid_from",
    "valid_to",
    "review_after",
    "protected",
    "approval",
    "title",
    "type",
    "pinned",
    "sources",
    "extra",
}
APPROVED = {
    "content",
    "title",
    "summary",
    "kind",
    "type",
    "event_type",
    "scope",
    "subject",
    "fact_key",
    "valid_from",
    "valid_to",
    "confidence",
}
INHERITED = [
    "kind",
    "event_type",
    "type",
    "title",
    "scope",
    "subject",
    "fact_key",
    "tags",
    "visibility",
    "protected",
    "pinned",
]
ACTIVE = ("active", "deprecation_proposed", "deprecated", "disputed")
SUCCESSORS = ("corrected_by", "superseded_by", "duplicate_of")
START = {"kind": "observation", "visibility": "internal", "status": "active"}


def trimmed(record: Json) -> Json:
    """4.2: what is unset is absent."""
    lineage = {key: value for key, value in record.get("lineage", {}).items() if value}
    kept = {
        key: value for key, value in {**record, "lineage": lineage}.items() if value not in (None, [], {}, "")
    }
    return {key: value for key, value in kept.items() if value is not False}


def assigned(record: Json, payload: Json) -> Json:
    """5.4, assign."""
    made = {key: value for key, value in record.items() if key not in payload.get("clear", [])}
    made |= {key: payload[key] for key in (CONTENT_KEYS | {"summary"}) & payload.keys()}
    made = trimmed(made)
    if "approval" not in payload and any(made.get(key) != record.get(key) for key in APPROVED):
        made.pop("approval", None)
    return made


def least_trust(target: Json, payload: Json) -> str:
    """5.4, least trust."""
    known = [target.get("source_trust"), payload.get("source_trust", "inference")]
    return min((trust for trust in known if trust), key=TRUSTS.index)


def left_as(record: Json, status: str, **successor: str | None) -> Json:
    """5.4: a record that has a status, and one successor at most."""
    lineage = {key: value for key, value in record.get("lineage", {}).items() if key not in SUCCESSORS}
    return trimmed({**record, "status": status, "status_reason": None, "lineage": {**lineage, **successor}})


def owner(former: Json, payload: Json, target: Json) -> str | None:
    """5.4, owner."""
    return former.get("owner_principal") or payload.get("owner_principal") or target.get("owner_principal")


class State:
    """5.4: records by memory id, and relationships, as accepted ops make them."""

    def __init__(self, records: dict[str, Json], edges: set[tuple[str, ...]], salts: dict[str, str]) -> None:
        self.records = dict(records)
        self.edges = set(edges)
        self.salts = salts
        self.open_fields: dict[str, set[str]] = {}
        """13.4: the fields of memories in conflict that no op has answered."""

    def apply(self, op: Json) -> None:
        target, result, payload = op["target_event_id"], op["resulting_event_id"], op["payload"]
        opened = bool(self.open_fields.get(target))
        getattr(self, f"_{op['op_type']}")(target, result, payload)
        if opened:
            self._answer(target, op, payload)

    def _answer(self, target: str, op: Json, payload: Json) -> None:
        """13.4."""
        answered = set(self.open_fields[target])
        if op["op_type"] in (
            "attach_evidence",
            "attach_verification",
            "detach",
            "add_relationship",
            "remove_relationship",
        ):
            answered = set()
        elif op["op_type"] == "propose_deprecation":
            answered = {"status", "status_reason"}
        elif op["op_type"] == "set_status" and payload["status"] != "retracted":
            answered = STATUS
        elif op["op_type"] == "correct_memory" and op["resulting_event_id"] is None:
            answered = (CONTENT_KEYS | {"summary"}) & payload.keys() | set(payload.get("clear", []))
            if answered & set(APPROVED) and "approval" not in answered:
                answered.add("approval")
                self._put(target, {**self.records[target], "approval": None})
            if payload.get("revive"):
                answered |= STATUS
                self._put(target, left_as(self.records[target], "active"))
        self.open_fields[target] -= answered

    def _put(self, memory_id: str, record: Json) -> None:
        self.records[memory_id] = trimmed({**record, "memory_id": memory_id})

    def _add_memory(self, target: None, result: str, payload: Json) -> None:
        former = self.records.get(result, {})
        made = {**assigned(START, payload), "source_trust": payload.get("source_trust")}
        self._put(result, {**made, "owner_principal": owner(former, payload, {})})

    def _correct_memory(self, target: str, result: str | None, payload: Json) -> None:
        before = self.records[target]
        made = {**assigned(before, payload), "source_trust": least_trust(before, payload)}
        if result is None:
            returns = payload.get("revive") and before["status"] not in ACTIVE
            self._put(target, left_as(made, "active") if returns else made)
            return
        kept = {**made, "status": "active", "status_reason": None, "lineage": {"corrected_from": [target]}}
        self._put(result, {**kept, "owner_principal": owner(self.records.get(result, {}), payload, before)})
        self._put(target, left_as(before, "corrected", corrected_by=result))

    def _supersede_memory(self, target: str, result: str | None, payload: Json) -> None:
        before = self.records[target]
        former = self.records.get(result or "", {})
        self._put(target, left_as(before, "superseded", superseded_by=result))
        if "content" in payload:
            made = assigned({**START, **{key: before[key] for key in INHERITED if key in before}}, payload)
            made |= {"source_trust": least_trust(before, payload), "lineage": {"supersedes": [target]}}
            self._put(result or "", {**made, "owner_principal": owner(former, payload, before)})
        elif result is not None:
            lineage = former.get("lineage", {})
            supersedes = sorted({*lineage.get("supersedes", []), target})
            self._put(result, {**former, "lineage": {**lineage, "supersedes": supersedes}})

    def _mark_duplicate(self, target: str, result: str, payload: Json) -> None:
        self._put(target, left_as(self.records[target], "duplicate", duplicate_of=result))

    def _propose_deprecation(self, target: str, result: None, payload: Json) -> None:
        marked = {"status": "deprecation_proposed", "status_reason": payload["reason"]}
        self._put(target, {**self.records[target], **marked})

    def _set_status(self, target: str, result: None, payload: Json) -> None:
        before = self.records[target]
        if payload["status"] == "active":
            self._put(target, left_as(before, "active"))
        else:
            self._put(target, {**before, "status": payload["status"], "status_reason": payload["reason"]})

    def _attach(self, target: str | None, payload: Json, name: str) -> None:
        if target is not None:
            item = {
                key: payload[key]
                for key in ("kind", "source", "note", "status", "summary")
                if payload.get(key)
            }
            held = self.records[target].get(name, [])
            items = {rfc8785.dumps(one): one for one in (*held, item)}
            self._put(target, {**self.records[target], name: [items[key] for key in sorted(items)]})

    def _attach_evidence(self, target: str | None, result: None, payload: Json) -> None:
        self._attach(target, payload, "evidence")

    def _attach_verification(self, target: str | None, result: None, payload: Json) -> None:
        self._attach(target, payload, "verification")

    def _detach(self, target: str, result: None, payload: Json) -> None:
        record, salt = self.records[target], self.salts[target]
        for name in ("evidence", "verification"):
            kept = [item for item in record.get(name, []) if h([salt, item]) != payload["attachment_digest"]]
            record = {**record, name: kept}
        self._put(target, record)

    def _add_relationship(self, target: str, result: str, payload: Json) -> None:
        self.edges.add((target, payload["kind"], result))

    def _remove_relationship(self, target: str, result: str, payload: Json) -> None:
        self.edges.remove((target, payload["kind"], result))


SETS = ("tags", "sources", "lineage.corrected_from", "lineage.supersedes", "evidence", "verification")
SCALARS = (*sorted(CONTENT_KEYS - set(SETS)), "summary", "status", "status_reason")
STATUS = {"status", "status_reason", *(f"lineage.{name}" for name in SUCCESSORS)}


def field(record: Json | None, name: str) -> Any:
    """Gives a field, unset ones as None; a part of the lineage by its dotted name."""
    place, _, part = name.rpartition(".")
    return ((record or {}).get(place, {}) if place else record or {}).get(part)


def merged(base: Json | None, left: Json, right: Json) -> tuple[Json, set[str]]:
    """13.3: what two records come to, and the fields that are open."""
    if base is None:
        if left == right:
            return left, set()
    elif left in (base, right) or right == base:
        return (right if left == base else left), set()
    values: Json = {}
    opened: set[str] = set()
    for name in SETS:
        before, one, other = (
            {rfc8785.dumps(item): item for item in field(record, name) or []}
            for record in (base, left, right)
        )
        kept = before.keys() & one.keys() & other.keys() | (one.keys() | other.keys()) - before.keys()
        values[name] = [(one | other)[key] for key in sorted(kept)]
    for name in (*SCALARS, *(f"lineage.{name}" for name in SUCCESSORS)):
        before, one, other = (field(record, name) for record in (base, left, right))
        changed = [value for value in (one, other) if base is None or value != before]
        values[name] = one if one == other or not changed else changed[0]
        if one != other and len(changed) == 2:
            opened.add(name)
            values[name] = one
    trusts = [trust for trust in (field(left, "source_trust"), field(right, "source_trust")) if trust]
    values["source_trust"] = min(trusts, key=TRUSTS.index, default=None)
    values["owner_principal"] = field(left, "owner_principal") or field(right, "owner_principal")
    found = {"memory_id": left["memory_id"], "lineage": {}}
    for name, value in values.items():
        place, _, part = name.rpartition(".")
        (found[place] if place else found)[part] = value
    return trimmed(found), opened | authority_opened(base, left, right, trimmed(found), opened)


def authority_opened(base: Json | None, left: Json, right: Json, found: Json, opened: set[str]) -> set[str]:
    """13.3, what is open besides."""
    more = set()
    same = [
        all(found.get(name) == side.get(name) for name in APPROVED)
        for side in (left, right)
        if side.get("approval")
    ]
    if found.get("approval") and (opened & set(APPROVED) or not any(same)):
        more.add("approval")
    owners = left.get("owner_principal"), right.get("owner_principal")
    if "private" in (left["visibility"], right["visibility"]) and owners[0] != owners[1]:
        more.add("owner_principal")
    active = [side["status"] in ACTIVE for side in (left, right)]
    if base is not None and base["status"] in ACTIVE and active[0] != active[1]:
        still = left if active[0] else right
        parts = [
            {key: value for key, value in record.items() if key not in ("evidence", "verification")}
            for record in (base, still)
        ]
        if parts[0] != parts[1]:
            more.add("status")
    return more


class History:
    """13.1, 13.2: ancestors, bases, and the states that parents are merged against."""

    def __init__(self, changesets: dict[str, Json], state_of: Callable[[str], State]) -> None:
        self.parents = {name: changeset["parent_ids"] for name, changeset in changesets.items()}
        self.state_of = functools.cache(state_of)

    @functools.cache  # noqa: B019 - it lives as long as one test
    def ancestors(self, name: str) -> frozenset[str]:
        return frozenset({name}.union(*(self.ancestors(parent) for parent in self.parents[name])))

    def latest(self, names: Iterable[str]) -> list[str]:
        names = set(names)
        return sorted(
            name for name in names if not any(name in self.ancestors(other) for other in names - {name})
        )

    def bases(self, one: str, other: str) -> list[str]:
        return self.latest(self.ancestors(one) & self.ancestors(other))

    def base(self, names: list[str]) -> State:
        if not names:
            return State({}, set(), {})
        state = self.state_of(names[0])
        for place in range(1, len(names)):
            below = self.latest(name for before in names[:place] for name in self.bases(before, names[place]))
            state = self.merge(self.base(below), state, self.state_of(names[place]), of_bases=True)
        return state

    def merge(self, base: State, left: State, right: State, *, of_bases: bool = False) -> State:
        made = State({}, set(), left.salts | right.salts)
        for name in base.records.keys() | left.records.keys() | right.records.keys():
            before, one, other = (state.records.get(name) for state in (base, left, right))
            if one is None or other is None:
                found = other if one == before else one if other == before else None
                opened: set[str] = set()
            else:
                found, opened = merged(before, one, other)
            if found is not None and not (opened and of_bases):
                made.records[name] = found
                made.open_fields[name] = opened
        edges = base.edges | left.edges | right.edges
        made.edges = {
            item
            for item in edges
            if (item in right.edges if (item in left.edges) == (item in base.edges) else item in left.edges)
        }
        return made


def link(previous: str | None, view: Json) -> str:
    """7.3, 7.4, 8.2: a row of a chain."""
    return h(["memory_git/chain/v1", previous, view])


def memory_key(memory_id: str) -> bytes:
    """9.1."""
    return sha(b"m\0" + memory_id.encode())


def edge_key(ends: list[str]) -> bytes:
    """9.1."""
    return sha(b"r\0" + rfc8785.dumps(ends))


def trie_root(entries: dict[bytes, bytes], depth: int = 0) -> bytes:
    """9.2, 9.3."""
    if len(entries) <= 32:
        pairs = b"".join(key + digest for key, digest in sorted(entries.items()))
        return sha(b"\x11" + bytes([len(entries)]) + pairs)
    fans: dict[int, dict[bytes, bytes]] = {}
    for key, digest in entries.items():
        fans.setdefault(int(key.hex()[depth], 16), {})[key] = digest
    bitmap = sum(1 << slot for slot in fans)
    children = b"".join(trie_root(fans[slot], depth + 1) for slot in sorted(fans))
    return sha(b"\x12" + len(entries).to_bytes(4, "big") + bitmap.to_bytes(2, "big") + children)


def state_root(memories: bytes, relationships: bytes) -> str:
    """9.5."""
    return h(["memory_git/state/v1", memories.hex(), relationships.hex()])


def proved(root: bytes, key: bytes, proof: list[str]) -> bytes | None:
    """9.6: gives the digest that a proof shows under a key, None that there is none; anything but a proof raises."""
    expected = root
    for depth, text in enumerate(proof):
        part, is_last = bytes.fromhex(text), depth + 1 == len(proof)
        assert sha(part) == expected, "a part is not the one that the part above names"
        if part[0] == 0x11:
            assert len(part) == 2 + 64 * part[1], "a part has a wrong length"
            assert is_last, "a leaf ends the path"
            pairs = [(part[at : at + 32], part[at + 32 : at + 64]) for at in range(2, len(part), 64)]
            assert all(one[0] < two[0] for one, two in itertools.pairwise(pairs))
            return dict(pairs).get(key)
        assert part[0] == 0x12, "neither leaf nor inner node"
        bitmap = int.from_bytes(part[5:7], "big")
        assert len(part) == 7 + 32 * bitmap.bit_count(), "a part has a wrong length"
        slot = int(key.hex()[depth], 16)
        if not bitmap >> slot & 1:
            assert is_last, "nothing stands under an empty slot"
            return None
        place = (bitmap & ((1 << slot) - 1)).bit_count()
        expected = part[7 + 32 * place : 39 + 32 * place]
    raise AssertionError("the proof ends before the key")


SYMMETRIC = {
    "concurrent_change",
    "incompatible_fact",
    "contradictory_decision",
    "protected_decision",
    "duplicate_content",
    "stale_base",
}


def conflict_id(conflict: Json) -> str:
    """9.8."""
    sides = [conflict["left_changeset_id"], conflict["right_changeset_id"]]
    if conflict["conflict_type"] in SYMMETRIC:
        sides.sort()
    view = {name: conflict[name] for name in ("project_id", "conflict_type", "identity")}
    view |= {"base": conflict["base_changeset_id"], "left": sides[0], "right": sides[1]}
    return sha(b"lethe/memory-conflict/v1\n" + rfc8785.dumps(view)).hex()


def identity_digest(conflict: Json) -> str:
    """9.8."""
    sides = [sorted(party["record_digest"] or "" for party in conflict[name]) for name in ("left", "right")]
    if conflict["conflict_type"] in SYMMETRIC:
        sides.sort()
    return h([conflict["conflict_type"], conflict["identity"], sides])


def signature(envelope: Json) -> str:
    """10.1."""
    return hmac.new(SECRET[envelope["key_id"]], rfc8785.dumps(envelope), hashlib.sha256).hexdigest()


def proposal_digest(state: Json) -> str:
    """10.2."""
    judged = h(["memory_git/judged/v1", state["judged"]])
    return h({"judged_digest": judged, "reviews": state["reviews"]})


OP_TYPES = [
    name
    for name in vars(State)
    if name.startswith(
        ("_add_", "_correct", "_super", "_mark", "_remove", "_prop", "_set", "_attach_", "_detach")
    )
]


# a project with everything in it


def decision(name: str, content: str) -> Json:
    return add(name, content, kind="decision", scope="s", subject="deploying", tags=["b", "a", "b"])


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreWorld]:
    folder = tmp_path_factory.mktemp("project")
    store = LetheStore.open(folder / "lethe.db", merge_keys=KEYS)
    for name, memory_id in (("e-1", "m"), ("e-2", None)):
        event = {"event_id": name, "event_type": "note", "content": f"Event {name}.", "actor": "a"}
        store.append_event(PROJECT, {**event, "memory_id": memory_id} if memory_id else event)
    store.close()
    made = StoreWorld(folder)
    many = [add(f"m/{number}", f"Fact number {number}.", confidence=number / 100) for number in range(80)]
    extra = {"origin": {"line": 7, "path": "a\u00e9\U0001f600"}}
    evidence = {"evidence": [{"kind": "log", "source": "x"}], "verification": [{"kind": "review"}]}
    first = made.commit(
        BRANCH, made.root, decision("one", "By hand."), add("f", "Port 1.", extra=extra), **evidence
    )
    first = made.commit(BRANCH, first, edge("f", "one"), correct("e-1", "Event, corrected."), *many)
    related = [edge(f"m/{number}", f"m/{number + 1}", "a kind") for number in range(40)]
    first = made.commit(BRANCH, first, *related, model="a model", session_id="a session", actor_id="builder")
    left = made.commit(BRANCH, first, correct("f", "Port 2.", title="t"), add("gone", "Erase me."))
    right = made.commit(SIDE, first, correct("f", tags=["net"]), decision("two", "By robots."), author="t")
    made.merge(left)
    made.settle(left, right)
    made.merge(made.loose([left, right], author="charon"), "merge_commit")
    made.store.context(PROJECT, {"ref_name": BRANCH, "create_manifest": True})
    made.commit(SIDE, right, add("mine", "Private.", visibility="private", owner_principal="t"), author="t")
    made.commit(SIDE, made.head(SIDE), correct("f", "Port 9."), author="t")
    made.store.redact(PROJECT, "gone", principal="officer", reason="asked for")
    yield made
    made.close()


@pytest.fixture(scope="module")
def changesets(world: StoreWorld) -> dict[str, Json]:
    """Gives every changeset that a ref reaches."""
    return reached(world.store)


def reached(store: LetheStore) -> dict[str, Json]:
    heads = [row["head_changeset_id"] for row in store.list_refs(PROJECT)]
    pages = [store.log(PROJECT, head=head, limit=200)["changesets"] for head in heads]
    names = {item["changeset_id"] for page in pages for item in page}
    return {name: store.get_changeset(name) for name in sorted(names)}


def pages(world: StoreWorld, head: str) -> Iterator[Json]:
    after = None
    while True:
        page = world.store.memories(PROJECT, head, limit=30, after=after)
        yield page
        after = page.get("next")
        if after is None:
            return


def entries(world: StoreWorld, head: str) -> tuple[list[Json], list[list[str]]]:
    memories = [item for page in pages(world, head) for item in page["memories"]]
    ends = ("from_memory_id", "kind", "to_memory_id")
    related = {
        tuple(item[name] for name in ends) for page in pages(world, head) for item in page["relationships"]
    }
    return memories, [list(item) for item in sorted(related)]


def test_records_relationships_tries_and_state_roots(world: StoreWorld, changesets: dict[str, Json]) -> None:
    for name, changeset in changesets.items():
        memories, related = entries(world, name)
        for item in memories:
            if item["salt"] is not None:
                assert record_digest(item["salt"], item["record"]) == item["record_digest"]
        tries = [
            trie_root(
                {memory_key(item["memory_id"]): bytes.fromhex(item["record_digest"]) for item in memories}
            ),
            trie_root({edge_key(ends): bytes.fromhex(edge_digest(ends)) for ends in related}),
        ]
        assert state_root(*tries) == changeset["state_root"]


def test_ops_and_changesets(changesets: dict[str, Json]) -> None:
    integrity_of = {name: integrity_digest(changeset) for name, changeset in changesets.items()}
    for name, changeset in changesets.items():
        for op in changeset["ops"]:
            assert op.get("redacted") or op_digest(op) == op["op_digest"]
        assert h([changeset["message_salt"], changeset["message"]]) == changeset["message_digest"]
        for part in ("evidence", "verification"):
            digests = [h([changeset[f"{part}_salt"], item]) for item in changeset[part]]
            assert digests == changeset[f"{part}_digests"]
        assert authored_digest(changeset, integrity_of) == changeset["authored_digest"]
        assert integrity_of[name] == changeset["integrity_digest"]
    assert any(op.get("redacted") for changeset in changesets.values() for op in changeset["ops"])
    assert any(changeset["evidence"] for changeset in changesets.values())


def test_what_is_withheld_leaves_every_digest_to_be_recomputed(
    world: StoreWorld, changesets: dict[str, Json]
) -> None:
    from memory_git.domain.policy import Audience

    nobody = Audience("nobody", frozenset({"public"}))
    integrity_of = {name: integrity_digest(changeset) for name, changeset in changesets.items()}
    withheld = 0
    for name in changesets:
        shown = world.store.get_changeset(name, audience=nobody)
        withheld += any(op.get("withheld") for op in shown["ops"])
        assert authored_digest(shown, integrity_of) == shown["authored_digest"]
        assert integrity_digest(shown) == integrity_of[name]
    assert withheld


def served(store: LetheStore, name: str) -> State:
    """Gives a state as it is served, without what is erased."""
    page = store.memories(PROJECT, name, limit=200)
    found = {item["memory_id"]: item for item in page["memories"] if item["salt"] is not None}
    ends = ("from_memory_id", "kind", "to_memory_id")
    edges = {tuple(item[key] for key in ends) for item in page["relationships"]}
    return State(
        {key: item["record"] for key, item in found.items()},
        edges,
        {key: item["salt"] for key, item in found.items()},
    )


def is_folded(store: LetheStore, changesets: dict[str, Json]) -> int:
    """Applies the ops of each changeset with one parent to that parent's state; gives how many ops there were."""
    count = 0
    for name, changeset in changesets.items():
        if len(changeset["parent_ids"]) == 1 and not any(op.get("redacted") for op in changeset["ops"]):
            state, after = served(store, changeset["parent_ids"][0]), served(store, name)
            state.salts |= after.salts
            for op in changeset["ops"]:
                state.apply(op)
                count += 1
            changed = state.records.keys() | after.records.keys()
            for key in changed:
                assert state.records.get(key) == after.records.get(key), (name, key)
            assert state.edges == after.edges
    return count


def is_merged(store: LetheStore, changesets: dict[str, Json]) -> tuple[int, int]:
    """Merges the parents of each changeset with two and applies its ops; gives how many had several bases, and how many conflicts."""
    history = History(changesets, lambda name: served(store, name))
    crossed = conflicts = 0
    for name, changeset in changesets.items():
        if len(changeset["parent_ids"]) == 2:
            bases = history.bases(*changeset["parent_ids"])
            state = history.merge(history.base(bases), *map(history.state_of, changeset["parent_ids"]))
            crossed += len(bases) > 1
            conflicts += sum(map(bool, state.open_fields.values()))
            after = served(store, name)
            state.salts |= after.salts
            for op in changeset["ops"]:
                state.apply(op)
            for key in state.records.keys() | after.records.keys():
                assert state.records.get(key) == after.records.get(key), (name, key)
            assert state.edges == after.edges
            assert not any(state.open_fields.values()), name
    return crossed, conflicts


def written(folder: Path, seed: int) -> tuple[int, int]:
    """Writes a history of which nearly half are merges, and merges them once more (`is_merged`)."""
    store = LetheStore.open(folder / "lethe.db", merge_keys=KEYS, sources=fixed_sources())
    writer = Writer(store, seed, merges=0.45)
    for _ in range(150):
        writer.step()
    found = is_merged(store, reached(store))
    store.close()
    return found


def test_merges_make_of_two_states_what_the_format_says(tmp_path: Path) -> None:
    crossed, conflicts = written(tmp_path, 5)
    assert crossed >= 4
    assert conflicts >= 17


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(20, 60))
def test_many_histories_of_merges_make_what_the_format_says(seed: int, tmp_path: Path) -> None:
    written(tmp_path, seed)


def test_ops_make_of_a_state_what_the_format_says(world: StoreWorld, changesets: dict[str, Json]) -> None:
    assert is_folded(world.store, changesets) > 100


def test_ops_of_every_type_make_of_a_state_what_the_format_says(tmp_path: Path) -> None:
    program = str(Path(__file__).parents[1] / "support" / "history_program.py")
    subprocess.run([sys.executable, program, "write", str(tmp_path)], check=True, stdout=subprocess.DEVNULL)
    store = LetheStore.open(tmp_path / "lethe.db", merge_keys=KEYS, recovery_readonly=True)
    found = reached(store)
    assert is_folded(store, found) > 150
    types = {op["op_type"] for changeset in found.values() for op in changeset["ops"]}
    store.close()
    assert types == {name.removeprefix("_") for name in OP_TYPES}


def test_a_request_is_bound_by_its_digest(world: StoreWorld) -> None:
    """6.5."""
    request = world.request(BRANCH, [world.head(BRANCH)], add("late", "Later.", tags=["z", "a"]), model=None)
    made, _ = world.store.create_changeset(request)
    connection = apsw.Connection(str(world.path), flags=apsw.SQLITE_OPEN_READONLY)
    (digest,) = connection.execute(
        "SELECT request_digest FROM changeset WHERE changeset_id = ?", (made["changeset_id"],)
    ).fetchone()
    connection.close()
    controls = {
        name: request.get(name, False) for name in ("advance_ref", "create_ref_if_missing", "protected")
    }
    controls["expected_head"] = request["expected_head"]
    assert h([made["authored_digest"], controls]) == digest


def test_proofs_of_presence_and_absence(world: StoreWorld, changesets: dict[str, Json]) -> None:
    head = world.head(BRANCH)
    for memory_id in ("one", "f", "m/7", "m/79"):
        shown = world.store.memory(PROJECT, head, memory_id)
        roots = bytes.fromhex(shown["memories_root"]), bytes.fromhex(shown["relationships_root"])
        assert state_root(*roots) == world.store.get_changeset(head)["state_root"]
        found = proved(roots[0], memory_key(memory_id), shown["proof"])
        assert found is not None
        assert found.hex() == shown["record_digest"] == record_digest(shown["salt"], shown["record"])
        with pytest.raises(AssertionError):
            proved(roots[0], memory_key(memory_id), shown["proof"][:-1])
        with pytest.raises(AssertionError):
            proved(roots[1], memory_key(memory_id), shown["proof"])


def test_one_proof_shows_the_absence_of_what_its_leaf_lacks(world: StoreWorld) -> None:
    """9.6: a path ends at one leaf for all keys of that path."""
    shown = world.store.memory(PROJECT, world.head(BRANCH), "one")
    path = memory_key("one").hex()[: len(shown["proof"]) - 1]
    absent = next(
        key for key in (memory_key(f"absent/{number}") for number in count()) if key.hex().startswith(path)
    )
    assert proved(bytes.fromhex(shown["memories_root"]), absent, shown["proof"]) is None
    other = next(
        key
        for key in (memory_key(f"absent/{number}") for number in count())
        if not key.hex().startswith(path)
    )
    with pytest.raises(AssertionError):
        proved(bytes.fromhex(shown["memories_root"]), other, shown["proof"])


def test_the_root_changeset_holds_the_baseline(world: StoreWorld) -> None:
    """9.7."""
    memories, related = entries(world, world.root)
    events = [event for event in world.store.list_events(PROJECT) if event["event_type"] == "note"]
    expected = {
        event["event_id"]: {
            "memory_id": event["event_id"],
            "content": event["content"],
            "event_type": event["event_type"],
            "kind": "observation",
            "visibility": "internal",
            "status": "active",
            "sources": ["legacy_event"],
        }
        for event in events
    }
    assert related == []
    assert {item["memory_id"]: item["record"] for item in memories} == expected


def test_events_redactions_and_ref_logs_are_chains(world: StoreWorld) -> None:
    previous = None
    for seq, event in enumerate(world.store.list_events(PROJECT, limit=1000), 1):
        if event["content"] is not None:
            assert h([event["salt"], event["content"]]) == event["content_digest"]
        view = {
            name: value for name, value in event.items() if name not in ("content", "salt", "event_digest")
        }
        assert event["seq"] == seq
        assert link(previous, view) == event["event_digest"]
        previous = event["event_digest"]
    previous = None
    for row in world.store.list_redactions(PROJECT):
        memory_ids = rfc8785.dumps(row["memory_ids"]).decode()
        view = {name: value for name, value in row.items() if name != "redaction_digest"}
        assert link(previous, {**view, "memory_ids": memory_ids}) == row["redaction_digest"]
        previous = row["redaction_digest"]
    assert previous is not None
    for ref in world.store.list_refs(PROJECT):
        previous, head = None, None
        for move in world.store.ref_log(PROJECT, ref["ref_name"]):
            view = {name: value for name, value in move.items() if name != "digest"}
            assert link(previous, view) == move["digest"]
            assert move["from_head"] == head
            previous, head = move["digest"], move["to_head"]
        assert head == ref["head_changeset_id"]


def test_conflicts_have_their_ids_and_identities(world: StoreWorld) -> None:
    heads = {row["ref_name"]: row["head_changeset_id"] for row in world.store.list_refs(PROJECT)}
    found = world.store.list_conflicts(PROJECT, limit=1000)
    found += world.store.plan_merge(PROJECT, heads[BRANCH], heads[SIDE])["conflicts"]
    assert {"concurrent_change", "contradictory_decision"} <= {item["conflict_type"] for item in found}
    for item in found:
        assert conflict_id(item) == item["conflict_id"]
        assert identity_digest(item) == item["identity_digest"]


def test_merge_authorizations_and_what_was_judged(world: StoreWorld) -> None:
    connection = apsw.Connection(str(world.path), flags=apsw.SQLITE_OPEN_READONLY)
    rows = connection.execute(
        "SELECT envelope_wire, proposal_state FROM memory_protected_ref_advances"
    ).fetchall()
    connection.close()
    assert rows
    names = (
        "version project_id ref_name expected_head new_head proposal_id proposal_digest reviewer_principal"
        " merger_principal strategy issued_at expires_at nonce key_id"
    )
    for wire, state in rows:
        read = json.loads(wire)
        assert set(read["envelope"]) == set(names.split())
        assert signature(read["envelope"]) == read["signature"]
        assert proposal_digest(json.loads(state)) == read["envelope"]["proposal_digest"]


def test_a_manifest_has_its_digest(world: StoreWorld) -> None:
    found = world.store.context(PROJECT, {"ref_name": BRANCH, "create_manifest": True})
    manifest = world.store.get_manifest(found["manifest_id"])
    digest = manifest.pop("manifest_digest")
    assert h(manifest) == digest
    selected = {item["memory_id"]: item["record_digest"] for item in manifest["selected"]}
    for item in found["memories"]:
        assert record_digest(item["salt"], item["record"]) == selected[item["memory_id"]]

"""A program: writes a history that is the same in every process, or folds a written one from any starting point.

python history_program.py write FOLDER    prints every digest and the digest of every answer
python history_program.py fold FOLDER     prints the state root of each changeset, folded from each place that it can be folded from
"""

from __future__ import annotations

import contextlib
import itertools
import random
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from store_world import KEYS, PROJECT, add, correct, edge, retract

from memory_git.domain.canonical import digest
from memory_git.domain.errors import Invalid, NotFound, Refused
from memory_git.domain.ops import op_from_json
from memory_git.domain.projector import Applied, apply
from memory_git.domain.record import (
    Edge,
    Record,
    attachment_digest,
    edge_digest,
    record_digest,
    record_from_json,
)
from memory_git.domain.state import MemoryState
from memory_git.domain.state_root import edge_key, memory_key, state_root
from memory_git.domain.trie import EMPTY, Entry, MemoryNodes, put_many
from memory_git.lethe.sources import Sources
from memory_git.lethe.store import LetheStore

REFS = [f"refs/agents/a{number}/main" for number in range(3)]
NAMES = [f"m{number}" for number in range(12)]
ASSIGNED = {
    "content",
    "title",
    "summary",
    "tags",
    "confidence",
    "valid_to",
    "extra",
    "pinned",
    "scope",
    "kind",
}
UNCLEARED = {"content", "kind"}
Json = dict[str, Any]


def fixed_sources() -> Sources:
    """Gives sources that give the same in every process."""
    ids, salts, seconds = itertools.count(1), itertools.count(1), itertools.count()
    return Sources(
        now=lambda: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=next(seconds)),
        new_id=lambda: f"019b0000-0000-7000-8000-{next(ids):012x}",
        new_salt=lambda: f"{next(salts):032x}",
    )


def _op(op_type: str, target: str | None, result: str | None = None, **payload: Any) -> Json:
    return {"op_type": op_type, "target_event_id": target, "resulting_event_id": result, "payload": payload}


class Writer:
    """Writes steps drawn from one seed."""

    def __init__(self, store: LetheStore, seed: int = 7, merges: float = 0.15) -> None:
        self.store = store
        self.merges = merges
        """How many of the steps are merges."""
        self.random, self.answers = random.Random(seed), random.Random(seed + 4)
        self.keys = itertools.count()
        self.root = store.init_project(PROJECT)["changeset"]["changeset_id"]
        self.heads = dict.fromkeys(REFS, self.root)
        self.made: list[str] = [self.root]
        for ref in REFS:
            store.create_branch(PROJECT, ref, self.root, "system")

    def step(self) -> None:
        """Commits, or merges with an answer to each conflict; what is refused is told and not done."""
        ref, other = self.random.sample(REFS, 2)
        if self.random.random() < self.merges and self.heads[ref] != self.heads[other]:
            parents = [self.heads[ref], self.heads[other]]
            plan = self.store.plan_merge(PROJECT, *parents)
            print("plan", digest(plan))
            self._commit(ref, parents, [self._answer(item) for item in plan["unsettled"]])
        else:
            self._commit(ref, [self.heads[ref]], [self._op(ref) for _ in range(self.random.randint(2, 5))])

    def _answer(self, item: Json) -> Json:
        """Answers a conflict by the second side's values or by this memory's end, in the ways that there are."""
        name, fields = item["memory_id"], set(item["fields"])
        values = {key: item["right"].get(key) for key in fields & ASSIGNED}
        given = {key: value for key, value in values.items() if value is not None}
        given |= {"clear": sorted(values.keys() - given)} if values.keys() - given else {}
        if not (fields & UNCLEARED <= given.keys()) or self.answers.random() < 0.4:
            return self.answers.choice([retract(name), _op("supersede_memory", name)])
        if fields <= ASSIGNED | {"approval"}:
            return _op("correct_memory", name, **given)
        return _op("correct_memory", name, revive=True, **given)

    def _op(self, ref: str) -> Json:
        name, other = self.random.sample(NAMES, 2)
        text = self.random.choice(
            ["The port is 80.", "The port is 443.", "Tests run at night.", "We use make."]
        )
        tags = self.random.sample(["x", "y", "z", "net", "ops"], 3)
        approved = {"approval": "user_approved", "source_trust": "human", "owner_principal": "ada"}
        return self.random.choice(
            [
                add(name, text, tags=tags, kind="decision", scope="s", extra=dict.fromkeys(tags, 1)),
                add(
                    name, text, title="Title", confidence=1, valid_to="2027-01-01T00:00:00+02:00", **approved
                ),
                correct(name, text, tags=tags),
                correct(name, title=text, pinned=True, revive=True),
                correct(name, clear=["tags", "title", "pinned", "extra"], summary=""),
                _op("correct_memory", name, other, content=text, source_trust="verified"),
                _op("supersede_memory", name, other, content=text, confidence=0.25),
                _op("supersede_memory", name, other),
                _op("supersede_memory", name),
                _op("mark_duplicate", name, other),
                edge(*self.random.sample(NAMES[:3], 2)),
                edge(*self.random.sample(NAMES[:3], 2), op_type="remove_relationship"),
                _op("propose_deprecation", name, reason="old"),
                _op("set_status", name, status=self.random.choice(["deprecated", "disputed"]), reason="so"),
                _op("set_status", name, status="active", revive=True),
                retract(name),
                _op("attach_evidence", name, kind="log", note=text),
                _op("attach_verification", name, kind="review", status="ok", source=text),
                _op("attach_evidence", None, summary="All seen.", reviewer="ada"),
                self._detaching(ref, name),
            ]
        )

    def _detaching(self, ref: str, name: str) -> Json:
        """Takes away the first attachment of a memory, or what none has."""
        shown: Json = {"record": {}, "salt": ""}
        with contextlib.suppress(NotFound):
            shown = self.store.memory(PROJECT, self.heads[ref], name)
        items = [*shown["record"].get("evidence", []), *shown["record"].get("verification", [])]
        digest_of = attachment_digest(shown["salt"], items[0]) if items else "0" * 64
        return _op("detach", name, attachment_digest=digest_of, reason="gone")

    def _commit(self, ref: str, parents: list[str], ops: list[Json]) -> None:
        request = {
            "project_id": PROJECT,
            "ref_name": ref,
            "parent_ids": parents,
            "author_principal": ref.split("/")[2],
            "message": "work",
            "idempotency_key": str(next(self.keys)),
            "ops": ops,
            "expected_head": parents[0],
            "advance_ref": True,
        }
        try:
            made, _ = self.store.create_changeset(request)
        except Refused as refused:
            print("refused", digest(refused.to_problem()))
            at_fault = {fault.ordinal for fault in refused.faults} if isinstance(refused, Invalid) else set()
            sound = [op for place, op in enumerate(ops) if place not in at_fault]
            if at_fault and sound:
                self._commit(ref, parents, sound)
            return
        self.heads[ref] = made["changeset_id"]
        self.made.append(made["changeset_id"])
        print(
            "made",
            *(made[name] for name in ("changeset_id", "state_root", "authored_digest", "integrity_digest")),
        )


def write(place: Path | str) -> None:
    """Writes the history, into a folder or a database, and prints its digests."""
    place = place / "lethe.db" if isinstance(place, Path) else place
    store = LetheStore.open(place, merge_keys=KEYS, sources=fixed_sources())
    writer = Writer(store)
    for _ in range(150):
        writer.step()
    one, two = writer.heads[REFS[0]], writer.heads[REFS[1]]
    answers = [store.diff(name) for name in writer.made] + [store.diff(one, two), store.diff(two, one)]
    answers += [store.memories(PROJECT, one, limit=100), store.search(PROJECT, one, "port night")]
    answers += [
        store.log(PROJECT, head=one, limit=200),
        store.context(
            PROJECT,
            {"head_changeset_id": one, "ref_name": REFS[0], "limit": 50, "now": "2026-02-01T00:00:00Z"},
        ),
    ]
    for answer in answers:
        print("answer", digest(answer))
    store.close()


def fold(folder: Path) -> None:
    """Folds ops over the state of each changeset, as far as no merge comes, and prints each root that comes out."""
    store = LetheStore.open(folder / "lethe.db", merge_keys=KEYS, recovery_readonly=True)
    heads = {row["head_changeset_id"] for row in store.list_refs(PROJECT)}
    changesets = {item["changeset_id"]: item for head in heads for item in _log(store, head)}
    heirs: dict[str, list[str]] = {}
    for name, made in changesets.items():
        if len(made["parent_ids"]) == 1:
            heirs.setdefault(made["parent_ids"][0], []).append(name)
    for start in sorted(changesets):
        waiting = [(start, *_state(store, start))]
        while waiting:
            name, state, salts = waiting.pop()
            print(start, name, changesets[name]["state_root"], _root(state, salts))
            for heir in heirs.get(name, []):
                known = {**_state(store, heir)[1], **salts}
                ops = [op_from_json(op) for op in store.get_changeset(heir)["ops"]]
                applied = apply(
                    state, ops, salts=lambda memory_id, known=known: known.get(memory_id, "0" * 32)
                )
                waiting.append((heir, _laid(state, applied), known))
    store.close()


def _log(store: LetheStore, head: str) -> list[Json]:
    return list(store.log(PROJECT, head=head, limit=200)["changesets"])


def _state(store: LetheStore, name: str) -> tuple[MemoryState, dict[str, str]]:
    page = store.memories(PROJECT, name, limit=100)
    found = {item["memory_id"]: record_from_json(item["record"]) for item in page["memories"]}
    edges = [
        Edge(item["from_memory_id"], item["kind"], item["to_memory_id"]) for item in page["relationships"]
    ]
    return MemoryState(found, frozenset(edges)), {
        item["memory_id"]: item["salt"] for item in page["memories"]
    }


def _laid(state: MemoryState, applied: Applied) -> MemoryState:
    assert not applied.faults
    edges = {edge for edge in state.edges if applied.edges.get(edge, True)}
    edges |= {edge for edge, stands in applied.edges.items() if stands}
    return MemoryState({**state.records, **applied.records}, frozenset(edges))


def _root(state: MemoryState, salts: dict[str, str]) -> str:
    nodes = MemoryNodes()
    memories = [
        Entry(memory_key(name), bytes.fromhex(record_digest(salts[name], record)), 1, 1, 1, 1)
        for name, record in state.records.items()
        if isinstance(record, Record)
    ]
    edges = [
        Entry(
            edge_key(item.from_memory_id, item.kind, item.to_memory_id),
            bytes.fromhex(edge_digest(item)),
            1,
            1,
            1,
            1,
        )
        for item in state.edges
    ]
    tries = [put_many(nodes, EMPTY, {entry.key: entry for entry in part}) for part in (memories, edges)]
    return state_root(*(tree.digest for tree in tries))


if __name__ == "__main__":
    {"write": write, "fold": fold}[sys.argv[1]](Path(sys.argv[2]))

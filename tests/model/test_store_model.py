"""A state machine drives the real store and a dictionary side by side (4-history; 5-lethe).

The dictionary holds, for each changeset, its parents, its entries by memory id and its relationships. It knows ancestry by brute force
and merges by hand, entry by entry; what one op or one field does is the domain's, tested elsewhere. Every read of the store must agree.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, precondition, rule
from store_world import PROJECT, StoreWorld, add

from memory_git.domain.change import Change, EdgeChange, OpRef
from memory_git.domain.diff import SECTIONS, semantic_diff
from memory_git.domain.errors import Clash, Invalid
from memory_git.domain.merge import merge_records
from memory_git.domain.projector import Applied, apply
from memory_git.domain.record import Conflicted, Edge, Record, attachment_digest
from memory_git.domain.state import MemoryState
from memory_git.domain.validate import check_ops, presumed_ids
from memory_git.lethe import collecting

Op = dict[str, Any]
NAMES = [f"m{number}" for number in range(6)]
REFS = [f"refs/agents/a{number}/main" for number in range(4)]
_ROWS = itertools.count(1)
_NAME = re.compile(r'"(m\d)"')


@dataclass(frozen=True)
class Entry:
    """A memory at a state: `row` is new for each version."""

    record: Record
    row: int
    version: int
    introduced: str
    changed: str


@dataclass
class Modelled:
    """One changeset of the dictionary."""

    parents: tuple[str, ...]
    author: str
    entries: dict[str, Entry] = field(default_factory=dict)
    edges: dict[Edge, int] = field(default_factory=dict)
    """Relationship → the row that stands for it."""

    def state(self) -> MemoryState:
        return MemoryState(
            {name: entry.record for name, entry in self.entries.items()}, frozenset(self.edges)
        )


@dataclass
class Met:
    """How two states come together."""

    entries: dict[str, Entry] = field(default_factory=dict)
    merged: dict[str, tuple[Record, Entry, Entry]] = field(default_factory=dict)
    conflicted: dict[str, Conflicted] = field(default_factory=dict)
    sides: dict[str, tuple[Entry, Entry]] = field(default_factory=dict)
    edges: dict[Edge, int] = field(default_factory=dict)

    def state(self) -> MemoryState:
        records: dict[str, Any] = {name: entry.record for name, entry in self.entries.items()}
        records |= {name: record for name, (record, _, _) in self.merged.items()}
        return MemoryState({**records, **self.conflicted}, frozenset(self.edges))


def meet(base: Modelled, left: Modelled, right: Modelled) -> Met:
    """Merges two states by hand (4-history, three-way merge)."""
    met = Met()
    for name in sorted({*left.entries, *right.entries}):
        before, one, two = (side.entries.get(name) for side in (base, left, right))
        if two in (one, before):
            taken = one
        elif one == before:
            taken = two
        elif one is None or two is None:
            taken = None  # Only between bases: what earlier ones disagreed on stays absent.
        else:
            taken = _both_changed(met, name, before, one, two)
        if taken is not None:
            met.entries[name] = taken
    for edge in {*left.edges, *right.edges}:
        before_row, one_row, two_row = (side.edges.get(edge) for side in (base, left, right))
        stands = two_row if (one_row is None) == (before_row is None) else one_row
        if stands is not None:
            taken_row = two_row if one_row == before_row else one_row
            met.edges[edge] = taken_row or one_row or two_row or stands
    return met


def _both_changed(met: Met, name: str, base: Entry | None, left: Entry, right: Entry) -> Entry | None:
    greater = max(left.version, right.version)
    if left.record == right.record or (base is not None and right.record == base.record):
        return replace(left, version=greater)
    if base is not None and left.record == base.record:
        return replace(right, version=greater)
    found = merge_records(base.record if base else None, left.record, right.record)
    met.sides[name] = (left, right)
    if isinstance(found, Conflicted):
        met.conflicted[name] = found
    else:
        met.merged[name] = (found, left, right)
    return None


class Dictionary:
    """All changesets, and what is known of their ancestry."""

    def __init__(self) -> None:
        self.changesets: dict[str, Modelled] = {}
        self.order: list[str] = []
        self.salts: dict[str, str] = {}
        self._ancestors: dict[str, frozenset[str]] = {}

    def put(self, name: str, made: Modelled) -> None:
        self.changesets[name] = made
        self.order.append(name)
        above = (self._ancestors[parent] for parent in made.parents)
        self._ancestors[name] = frozenset([name]).union(*above)

    def forget(self, memory_ids: Iterable[str]) -> None:
        """Takes memories out of every state: nothing is known of them any more."""
        for made in self.changesets.values():
            made.entries = {
                name: entry for name, entry in made.entries.items() if name not in set(memory_ids)
            }

    def ancestors(self, name: str) -> frozenset[str]:
        return self._ancestors[name]

    def bases(self, *names: str) -> list[str]:
        return self._best(frozenset.intersection(*(self._ancestors[name] for name in names)))

    def _best(self, common: Iterable[str]) -> list[str]:
        common = set(common)
        behind = {older for name in common for older in self._ancestors[name] if older != name}
        return sorted(common - behind)

    def base_state(self, bases: list[str]) -> Modelled:
        """Gives the state of the bases, merged where there are several; what they disagree on is absent."""
        if not bases:
            return Modelled((), "")
        merged = self.changesets[bases[0]]
        for place, name in enumerate(bases[1:], 1):
            common = {shared for before in bases[:place] for shared in self.bases(before, name)}
            met = meet(self.base_state(self._best(common)), merged, self.changesets[name])
            entries = dict(met.entries)
            for memory_id, (record, left, right) in met.merged.items():
                version = 1 + max(left.version, right.version)
                entries[memory_id] = Entry(record, -next(_ROWS), version, left.introduced, left.changed)
            merged = Modelled((), "", entries, met.edges)
        return merged

    def met(self, first: str, second: str) -> Met:
        base = self.base_state(self.bases(first, second))
        return meet(base, self.changesets[first], self.changesets[second])

    def applied(self, parents: list[str], ops: list[Op]) -> tuple[Applied, Met | None, list[int | None]]:
        """Gives what ops make of the parents' state, and the ordinals at fault."""
        read, faults = check_ops(ops, iter(()))
        met = self.met(*parents) if len(parents) == 2 else None
        state = met.state() if met else self.changesets[parents[0]].state()
        applied = apply(
            state,
            read,
            salts=lambda name: self.salts.get(name, "0" * 32),
            conflicted=met.conflicted.values() if met else (),
            presumed=presumed_ids(ops, faults),
        )
        return applied, met, sorted({fault.ordinal for fault in (*faults, *applied.faults)})

    def commit(self, name: str, parents: list[str], author: str, applied: Applied, met: Met | None) -> None:
        before = self.changesets[parents[0]]
        entries = dict(met.entries if met else before.entries)
        edges = dict(met.edges if met else before.edges)
        written = {memory_id: record for memory_id, (record, _, _) in (met.merged if met else {}).items()}
        for memory_id, record in (written | applied.records).items():
            sides = met.sides.get(memory_id) if met else None
            known = sides or tuple(entry for entry in (entries.get(memory_id),) if entry)
            version = 1 + max((entry.version for entry in known), default=0)
            introduced = known[0].introduced if known else name
            entries[memory_id] = Entry(record, next(_ROWS), version, introduced, name)
        for edge, stands in applied.edges.items():
            if stands:
                edges[edge] = next(_ROWS)
            else:
                del edges[edge]
        self.put(name, Modelled(tuple(parents), author, entries, edges))


memory_ids = st.sampled_from(NAMES)
contents = st.sampled_from(["The port is 80.", "The port is 443.", "Tests run at night.", "We use make."])
fields = st.fixed_dictionaries(
    {},
    optional={
        "tags": st.lists(st.sampled_from(["x", "y", "z"]), min_size=1, unique=True),
        "title": st.sampled_from(["one", "two"]),
        "kind": st.sampled_from(["fact", "decision", "task"]),
        "scope": st.just("net"),
        "confidence": st.sampled_from([0.25, 1]),
        "pinned": st.booleans(),
    },
)


def _op(op_type: str, target: str | None = None, result: str | None = None, **payload: Any) -> Op:
    return {
        "op_type": op_type,
        "target_event_id": target,
        "resulting_event_id": result,
        "payload": payload,
    }


@st.composite
def any_op(draw: st.DrawFn) -> Op:
    one, two, content, values = draw(memory_ids), draw(memory_ids), draw(contents), draw(fields)
    revive = draw(st.sampled_from([{}, {}, {"revive": True}]))
    kind = draw(st.sampled_from(["about", "needs"]))
    statuses = st.sampled_from(["active", "deprecated", "disputed", "retracted"])
    item = {"kind": draw(st.sampled_from(["log", "review"])), "note": draw(st.sampled_from(["a", "b"]))}
    makers = {
        "add": lambda: _op("add_memory", None, one, content=content, **values, **revive),
        "correct": lambda: _op("correct_memory", one, content=content, **values, **revive),
        "tag": lambda: _op("correct_memory", one, **values),
        "clear": lambda: _op("correct_memory", one, clear=["tags", "title"]),
        "correct anew": lambda: _op("correct_memory", one, two, content=content),
        "supersede": lambda: _op("supersede_memory", one, two, content=content, **revive),
        "supersede by": lambda: _op("supersede_memory", one, two),
        "end": lambda: _op("supersede_memory", one),
        "duplicate": lambda: _op("mark_duplicate", one, two),
        "relate": lambda: _op("add_relationship", one, two, kind=kind),
        "unrelate": lambda: _op("remove_relationship", one, two, kind=kind),
        "deprecate": lambda: _op("propose_deprecation", one, reason="old"),
        "evidence": lambda: _op("attach_evidence", one, **item),
        "verify": lambda: _op("attach_verification", one, **item),
        "detach": lambda: {"detach": one, "item": item},
        "status": lambda: _op("set_status", one, status=draw(statuses), reason="because", **revive),
    }
    made: Op = makers[draw(st.sampled_from(["add", "add", "correct", "tag", *makers]))]()
    return made


class StoreMachine(RuleBasedStateMachine):
    """Branches of four agents and the shared ref."""

    changesets = Bundle("changesets")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.world = StoreWorld(self.folder)
        self.model = Dictionary()
        self.model.put(self.world.root, Modelled((), "system"))
        self.heads = dict.fromkeys(REFS, self.world.root)
        self.shared = self.world.root
        self.merges = 0
        self.erased: set[str] = set()
        self.topics: dict[str, str] = {}
        for ref in REFS:
            self.world.store.create_branch(PROJECT, ref, self.world.root, "system")
        self._commit(REFS[0], [self.world.root], [add(name, "The port is 80.") for name in NAMES[:4]])
        for ref in REFS[1:]:
            self.fast_forward(ref, REFS[0])

    def teardown(self) -> None:
        try:
            faults = self.world.faults()
            assert faults == [], faults
            for name in self.model.order:
                self._agrees(name)
            for memory_id in sorted({"m1", "m2"} - self.erased):
                self.erase(memory_id)
            self._is_sound()
            self.drop_nodes(4)
            self._is_sound()
        finally:
            self.world.close()
            shutil.rmtree(self.folder)

    # writing

    @rule(target=changesets, ref=st.sampled_from(REFS), ops=st.lists(any_op(), min_size=1, max_size=4))
    def commit_as_it_comes(self, ref: str, ops: list[Op]) -> Any:
        made = self._commit(ref, [self.heads[ref]], [self._detaching(op) for op in ops])
        return made or multiple()

    @rule(target=changesets, ref=st.sampled_from(REFS), ops=st.lists(any_op(), min_size=2, max_size=6))
    def commit(self, ref: str, ops: list[Op]) -> Any:
        """Commits what of the ops is not at fault."""
        made = self._commit(ref, [self.heads[ref]], self._sound(ref, ops))
        return made or multiple()

    @rule(refs=st.permutations(REFS), ops=st.lists(any_op(), min_size=2, max_size=12), answer=contents)
    def cross(self, refs: list[str], ops: list[Op], answer: str) -> None:
        """Two branches change, each merges the other, and both change again: what merges next has two bases."""
        one, two = refs[:2]
        for place, ref in enumerate((one, two)):
            self._commit(ref, [self.heads[ref]], self._sound(ref, ops[place::4]))
        first, second = self.heads[one], self.heads[two]
        self._merged(one, [first, second], answer)
        self._merged(two, [second, first], "Tests run at night.")
        for place, ref in enumerate((one, two), 2):
            self._commit(ref, [self.heads[ref]], self._sound(ref, ops[place::4]))
        self._merged(one, [self.heads[one], self.heads[two]], answer, ops)

    @rule(target=changesets, ref=st.sampled_from(REFS), other=st.sampled_from(REFS), answer=contents)
    def merge(self, ref: str, other: str, answer: str) -> Any:
        return self._merged(ref, [self.heads[ref], self.heads[other]], answer) or multiple()

    @rule(name=changesets, topic=st.sampled_from(["refs/topics/one", "refs/topics/two"]))
    def branch(self, name: str, topic: str) -> None:
        """A branch begins at any changeset, once; the same again is the same branch."""
        if self.topics.setdefault(topic, name) == name:
            assert self.world.store.create_branch(PROJECT, topic, name, "x")["head_changeset_id"] == name
        else:
            with pytest.raises(Clash):
                self.world.store.create_branch(PROJECT, topic, name, "x")

    @rule(topic=st.sampled_from(["refs/topics/one", "refs/topics/two"]), ops=st.lists(any_op(), min_size=2))
    def commit_on_a_branch(self, topic: str, ops: list[Op]) -> None:
        """Work goes on from wherever the branch began."""
        if topic in self.topics:
            made = self._commit(topic, [self.topics[topic]], self._sound(topic, ops), author="x")
            self.topics[topic] = made or self.topics[topic]

    @rule(ref=st.sampled_from(REFS), other=st.sampled_from(REFS))
    def fast_forward(self, ref: str, other: str) -> None:
        before, after = self.heads[ref], self.heads[other]
        assert self.world.store.is_ancestor(PROJECT, before, after) == (before in self.model.ancestors(after))
        if before in self.model.ancestors(after):
            self.world.store.advance_ref(PROJECT, ref, before, after)
            self.heads[ref] = after
        else:
            with pytest.raises(Clash):
                self.world.store.advance_ref(PROJECT, ref, before, after)

    @rule(target=changesets, picked=changesets, ref=st.sampled_from(REFS), place=st.integers(0, 3))
    def cherry_pick(self, picked: str, ref: str, place: int) -> Any:
        ops = self.world.store.get_changeset(picked)["ops"]
        if not ops:
            return multiple()
        if any("payload" not in op for op in ops):
            with pytest.raises(Invalid, match="redacted"):
                self.world.store.plan_cherry_pick(PROJECT, [_chosen(picked, ops[0])], self.heads[ref])
            return multiple()
        chosen = [_chosen(picked, op) for op in (ops[place % len(ops)], *ops[place + 1 :: 2])]
        plan = self.world.store.plan_cherry_pick(PROJECT, chosen[: 1 + place % 2], self.heads[ref])
        return self._follow(ref, plan) or multiple()

    @rule(target=changesets, ref=st.sampled_from(REFS), onto=st.sampled_from(REFS))
    def rebase(self, ref: str, onto: str) -> Any:
        with self._unless_erased() as told:
            plan = self.world.store.plan_rebase(PROJECT, self.heads[ref], self.heads[onto])
            return self._follow(onto, plan) or multiple()
        assert told.refused
        return multiple()

    @rule(target=changesets, name=changesets, ref=st.sampled_from(REFS), mainline=st.sampled_from([1, 2]))
    def revert(self, name: str, ref: str, mainline: int) -> Any:
        parents = self.model.changesets[name].parents
        chosen = mainline if len(parents) == 2 else None
        with self._unless_erased() as told:
            plan = self.world.store.plan_revert(PROJECT, name, self.heads[ref], chosen)
            return self._follow(ref, plan) or multiple()
        assert told.refused
        return multiple()

    @rule(ref=st.sampled_from(REFS))
    def accept(self, ref: str) -> None:
        """A protected merge, its conflicts settled by a judge who wrote nothing."""
        source = self.heads[ref]
        if source in self.model.ancestors(self.shared):
            return
        with self._unless_erased():
            self._accept(source)

    def _accept(self, source: str) -> None:
        plan = self.world.store.plan_merge(PROJECT, self.shared, source)
        forward = self.shared in self.model.ancestors(source)
        assert plan["strategy"] == ("fast_forward" if forward else "merge_commit")
        self.world.settle(self.shared, source)
        new = source
        if not forward:
            met = self.model.met(self.shared, source)
            made = self._commit(None, [self.shared, source], _retractions(met), author="charon")
            if made is None:
                return
            new = made
        self.merges += 1
        self.world.merge(new, plan["strategy"])
        self.shared = new

    @rule()
    def restart(self) -> None:
        self.world.restart()

    @precondition(lambda self: len(self.model.order) > 6)
    @rule(memory_id=memory_ids, is_meant=st.integers(0, 3))
    def erase(self, memory_id: str, is_meant: int = 0) -> None:
        """Redacts a memory with its lineage, now and then; all others stay what they were at every changeset."""
        if is_meant or not any(memory_id in made.entries for made in self.model.changesets.values()):
            return
        found = self.world.store.redact(PROJECT, memory_id, principal="officer", reason="asked")
        assert memory_id in found["memory_ids"]
        self.erased.update(found["memory_ids"])
        self.model.forget(found["memory_ids"])

    @rule(far=st.sampled_from([4, 12, 40, 20_000]))
    def drop_nodes(self, far: int) -> None:
        self.world.store._write(PROJECT, lambda transaction: collecting.collect(transaction, far))

    @rule(name=changesets, every=st.booleans())
    def rebuild_nodes(self, name: str, every: bool) -> None:
        self.world.store.rebuild_nodes(PROJECT, None if every else name)

    # reading

    @rule(one=changesets, two=changesets, ref=st.sampled_from(REFS))
    def look(self, one: str, two: str, ref: str) -> None:
        self._compare(one, two)
        self._plan(one, two)
        self._context(ref)
        self._agrees(one)
        assert len(self.world.store.list_advances(PROJECT)) == self.merges

    def _compare(self, one: str, two: str) -> None:
        assert self.world.store.merge_base(PROJECT, one, two) == self.model.bases(one, two)
        found = self.world.store.diff(two, one)
        before, after = self.model.changesets[one], self.model.changesets[two]
        expected = semantic_diff(_changes(before, after), _edge_changes(before, after))
        for section in SECTIONS:
            assert self._shown(found[section]) == self._shown(expected[section]), section

    def _plan(self, one: str, two: str) -> None:
        """What a plan says would change is what the merge changes."""
        if one == two:
            return
        with self._unless_erased():
            self._plan_agrees(one, two)

    def _plan_agrees(self, one: str, two: str) -> None:
        plan = self.world.store.plan_merge(PROJECT, one, two)
        met = self.model.met(one, two)
        assert {item["memory_id"] for item in plan["unsettled"]} == set(met.conflicted)
        before, after = self.model.changesets[one], Modelled((), "")
        after.entries = {**met.entries, **{name: before.entries[name] for name in met.conflicted}}
        for name, (record, left, _) in met.merged.items():
            after.entries[name] = replace(left, record=record)
        after.edges = met.edges
        expected = semantic_diff(_changes(before, after), _edge_changes(before, after))
        for section in SECTIONS:
            assert self._shown(plan["diff"][section]) == self._shown(expected[section]), section

    def _context(self, ref: str) -> None:
        found = self.world.store.context(PROJECT, {"ref_name": ref, "limit": 100})
        entries = self.model.changesets[self.heads[ref]].entries
        active = {name for name, entry in entries.items() if entry.record.is_active}
        assert found["total_active"] == len(active)
        assert {item["memory_id"] for item in found["memories"]} == active - set(found["exclusion_reasons"])

    @invariant()
    def heads_agree(self) -> None:
        found = {row["ref_name"]: row["head_changeset_id"] for row in self.world.store.list_refs(PROJECT)}
        assert found == {**self.heads, **self.topics, "refs/shared/main": self.shared}

    # how it is done

    def _merged(self, ref: str, parents: list[str], answer: str, ops: Iterable[Op] = ()) -> str | None:
        """Merges, with an answer to each conflict, and with what else of the ops is not at fault."""
        if parents[0] == parents[1]:
            return None
        met = self.model.met(*parents)
        if met.conflicted:
            self._is_refused_with_the_conflicts(ref, parents, met)
        for answers in (_answers(met, answer), _retractions(met)):
            more = [op for op in map(self._named, ops) if not self._at_fault(parents, [*answers, op])]
            with self._unless_erased():
                made = self._commit(ref, parents, [*answers, *more[:1]]) or self._commit(
                    ref, parents, answers
                )
                if made is not None:
                    return made
        return None

    def _sound(self, ref: str, ops: Iterable[Op]) -> list[Op]:
        sound: list[Op] = []
        for op in map(self._named, ops):
            if not self._at_fault([(self.heads | self.topics)[ref]], [*sound, op]):
                sound.append(op)
        return sound

    def _at_fault(self, parents: list[str], ops: list[Op]) -> bool:
        applied, _, at_fault = self.model.applied(parents, ops)
        return bool(at_fault or applied.unsettled)

    def _named(self, op: Op) -> Op:
        """Gives an op on memories that are not erased: others take the places of those."""
        return self._detaching(json.loads(_NAME.sub(lambda found: self._heir(found[1]), json.dumps(op))))

    def _heir(self, memory_id: str) -> str:
        while memory_id in self.erased:
            memory_id += "+"
        return f'"{memory_id}"'

    def _detaching(self, op: Op) -> Op:
        """Gives an op, a detachment with the digest that this store's salt makes."""
        if "detach" not in op:
            return op
        salt = self.model.salts.get(op["detach"], "0" * 32)
        digest = attachment_digest(salt, op["item"])
        return _op("detach", op["detach"], attachment_digest=digest, reason="gone")

    def _commit(self, ref: str | None, parents: list[str], ops: list[Op], author: str = "") -> str | None:
        author = author or (ref or "").split("/")[2]
        if len(parents) == 1 and not ops:
            return None
        applied, met, at_fault = self.model.applied(parents, ops)
        create = self.world.commit if ref else self.world.loose
        arguments = (ref, parents) if ref else (parents,)
        if self._names_erased(ops):
            with pytest.raises(Clash, match="erased"):
                create(*arguments, *ops, author=author)
            return None
        if at_fault:
            with pytest.raises(Invalid) as invalid:
                create(*arguments, *ops, author=author)
            assert sorted({fault.ordinal for fault in invalid.value.faults}) == at_fault
            return None
        if applied.unsettled:
            with pytest.raises(Clash) as clash:
                create(*arguments, *ops, author=author)
            assert clash.value.code in ("merge_conflicts", *["source_redacted"][: len(self.erased)])
            return None
        made = create(*arguments, *ops, author=author)
        self.model.commit(made, parents, author, applied, met)
        if ref in self.heads:
            self.heads[ref] = made
        for entry in self._entries(made):
            assert self.model.salts.setdefault(entry["memory_id"], entry["salt"]) == entry["salt"]
        return made

    def _is_refused_with_the_conflicts(self, ref: str, parents: list[str], met: Met) -> None:
        with self._unless_erased(), pytest.raises(Clash) as clash:
            self.world.commit(ref, parents, author="x")
        if clash.value.code == "source_redacted" and self.erased:
            return
        told = {item["memory_id"]: set(item["fields"]) for item in clash.value.facts["unsettled"]}
        assert told == {name: set(item.fields) for name, item in met.conflicted.items()}

    def _follow(self, ref: str, plan: Any) -> str | None:
        """Commits a plan that refuses nothing; then nothing of it may be at fault."""
        made = None
        if plan["refused"]:
            return None
        for step in plan["steps"]:
            assert not self._names_erased(list(step["ops"])), (
                "a plan names an erased memory and refuses nothing"
            )
            if step["ops"]:
                made = self._commit(ref, [self.heads[ref]], step["ops"])
                assert made is not None, "a plan without refusals was refused"
        return made

    def _agrees(self, name: str) -> None:
        modelled = self.model.changesets[name]
        found = {
            item["memory_id"]: (item["record"], item["version"], item["introduced_by"], item["changed_by"])
            for item in self._entries(name)
        }
        assert found == {
            memory_id: (entry.record.to_json(), entry.version, entry.introduced, entry.changed)
            for memory_id, entry in modelled.entries.items()
        }
        assert self.world.edges(name) == sorted(
            (edge.from_memory_id, edge.kind, edge.to_memory_id) for edge in modelled.edges
        )
        assert list(self.world.store.get_changeset(name)["parent_ids"]) == list(modelled.parents)

    def _is_sound(self) -> None:
        faults = self.world.faults()
        assert faults == [], faults
        for name in self.model.order:
            self._agrees(name)

    def _entries(self, name: str) -> list[dict[str, Any]]:
        """Gives the entries of a state that are not erased."""
        return [item for item in self.world.entries(name) if item["memory_id"] not in self.erased]

    def _names_erased(self, ops: list[Op]) -> bool:
        read, _ = check_ops(ops, iter(()))
        return not self.erased.isdisjoint(name for op in read for name in op.memory_ids())

    @contextmanager
    def _unless_erased(self) -> Iterator[Told]:
        """Lets pass what is refused because of an erased memory, where there is one."""
        told = Told()
        try:
            yield told
        except (Clash, Invalid) as refused:
            if refused.code != "source_redacted" or not self.erased:
                raise
            told.refused = True

    def _shown(self, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Gives what a diff shows of memories that are not erased."""
        return [
            {key: item[key] for key in _OF_THE_CHANGE if key in item}
            for item in items
            if item.get("memory_id") not in self.erased
        ]


@dataclass
class Told:
    """Whether something was refused."""

    refused: bool = False


def _chosen(changeset_id: str, op: Op) -> Op:
    return {"changeset_id": changeset_id, "ordinal": op["ordinal"]}


_ASSIGNED = frozenset({"title", "kind", "scope", "confidence", "pinned"})


def _answers(met: Met, content: str) -> list[Op]:
    """Assigns every open field of each conflict, as far as a correction can."""
    ops = []
    for memory_id, item in sorted(met.conflicted.items()):
        values = {name: getattr(item.right, name) for name in item.fields if name in _ASSIGNED}
        known = {name: value for name, value in values.items() if value is not None}
        cleared = sorted(values.keys() - known.keys())
        payload = {**known, "content": content, **({"clear": cleared} if cleared else {})}
        ops.append(_op("correct_memory", memory_id, **payload))
    return ops


def _retractions(met: Met) -> list[Op]:
    return [_op("set_status", name, status="retracted", reason="both") for name in sorted(met.conflicted)]


def _changes(before: Modelled, after: Modelled) -> list[Change]:
    found = []
    for name in sorted({*before.entries, *after.entries}):
        one, two = before.entries.get(name), after.entries.get(name)
        if (one and one.record) != (two and two.record):
            found.append(Change(name, one and one.record, two and two.record, OpRef("")))
    return found


def _edge_changes(before: Modelled, after: Modelled) -> list[EdgeChange]:
    return [
        EdgeChange(edge, edge in after.edges, OpRef("")) for edge in before.edges.keys() ^ after.edges.keys()
    ]


_OF_THE_CHANGE = ("memory_id", "before", "after", "changed_fields", "from_memory_id", "kind", "to_memory_id")


_QUIET = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
}


@pytest.mark.slow
def test_the_store_agrees_with_a_dictionary_over_random_histories() -> None:
    _run(max_examples=12, stateful_step_count=30)


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_store_agrees_with_a_dictionary_over_many_long_histories() -> None:
    _run(max_examples=150, stateful_step_count=60)


def _run(**how: Any) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(StoreMachine, settings=settings(**how, **_QUIET))

"""Ours: `LetheStore`, embedded, on disk, synchronous FULL; every write and read goes through its verbs."""

from __future__ import annotations

import itertools
import secrets
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import memory_git
from bench import records, shape
from bench.participant import MERGE_EDITS, Json, timed
from bench.participant import Participant as Common
from bench.records import Edit
from memory_git.domain.envelope import MergeKeys, MergeRequest, issue, sign
from memory_git.domain.ids import SHARED_MAIN
from memory_git.domain.project_policy import ProjectPolicy
from memory_git.domain.proposals import state_digest
from memory_git.lethe.sources import Sources
from memory_git.lethe.store import LetheStore

PROJECT = "bench"
MAIN = "refs/agents/bench/main"
IMPORT_OPS = 10_000
_KEYS = MergeKeys((("k1", "a-merge-key-of-more-than-32-characters"),))


def add(number: int, text: str) -> Json:
    """Gives the op of a new memory."""
    payload = {"memory_id": records.memory_id(number), "content": text, "kind": records.kind(number)}
    if payload["kind"] == "fact":
        payload["fact_key"] = f"key-{number}"
    return {"op_type": "add_memory", "payload": payload}


def correct(number: int, text: str) -> Json:
    """Gives the op of another text for an old memory."""
    return {
        "op_type": "correct_memory",
        "target_event_id": records.memory_id(number),
        "payload": {"content": text},
    }


def op_of(change: Edit) -> Json:
    """Gives the op of a change."""
    return (add if change.is_new else correct)(change.number, change.text)


def _require_none_blocking(conflicts: list[Json]) -> None:
    assert not [item for item in conflicts if item["severity"] == "blocking"], "the sides are disjoint"


def peak_rss_mb() -> float:
    """Gives the most memory that this process ever held, from the kernel."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("the kernel does not tell the peak of memory")


class Participant(Common):
    """A store in the worker's process."""

    store: LetheStore

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._head = ""
        self._keys = itertools.count()
        self._run = secrets.token_hex(8)
        self._lanes: list[str] = []
        self._names: list[str] = []
        self._read: list[str] = []
        self._open = False

    def version(self) -> str:
        return f"memory-git {memory_git.__version__}"

    def begin(self) -> None:
        self.store = LetheStore.open(self.folder / "lethe.db", merge_keys=_KEYS)
        self._open = True
        root = self.store.init_project(PROJECT)["changeset"]["changeset_id"]
        found = [ref["head_changeset_id"] for ref in self.store.list_refs(PROJECT) if ref["ref_name"] == MAIN]
        self._head = found[0] if found else root

    def close(self) -> None:
        if self._open:
            self._open = False
            self.store.close()

    def head(self) -> str:
        return self._head

    def create(self, ref: str, parents: list[str], ops: list[Json]) -> str:
        """Creates a changeset that moves a ref, made if it is missing, from its first parent."""
        changeset, _ = self.store.create_changeset(
            {
                "project_id": PROJECT,
                "ref_name": ref,
                "parent_ids": parents,
                "author_principal": "bench",
                "message": "work",
                "idempotency_key": f"{self._run}-{next(self._keys)}",
                "ops": ops,
                "expected_head": parents[0],
                "advance_ref": True,
                "create_ref_if_missing": True,
            }
        )
        return str(changeset["changeset_id"])

    def commit(self, changes: Sequence[Edit]) -> str:
        self._head = self.create(MAIN, [self._head], [op_of(change) for change in changes])
        return self._head

    def read_diff(self, before: str, after: str) -> int:
        found = self.store.diff(after, before)
        return len(found["memories_added"]) + len(found["corrections_proposed"])

    def fork(self, left: Sequence[Edit], right: Sequence[Edit]) -> str:
        start = self._head
        branch = f"refs/agents/bench/side-{self._run}-{next(self._keys)}"
        side = self.create(branch, [start], [op_of(change) for change in right])
        self.commit(left)
        return side

    def join(self, branch: str) -> str:
        """Merges on a branch of its own: the base, every conflict detector against it, then the changeset with two parents."""
        [base] = self.store.merge_base(PROJECT, self._head, branch)
        _require_none_blocking(self.store.detect_conflicts(PROJECT, base, self._head, branch))
        self._head = self.create(MAIN, [self._head, branch], [])
        return self._head

    def parents(self, commit: str) -> int:
        return len(self.store.get_changeset(commit)["parent_ids"])

    # import

    def build(self, order: str, count: int) -> Json:
        """Times the import of memories in the order of keys, 10,000 a changeset, up to the checkpoint at close."""
        self.open(count)
        told = []
        for numbers in records.chunks(Path(order), IMPORT_OPS):
            ops = [add(number, records.content(number)) for number in numbers]
            with timed() as clock:
                self._head = self.create(MAIN, [self._head], ops)
            told.append(clock)
        with timed() as closing:
            self.close()
        return {
            "seconds": sum(clock.seconds for clock in told) + closing.seconds,
            "cpu_seconds": sum(clock.cpu_seconds for clock in told) + closing.cpu_seconds,
            "chunk_seconds": [round(clock.seconds, 3) for clock in told],
            "count": count,
            "peak_rss_mb": peak_rss_mb(),
        }

    # many writers at once

    def commit_batch(self, batches: int, width: int) -> Json:
        """Times `width` callers at once, each with a branch of its own, whose changesets ride one group commit."""
        if not self._lanes:
            self._lanes = [self._head] * width
        work = [self.take(batches) for _ in range(width)]
        start = threading.Barrier(width + 1)
        failed: list[BaseException] = []

        def lane(place: int) -> None:
            start.wait()
            try:
                for change in work[place]:
                    self._lanes[place] = self.create(
                        f"refs/agents/lane-{place}/main", [self._lanes[place]], [op_of(change)]
                    )
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=lane, args=(place,)) for place in range(width)]
        for thread in threads:
            thread.start()
        start.wait()
        with timed() as clock:
            for thread in threads:
                thread.join()
        if failed:
            raise failed[0]
        return clock.told(count=batches * width, mode=f"{width} callers at once")

    # the other roads of a merge

    def merge_planned(self) -> Json:
        """Times a merge with the plan that a reviewer sees before: detectors, and the semantic diff of what the merge changes."""
        branch = self.fork(self.take_texts(MERGE_EDITS), self.take_texts(MERGE_EDITS))
        with timed() as clock:
            plan = self.store.plan_merge(PROJECT, self._head, branch)
            self._head = self.create(MAIN, [self._head, branch], [])
        _require_none_blocking(plan["conflicts"])
        return clock.told(count=1)

    def merge_protected(self) -> Json:
        """Times a merge into the protected shared branch: the changeset with two parents, then the signed move with all its checks."""
        shared = self.store.resolve_ref(PROJECT, SHARED_MAIN)["head_changeset_id"]
        if shared != self._head:
            self._protect(shared, self._head)
        branch = self.fork(self.take_texts(MERGE_EDITS), self.take_texts(MERGE_EDITS))
        left, self._head = self._head, self.store.resolve_ref(PROJECT, SHARED_MAIN)["head_changeset_id"]
        self._protect(self._head, left)
        proposal = f"refs/agents/bench/merge-{next(self._keys)}"
        with timed() as clock:
            merged = self.create(proposal, [left, branch], [])
            self._protect(left, merged)
        self._head = merged
        self.store.advance_ref(PROJECT, MAIN, left, merged, "bench")
        return clock.told(count=1)

    def _protect(self, expected: str, new: str) -> None:
        state = {"judged": {"policy": ProjectPolicy().to_json()}, "reviews": []}
        proposal = f"018f0000-0000-7000-8000-{next(self._keys):012x}"
        envelope = issue(
            MergeRequest(PROJECT, SHARED_MAIN, expected, new, proposal, "reviewer"),
            proposal_digest=state_digest(state),
            merger_principal="reviewer",
            strategy="fast_forward",
            now=Sources().now(),
            nonce=f"{next(self._keys):032x}",
        )
        self.store.merge_ref(
            PROJECT,
            {
                "ref_name": SHARED_MAIN,
                "expected_head": expected,
                "new_head": new,
                "merge_proposal_id": proposal,
                "reviewer_principal": "reviewer",
                "merge_authorization": sign(envelope, _KEYS),
                "proposal_state": state,
            },
        )

    # reads

    def prepare_checkout(self, count: int) -> None:
        """Picks memories all over the keys and reads each once."""
        self._read = [records.memory_id(place * 7919 % self.base) for place in range(count)]
        self.checkout(1)

    def checkout(self, rounds: int) -> Json:
        """Times reading single memories at the head: record, digest, relationships and proof."""
        with timed() as clock:
            for _ in range(rounds):
                for name in self._read:
                    self.store.memory(PROJECT, self._head, name)
        return clock.told(count=rounds * len(self._read))

    def context(self, rounds: int) -> Json:
        """Times the context of twenty memories at the head, without a query."""
        found = self.store.context(PROJECT, {"ref_name": MAIN, "limit": 20})
        assert len(found["memories"]) == 20, "twenty memories are there to give"
        with timed() as clock:
            for _ in range(rounds):
                self.store.context(PROJECT, {"ref_name": MAIN, "limit": 20})
        return clock.told(count=rounds)

    # history

    def copy_to(self, folder: str) -> None:
        """Writes a consistent copy of the store into another folder."""
        self.store.backup(folder)

    def build_history(self, changesets: int) -> Json:
        """Makes a history of so many changesets over shape.MEMORIES memories (`shape`), its concurrent branches by as many threads."""
        self.open(shape.MEMORIES)
        plan = shape.history(changesets)
        self._names = [self._head]
        with ThreadPoolExecutor(shape.LANES) as pool, timed() as clock:
            for wave in plan.waves:
                self._make(pool, wave)
        self._head = self._names[plan.tip]
        return clock.told(count=len(self._names) - 1, tips=plan.named)

    def _make(self, pool: ThreadPoolExecutor, wave: Sequence[shape.Commit]) -> None:
        """Makes commits that do not depend on each other, at once."""
        self._names += pool.map(self._make_one, wave) if len(wave) > 1 else map(self._make_one, wave)

    def _make_one(self, commit: shape.Commit) -> str:
        parents = [self._names[place] for place in commit.parents]
        ops = [
            (add if version == 0 else correct)(number, records.content(number, version))
            for number, version in commit.changes
        ]
        return self.create(commit.ref, parents, ops)

    def prepare_merge_base(self, pairs: list[list[int]]) -> Any:
        """Brings the graph up to date and gives what each pair of places has in common, as places."""
        places = {name: place for place, name in enumerate(self._names)}
        with self.store._view(PROJECT) as view:
            self._graph = view.graph()
        self._bases = [(self._names[left], self._names[right]) for left, right in pairs]
        return [
            sorted(places[name] for name in self.store.merge_base(PROJECT, *pair)) for pair in self._bases
        ]

    def merge_base(self, pair: int, rounds: int) -> Json:
        """Times the search for all best common ancestors on the store's graph, which is warm."""
        left, right = self._bases[pair]
        with timed() as clock:
            for _ in range(rounds):
                self._graph.best_common_ancestors(left, right)
        return clock.told(count=rounds)

    def merge_base_verb(self, pair: int, rounds: int) -> Json:
        """Times the same through the store's verb, which reads a snapshot and both changesets first."""
        left, right = self._bases[pair]
        with timed() as clock:
            for _ in range(rounds):
                self.store.merge_base(PROJECT, left, right)
        return clock.told(count=rounds)

"""pygit2: libgit2 in this process, bare; object files, references and their folders are synced."""

from __future__ import annotations

import ctypes
import importlib
import itertools
import os
from collections import defaultdict
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.participant import Json, timed
from bench.participant import Participant as Common
from bench.peers import sharded
from bench.records import Edit

pygit2: Any = importlib.import_module("pygit2")

_BLOB, _TREE = 0o100644, 0o040000
_LIBC = ctypes.CDLL(None, use_errno=True)


class Participant(Common):
    """One repository; commits write blob, folder, root, commit, then move the branch."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._repository: Any = None
        self._author = pygit2.Signature("bench", "bench@localhost", 1_700_000_000, 0)
        self._branches = itertools.count()
        self._batch = "each"
        self._marks: list[str] = []
        self._bases: list[tuple[Any, Any]] = []
        self._sync(on=True)

    def _sync(self, *, on: bool) -> None:
        pygit2.option(pygit2.GIT_OPT_ENABLE_FSYNC_GITDIR, on)

    def version(self) -> str:
        return f"pygit2 {version('pygit2')} (libgit2 {pygit2.LIBGIT2_VERSION})"

    def begin(self) -> None:
        self._repository = pygit2.Repository(str(self.folder))

    def close(self) -> None:
        """Nothing is held back: each commit is in its files."""

    def build(self, count: int) -> Json:
        """Makes the base by the git program's fast-import."""
        with timed() as clock:
            sharded.fill(self.folder, count)
        return clock.told(count=count)

    def head(self) -> str:
        return str(self._repository.references["refs/heads/main"].target)

    def commit(self, changes: Sequence[Edit]) -> str:
        return self._commit("refs/heads/main", self.head(), changes)

    def _commit(self, ref: str, parent: str, changes: Sequence[Edit]) -> str:
        repository = self._repository
        root = repository[parent].tree
        builder = repository.TreeBuilder(root)
        shards: dict[str, list[Edit]] = defaultdict(list)
        for change in changes:
            shards[sharded.shard(change.memory_id)].append(change)
        for name, members in shards.items():
            folder = repository.TreeBuilder(root[name]) if name in root else repository.TreeBuilder()
            for change in members:
                folder.insert(change.memory_id, repository.create_blob(change.text.encode()), _BLOB)
            builder.insert(name, folder.write(), _TREE)
        return self._write(ref, builder.write(), [parent])

    def _write(self, ref: str, tree: Any, parents: list[str]) -> str:
        made = self._repository.create_commit(ref, self._author, self._author, "work", tree, parents)
        return str(made)

    def modes(self, count: int) -> Json:
        """Tries a sync for each file against one syncfs for 32 commits, for `commit_batch`."""
        rates = {}
        for self._batch in ("each", "syncfs"):
            batches = max(1, count // 32)
            rates[self._batch] = round(batches * 32 / self.commit_batch(batches, 32)["seconds"], 1)
        self._batch = max(rates, key=lambda name: rates[name])
        return {"best": self._batch, "commits_s": rates}

    def commit_batch(self, batches: int, width: int) -> Json:
        """Times commits of one change; `syncfs` leaves objects unsynced until one syncfs for `width` of them, then moves the branch."""
        if self._batch == "each":
            return {**self.commit_one(batches * width), "mode": "a sync for each file"}
        changes = self.take(batches * width)
        with timed() as clock:
            for first in range(0, len(changes), width):
                self._commit_together(changes[first : first + width])
        return clock.told(count=len(changes), mode=f"{width} commits a syncfs")

    def _commit_together(self, changes: Sequence[Edit]) -> None:
        self._sync(on=False)
        for change in changes:
            self.commit([change])
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            if _LIBC.syncfs(folder):
                raise OSError(ctypes.get_errno(), "syncfs")
        finally:
            os.close(folder)
            self._sync(on=True)

    def read_diff(self, before: str, after: str) -> int:
        repository = self._repository
        found = 0
        for delta in repository.diff(repository[before], repository[after]).deltas:
            for side in (delta.old_file, delta.new_file):
                found += (
                    bool(int(str(side.id), 16))
                    and len(repository[side.id].data) > 0
                    and side is delta.new_file
                )
        return found

    def fork(self, left: Sequence[Edit], right: Sequence[Edit]) -> str:
        start = self.head()
        branch = f"refs/heads/side-{next(self._branches)}"
        self._sync(on=False)
        self._repository.references.create(branch, start)
        side = self._commit(branch, start, right)
        self.commit(left)
        self._sync(on=True)
        sharded.settle(self.folder)
        return side

    def join(self, branch: Any) -> str:
        repository = self._repository
        head = self.head()
        index = repository.merge_commits(repository[head], repository[branch])
        assert not index.conflicts, "sides are disjoint"
        return self._write("refs/heads/main", index.write_tree(repository), [head, branch])

    def parents(self, commit: str) -> int:
        return len(self._repository[commit].parent_ids)

    # merge bases

    def build_history(self, changesets: int) -> Json:
        """Makes the history by the git program's fast-import, with a commit graph file."""
        with timed() as clock:
            named = sharded.fill_history(self.folder, changesets)
            sharded.run(self.folder, "commit-graph", "write", "--reachable")
        return clock.told(count=changesets, tips=named)

    def prepare_merge_base(self, pairs: list[list[int]], *, graph_file: bool) -> Any:
        """Gives the merge base of each pair of places, as places; with or without the commit graph file."""
        graph = self.folder / "objects" / "info" / "commit-graph"
        aside = graph.with_name("commit-graph-aside")
        if graph.exists() and not graph_file:
            graph.rename(aside)
        if aside.exists() and graph_file:
            aside.rename(graph)
        self._repository = pygit2.Repository(str(self.folder))
        lines = (self.folder / "marks").read_text(encoding="ascii").splitlines()
        by_place = {int(mark[1:]) - 1: commit for mark, commit in (line.split() for line in lines)}
        places = {commit: place for place, commit in by_place.items()}
        self._bases = [(pygit2.Oid(hex=by_place[a]), pygit2.Oid(hex=by_place[b])) for a, b in pairs]
        return [[places[str(self._repository.merge_base(*pair))]] for pair in self._bases]

    def merge_base(self, pair: int, rounds: int) -> Json:
        """Times `merge_base` of a pair, which is warm."""
        left, right = self._bases[pair]
        with timed() as clock:
            for _ in range(rounds):
                self._repository.merge_base(left, right)
        return clock.told(count=rounds)

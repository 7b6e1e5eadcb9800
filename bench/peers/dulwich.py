"""dulwich: git in Python, bare, with `core.fsyncObjectFiles`."""

from __future__ import annotations

import importlib
import itertools
from collections import defaultdict
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bench.participant import Json, timed
from bench.participant import Participant as Common
from bench.peers import sharded
from bench.records import Edit

_objects: Any = importlib.import_module("dulwich.objects")
_repo: Any = importlib.import_module("dulwich.repo")
_merge: Any = importlib.import_module("dulwich.merge")
_diff_tree: Any = importlib.import_module("dulwich.diff_tree")

_MAIN = b"refs/heads/main"
_BLOB, _TREE = 0o100644, 0o040000


class Participant(Common):
    """One repository; commits write blob, folder, root, commit, then move the branch."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._repository: Any = None
        self._branches = itertools.count()

    def version(self) -> str:
        return f"dulwich {version('dulwich')}"

    def begin(self) -> None:
        self._repository = _repo.Repo(str(self.folder))

    def close(self) -> None:
        if self._repository is not None:
            self._repository.close()

    def build(self, count: int) -> Json:
        """Makes the base by the git program's fast-import."""
        with timed() as clock:
            sharded.fill(self.folder, count)
        return clock.told(count=count)

    def head(self) -> str:
        return str(self._repository.refs[_MAIN].decode())

    def commit(self, changes: Sequence[Edit]) -> str:
        return self._commit(_MAIN, self.head(), changes)

    def _commit(self, ref: bytes, parent: str, changes: Sequence[Edit]) -> str:
        store = self._repository.object_store
        root = store[store[parent.encode()].tree]
        shards: dict[str, list[Edit]] = defaultdict(list)
        for change in changes:
            shards[sharded.shard(change.memory_id)].append(change)
        for name, members in shards.items():
            key = name.encode()
            folder = store[root[key][1]] if key in root else _objects.Tree()
            for change in members:
                blob = _objects.Blob.from_string(change.text.encode())
                store.add_object(blob)
                folder.add(change.memory_id.encode(), _BLOB, blob.id)
            store.add_object(folder)
            root.add(key, _TREE, folder.id)
        store.add_object(root)
        return self._write(ref, root.id, [parent])

    def _write(self, ref: bytes, tree: bytes, parents: list[str]) -> str:
        made = _objects.Commit()
        made.tree, made.parents = tree, [parent.encode() for parent in parents]
        made.author = made.committer = b"bench <bench@localhost>"
        made.author_time = made.commit_time = 1_700_000_000
        made.author_timezone = made.commit_timezone = 0
        made.message = b"work"
        self._repository.object_store.add_object(made)
        self._repository.refs[ref] = made.id
        return str(made.id.decode())

    def read_diff(self, before: str, after: str) -> int:
        store = self._repository.object_store
        trees = (store[name.encode()].tree for name in (before, after))
        found = 0
        for change in _diff_tree.tree_changes(store, *trees):
            for side in (change.old, change.new):
                if side is not None and side.sha is not None:
                    store[side.sha].as_raw_string()
            found += 1
        return found

    def fork(self, left: Sequence[Edit], right: Sequence[Edit]) -> str:
        branch = f"refs/heads/side-{next(self._branches)}".encode()
        start = self.head()
        store = self._repository.object_store
        assert store.fsync_object_files, "dulwich syncs its objects"
        store.fsync_object_files = False
        self._repository.refs[branch] = start.encode()
        side = self._commit(branch, start, right)
        self.commit(left)
        store.fsync_object_files = True
        sharded.settle(self.folder)
        return side

    def join(self, branch: Any) -> str:
        store = self._repository.object_store
        head = self.head()
        commits = [store[name] for name in (self._base(head, branch), head.encode(), branch.encode())]
        tree, conflicts = _merge.three_way_merge(store, *commits)
        assert not conflicts, "sides are disjoint"
        store.add_object(tree)
        return self._write(_MAIN, tree.id, [head, branch])

    def _base(self, head: str, branch: str) -> bytes:
        graph: Any = importlib.import_module("dulwich.graph")
        found: bytes = graph.find_merge_base(self._repository, [head.encode(), branch.encode()])[0]
        return found

    def parents(self, commit: str) -> int:
        return len(self._repository.object_store[commit.encode()].parents)

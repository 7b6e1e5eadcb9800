"""The git program, a bare repository, `core.fsync=all`: plumbing alone, one process a step, as a script that wants speed would do it."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench.participant import Json, timed
from bench.participant import Participant as Common
from bench.peers import sharded
from bench.records import Edit

_UNSYNCED = ("-c", "core.fsync=none")


class Participant(Common):
    """One repository; a commit hashes its texts, rewrites the folders that change and the root by mktree, commits, moves the branch."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._branches = itertools.count()
        self._settings: tuple[str, ...] = ()

    def version(self) -> str:
        return sharded.version()

    def begin(self) -> None:
        """Nothing is held: each step is a process of its own."""

    def close(self) -> None:
        """Nothing is held: each step is a process of its own."""

    def build(self, count: int) -> Json:
        """Makes the base by fast-import."""
        with timed() as clock:
            sharded.fill(self.folder, count)
        return clock.told(count=count)

    def _git(self, *arguments: str, given: str | None = None) -> str:
        text = given.encode() if given is not None else None
        return sharded.run(self.folder, *self._settings, *arguments, given=text)

    def head(self) -> str:
        return self._git("rev-parse", "refs/heads/main")

    def commit(self, changes: Sequence[Edit]) -> str:
        return self._commit("refs/heads/main", self.head(), changes)

    def _commit(self, ref: str, parent: str, changes: Sequence[Edit]) -> str:
        """Hashes the texts, makes the folders that change and the root anew, commits, moves the branch: six or seven processes."""
        shards: dict[str, dict[str, str]] = defaultdict(dict)
        for change, blob in zip(changes, self._blobs(changes), strict=True):
            shards[sharded.shard(change.memory_id)][change.memory_id] = f"100644 blob {blob}"
        root = self._entries(parent)
        folders = self._folders(parent, [name for name in shards if name in root])
        trees = self._trees([folders.get(name, {}) | members for name, members in shards.items()])
        root |= {name: f"040000 tree {tree}" for name, tree in zip(shards, trees, strict=True)}
        return self._finish(ref, self._trees([root])[0], [parent])

    def _blobs(self, changes: Sequence[Edit]) -> list[str]:
        if len(changes) == 1:
            return [self._git("hash-object", "-w", "--stdin", given=changes[0].text)]
        folder = self.folder / "texts"
        folder.mkdir(exist_ok=True)
        paths = [folder / str(place) for place in range(len(changes))]
        for path, change in zip(paths, changes, strict=True):
            path.write_text(change.text, encoding="utf-8")
        names = "\n".join(map(str, paths))
        return self._git("hash-object", "-w", "--stdin-paths", "--no-filters", given=names).split()

    def _folders(self, parent: str, names: list[str]) -> dict[str, dict[str, str]]:
        """Gives the entries of folders: one alone by its tree, many by one listing of all."""
        if len(names) == 1:
            return {names[0]: self._entries(f"{parent}:{names[0]}")}
        found: dict[str, dict[str, str]] = defaultdict(dict)
        for path, entry in self._entries("-r", parent).items():
            name, member = path.split("/", 1)
            found[name][member] = entry
        return found

    def _entries(self, *tree: str) -> dict[str, str]:
        lines = (line.split("\t", 1) for line in self._git("ls-tree", *tree).splitlines())
        return {name: entry for entry, name in lines}

    def _trees(self, folders: list[dict[str, str]]) -> list[str]:
        listed = ("".join(f"{entry}\t{name}\n" for name, entry in folder.items()) for folder in folders)
        return self._git("mktree", "--batch", given="\n".join(listed)).split()

    def _finish(self, ref: str, tree: str, parents: list[str]) -> str:
        named = [part for parent in parents for part in ("-p", parent)]
        made = self._git("commit-tree", tree, *named, "-m", "work")
        self._git("update-ref", ref, made, parents[0])
        return made

    def read_diff(self, before: str, after: str) -> int:
        patch = self._git("diff-tree", "-r", "-p", before, after)
        return sum(line.startswith("diff --git") for line in patch.splitlines())

    def fork(self, left: Sequence[Edit], right: Sequence[Edit]) -> str:
        start = self.head()
        branch = f"refs/heads/side-{next(self._branches)}"
        kept, self._settings = self._settings, _UNSYNCED
        self._git("update-ref", branch, start)
        side = self._commit(branch, start, right)
        self.commit(left)
        self._settings = kept
        sharded.settle(self.folder)
        return side

    def join(self, branch: Any) -> str:
        """Merges by merge-tree --write-tree, which needs no working tree, then commit-tree and update-ref."""
        head = self.head()
        tree = self._git("merge-tree", "--write-tree", head, branch)
        made = self._git("commit-tree", tree, "-p", head, "-p", branch, "-m", "work")
        if self._settings:
            sharded.settle(self.folder)
        sharded.run(self.folder, "update-ref", "refs/heads/main", made, head)
        return made

    def merge_modes(self) -> Json:
        """Tries a sync for each object against none and one `sync -f` before the branch moves; takes the faster for merges."""
        seconds = {}
        for name, self._settings in (("each", ()), ("syncfs", _UNSYNCED)):
            seconds[name] = round(median(self.merge()["seconds"] for _ in range(3)), 4)
        best = min(seconds, key=lambda name: seconds[name])
        self._settings = () if best == "each" else _UNSYNCED
        return {"best": best, "seconds": seconds}

    def parents(self, commit: str) -> int:
        return len(self._git("rev-list", "--parents", "-n", "1", commit).split()) - 1

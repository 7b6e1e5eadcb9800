"""A process that forks one child a line: the child opens a copied store, runs one verb, and is killed at its n-th statement.

What each verb of the store does to a prepared store is here, for the tests of tests/crash/test_verbs_killed.py.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
from store_world import BRANCH, KEYS, PROJECT, PROPOSAL, StoreWorld, add, correct

from memory_git.lethe.store import LetheStore

Args = dict[str, Any]
SECRET = "a-planted-word-that-is-erased"


@dataclass(frozen=True)
class Verb:
    """One verb: what is made beforehand (it gives the arguments), and the call."""

    prepare: Callable[[StoreWorld], Args]
    call: Callable[[LetheStore, Args], Any]


def _two(world: StoreWorld) -> str:
    """A branch with two changesets; gives its head."""
    return world.commit(BRANCH, world.commit(BRANCH, world.root, add("a", "one")), add("b", SECRET))


def _request(world: StoreWorld) -> Args:
    head = _two(world)
    return {"request": world.request(BRANCH, [head], correct("a", "other"), add("c", "three"))}


def _protected(world: StoreWorld) -> Args:
    return {"request": world.merge_request(_two(world))}


def _merge_commit(world: StoreWorld) -> Args:
    head = _two(world)
    world.merge(world.commit("refs/agents/o/main", world.root, add("z", "other"), author="o"))
    merged = world.loose([world.head(), head], author="charon")
    return {"request": world.merge_request(merged, "merge_commit")}


def _conflicts(world: StoreWorld) -> Args:
    base = world.commit(BRANCH, world.root, add("k", "the port is 80", kind="fact", fact_key="port"))
    left = world.commit(BRANCH, base, correct("k", "the port is 81"))
    right = world.commit("refs/agents/o/main", base, correct("k", "the port is 82"), author="o")
    found = world.store.plan_merge(PROJECT, left, right)["conflicts"]
    assert found
    return {"conflicts": found}


def _kept_conflicts(world: StoreWorld) -> Args:
    args = _conflicts(world)
    world.store.persist_conflicts(PROJECT, PROPOSAL, args["conflicts"])
    return {"conflict_id": args["conflicts"][0]["conflict_id"]}


def _manifest(world: StoreWorld) -> Args:
    head = _two(world)
    context = world.store.context(PROJECT, {"ref_name": BRANCH, "limit": 5})
    selected = [
        {"memory_id": item["memory_id"], "record_digest": item["record_digest"]}
        for item in context["memories"]
    ]
    request = {"project_id": PROJECT, "kind": "input", "ref_name": BRANCH, "head_changeset_id": head}
    return {"request": {**request, "selected": selected}}


def _assembly(world: StoreWorld) -> Args:
    return {"assembly": {"project_id": PROJECT, "head_changeset_id": _two(world), "items": []}}


def _fed(world: StoreWorld) -> Args:
    made = world.store.record_assembly("s", _assembly(world)["assembly"])
    return {"assembly_id": made["assembly_id"]}


def _advance(world: StoreWorld) -> Args:
    head = _two(world)
    return {"new": world.loose(head, add("d", "four")), "old": head}


def _chain(world: StoreWorld) -> Args:
    head = world.root
    for number in range(8):
        head = world.commit(BRANCH, head, add(f"n/{number}", f"text {number}"))
    return {}


def _collected(world: StoreWorld) -> Args:
    args = _chain(world)
    world.store.collect_nodes(PROJECT)
    return args


VERBS: dict[str, Verb] = {
    "init_project": Verb(lambda _: {}, lambda store, _: store.init_project("other")),
    "create_branch": Verb(
        lambda world: {"head": _two(world)},
        lambda store, args: store.create_branch(PROJECT, "refs/topics/t", args["head"], "builder"),
    ),
    "advance_ref": Verb(
        _advance,
        lambda store, args: store.advance_ref(PROJECT, BRANCH, args["old"], args["new"], "builder"),
    ),
    "create_changeset": Verb(_request, lambda store, args: store.create_changeset(args["request"])[0]),
    "merge_ref": Verb(_protected, lambda store, args: store.merge_ref(PROJECT, args["request"])),
    "merge_ref (merge commit)": Verb(
        _merge_commit, lambda store, args: store.merge_ref(PROJECT, args["request"])
    ),
    "persist_conflicts": Verb(
        _conflicts, lambda store, args: store.persist_conflicts(PROJECT, PROPOSAL, args["conflicts"])
    ),
    "retire_conflicts": Verb(
        _kept_conflicts, lambda store, _: store.retire_conflicts(PROJECT, PROPOSAL, "canceled")
    ),
    "resolve_conflict": Verb(
        _kept_conflicts,
        lambda store, args: store.resolve_conflict(
            PROJECT, args["conflict_id"], outcome="both", resolution_note="fine", principal="judge"
        ),
    ),
    "create_manifest": Verb(_manifest, lambda store, args: store.create_manifest(args["request"])),
    "context": Verb(
        lambda world: {"head": _two(world)},
        lambda store, args: store.context(PROJECT, {"ref_name": BRANCH, "limit": 5, "create_manifest": True}),
    ),
    "append_event": Verb(
        lambda _: {},
        lambda store, _: store.append_event(
            PROJECT, {"event_id": "e-1", "event_type": "note", "content": "said"}
        ),
    ),
    "record_assembly": Verb(_assembly, lambda store, args: store.record_assembly("s", args["assembly"])),
    "give_feedback": Verb(_fed, lambda store, args: store.give_feedback(args["assembly_id"], "good", "yes")),
    "redact": Verb(
        lambda world: {"head": _two(world)},
        lambda store, _: store.redact(PROJECT, "b", principal="officer", reason="asked for"),
    ),
    "collect_nodes": Verb(_chain, lambda store, _: store.collect_nodes(PROJECT, compact=True)),
    "rebuild_nodes": Verb(_collected, lambda store, _: store.rebuild_nodes(PROJECT)),
}


def _child(folder: Path, verb: str, fatal: int) -> None:
    """Runs one verb and is killed at its n-th statement, or says what it gave."""
    statements, armed = 0, False

    def count(_: Any) -> None:
        nonlocal statements
        if armed:
            statements += 1
            if statements == fatal:
                os.kill(os.getpid(), signal.SIGKILL)

    apsw.connection_hooks.append(lambda connection: connection.trace_v2(apsw.SQLITE_TRACE_STMT, count))
    store = LetheStore.open(folder / "lethe.db", merge_keys=KEYS)
    args = json.loads((folder / "args.json").read_text())
    armed = True
    answer = VERBS[verb].call(store, args)
    (folder / "answer.json").write_text(json.dumps(answer))


def main() -> None:
    """Reads `folder verb n` lines, tab-separated; writes `killed` or `done` for each."""
    for line in sys.stdin:
        folder, verb, fatal = line.rstrip("\n").split("\t")
        child = os.fork()
        if child == 0:
            code = 1
            try:
                _child(Path(folder), verb, int(fatal))
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        sys.stdout.write("killed\n" if killed else "done\n" if status == 0 else "failed\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

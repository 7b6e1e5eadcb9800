"""`python -m bench.writers own|contend FOLDER|URL WHO LANES [SECONDS]`: threads of one process that commit to a store, and say what they were told.

own: each thread on a branch of its own with memories of its own, until killed. A line a commit, written when it was acknowledged:
`acknowledged CHANGESET REF`, or `refused CODE`.
contend: all on one branch, from its newest head that they know of, for so many seconds from the line on standard input on that they
wait for after `ready`. At the end `{"writer": commits landed}`.
"""

from __future__ import annotations

import itertools
import json
import os
import secrets
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.ours import PROJECT, add
from memory_git.domain.errors import NotFound, Refused, Unavailable
from memory_git.domain.ids import SHARED_MAIN
from memory_git.lethe.store import LetheStore

CONTENDED = "refs/topics/contended"
_MEMORIES_OF_A_LANE = 1_000_000
AWAY = ("database_unreachable", "outcome_unknown")
"""How a writer is refused while the database server is away."""


def own_ref(who: int, lane: int) -> str:
    """Gives the branch of one thread of one process."""
    return f"refs/agents/writer-{who}-{lane}/main"


def request(ref: str, head: str, op: dict[str, Any]) -> dict[str, Any]:
    """Gives the request of a commit of one op to a branch, made if it is missing."""
    return {
        "project_id": PROJECT,
        "ref_name": ref,
        "parent_ids": [head],
        "expected_head": head,
        "author_principal": ref.split("/")[2],
        "message": "work",
        "idempotency_key": secrets.token_hex(16),
        "ops": [op],
        "advance_ref": True,
        "create_ref_if_missing": True,
    }


def own(store: LetheStore, who: int, lane: int) -> None:
    """Commits for ever to a branch of its own, from where the last life of this writer left it."""
    ref = own_ref(who, lane)
    root = _patiently(lambda: store.resolve_ref(PROJECT, SHARED_MAIN)["head_changeset_id"])
    head = _head_after(store, ref, root)
    held = _patiently(lambda: store.memories(PROJECT, head, limit=1)["total"])
    first = (who * 100 + lane) * _MEMORIES_OF_A_LANE + int(held)
    for number in itertools.count(first):
        try:
            made, _ = store.create_changeset(request(ref, head, add(number, f"note {number} of {ref}")))
        except Refused as refused:
            os.write(1, f"refused {refused.code}\n".encode())
            if refused.code in AWAY:
                head = _head_after(store, ref, head)
            continue
        head = made["changeset_id"]
        os.write(1, f"acknowledged {head} {ref}\n".encode())


def _head_after(store: LetheStore, ref: str, head: str) -> str:
    """Gives where a branch stands once the database is back: whether the last commit landed was not known."""
    try:
        return str(_patiently(lambda: store.resolve_ref(PROJECT, ref)["head_changeset_id"]))
    except NotFound:
        return head


def _patiently(call: Callable[[], Any]) -> Any:
    """Gives what a call gives once the database is there."""
    while True:
        try:
            return call()
        except Unavailable:
            time.sleep(0.1)


def contend(store: LetheStore, writer: int, until: float, landed: dict[int, int]) -> None:
    """Commits to the contended branch until a time; who is refused tries again at once from the head that it was told."""
    head = store.resolve_ref(PROJECT, CONTENDED)["head_changeset_id"]
    landed[writer] = 0
    for number in itertools.count(writer * _MEMORIES_OF_A_LANE):
        if time.time() >= until:
            return
        try:
            made, _ = store.create_changeset(request(CONTENDED, head, add(number, f"note {number}")))
            head = made["changeset_id"]
            landed[writer] += 1
        except Refused as refused:
            head = refused.facts["current_head"]


def main(mode: str, folder: str, who: str, lanes: str, seconds: str = "0") -> None:
    """Runs the threads of one process."""
    place = folder if "://" in folder else Path(folder) / "lethe.db"
    store = _patiently(lambda: LetheStore.open(place, merge_keys=None))
    landed: dict[int, int] = {}
    if mode == "contend":
        print("ready", flush=True)
        sys.stdin.readline()
    until = time.time() + float(seconds)
    first = int(who) * int(lanes)
    threads = [
        threading.Thread(target=own, args=(store, int(who), lane))
        if mode == "own"
        else threading.Thread(target=contend, args=(store, first + lane, until, landed))
        for lane in range(int(lanes))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.close()
    print(json.dumps(landed))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""One script with fixed ids, times and salts, on both engines: equal roots, digests and answers (2-architecture, engines)."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import history_program
import pytest
from history_program import fixed_sources
from postgres_server import Schemas
from store_world import KEYS, PROJECT, add

from memory_git.domain.errors import Refused
from memory_git.lethe.store import LetheStore
from memory_git.storage.lethe_schema import SCHEMA

CJK = ("東京都の天気", "数据库迁移", "서버 설정")


def _written(place: Path | str) -> list[str]:
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        history_program.write(place)
    return told.getvalue().splitlines()


@pytest.mark.slow
def test_a_history_of_every_kind_of_op_has_the_same_roots_digests_and_answers(
    tmp_path: Path, schemas: Schemas
) -> None:
    on_sqlite = _written(tmp_path)
    on_postgres = _written(schemas.new(SCHEMA))
    assert {line.split()[0] for line in on_sqlite} == {"made", "plan", "refused", "answer"}
    assert on_postgres == on_sqlite


def _lived(place: Path | str) -> list[object]:
    """Gives the answers of events, manifests, conflicts, redaction and verify; a refusal counts as its problem."""
    store = LetheStore.open(place, merge_keys=KEYS, sources=fixed_sources())
    for number in range(3):
        event = {"event_type": "note", "content": f"note {number}", "event_id": f"e-{number}"}
        store.append_event(PROJECT, event)
    told: list[object] = [store.init_project(PROJECT)]
    root = store.resolve_ref(PROJECT, "refs/shared/main")["head_changeset_id"]
    heads = []
    for number, ref in enumerate(("refs/topics/a", "refs/topics/b")):
        ops = [add("m", f"Deploys are {('allowed', 'not allowed')[number]}.", kind="decision", fact_key="k")]
        ops += [add(f"cjk-{number}-{place}", text) for place, text in enumerate(CJK)]
        request = {
            "project_id": PROJECT, "ref_name": ref, "parent_ids": [root], "author_principal": f"p{number}",
            "message": "m", "idempotency_key": f"k{number}", "ops": ops, "expected_head": root,
            "advance_ref": True, "create_ref_if_missing": True,
        }  # fmt: skip
        made, _ = store.create_changeset(request)
        told += [made, store.create_changeset(request)]
        heads.append(made["changeset_id"])
    told.append(store.plan_merge(PROJECT, *heads))
    conflicts = store.detect_conflicts(PROJECT, root, *heads)
    told += [conflicts, store.persist_conflicts(PROJECT, heads[0], conflicts)]
    told.append(store.list_conflicts(PROJECT))
    found = [store.search(PROJECT, heads[0], word) for word in ("京都", "库迁", "서버", "deploys", "none")]
    assert [answer["total"] for answer in found] == [1, 1, 1, 1, 0]
    told += found
    context = {"head_changeset_id": heads[1], "ref_name": "refs/topics/b", "create_manifest": True}
    pinned = store.context(PROJECT, {**context, "now": "2026-02-01T00:00:00Z"})
    told += [pinned, store.reproduce(pinned["manifest_id"]), store.get_manifest(pinned["manifest_id"])]
    told.append(store.redact(PROJECT, "cjk-0-0", principal="ada", reason="asked for"))
    told += [store.search(PROJECT, heads[0], "京都"), store.memories(PROJECT, heads[0])]
    try:
        store.redact(PROJECT, "cjk-0-0", principal="ada", reason="again")
    except Refused as refusal:
        told.append(refusal.to_problem())
    told += [store.list_events(PROJECT), store.ref_log(PROJECT, "refs/topics/a"), store.verify(PROJECT)]
    store.close()
    return told


def test_events_conflicts_manifests_search_and_redaction_answer_the_same(
    tmp_path: Path, schemas: Schemas
) -> None:
    on_sqlite, on_postgres = _lived(tmp_path / "lethe.db"), _lived(schemas.new(SCHEMA))
    for one, other in zip(on_sqlite, on_postgres, strict=True):
        assert other == one
    assert on_sqlite[-1]["ok"] is True  # type: ignore[index]

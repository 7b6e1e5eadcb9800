"""A disk that fills while a server writes: each refusal is clear, nothing is half-done, and it goes on when there is room."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_git.domain.errors import Unavailable
from memory_git.domain.ids import SHARED_MAIN
from memory_git.http.lethe_app import create_lethe_app
from memory_git.http.serving import running
from memory_git.lethe.client import LetheClient
from memory_git.lethe.store import LetheStore

pytestmark = pytest.mark.slow
KEY = "a-bearer-of-the-test"
REF = "refs/agents/writer/main"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    mount = tmp_path / "small"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(mount)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a small disk takes the right to mount")
    yield mount
    subprocess.run(["umount", "-l", str(mount)], check=True)


def commit(lethe: LetheClient, head: str, number: int) -> str:
    changeset, _ = lethe.create_changeset(
        {
            "project_id": "full",
            "ref_name": REF,
            "parent_ids": [head],
            "author_principal": "writer",
            "message": "fill",
            "idempotency_key": f"n{number}",
            "ops": [{"op_type": "add_memory", "payload": {"content": f"{number} " + "x" * 15_000}}],
            "expected_head": head,
            "advance_ref": True,
            "create_ref_if_missing": True,
        }
    )
    return str(changeset["changeset_id"])


def test_a_full_disk_is_told_over_http_and_no_acknowledged_commit_is_lost(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"\0" * 1_000_000)
    store = LetheStore.open(small_disk / "lethe.db", merge_keys=None)
    with running(create_lethe_app(store, api_key=KEY), on_stop=store.feed.close) as where:
        lethe = LetheClient(where.url, KEY)
        head = lethe.init_project("full")["changeset"]["changeset_id"]
        written = []
        with pytest.raises(Unavailable) as refused:
            for number in range(500):
                head = commit(lethe, head, number)
                written.append(head)
        assert refused.value.code == "storage_full"
        assert written, "some commits found room"
        assert lethe.resolve_ref("full", REF)["head_changeset_id"] == head
        assert lethe.context("full", {"ref_name": SHARED_MAIN})["total_active"] == 0
        ballast.unlink()
        head = commit(lethe, head, len(written))
        assert lethe.is_ancestor("full", written[-1], head)
        assert lethe.verify("full")["faults"] == []
        lethe.close()
    store.close()

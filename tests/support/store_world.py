"""A real store in a folder of the test's, with what tests of it do over and over."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from memory_git.domain.envelope import MergeKeys, MergeRequest, issue, sign
from memory_git.domain.ids import SHARED_MAIN
from memory_git.domain.project_policy import ProjectPolicy
from memory_git.domain.proposals import state_digest
from memory_git.lethe.sources import Sources
from memory_git.lethe.store import LetheStore

PROJECT = "atlas"
KEYS = MergeKeys((("k1", "a-merge-key-of-more-than-32-characters"),))
OTHER_KEYS = MergeKeys((("k1", "another-key-of-more-than-32-characters"),))
BRANCH = "refs/agents/builder/main"
PROPOSAL = "018f0000-0000-7000-8000-0000000000aa"
Json = dict[str, Any]


def add(memory_id: str, content: str, **payload: Any) -> Json:
    return {"op_type": "add_memory", "payload": {"memory_id": memory_id, "content": content, **payload}}


def correct(memory_id: str, content: str | None = None, **payload: Any) -> Json:
    payload = payload if content is None else {"content": content, **payload}
    return {"op_type": "correct_memory", "target_event_id": memory_id, "payload": payload}


def retract(memory_id: str) -> Json:
    payload = {"status": "retracted", "reason": "wrong"}
    return {"op_type": "set_status", "target_event_id": memory_id, "payload": payload}


def edge(from_id: str, to_id: str, kind: str = "about", op_type: str = "add_relationship") -> Json:
    payload = {"kind": kind, "from_memory_id": from_id, "to_memory_id": to_id}
    return {"op_type": op_type, "payload": payload}


class StoreWorld:
    """A store with a project, in a folder or at a URL; `later` moves its clock."""

    def __init__(self, place: Path | str, project: str = PROJECT) -> None:
        self.path = place / "lethe.db" if isinstance(place, Path) else place
        self.project = project
        self.offset = timedelta()
        self.store = self._open()
        self.root = str(self.store.init_project(project)["changeset"]["changeset_id"])

    def _open(self) -> LetheStore:
        return LetheStore.open(self.path, merge_keys=KEYS, sources=Sources(now=self.now))

    def now(self) -> datetime:
        return datetime.now(UTC) + self.offset

    def later(self, **delta: float) -> None:
        self.offset += timedelta(**delta)

    def restart(self) -> None:
        self.store.close()
        self.store = self._open()

    def close(self) -> None:
        self.store.close()

    def head(self, ref: str = SHARED_MAIN) -> str:
        return str(self.store.resolve_ref(self.project, ref)["head_changeset_id"])

    def request(self, ref: str, parents: list[str], *ops: Json, author: str = "builder", **more: Any) -> Json:
        """Gives a create request that moves a ref from the first parent, under a fresh key."""
        return {
            "project_id": self.project,
            "ref_name": ref,
            "parent_ids": parents,
            "author_principal": author,
            "message": "work",
            "idempotency_key": secrets.token_hex(8),
            "ops": list(ops),
            "expected_head": parents[0],
            "advance_ref": True,
            "create_ref_if_missing": True,
            **more,
        }

    def commit(self, ref: str, parents: str | list[str], *ops: Json, **more: Any) -> str:
        """Commits to a ref, made if it is missing, and gives the changeset's id."""
        parents = [parents] if isinstance(parents, str) else parents
        changeset, _ = self.store.create_changeset(self.request(ref, parents, *ops, **more))
        return str(changeset["changeset_id"])

    def loose(self, parents: str | list[str], *ops: Json, **more: Any) -> str:
        """Commits without moving a ref."""
        return self.commit(
            "refs/topics/loose", parents, *ops, advance_ref=False, create_ref_if_missing=False, **more
        )

    def merge_request(
        self, new: str, strategy: Any = "fast_forward", *, keys: MergeKeys = KEYS, **facts: Any
    ) -> Json:
        """Gives a signed request to move the shared ref; `facts` overrides what is asked and signed."""
        expected = facts.get("expected") or self.head()
        reviewer, merger = facts.get("reviewer", "reviewer"), facts.get("merger", "reviewer")
        ref, proposal = facts.get("ref", SHARED_MAIN), facts.get("proposal", PROPOSAL)
        state = facts.get("state", {"judged": {"policy": ProjectPolicy().to_json()}, "reviews": []})
        envelope = issue(
            MergeRequest(self.project, ref, expected, new, proposal, reviewer),
            proposal_digest=state_digest(state),
            merger_principal=merger,
            strategy=strategy,
            now=facts.get("now") or self.now(),
            nonce=facts.get("nonce") or secrets.token_hex(16),
            lifetime=facts.get("lifetime", timedelta(minutes=2)),
        )
        return {
            "ref_name": ref,
            "expected_head": expected,
            "new_head": new,
            "merge_proposal_id": proposal,
            "reviewer_principal": reviewer,
            "merge_authorization": sign(envelope, keys),
            "proposal_state": state,
        }

    def merge(self, new: str, strategy: Any = "fast_forward", **facts: Any) -> Json:
        """Moves the shared ref by a signed merge."""
        return self.store.merge_ref(self.project, self.merge_request(new, strategy, **facts))

    def settle(self, target: str, source: str, principal: str = "judge") -> None:
        """Persists the conflicts between two heads and resolves the blocking ones."""
        found = self.store.plan_merge(self.project, target, source)["conflicts"]
        self.store.persist_conflicts(self.project, PROPOSAL, found)
        for item in self.store.list_conflicts(self.project, status="open", proposal_id=PROPOSAL, limit=1000):
            if item["severity"] == "blocking":
                self.store.resolve_conflict(
                    self.project,
                    item["conflict_id"],
                    outcome="both",
                    resolution_note="fine",
                    principal=principal,
                )

    def records(self, head: str) -> dict[str, Json]:
        """Gives every record of a state, by memory id."""
        return {item["memory_id"]: item["record"] for item in self.entries(head)}

    def entries(self, head: str) -> list[Json]:
        """Gives every entry of a state."""
        found: list[Json] = []
        after = None
        while True:
            page = self.store.memories(self.project, head, limit=200, after=after)
            found += page["memories"]
            after = page.get("next")
            if after is None:
                return found

    def edges(self, head: str) -> list[tuple[str, str, str]]:
        """Gives every relationship of a state."""
        page = self.store.memories(self.project, head, limit=200)
        return [
            (item["from_memory_id"], item["kind"], item["to_memory_id"]) for item in page["relationships"]
        ]

    def faults(self) -> list[Mapping[str, Any]]:
        """Gives what `verify` finds wrong."""
        return list(self.store.verify(self.project)["faults"])

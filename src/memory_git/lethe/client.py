"""Lethe over HTTP: the whole protocol, one request a verb; `lethe.client_road` says how requests travel."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import httpx

from memory_git.domain.errors import NotFound
from memory_git.domain.ids import check_project_id
from memory_git.domain.policy import Audience
from memory_git.lethe import wire
from memory_git.lethe.client_road import UNBOUNDED, Road, content_of, part
from memory_git.lethe.protocol import Json

PAGE = 1000
"""The most rows of a page."""


class LetheClient:
    """The protocol of `lethe.protocol.Lethe`, met by a server elsewhere."""

    def __init__(self, url: str, api_key: str, timeout_s: float = 30.0) -> None:
        self._road = Road(url, api_key, timeout_s)

    def close(self) -> None:
        """Closes the connections."""
        self._road.close()

    # projects and refs
    def list_projects(self) -> list[str]:
        """Gives the project ids, sorted."""
        return wire.projects_from_wire(part(self._road.get("/api/memory/projects"), "projects", list))

    def init_project(self, project_id: str) -> Json:
        """Creates a project; repeatable."""
        return self._road.post(_at(project_id, "legacy-root"))

    def create_branch(
        self, project_id: str, ref_name: str, head_changeset_id: str, principal: str, protected: bool = False
    ) -> Json:
        """Creates a ref at a changeset."""
        body = {"ref_name": ref_name, "head_changeset_id": head_changeset_id, "principal": principal}
        return self._road.post(_at(project_id, "branches"), body | {"protected": protected})

    def list_refs(self, project_id: str, *, after: str = "", limit: int | None = None) -> list[Json]:
        """Gives refs by name, page by page where all are asked for."""
        path = _at(project_id, "refs")
        if limit is not None:
            return self._road.rows(path, after=after, limit=limit)
        found: list[Json] = []
        while True:
            page = self._road.rows(path, after=after, limit=PAGE)
            found += page
            if len(page) < PAGE:
                return found
            after = page[-1]["ref_name"]

    def resolve_ref(self, project_id: str, ref_name: str, at: str | None = None) -> Json:
        """Gives a ref, as it is or was."""
        return self._road.get(_at(project_id, "refs/resolve"), name=ref_name, at=at)

    def ref_log(
        self, project_id: str, ref_name: str, *, after: int = 0, limit: int | None = None
    ) -> list[Json]:
        """Gives the moves of a ref, page by page where all are asked for."""
        return self._pages(_at(project_id, "refs/log"), "moves", after, limit, name=ref_name)

    def advance_ref(
        self, project_id: str, ref_name: str, expected_head: str, new_head: str, principal: str = "system"
    ) -> Json:
        """Moves an unprotected ref."""
        body = {"ref_name": ref_name, "expected_head": expected_head, "new_head": new_head}
        return self._road.post(_at(project_id, "refs/advance"), body | {"principal": principal})

    def merge_ref(self, project_id: str, request: Mapping[str, Any]) -> Json:
        """Moves a protected ref on a signed authorization."""
        return self._road.post(_at(project_id, "refs/merge"), dict(request))

    # changesets
    def create_changeset(self, request: Mapping[str, Any]) -> tuple[Json, bool]:
        """Stores a changeset; gives it, and whether it is a replay."""
        answer = self._road.send("POST", "/api/memory/changesets", body=dict(request))
        return content_of(answer, dict), answer.status_code == httpx.codes.OK

    def prepare_changeset(self, request: Mapping[str, Any]) -> Json:
        """Gives the authored view of a create request, for its author to sign."""
        return self._road.plan("/api/memory/changesets/prepare", dict(request))

    def get_changeset(self, changeset_id: str, audience: Audience | None = None) -> Json:
        """Gives one changeset."""
        return self._road.get(f"/api/memory/changesets/{_segment(changeset_id)}", **_for(audience))

    def log(
        self,
        project_id: str,
        ref_name: str | None = None,
        *,
        head: str | None = None,
        limit: int = 20,
        before: str | None = None,
        first_parent: bool = False,
        audience: Audience | None = None,
    ) -> Json:
        """Gives a page of ancestors."""
        asked = {
            "ref": ref_name,
            "head": head,
            "limit": limit,
            "before": before,
            "first_parent": first_parent,
        }
        return self._road.get(_at(project_id, "changesets"), **asked, **_for(audience))

    def is_ancestor(self, project_id: str, ancestor: str, descendant: str) -> bool:
        """Decides whether a changeset is reachable from another."""
        return part(
            self._road.get(_at(project_id, "ancestry"), ancestor=ancestor, descendant=descendant),
            "is_ancestor",
            bool,
        )

    def merge_base(self, project_id: str, left: str, right: str) -> list[str]:
        """Gives all best common ancestors."""
        return part(self._road.get(_at(project_id, "merge-base"), left=left, right=right), "merge_base", list)

    def authors(self, project_id: str, head: str, without: str) -> list[str]:
        """Gives the author principals between two heads."""
        return part(self._road.get(_at(project_id, "authors"), head=head, without=without), "authors", list)

    # states
    def diff(
        self,
        target: str,
        base: str | None = None,
        audience: Audience | None = None,
        *,
        limit: int | None = None,
        after: str | None = None,
    ) -> Json:
        """Gives the semantic diff, or a page of it."""
        body = {} if base is None else {"base_changeset_id": base}
        query = {"limit": limit, "after": after, **_for(audience)}
        said = self._road.plan(f"/api/memory/changesets/{_segment(target)}/diff", body, query)
        return wire.diff_from_wire(said)

    def memories(
        self,
        project_id: str,
        head: str,
        *,
        limit: int = 50,
        after: str | None = None,
        kind: str | None = None,
        status: str | None = None,
        audience: Audience | None = None,
    ) -> Json:
        """Gives a page of a state."""
        asked = {"head": head, "limit": limit, "after": after, "kind": kind, "status": status}
        return self._road.get(_at(project_id, "memories"), **asked, **_for(audience))

    def memory(self, project_id: str, head: str, memory_id: str, audience: Audience | None = None) -> Json:
        """Gives one memory at a state."""
        return self._road.get(_at(project_id, "memories/one"), id=memory_id, head=head, **_for(audience))

    def records(
        self, project_id: str, heads: Collection[str], memory_ids: Collection[str]
    ) -> dict[str, list[Json]]:
        """Gives what stands of memories at states, asked one by one."""
        found: dict[str, list[Json]] = {}
        for head in heads:
            for memory_id in memory_ids:
                try:
                    record = self.memory(project_id, head, memory_id)["record"]
                except NotFound:
                    continue
                found.setdefault(memory_id, []).append(record)
        return found

    def memory_history(
        self, project_id: str, head: str, memory_id: str, audience: Audience | None = None
    ) -> Json:
        """Gives the versions of a memory."""
        return self._road.get(_at(project_id, "memories/history"), id=memory_id, head=head, **_for(audience))

    def search(
        self, project_id: str, head: str, query: str, *, limit: int = 20, audience: Audience | None = None
    ) -> Json:
        """Gives what a search finds at a state."""
        asked = {"head": head, "query": query, "limit": limit}
        return self._road.get(_at(project_id, "memories/search"), **asked, **_for(audience))

    # merges, conflicts
    def plan_merge(self, project_id: str, target: str, source: str, audience: Audience | None = None) -> Json:
        """Plans a merge."""
        return self._road.plan(
            _at(project_id, "merge/plan"), {"target": target, "source": source}, _for(audience)
        )

    def plan_rebase(self, project_id: str, head: str, onto: str) -> Json:
        """Plans a rebase."""
        return self._road.plan(_at(project_id, "rebase/plan"), {"head": head, "onto": onto})

    def plan_cherry_pick(self, project_id: str, selected: Sequence[Mapping[str, Any]], onto: str) -> Json:
        """Plans copies of selected ops."""
        body = {"selected": [dict(one) for one in selected], "onto": onto}
        return self._road.plan(_at(project_id, "cherry-pick/plan"), body)

    def plan_revert(
        self,
        project_id: str,
        changeset_id: str,
        onto: str,
        mainline: int | None = None,
        from_changeset_id: str | None = None,
    ) -> Json:
        """Plans a revert."""
        body = {
            "changeset_id": changeset_id,
            "onto": onto,
            "mainline": mainline,
            "from_changeset_id": from_changeset_id,
        }
        return self._road.plan(_at(project_id, "revert/plan"), body)

    def detect_conflicts(
        self, project_id: str, base: str, left: str, right: str, audience: Audience | None = None
    ) -> list[Json]:
        """Gives the conflicts between two heads."""
        body = {"base_changeset_id": base, "left_changeset_id": left, "right_changeset_id": right}
        return part(
            self._road.plan(_at(project_id, "conflicts/detect"), body, _for(audience)), "conflicts", list
        )

    def list_conflicts(
        self,
        project_id: str,
        *,
        status: str | None = None,
        proposal_id: str | None = None,
        limit: int = 100,
        audience: Audience | None = None,
    ) -> list[Json]:
        """Gives stored conflicts."""
        asked = {"status": status, "proposal_id": proposal_id, "limit": limit}
        return part(
            self._road.get(_at(project_id, "conflicts"), **asked, **_for(audience)), "conflicts", list
        )

    def persist_conflicts(
        self, project_id: str, proposal_id: str, conflicts: Sequence[Mapping[str, Any]]
    ) -> int:
        """Stores found conflicts."""
        body = {"proposal_id": proposal_id, "conflicts": [dict(one) for one in conflicts]}
        return part(self._road.post(_at(project_id, "conflicts/persist"), body), "persisted", int)

    def retire_conflicts(self, project_id: str, proposal_id: str, status: str) -> int:
        """Ends a proposal's open conflicts."""
        body = {"proposal_id": proposal_id, "status": status}
        return part(self._road.post(_at(project_id, "conflicts/retire"), body), "retired", int)

    def resolve_conflict(
        self, project_id: str, conflict_id: str, *, outcome: str, resolution_note: str, principal: str
    ) -> Json:
        """Records a resolution."""
        body = {"outcome": outcome, "resolution_note": resolution_note, "principal": principal}
        path = _at(project_id, f"conflicts/{_segment(conflict_id)}/resolve")
        return part(self._road.post(path, body), "resolved", dict)

    # context and manifests
    def context(self, project_id: str, request: Mapping[str, Any], audience: Audience | None = None) -> Json:
        """Gives the accepted memory for a prompt."""
        send = self._road.post if request.get("create_manifest") else self._road.plan
        return wire.context_from_wire(send(_at(project_id, "context"), dict(request), _for(audience)))

    def create_manifest(self, request: Mapping[str, Any]) -> Json:
        """Stores a manifest."""
        return self._road.post("/api/memory/manifests", dict(request))

    def get_manifest(self, manifest_id: str) -> Json:
        """Gives a manifest."""
        return self._road.get(f"/api/memory/manifests/{_segment(manifest_id)}")

    def reproduce(self, manifest_id: str, audience: Audience | None = None) -> Json:
        """Rebuilds what a manifest pins."""
        return self._road.get(f"/api/memory/manifests/{_segment(manifest_id)}/reproduce", **_for(audience))

    # events, assemblies
    def append_event(self, project_id: str, event: Mapping[str, Any]) -> Json:
        """Appends one event."""
        return self._road.post("/api/events", {**event, "project_id": project_id})

    def list_events(
        self, project_id: str, *, after: int = 0, limit: int = 100, audience: Audience | None = None
    ) -> list[Json]:
        """Gives events by seq."""
        asked = {"project": project_id, "after": after, "limit": limit}
        return part(self._road.get("/api/events", **asked, **_for(audience)), "events", list)

    def get_event(self, event_id: str) -> Json:
        """Gives one event."""
        return self._road.get(f"/api/events/{_segment(event_id)}")

    def record_assembly(self, session_key: str, assembly: Mapping[str, Any]) -> Json:
        """Records what a model call was given."""
        return self._road.post(f"/api/sessions/{_segment(session_key)}/assemblies", dict(assembly))

    def list_assemblies(self, session_key: str) -> list[Json]:
        """Gives a session's assemblies."""
        return part(self._road.get(f"/api/sessions/{_segment(session_key)}/assemblies"), "assemblies", list)

    def get_assembly(self, assembly_id: str) -> Json:
        """Gives one assembly."""
        return self._road.get(f"/api/assemblies/{_segment(assembly_id)}")

    def give_feedback(self, assembly_id: str, verdict: str, note: str = "") -> Json:
        """Records a verdict."""
        body = {"verdict": verdict, "note": note}
        return self._road.post(f"/api/assemblies/{_segment(assembly_id)}/feedback", body)

    # redaction
    def redact(self, project_id: str, memory_id: str, *, principal: str, reason: str) -> Json:
        """Erases a memory and its lineage for good."""
        body = {"memory_id": memory_id, "principal": principal, "reason": reason}
        return content_of(
            self._road.send("POST", _at(project_id, "redact"), body=body, timeout=UNBOUNDED), dict
        )

    def list_redactions(self, project_id: str, *, after: int = 0, limit: int | None = None) -> list[Json]:
        """Gives the redactions of a project, page by page where all are asked for."""
        return self._pages(_at(project_id, "redactions"), "redactions", after, limit)

    # the store itself
    def list_advances(self, project_id: str, *, after: int = 0, limit: int | None = None) -> list[Json]:
        """Gives the protected advances, page by page where all are asked for."""
        return self._pages(_at(project_id, "advances"), "advances", after, limit)

    def verify(self, project_id: str, progress: Callable[[str, int, int], None] | None = None) -> Json:
        """Recomputes a project; over HTTP progress is said once, at the end."""
        answer = self._road.send("GET", _at(project_id, "verification"), timeout=UNBOUNDED)
        found: Json = content_of(answer, dict)
        if progress is not None:
            for kind, count in found["checked"].items():
                progress(kind, count, count)
        return found

    def _pages(self, path: str, listed: str, after: int, limit: int | None, **query: Any) -> list[Json]:
        """Gives a page of a list, or all of its pages."""
        if limit is not None:
            return part(self._road.get(path, after=after, limit=limit, **query), listed, list)
        found: list[Json] = []
        while True:
            page = self._road.get(path, after=after, **query)
            found += part(page, listed, list)
            if page.get("next") is None:
                return found
            after = page["next"]

    def health(self) -> Json:
        """Says that the server lives."""
        return self._road.get("/api/health")

    def ready(self) -> Json:
        """Says that the store can be used, or raises Unavailable."""
        return self._road.get("/api/readyz")

    def backup(self, to_directory: str) -> Json:
        """Writes a copy into a directory of the server's machine."""
        body = {"to_directory": to_directory}
        return content_of(self._road.send("POST", "/api/backup", body=body, timeout=UNBOUNDED), dict)


def _at(project_id: str, rest: str) -> str:
    return f"/api/memory/{check_project_id(project_id)}/{rest}"


def _segment(text: str) -> str:
    return quote(str(text), safe="")


def _for(audience: Audience | None) -> dict[str, Any]:
    if audience is None:
        return {}
    return {"reader": audience.principal_id, "visibility": ",".join(sorted(audience.visibilities))}

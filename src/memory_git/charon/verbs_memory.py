"""The verbs of memory: projects, refs, history, states, context, as the faces call them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memory_git.charon import commits, history, projects
from memory_git.charon.caller import Caller
from memory_git.charon.commits import Work
from memory_git.charon.house import House
from memory_git.charon.standings import Identity
from memory_git.charon.steps import Steps, at_once
from memory_git.lethe.protocol import Json


class MemoryVerbs:
    """What a caller reads, and commits to refs of its own."""

    _house: House

    def list_projects(self, caller: Caller) -> list[str]:
        """Gives the projects that the caller may know of."""
        return history.list_projects(self._house, caller)

    def init_project(self, caller: Caller, project: str) -> Json:
        """Starts a project; repeatable."""
        return projects.init_project(self._house, caller, project)

    def status(self, caller: Caller, project: str | None = None) -> Json:
        """Tells where the working branch stands, and what is open."""
        return history.status(self._house, caller, project)

    def list_refs(self, caller: Caller, project: str | None = None) -> list[Json]:
        """Gives the readable refs."""
        return history.list_refs(self._house, caller, project)

    def create_branch(
        self,
        caller: Caller,
        project: str | None,
        ref_name: str,
        from_ref: str | None = None,
        head: str | None = None,
    ) -> Json:
        """Makes a ref, by default at accepted memory."""
        return commits.create_branch(self._house, caller, project, ref_name, from_ref, head)

    def log(
        self,
        caller: Caller,
        project: str | None = None,
        ref: str | None = None,
        limit: int = 20,
        before: str | None = None,
        first_parent: bool = False,
    ) -> Json:
        """Gives the ancestors of a ref's head, newest first, by pages."""
        return history.log(
            self._house, caller, project, ref, limit=limit, before=before, first_parent=first_parent
        )

    def show(self, caller: Caller, project: str | None, changeset_id: str) -> Json:
        """Gives one changeset."""
        return history.show(self._house, caller, project, changeset_id)

    def diff(
        self,
        caller: Caller,
        project: str | None,
        target: str,
        base: str | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Json:
        """Gives the semantic diff base → target, whole or by pages; each a changeset id or a ref's name."""
        return history.diff(self._house, caller, project, target, base, limit, after)

    def commit(self, caller: Caller, project: str | None = None, **work: Any) -> Json:
        """Commits to a ref of the caller's; gives `{changeset, ref, replayed}`; `shrink_ok` False asks about bodies that shrink."""
        return at_once(self.commit_steps(caller, project, **work))

    @property
    def takes_steps(self) -> bool:
        """Says whether steps are worth it: both databases are files of this process, read in no time, written by a thread each."""
        return bool(getattr(self._house.lethe, "is_file", False)) and not self._house.database.is_shared

    def commit_steps(
        self,
        caller: Caller,
        project: str | None = None,
        *,
        message: str,
        ops: Sequence[Any],
        ref: str | None = None,
        expected_head: str | None = None,
        read_head: bool = False,
        parent_ids: Sequence[str] | None = None,
        idempotency_key: str | None = None,
        model: str | None = None,
        session_id: str | None = None,
        topic_id: str | None = None,
        context_manifest_id: str | None = None,
        evidence: Sequence[Any] | None = None,
        verification: Sequence[Any] | None = None,
        shrink_ok: bool = True,
        identity: Identity | None = None,
    ) -> Steps[Json]:
        """Gives the steps of a commit, for a caller that waits on a loop; `identity` is what its token was recognised as just now."""
        work = Work(
            message,
            ops,
            model,
            session_id,
            topic_id,
            context_manifest_id,
            tuple(evidence or ()),
            tuple(verification or ()),
        )
        return commits.commit(
            self._house,
            caller,
            project,
            work,
            ref=ref,
            expected_head=expected_head,
            read_head=read_head,
            parent_ids=parent_ids,
            idempotency_key=idempotency_key,
            shrink_ok=shrink_ok,
            identity=identity,
        )

    def memories(
        self,
        caller: Caller,
        project: str | None = None,
        ref: str | None = None,
        head: str | None = None,
        limit: int = 50,
        after: str | None = None,
        kind: str | None = None,
        status: str | None = None,
    ) -> Json:
        """Gives the memories at a head, by pages."""
        return history.memories(
            self._house, caller, project, ref, head, limit=limit, after=after, kind=kind, status_is=status
        )

    def memory(
        self,
        caller: Caller,
        project: str | None,
        memory_id: str,
        ref: str | None = None,
        head: str | None = None,
    ) -> Json:
        """Gives one memory at a head, with its proof."""
        return history.memory(self._house, caller, project, memory_id, ref, head)

    def memory_history(
        self,
        caller: Caller,
        project: str | None,
        memory_id: str,
        ref: str | None = None,
        head: str | None = None,
    ) -> Json:
        """Gives the versions of one memory, newest first."""
        return history.memory_history(self._house, caller, project, memory_id, ref, head)

    def search(
        self,
        caller: Caller,
        project: str | None,
        query: str,
        ref: str | None = None,
        head: str | None = None,
        limit: int = 20,
    ) -> Json:
        """Gives the active memories with a word of the query, best first."""
        return history.search(self._house, caller, project, query, ref, head, limit)

    def context(
        self,
        caller: Caller,
        project: str | None = None,
        ref: str | None = None,
        head: str | None = None,
        query: str | None = None,
        limit: int = 20,
        max_tokens: int | None = None,
        session_id: str | None = None,
        create_manifest: bool = False,
        now: str | None = None,
    ) -> Json:
        """Gives the accepted memory for a prompt at a head."""
        asked = {
            "query": query,
            "limit": limit,
            "max_tokens": max_tokens,
            "session_id": session_id,
            "now": now,
        }
        return history.context(
            self._house, caller, project, ref, head, create_manifest=create_manifest, asked=asked
        )

    def manifest(self, caller: Caller, manifest_id: str) -> Json:
        """Gives a manifest to its principal, or an administrator."""
        return history.manifest(self._house, caller, manifest_id, reproduce=False)

    def reproduce(self, caller: Caller, manifest_id: str) -> Json:
        """Rebuilds what a manifest pins, for its principal, or an administrator."""
        return history.manifest(self._house, caller, manifest_id, reproduce=True)

"""`memory_git.Client`: memory for a Python program, embedded or at an address, with the same verbs and answers.

A verb is the gate's: it asks the policy, stands in the ledger, and refuses with an error of `memory_git.domain.errors`. `project` None
is the client's, else the token's, else the only one granted; `ref` None is the caller's working branch, and for reads accepted
memory where there is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self, cast

from memory_git.client import answers
from memory_git.client.opening import caller_at, open_place

Op = Mapping[str, Any]


class Client:
    """One caller at one place; any number of threads may use it. A context manager that closes when it ends."""

    def __init__(
        self,
        place: Path | str,
        token: str | None = None,
        *,
        project: str | None = None,
        principal: str | None = None,
        keys: Path | None = None,
        lethe: str | None = None,
    ) -> None:
        self._gate: Any = open_place(place, token, keys=keys, lethe=lethe)
        try:
            self._caller = caller_at(self._gate, token, principal)
        except BaseException:
            self._gate.close()
            raise
        self.project = project

    def __enter__(self) -> Self:
        """Gives the client itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes it."""
        self.close()

    def close(self) -> None:
        """Closes the connection, or the databases."""
        self._gate.close()

    # where one stands

    def whoami(self) -> answers.Identity:
        """Says who calls and what they may do."""
        return cast(answers.Identity, self._gate.whoami(self._caller))

    def projects(self) -> list[str]:
        """Gives the projects that the caller may know of."""
        return list(self._gate.list_projects(self._caller))

    def init_project(self, project: str) -> dict[str, Any]:
        """Starts a project; repeatable."""
        return dict(self._gate.init_project(self._caller, project))

    def status(self, project: str | None = None) -> answers.Status:
        """Says where the working branch stands, and what is open."""
        return cast(answers.Status, self._gate.status(self._caller, project or self.project))

    def refs(self, project: str | None = None) -> list[answers.Ref]:
        """Gives the refs that the caller may read."""
        return cast(list[answers.Ref], self._gate.list_refs(self._caller, project or self.project))

    # reading

    def context(
        self, query: str | None = None, *, project: str | None = None, **asked: Any
    ) -> answers.Context:
        """Gives the accepted memory for a prompt; `asked`: ref, head, limit, max_tokens, session_id, create_manifest."""
        found = self._gate.context(self._caller, project or self.project, query=query, **asked)
        return cast(answers.Context, found)

    def search(self, query: str, *, project: str | None = None, **asked: Any) -> answers.Hits:
        """Gives the active memories with a word of the query, best first; `asked`: ref, head, limit."""
        return cast(answers.Hits, self._gate.search(self._caller, project or self.project, query, **asked))

    def memory(self, memory_id: str, *, project: str | None = None, **at: str) -> answers.MemoryAt:
        """Gives one memory with its proof; `at`: ref, head."""
        return cast(
            answers.MemoryAt, self._gate.memory(self._caller, project or self.project, memory_id, **at)
        )

    def memory_history(
        self, memory_id: str, *, project: str | None = None, **at: str
    ) -> answers.MemoryVersions:
        """Gives the versions of one memory, newest first; `at`: ref, head."""
        found = self._gate.memory_history(self._caller, project or self.project, memory_id, **at)
        return cast(answers.MemoryVersions, found)

    def memories(self, *, project: str | None = None, **asked: Any) -> answers.Memories:
        """Gives a page of the memories at a head; `asked`: ref, head, limit, after, kind, status."""
        return cast(answers.Memories, self._gate.memories(self._caller, project or self.project, **asked))

    def log(self, *, project: str | None = None, **asked: Any) -> answers.Log:
        """Gives a page of history, newest first; `asked`: ref, limit, before, first_parent."""
        return cast(answers.Log, self._gate.log(self._caller, project or self.project, **asked))

    def show(self, changeset_id: str, *, project: str | None = None) -> answers.Changeset:
        """Gives one changeset."""
        found = self._gate.show(self._caller, project or self.project, changeset_id)
        return cast(answers.Changeset, found)

    def diff(
        self, target: str, base: str | None = None, *, project: str | None = None, **page: Any
    ) -> answers.Diff:
        """Gives the semantic diff base to target, each a ref or a changeset; `page`: limit, after."""
        found = self._gate.diff(self._caller, project or self.project, target, base, **page)
        return cast(answers.Diff, found)

    def reproduce(self, manifest_id: str) -> dict[str, Any]:
        """Rebuilds what a manifest pins."""
        return dict(self._gate.reproduce(self._caller, manifest_id))

    # writing

    def branch(
        self, ref: str, from_ref: str | None = None, *, head: str | None = None, project: str | None = None
    ) -> answers.Ref:
        """Makes a ref, by default at accepted memory."""
        made = self._gate.create_branch(self._caller, project or self.project, ref, from_ref, head)
        return cast(answers.Ref, made)

    def commit(
        self,
        message: str,
        ops: Sequence[Op],
        *,
        project: str | None = None,
        ref: str | None = None,
        expected_head: str | None = None,
        read_head: bool = False,
        idempotency_key: str | None = None,
        **more: Any,
    ) -> answers.Committed:
        """Commits ops to a branch of the caller's; `more`: parent_ids, model, session_id, evidence, verification ...

        Say which head you built on (`expected_head`), or that the present one may be read (`read_head`).
        """
        given = {"ref": ref, "expected_head": expected_head, "idempotency_key": idempotency_key, **more}
        stated = {name: value for name, value in given.items() if value is not None}
        done = self._gate.commit(
            self._caller,
            project or self.project,
            message=message,
            ops=list(ops),
            read_head=read_head,
            **stated,
        )
        return cast(answers.Committed, done)

    # proposals

    def propose(self, message: str, *, project: str | None = None, **asked: Any) -> answers.Proposal:
        """Asks for a head to become accepted; `asked`: title, target_ref, source_ref, head_changeset_id, selected_ops ..."""
        made = self._gate.propose(self._caller, project or self.project, message=message, **asked)
        return cast(answers.Proposal, made)

    def proposals(
        self, status: str | None = None, *, project: str | None = None, **page: Any
    ) -> answers.Proposals:
        """Gives a page of proposals, newest first; status `open` takes all open ones; `page`: limit, after."""
        found = self._gate.proposals(self._caller, project or self.project, status=status, **page)
        return cast(answers.Proposals, found)

    def proposal(self, proposal_id: str) -> answers.Proposal:
        """Gives a proposal."""
        return cast(answers.Proposal, self._gate.proposal(self._caller, proposal_id))

    def review(self, proposal_id: str, verdict: str, comment: str = "", **more: Any) -> answers.Proposal:
        """Records approve, request_changes or reject; `more`: findings, severity, judged_digest."""
        done = self._gate.review(self._caller, proposal_id, verdict, comment, **more)
        return cast(answers.Proposal, done)

    def merge(self, proposal_id: str, **more: Any) -> answers.Proposal:
        """Merges an approved proposal; `more`: idempotency_key, strategy, resolutions."""
        return cast(answers.Proposal, self._gate.merge(self._caller, proposal_id, **more))

    def cancel(self, proposal_id: str) -> answers.Proposal:
        """Withdraws a proposal."""
        return cast(answers.Proposal, self._gate.cancel(self._caller, proposal_id))

    def rebase(self, proposal_id: str) -> answers.Proposal:
        """Rebases a proposal onto the present head of its target."""
        return cast(answers.Proposal, self._gate.rebase(self._caller, proposal_id))

    def propose_revert(
        self, changeset_id: str, *, project: str | None = None, **asked: Any
    ) -> answers.Proposal:
        """Proposes to take a changeset back; `asked`: from_changeset_id, mainline, target_ref, title, message ..."""
        made = self._gate.propose_revert(self._caller, project or self.project, changeset_id, **asked)
        return cast(answers.Proposal, made)

    def conflicts(
        self, status: str | None = None, *, proposal_id: str | None = None, project: str | None = None
    ) -> list[answers.Conflict]:
        """Gives the stored conflicts of a project, or of one proposal."""
        found = self._gate.conflicts(self._caller, project or self.project, status, proposal_id)
        return cast(list[answers.Conflict], found)

    def resolve_conflict(
        self, conflict_id: str, outcome: str, note: str, *, project: str | None = None
    ) -> dict[str, Any]:
        """Records how a conflict is settled, and why."""
        done = self._gate.resolve_conflict(self._caller, project or self.project, conflict_id, outcome, note)
        return dict(done)

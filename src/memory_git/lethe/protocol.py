"""What a client of Lethe can ask: one protocol, met by direct calls (`lethe.store.LetheStore`) and over HTTP (`lethe.client`).

All values are JSON values with the wire names of chapters 3 to 7, so that the HTTP face only parses and renders. Verbs raise the
errors of `domain.errors`; the HTTP client raises the same ones again from problem documents. `audience` None shows everything:
Lethe knows no users, and trusts its one bearer to say for whom it reads. All lists are sorted and deterministic.

Shapes (keys with ? may be absent or null):

Ref            {project_id, ref_name, head_changeset_id, protected, created_at, updated_at, updated_by, version}
Op             {ordinal, op_type, target_event_id?, resulting_event_id?, payload, op_digest, op_salt}
               or {ordinal, op_digest, withheld: true} for an audience that may not see it
Changeset      {changeset_id, schema_version, project_id, ref_name, parent_ids, author_principal, persona_id?, actor_id?, surface?, model?,
               environment?, session_id?, topic_id?, context_manifest_id?, message, message_salt, message_digest, created_at, idempotency_key, ops,
               evidence, evidence_salt, evidence_digests, verification, verification_salt, verification_digests, state_root, authored_digest, integrity_digest, digest_version, author_signature?, originals?}; `originals` (show, log)
               lists {changeset_id, author_principal, created_at} of what its ops were copied from, by a rebase or a cherry-pick
CreateRequest  {project_id, ref_name, parent_ids, author_principal, message, idempotency_key, ops, persona_id?, actor_id?, surface?, model?,
               environment?, session_id?, topic_id?, context_manifest_id?, evidence?, verification?, expected_head?, advance_ref?,
               create_ref_if_missing?, protected?, authored?: Preparation, author_signature?: {algorithm, key_id, public_key, signature}}
Preparation    {view, authored_digest, salts: {message, evidence, verification, ops}, memory_ids, expires_at, seal}: FORMAT 6.8
Record         chapter 3 (unset fields absent); a listing adds nothing to it
Entry          {memory_id, record, record_digest, salt, version, introduced_by, changed_by}; the two are changeset ids
Relationship   {from_memory_id, kind, to_memory_id}
Conflict       {conflict_id, conflict_type, severity, project_id, base_changeset_id, left_changeset_id, right_changeset_id, identity, memory_ids,
               left, right, detail, similarity?}; left, right: lists of {memory_id, record_digest, summary, changeset_id}; a stored one adds
               {proposal_id, status, outcome?, resolution_note?, resolved_by?, created_at, updated_at}
Diff           {project_id, base_changeset_id, target_changeset_id, base_state_root, target_state_root, <the sections of chapter 4>,
               page?: {limit, next?}}; `next` is the following page's `after`, of these two changesets; pages in a row are the whole
MergeRequest   {ref_name, expected_head, new_head, merge_proposal_id, reviewer_principal, merge_authorization, proposal_state?}
MergePlan      {base_changeset_ids, target_head, source_head, strategy: up_to_date|fast_forward|merge_commit, conflicts, unsettled, diff,
               authors, private_memory_count}; `unsettled` lists {memory_id, fields, base, left, right} that a merge changeset must answer by ops
RewritePlan    {parent_changeset_id, steps: [{source_changeset_id?, message, ops}], refused: [{source_changeset_id?, ordinal?, memory_id?, fields?, needs, reason}]}
Event          {event_id, project_id, seq, event_type, content, memory_id?, changeset_id?, actor?, created_at, salt, previous_digest?, event_digest}
Context, Manifest, Reproduction: chapter 7
Verification   {ok, project_id, checked: {kind: count}, faults: [{kind, object_id, why}]}
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from memory_git.domain.policy import Audience

Json = dict[str, Any]


class Lethe(Protocol):
    """The verbs of the store."""

    # projects and refs
    def list_projects(self) -> list[str]:
        """Gives the project ids, sorted."""
        ...

    def init_project(self, project_id: str) -> Json:
        """Creates a project with its root, frozen baseline and protected refs/shared/main; repeatable. `{changeset, ref}`."""
        ...

    def create_branch(
        self, project_id: str, ref_name: str, head_changeset_id: str, principal: str, protected: bool = False
    ) -> Json:
        """Creates a ref at a changeset; the same again is the same ref. Clash `ref_exists`, NotAllowed `protected_ref`."""
        ...

    def list_refs(self, project_id: str, *, after: str = "", limit: int | None = None) -> list[Json]:
        """Gives the refs beyond the name `after`, by name, all or so many."""
        ...

    def resolve_ref(self, project_id: str, ref_name: str, at: str | None = None) -> Json:
        """Gives a ref, with the head it has, or had at a time (RFC 3339) or when it stood at a changeset id."""
        ...

    def ref_log(
        self, project_id: str, ref_name: str, *, after: int = 0, limit: int | None = None
    ) -> list[Json]:
        """Gives the moves of a ref beyond seq `after`, oldest first, all or so many: {seq, from_head?, to_head, principal, reason, at, digest}."""
        ...

    def advance_ref(
        self, project_id: str, ref_name: str, expected_head: str, new_head: str, principal: str = "system"
    ) -> Json:
        """Moves an unprotected ref by compare-and-swap to a descendant. Clash `ref_moved` with `current_head`."""
        ...

    def merge_ref(self, project_id: str, request: Mapping[str, Any]) -> Json:
        """Moves a protected ref on a signed authorization (5-lethe, protected merges). MergeRequest → Ref."""
        ...

    # changesets
    def create_changeset(self, request: Mapping[str, Any]) -> tuple[Json, bool]:
        """Validates and stores a changeset; gives it, and whether it is a replay of an earlier equal request."""
        ...

    def prepare_changeset(self, request: Mapping[str, Any]) -> Json:
        """Gives the authored view of a create request, for its author to sign; stores nothing. Preparation."""
        ...

    def get_changeset(self, changeset_id: str, audience: Audience | None = None) -> Json:
        """Gives one changeset of whatever project."""
        ...

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
        """Gives `{changesets, project, ref, next?}`: ancestors, newest first in topological order. `before` is a page's `next`, whatever the
        depth at the same cost, or a changeset that the head descends from."""
        ...

    def is_ancestor(self, project_id: str, ancestor: str, descendant: str) -> bool:
        """Decides whether a changeset is reachable from another (one is from itself)."""
        ...

    def merge_base(self, project_id: str, left: str, right: str) -> list[str]:
        """Gives all best common ancestors, sorted."""
        ...

    def authors(self, project_id: str, head: str, without: str) -> list[str]:
        """Gives the author principals of what is reachable from `head` and not from `without`, originals of copies included."""
        ...

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
        """Gives the semantic diff base → target (default base: the first parent): whole, or with a `limit` or `after` a page."""
        ...

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
        """Gives `{memories: [Entry], relationships, next?, total}` at a state, in the order of keys; filtered before the limit."""
        ...

    def memory(self, project_id: str, head: str, memory_id: str, audience: Audience | None = None) -> Json:
        """Gives one Entry at a state, with `relationships` and a `proof`. NotFound for an absent or unreadable one."""
        ...

    def records(
        self, project_id: str, heads: Collection[str], memory_ids: Collection[str]
    ) -> Mapping[str, list[Json]]:
        """Gives by memory id what stands of it at any of the states: records, in the order of the heads; absent ones are left out."""
        ...

    def memory_history(
        self, project_id: str, head: str, memory_id: str, audience: Audience | None = None
    ) -> Json:
        """Gives `{memory_id, versions: [Entry + {changeset_id, author_principal, created_at, message, original?}]}`, newest first, reachable
        from `head`; the `original` of a copied change is {changeset_id, author_principal, created_at} of who wrote it first."""
        ...

    def search(
        self, project_id: str, head: str, query: str, *, limit: int = 20, audience: Audience | None = None
    ) -> Json:
        """Gives `{hits: [Entry + {score}], total}`: active, readable memories at a state with a word of the query, best first."""
        ...

    # merges, conflicts
    def plan_merge(self, project_id: str, target: str, source: str, audience: Audience | None = None) -> Json:
        """Plans bringing `source` into `target`; writes nothing. MergePlan."""
        ...

    def plan_rebase(self, project_id: str, head: str, onto: str) -> Json:
        """Plans replaying what `head` has beyond `onto` on top of it. RewritePlan."""
        ...

    def plan_cherry_pick(self, project_id: str, selected: Sequence[Mapping[str, Any]], onto: str) -> Json:
        """Plans copies of selected ops ({changeset_id, ordinal}) on a head; ops whose needs are absent come in `refused`."""
        ...

    def plan_revert(
        self,
        project_id: str,
        changeset_id: str,
        onto: str,
        mainline: int | None = None,
        from_changeset_id: str | None = None,
    ) -> Json:
        """Plans the ops that take back one changeset on a head, or with a `from_changeset_id` all that the line of first parents gained
        beyond it. RewritePlan."""
        ...

    def detect_conflicts(
        self, project_id: str, base: str, left: str, right: str, audience: Audience | None = None
    ) -> list[Json]:
        """Gives the conflicts between two heads from a base; writes nothing."""
        ...

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
        ...

    def persist_conflicts(
        self, project_id: str, proposal_id: str, conflicts: Sequence[Mapping[str, Any]]
    ) -> int:
        """Stores what `detect_conflicts` found, bound to a proposal; an equal one is stored once. A resolution carries over."""
        ...

    def retire_conflicts(self, project_id: str, proposal_id: str, status: str) -> int:
        """Moves a proposal's open conflicts to `canceled`, `rejected` or `superseded`; gives how many."""
        ...

    def resolve_conflict(
        self, project_id: str, conflict_id: str, *, outcome: str, resolution_note: str, principal: str
    ) -> Json:
        """Records a resolution (keep_left, keep_right, both, edited) with its reason, by whoever wrote neither side. Conflict."""
        ...

    # context and manifests
    def context(self, project_id: str, request: Mapping[str, Any], audience: Audience | None = None) -> Json:
        """Gives the accepted memory for a prompt at a head (7-context); request: ref_name, head_changeset_id?, query?, limit?, max_tokens?,
        session_id?, actor_id?, principal?, create_manifest?, now?."""
        ...

    def create_manifest(self, request: Mapping[str, Any]) -> Json:
        """Checks and stores a manifest; request: {project_id, kind: input|output, …}. Manifest."""
        ...

    def get_manifest(self, manifest_id: str) -> Json:
        """Gives a manifest: ids and digests, no text."""
        ...

    def reproduce(self, manifest_id: str, audience: Audience | None = None) -> Json:
        """Rebuilds the records that a manifest pins from history, each with digest, salt and proof."""
        ...

    # events, assemblies
    def append_event(self, project_id: str, event: Mapping[str, Any]) -> Json:
        """Appends one event: {event_type, content, memory_id?, actor?, event_id?}. Event."""
        ...

    def list_events(
        self, project_id: str, *, after: int = 0, limit: int = 100, audience: Audience | None = None
    ) -> list[Json]:
        """Gives events by seq."""
        ...

    def get_event(self, event_id: str) -> Json:
        """Gives one event of whatever project."""
        ...

    def record_assembly(self, session_key: str, assembly: Mapping[str, Any]) -> Json:
        """Records what a model call was given: {project_id, manifest_id?, head_changeset_id, items, token_counts?}."""
        ...

    def list_assemblies(self, session_key: str) -> list[Json]:
        """Gives a session's assemblies, oldest first."""
        ...

    def get_assembly(self, assembly_id: str) -> Json:
        """Gives one assembly."""
        ...

    def give_feedback(self, assembly_id: str, verdict: str, note: str = "") -> Json:
        """Records a verdict on an assembly: good, stale_included, missing_memory, too_large, irrelevant, other."""
        ...

    # redaction
    def redact(self, project_id: str, memory_id: str, *, principal: str, reason: str) -> Json:
        """Erases a memory and its lineage through every version, for good. {redaction_id, memory_ids, versions, ops, events, …, at}."""
        ...

    def list_redactions(self, project_id: str, *, after: int = 0, limit: int | None = None) -> list[Json]:
        """Gives the redactions of a project beyond seq `after`, oldest first, all or so many."""
        ...

    # the store itself
    def list_advances(self, project_id: str, *, after: int = 0, limit: int | None = None) -> list[Json]:
        """Gives the protected advances beyond seq `after`, oldest first, all or so many: {seq, advance_id, ref_name, from_head, to_head, proposal_id, strategy, nonce, …, at}."""
        ...

    def verify(self, project_id: str, progress: Callable[[str, int, int], None] | None = None) -> Json:
        """Recomputes every digest, root, chain and derived row of a project. Verification."""
        ...

    def health(self) -> Json:
        """Gives `{status, mode, version}` while the process lives."""
        ...

    def ready(self) -> Json:
        """Gives `{status, mode, engine, schema_version, durability}`, or raises Unavailable."""
        ...

    def backup(self, to_directory: str) -> Json:
        """Writes a consistent copy of the database into a directory of the server's machine. {file, sha256, heads, schema_version, at}."""
        ...

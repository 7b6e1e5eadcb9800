"""Plans of merges, rebases, cherry-picks and reverts on stored states, in the wire form; nothing is written here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memory_git.domain.ancestry import MAX_PARENTS
from memory_git.domain.canonical import decode
from memory_git.domain.diff import semantic_diff
from memory_git.domain.errors import Invalid, NotFound
from memory_git.domain.merge import unsettled_to_json
from memory_git.domain.ops import Op, op_from_json
from memory_git.domain.plans import NAMING_ONLY, Plan, Source, cherry_pick, rebase, revert
from memory_git.domain.policy import Audience
from memory_git.domain.record import Conflicted
from memory_git.domain.revert import Reverted
from memory_git.domain.state import StateView
from memory_git.lethe.authorship import authors_of
from memory_git.lethe.changesets import stored_ops
from memory_git.lethe.comparing import Comparison
from memory_git.lethe.conflict_rows import is_resolved, shown_conflicts
from memory_git.lethe.differences import (
    by_memory,
    changes_between,
    contradicted_after,
    edge_changes_between,
)
from memory_git.lethe.meeting import Meeting, changes_of_merge, meet
from memory_git.lethe.merging import ScratchView, base_roots, merge_states, merged_view
from memory_git.lethe.op_refs import OpRefs, Removals
from memory_git.lethe.protected import private_in_delta
from memory_git.lethe.session import View, admits
from memory_git.storage import lethe_history, lethe_redaction, lethe_states
from memory_git.storage.lethe_history import ChangesetRow


def merge_plan(view: View, target: str, source: str, audience: Audience | None) -> dict[str, Any]:
    """Plans bringing `source` into `target`: the shape, what would change, the conflicts, and what must be answered by ops."""
    view.state_row(target), view.state_row(source)
    graph = view.graph()
    meeting = meet(view, target, source, audience=audience)
    if graph.is_ancestor(source, target):
        strategy = "up_to_date"
    elif graph.is_ancestor(target, source):
        strategy = "fast_forward"
    else:
        strategy = "merge_commit"
    shown = shown_conflicts(meeting, view.project_id)
    unsettled = [item for _, item in sorted(meeting.merged.conflicted.items())]
    return {
        "base_changeset_ids": list(meeting.bases),
        "target_head": target,
        "source_head": source,
        "strategy": strategy,
        "conflicts": shown,
        "unsettled": [unsettled_to_json(item) for item in unsettled if _is_shown(item, audience)],
        "diff": _difference(view, meeting, strategy, audience, shown),
        "authors": sorted(authors_of(view, source, target)),
        "private_memory_count": private_in_delta(view, source, target),
    }


def _difference(
    view: View, meeting: Meeting, strategy: str, audience: Audience | None, found: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Gives what the merge would change in the target; unresolved are the conflicts of the plan that nobody has resolved."""
    if strategy == "up_to_date":
        return semantic_diff(())
    unresolved = [item for item in found if not is_resolved(view, item)]
    if strategy == "fast_forward":
        heads = view.state_row(meeting.left), view.state_row(meeting.right)
        shown = Comparison(view, *heads, audience).whole()
        return {**shown, "unresolved_conflicts": unresolved}
    changes = changes_of_merge(view, meeting, audience)
    removals = Removals(OpRefs(view, audience), view, meeting.right, [*meeting.bases, meeting.left])
    edges = edge_changes_between(
        view, meeting.merged.base, view.roots(meeting.right), meeting.merged.nodes, audience, removals
    )
    state = view.state(meeting.left)
    return semantic_diff(
        changes,
        [item for item in edges if state.has_edge(item.edge) != item.stands],
        contradicts=contradicted_after(state, by_memory(changes), audience),
        unresolved=unresolved,
    )


def _is_shown(item: Conflicted, audience: Audience | None) -> bool:
    return admits(item.left, audience) and admits(item.right, audience)


def _known_salt(view: View, memory_id: str) -> str:
    return lethe_states.get_salt(view.connection, view.project_id, memory_id) or ""


def rebase_plan(view: View, head: str, onto: str) -> dict[str, Any]:
    """Plans replaying what `head` has beyond `onto` on top of it; merges inside the branch bring only their own ops."""
    view.state_row(head), view.state_row(onto)
    names = view.graph().reachable_not_from(head, [onto])
    sources = [_source(view, name) for name in names]
    plan = rebase(
        view.state(onto),
        sources,
        salts=lambda memory_id: _known_salt(view, memory_id),
        events=view.event_content,
    )
    return _shown(view, onto, plan)


def _source(view: View, changeset_id: str) -> Source:
    row = view.changeset(changeset_id)
    ops = stored_ops(view, row)
    if any("payload" not in op for op in ops):
        raise Invalid("source_redacted", "the changeset holds a redacted op, which can't be copied")
    return Source(
        changeset_id, row.message or "", tuple(op_from_json(op) for op in ops), _made_on(view, row.parents)
    )


def _made_on(view: View, parents: Sequence[str]) -> StateView | None:
    """Gives the state that a changeset's ops were put on: its parent's, or what its two parents merge into."""
    if len(parents) < MAX_PARENTS:
        return view.state(parents[0]) if parents else None
    scratch = ScratchView(view)
    base = base_roots(scratch, view.graph().best_common_ancestors(*parents))
    left, right = (view.roots(name) for name in parents)
    return merged_view(scratch, merge_states(scratch, base, left, right))


def cherry_pick_plan(view: View, selected: Sequence[Mapping[str, Any]], onto: str) -> dict[str, Any]:
    """Plans one changeset of copies of the selected ops ({changeset_id, ordinal}) on a head."""
    if not selected:
        raise Invalid("nothing_selected", "select at least one op: {changeset_id, ordinal}")
    sources: dict[str, Source] = {}
    chosen: list[tuple[str, Op]] = []
    for item in selected:
        name, ordinal = item.get("changeset_id"), item.get("ordinal")
        if not isinstance(name, str) or not isinstance(ordinal, int) or isinstance(ordinal, bool):
            raise Invalid("bad_selection", "an item of the selection is {changeset_id, ordinal}")
        source = sources.get(name) or _source(view, name)
        sources[name] = source
        if not 0 <= ordinal < len(source.ops):
            raise NotFound("op_not_found", "a selected op is not in its changeset")
        chosen.append((name, source.ops[ordinal]))
    order = {name: place for place, name in enumerate(sorted(sources, key=view.graph().position))}
    chosen.sort(key=lambda pair: (order[pair[0]], pair[1].ordinal))
    available = [(name, op) for name, source in sources.items() for op in source.ops]
    plan = cherry_pick(
        view.state(onto),
        chosen,
        available,
        salts=lambda memory_id: _known_salt(view, memory_id),
        events=view.event_content,
        before={name: source.before for name, source in sources.items() if source.before is not None},
        made_before=lambda name, memory_id: _maker(view, name, memory_id),
    )
    return _shown(view, onto, plan)


def _maker(view: View, changeset_id: str, memory_id: str) -> tuple[str, Op] | None:
    """Gives the op that introduced a memory which stood at the first parent of a changeset; None where no op did, or it is erased."""
    parents = view.state_row(changeset_id).parents
    entry = view.state(parents[0]).entry(memory_id) if parents else None
    if entry is None:
        return None
    name = lethe_history.changeset_ids(view.connection, view.project_id, [entry.introduced]).get(
        entry.introduced
    )
    for row in lethe_history.ops_of(view.connection, view.project_id, entry.introduced):
        made = row.resulting_event_id == memory_id and row.op_type not in NAMING_ONLY
        if made and name is not None and row.payload is not None:
            payload = decode(row.payload)
            return name, Op(row.ordinal, row.op_type, row.target_event_id, row.resulting_event_id, payload)
    return None


def revert_plan(
    view: View, changeset_id: str, onto: str, mainline: int | None, since: str | None = None
) -> dict[str, Any]:
    """Plans the ops that take back on a head: one changeset; a merge, against the chosen parent (1 or 2); or all that the mainline
    of a changeset gained beyond `since`, merges included, as one.
    """
    row = view.changeset(changeset_id)
    before = _parent_to_keep(row, mainline) if since is None else _start_of_range(view, since, row, mainline)
    roots = view.roots(before), view.roots(changeset_id)
    plan = revert(
        view.state(onto),
        Reverted(changeset_id, row.message or "", since),
        changes_between(view, *roots),
        edge_changes_between(view, *roots, removals=Removals(OpRefs(view), view, changeset_id, [before])),
        salts=lambda memory_id: _known_salt(view, memory_id),
    )
    return _shown(view, onto, plan)


def _parent_to_keep(row: ChangesetRow, mainline: int | None) -> str:
    if not row.parents:
        raise Invalid("nothing_to_revert", "the root has nothing to take back")
    if len(row.parents) == 1 and mainline not in (None, 1):
        raise Invalid("not_a_merge", "the changeset has one parent: there is no other mainline")
    if len(row.parents) > 1 and mainline not in (1, 2):
        raise Invalid("mainline_needed", "the changeset is a merge: say which parent to keep, 1 or 2")
    return row.parents[(mainline or 1) - 1]


def _start_of_range(view: View, since: str, row: ChangesetRow, mainline: int | None) -> str:
    if mainline is not None:
        raise Invalid("bad_range", "a range follows first parents: name no mainline with it")
    if since == row.changeset_id or not view.graph().is_on_mainline(since, row.changeset_id):
        raise Invalid(
            "bad_range", "a range begins before its end, on the end's line of first parents", start=since
        )
    return since


def _of_erased(view: View, plan: Plan) -> list[dict[str, Any]]:
    """Gives the refusals of ops that name an erased memory, which no changeset may do any more."""
    erased = lethe_redaction.redacted_memories(view.connection, view.project_id) if view.epoch else {}
    return [
        {
            "source_changeset_id": step.source_changeset_id,
            "ordinal": ordinal,
            "reason": f"{op['op_type']} names a memory that is erased",
            "needs": [],
        }
        for step in plan.steps
        for ordinal, op in enumerate(step.ops)
        if not erased.keys().isdisjoint((op.get("target_event_id"), op.get("resulting_event_id")))
    ]


def _shown(view: View, onto: str, plan: Plan) -> dict[str, Any]:
    return {
        "parent_changeset_id": onto,
        "steps": [
            {
                "source_changeset_id": step.source_changeset_id,
                "message": step.message,
                "ops": [dict(op) for op in step.ops],
            }
            for step in plan.steps
        ],
        "refused": [*(dict(item) for item in plan.refused), *_of_erased(view, plan)],
    }

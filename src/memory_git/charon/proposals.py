"""Proposals: made, listed, shown, canceled (6-charon, proposals).

1. A proposal is pinned: what the branch gets later is not in it. Its head is kept reachable by the gate.
2. What holds a private record, or brings nothing, is refused when it is proposed, with what could be proposed instead.
3. Its conflicts are found and stored when it is made.
4. A proposal whose time is over counts as expired at once, and is closed by the next call that touches it.
5. A principal has one open proposal of a head, selection and target: the same said again is that proposal, other words are refused.
6. While a merge is under way nothing else ends a proposal or is said of it: what was answered holds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import islice
from typing import Any

from uuid_utils import uuid7

from memory_git.charon import keeping
from memory_git.charon.caller import Caller
from memory_git.charon.grants import policy_of
from memory_git.charon.house import NOT_FOUND, House, Passage
from memory_git.charon.judging import (
    as_reviews,
    judge,
    judge_plan,
    keep_conflicts,
    missing,
    reviews_of,
    shown_proposal,
    shown_review,
    work_of,
)
from memory_git.charon.refs import find_ref, require_changeset, require_ref, working_ref
from memory_git.charon.refusals import refused_before
from memory_git.charon.seeing import seen_proposals, sees
from memory_git.charon.standings import Identity
from memory_git.domain.errors import Clash, Invalid, NotFound, TooLarge
from memory_git.domain.policy import SERVICE_PRINCIPAL, Audience, knows_project
from memory_git.domain.project_policy import MAX_LIFETIME_S, MIN_LIFETIME_S
from memory_git.domain.proposals import FINAL_STATUSES, KINDS, OPEN_STATUSES, STATUSES, with_resolutions
from memory_git.domain.times import format_time
from memory_git.lethe.protocol import Json
from memory_git.storage import charon_proposals
from memory_git.storage.charon_proposals import ProposalRow
from memory_git.storage.sqlite import Connection

MAX_TITLE_BYTES = 1024
MAX_MESSAGE_BYTES = 16 * 1024
MAX_PAGE = 200
_OPEN = tuple(sorted(OPEN_STATUSES))


@dataclass(frozen=True, slots=True)
class Asked:
    """What a caller asks to have merged."""

    target_ref: str
    source_ref: str | None
    head_changeset_id: str | None
    base_changeset_id: str | None
    kind: str
    title: str
    message: str
    selected_ops: Sequence[Mapping[str, Any]] | None
    lifetime_s: int | None

    def stated(self) -> dict[str, Any]:
        """Gives the request, as the ledger digests it."""
        selected = [dict(item) for item in self.selected_ops] if self.selected_ops is not None else None
        return {**{name: getattr(self, name) for name in self.__slots__}, "selected_ops": selected}


def propose(
    house: House, caller: Caller, project: str | None, asked: Asked, idempotency_key: str | None
) -> Json:
    """Makes a proposal and gives it as `proposal` does, with `replayed`."""
    request = {**asked.stated(), "idempotency_key": idempotency_key}
    with house.changes(caller, "propose", project, "memory.propose", **request) as passage:
        return propose_in(house, passage, asked, idempotency_key)


def propose_in(house: House, passage: Passage, asked: Asked, idempotency_key: str | None) -> Json:
    """Makes a proposal inside a call that was let in."""
    _check(asked)
    proposal_id = _reserved_id(house, passage, asked, idempotency_key)
    passage.ids["proposal_id"] = proposal_id
    with house.database.read() as connection:
        row = charon_proposals.get(connection, passage.project_id, proposal_id)
    opened = False
    if row is None:
        row = _pinned(house, passage, asked, proposal_id)
        with house.database.read() as connection:
            twin = _twin(house, connection, row)
        opened = twin is None and _open(house, passage, row)
        passage.ids["proposal_id"] = proposal_id = twin or proposal_id
    row = require(house, passage.project_id, proposal_id)
    passage.replayed = not opened
    return {**detail(house, row, passage), "replayed": not opened}


def proposals(
    house: House, caller: Caller, project: str | None, status: str | None, limit: int, after: str | None
) -> Json:
    """Gives `{proposals, next?}`, newest first; `after` is a page's `next`."""
    request = {"status": status, "limit": limit, "after": after}
    with house.reads(caller, "proposals", project, "memory.read", **request) as passage:
        if status is not None and status not in (*STATUSES, "open"):
            raise Invalid("bad_status", f"status is open, or one of {', '.join(STATUSES)}")
        if not 1 <= limit <= MAX_PAGE:
            raise Invalid("bad_limit", f"limit is a number from 1 to {MAX_PAGE}")
        wanted = _OPEN if status == "open" else (status,) if status else STATUSES
        stored = wanted if status != "expired" else (*_OPEN, "expired")
        seen = (as_of(house, row) for row in seen_proposals(house, passage, tuple(stored), after))
        rows = list(islice((row for row in seen if row.status in wanted), limit + 1))
        found = [_listed(house, row, passage.audience) for row in rows[:limit]]
        return {"proposals": found, **({"next": found[-1]["proposal_id"]} if len(rows) > limit else {})}


def proposal(house: House, caller: Caller, proposal_id: str) -> Json:
    """Gives a proposal with its diff, conflicts, reviews, whether it is stale, and what is missing to merge it."""
    project_id = project_of(house, caller, "proposal", proposal_id)
    with house.reads(caller, "proposal", project_id, "memory.read", proposal_id=proposal_id) as passage:
        passage.ids["proposal_id"] = proposal_id
        return detail(house, require_seen(house, passage, proposal_id), passage)


def project_of(house: House, caller: Caller, route: str, proposal_id: str) -> str:
    """Gives the project of a proposal that the caller may see; else it is denied as one that isn't there, whatever scope it lacks."""
    with house.database.read() as connection:
        project_id = charon_proposals.project_of(connection, proposal_id)
        row = charon_proposals.get(connection, project_id, proposal_id) if project_id else None
    identity = house.identify(caller)
    if row is None or not _knows(house, caller, identity, row):
        call = house.call(caller, route, project_id, {"proposal_id": proposal_id})
        house.deny(call, "no such proposal for this caller", known=False)
    return row.project_id


def _knows(house: House, caller: Caller, identity: Identity, row: ProposalRow) -> bool:
    return knows_project(identity.standing, row.project_id) and sees(
        house, house.reader(caller, identity, row.project_id), row
    )


def require(house: House, project_id: str, proposal_id: str) -> ProposalRow:
    """Gives a proposal as of now (rule 4)."""
    with house.database.read() as connection:
        row = charon_proposals.get(connection, project_id, proposal_id)
    if row is None:
        raise Clash("proposal_absent", "the proposal is not in its project")
    return as_of(house, row)


def require_seen(house: House, passage: Passage, proposal_id: str) -> ProposalRow:
    """Gives a proposal that the caller may see, as of now."""
    row = require(house, passage.project_id, proposal_id)
    if not sees(house, passage, row):
        raise NotFound("not_found", NOT_FOUND)
    return row


def as_of(house: House, row: ProposalRow) -> ProposalRow:
    """Gives a proposal with the status that it has by the clock."""
    overdue = row.status in OPEN_STATUSES and row.expires_at <= house.time()
    return replace(row, status="expired") if overdue else row


def require_open(house: House, row: ProposalRow) -> ProposalRow:
    """Gives the proposal back when it is open; one whose time is over is closed first."""
    if row.status in OPEN_STATUSES:
        return row
    if row.status == "expired" and row.closed_by is None:
        close(house, row, "expired", "system")
    raise Clash("proposal_closed", f"the proposal is {row.status}", proposal_status=row.status)


def close(house: House, row: ProposalRow, status: str, by: str, **changes: Any) -> ProposalRow:
    """Ends an open proposal and follows up in the store; raises Clash when another call ended it first."""
    changes = {"status": status, "closed_by": by, "updated_at": house.time(), **changes}
    house.ledger.write(lambda connection: change_open(connection, row, **changes))
    closed = keeping.follow_up(house, keeping.reload(house, row))
    announce(house, closed)
    return closed


def change_open(connection: Connection, row: ProposalRow, **changes: Any) -> None:
    """Changes an open proposal of which no merge is under way (rule 6); raises Clash else."""
    if charon_proposals.is_under_way(connection, row.project_id, row.proposal_id):
        raise Clash("merge_under_way", "a merge of the proposal is under way: see what became of it")
    if not charon_proposals.change(connection, row, _OPEN, **changes):
        raise Clash("proposal_closed", "the proposal was closed meanwhile")


def announce(house: House, row: ProposalRow, event_type: str = "proposal_changed") -> None:
    """Tells the live feed of a proposal."""
    house.feed.publish(
        event_type,
        row.project_id,
        proposal_id=row.proposal_id,
        status=row.status,
        target_ref=row.target_ref,
    )


def detail(house: House, row: ProposalRow, passage: Passage) -> Json:
    """Gives a proposal with all that a reviewer needs, as the caller may see it."""
    audience = passage.audience
    reviews = reviews_of(house, row)
    shown: Json = {"reviews": [shown_review(item) for item in reviews]}
    current = house.lethe.resolve_ref(row.project_id, row.target_ref)["head_changeset_id"]
    shown |= {"current_head": current, "stale": current != row.target_head_at_creation}
    stored = house.lethe.list_conflicts(
        row.project_id, proposal_id=row.proposal_id, limit=MAX_PAGE, audience=audience
    )
    if row.status in FINAL_STATUSES:
        shown |= {
            "diff": _closed_diff(house, row, audience),
            "conflicts": stored,
            "stale": False,
            "refused_before": [],
            "verdict": {"mergeable": False, "missing": []},
        }
        return {**shown_proposal(row, reviews, [item["conflict_id"] for item in stored]), **shown}
    judgement = judge(house, row)
    lacking = missing(house, row, judgement, as_reviews(reviews))
    seen = house.lethe.plan_merge(row.project_id, judgement.target_head, work_of(row), audience)
    conflicts = with_resolutions(seen["conflicts"], stored)
    shown |= {
        "diff": seen["diff"],
        "conflicts": conflicts,
        "unsettled": seen["unsettled"],
        "authors": judgement.authors,
        "refused_before": refused_before(house, passage, row, seen["diff"]),
        "strategy": "cherry_pick" if row.selected_ops is not None else seen["strategy"],
        "verdict": {"mergeable": not lacking, "missing": [item.to_json() for item in lacking]},
    }
    listed = shown_proposal(row, reviews, [item["conflict_id"] for item in conflicts])
    return {**listed, "judged_digest": judgement.digest, **shown}


def _closed_diff(house: House, row: ProposalRow, audience: Audience) -> Json:
    """Gives what a closed proposal changed, or would have, with those of its own conflicts that are open; a page if it is too large."""
    target = row.merged_changeset_id or work_of(row)
    is_whole_work = row.merged_changeset_id is None and row.candidate_changeset_id is None
    base = row.base_changeset_id if is_whole_work else None
    try:
        diff = house.lethe.diff(target, base, audience)
    except TooLarge:
        diff = house.lethe.diff(target, base, audience, limit=MAX_PAGE)
    own = [
        {**item, "proposal_ids": [row.proposal_id]}
        for item in diff["unresolved_conflicts"]
        if row.proposal_id in item["proposal_ids"]
    ]
    return {**diff, "unresolved_conflicts": own}


def _listed(house: House, row: ProposalRow, audience: Audience) -> Json:
    stored = house.lethe.list_conflicts(
        row.project_id, proposal_id=row.proposal_id, limit=MAX_PAGE, audience=audience
    )
    return shown_proposal(row, reviews_of(house, row), [item["conflict_id"] for item in stored])


def _check(asked: Asked) -> None:
    if asked.kind not in KINDS:
        raise Invalid("bad_kind", f"kind is one of {', '.join(KINDS)}")
    for name, most in (("title", MAX_TITLE_BYTES), ("message", MAX_MESSAGE_BYTES)):
        if len(getattr(asked, name).encode("utf-8", "replace")) > most:
            raise Invalid("too_long", f"{name} has at most {most} bytes", field=name)
    if asked.lifetime_s is not None and not MIN_LIFETIME_S <= asked.lifetime_s <= MAX_LIFETIME_S:
        raise Invalid("bad_lifetime", f"lifetime_s lies between {MIN_LIFETIME_S} and {MAX_LIFETIME_S}")
    if asked.selected_ops is not None and not asked.selected_ops:
        raise Invalid("nothing_selected", "select at least one op: {changeset_id, ordinal}")


def _reserved_id(house: House, passage: Passage, asked: Asked, key: str | None) -> str:
    """Gives the id of the proposal to make: a fresh one, or the one that the idempotency key stands for."""
    fresh = str(uuid7())
    if key is None:
        return fresh
    digest = house.ledger.request_digest(asked.stated())
    known_digest, answer = house.ledger.write(
        lambda connection: charon_proposals.keep_answer(
            connection,
            passage.project_id,
            passage.principal_id,
            route="propose",
            key=key,
            request_digest=digest,
            answer=json.dumps(fresh),
        )
    )
    if known_digest != digest:
        raise Clash("idempotency_mismatch", "the idempotency key was used for another proposal")
    return str(json.loads(answer))


def _pinned(house: House, passage: Passage, asked: Asked, proposal_id: str) -> ProposalRow:
    """Gives the proposal with its heads resolved (rule 1), not judged yet."""
    lethe, project_id = house.lethe, passage.project_id
    target = require_ref(house, passage, asked.target_ref)
    if not target["protected"]:
        raise Invalid("target_not_protected", "the target is not protected: commit or merge to it directly")
    source_ref, head = _source(house, passage, asked)
    bases = lethe.merge_base(project_id, target["head_changeset_id"], head)
    if asked.base_changeset_id is not None:
        require_changeset(house, passage, asked.base_changeset_id)
    elif not bases:
        raise Clash("unrelated_histories", "the head has no ancestor in common with the target")
    now = house.now()
    lifetime_s = asked.lifetime_s or policy_of(house, project_id).proposal_lifetime_s
    return ProposalRow(
        project_id=project_id,
        proposal_id=proposal_id,
        kind=asked.kind,
        originator=passage.principal_id,
        title=asked.title,
        message=asked.message,
        source_ref=source_ref,
        base_changeset_id=asked.base_changeset_id or bases[0],
        head_changeset_id=head,
        target_ref=asked.target_ref,
        target_head_at_creation=target["head_changeset_id"],
        selected_ops=None if asked.selected_ops is None else tuple(dict(item) for item in asked.selected_ops),
        status="pending",
        judged_digest="",
        kept_ref=keeping.kept_ref(proposal_id, 0),
        candidate_changeset_id=None,
        created_at=format_time(now),
        updated_at=format_time(now),
        expires_at=format_time(now + timedelta(seconds=lifetime_s)),
    )


def _twin(house: House, connection: Connection, row: ProposalRow) -> str | None:
    """Gives the open proposal that says the same already, if any; one with other words is refused by name (rule 5)."""
    found = charon_proposals.open_of_head(connection, row.project_id, row.target_ref, row.head_changeset_id)
    for item in found:
        is_same_work = (item.originator, item.selected_ops) == (row.originator, row.selected_ops)
        if not is_same_work or item.proposal_id == row.proposal_id or item.expires_at <= house.time():
            continue
        if (item.kind, item.title, item.message, item.base_changeset_id) != (
            row.kind,
            row.title,
            row.message,
            row.base_changeset_id,
        ):
            raise Clash(
                "already_proposed",
                f"the same head is proposed already as {item.proposal_id}: cancel that one first",
                proposal_id=item.proposal_id,
            )
        return item.proposal_id
    return None


def _own_work(house: House, passage: Passage) -> Json:
    """Gives the caller's working branch, which is there once something was committed to it."""
    ref_name = working_ref(passage)
    found = find_ref(house, passage.project_id, ref_name)
    if found is None:
        raise NotFound(
            "ref_not_found", f"{ref_name} is not there yet: commit to it first, or name the ref to propose"
        )
    return found


def _source(house: House, passage: Passage, asked: Asked) -> tuple[str, str]:
    """Gives the ref and the head that are proposed: the head named, else the ref's, else the working branch's."""
    if asked.head_changeset_id is None:
        ref = require_ref(house, passage, asked.source_ref) if asked.source_ref else _own_work(house, passage)
        return ref["ref_name"], ref["head_changeset_id"]
    changeset = require_changeset(house, passage, asked.head_changeset_id)
    if asked.source_ref is None:
        return changeset["ref_name"], changeset["changeset_id"]
    ref = require_ref(house, passage, asked.source_ref)
    if not house.lethe.is_ancestor(passage.project_id, changeset["changeset_id"], ref["head_changeset_id"]):
        raise Invalid("head_not_on_ref", "the source ref does not reach the head that is proposed")
    return ref["ref_name"], changeset["changeset_id"]


def _open(house: House, passage: Passage, row: ProposalRow) -> bool:
    """Stores a pinned proposal: kept, picked where ops are selected, judged, its conflicts bound to it.

    False when a call with the same idempotency key was quicker.
    """
    if row.selected_ops is not None:
        row = _picked(house, passage, row)
    target = row.target_head_at_creation
    plan = house.lethe.plan_merge(row.project_id, target, work_of(row))
    _require_mergeable(house, row, plan)
    keeping.keep(house, row.project_id, row.kept_ref, row.head_changeset_id)
    judgement = keep_conflicts(house, row, judge_plan(house, row, plan))
    row = replace(row, judged_digest=judgement.digest)

    def store(connection: Connection) -> bool:
        if twin := _twin(house, connection, row):
            raise Clash(
                "already_proposed", f"the same head was proposed meanwhile as {twin}", proposal_id=twin
            )
        house.ledger.settle_in(connection, passage.call, passage.intent_seq, "done", passage.ids)
        return charon_proposals.add(connection, row)

    opened = house.ledger.write(store)
    passage.settled = True
    if opened:
        announce(house, row, "proposal_opened")
    return opened


def _picked(house: House, passage: Passage, row: ProposalRow) -> ProposalRow:
    for name in sorted({str(item.get("changeset_id")) for item in row.selected_ops or ()}):
        require_changeset(house, passage, name)
        if not house.lethe.is_ancestor(row.project_id, name, row.head_changeset_id):
            raise Invalid("op_not_in_head", "a selected op is not in what the head reaches")
    plan = house.lethe.plan_cherry_pick(row.project_id, row.selected_ops or (), row.target_head_at_creation)
    candidate = keeping.pick_candidate(house, row, row.target_head_at_creation, plan)
    return replace(row, candidate_changeset_id=candidate)


def _require_mergeable(house: House, row: ProposalRow, plan: Json) -> None:
    """Refuses what brings nothing, or would make something private reachable (rule 2)."""
    if plan["strategy"] == "up_to_date":
        raise Clash(
            "nothing_to_merge", "the target holds all of it already", current_head=plan["target_head"]
        )
    if plan["private_memory_count"]:
        raise Clash(
            "private_in_delta",
            "it holds private memory, which never becomes reachable from a protected ref: select the other ops",
            private_memory_count=plan["private_memory_count"],
            selectable_ops=_selectable(house, row),
        )


def _selectable(house: House, row: ProposalRow) -> list[Json]:
    """Gives the ops beyond the target that touch nothing private, oldest first."""
    everyone = Audience(SERVICE_PRINCIPAL, frozenset({"internal", "shared", "public"}))
    page = house.lethe.log(row.project_id, head=row.head_changeset_id, limit=MAX_PAGE, audience=everyone)
    beyond = [
        item
        for item in page["changesets"]
        if not house.lethe.is_ancestor(row.project_id, item["changeset_id"], row.target_head_at_creation)
    ]
    return [
        {"changeset_id": item["changeset_id"], "ordinal": op["ordinal"]}
        for item in reversed(beyond)
        for op in item["ops"]
        if not op.get("withheld")
    ]

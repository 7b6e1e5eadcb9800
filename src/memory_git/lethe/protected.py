"""Protected merges: a signed, single-use, expiring authorization, and everything that Lethe checks itself (5-lethe).

In the order of the code:
1. the envelope against the request, keys and clock; the reviewed state against the envelope's digest: a failure leaves no nonce;
2. the nonce is burnt: from here on it stays burnt, whatever happens below;
3. in an inner savepoint: head, shape, authors, private records and ops, conflicts; then the ref moves, events and the advance are written.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from memory_git.domain import trie
from memory_git.domain.canonical import canonical_bytes, decode
from memory_git.domain.envelope import Envelope, MergeKeys, MergeRequest, authorize
from memory_git.domain.errors import Clash, Invalid, NotAllowed, Refused, Unavailable
from memory_git.domain.ids import is_uuid
from memory_git.domain.ops import ATTACH_OPS
from memory_git.domain.policy import Denied, may_judge
from memory_git.domain.proposals import lone_merge_allowed, state_digest
from memory_git.domain.times import format_time
from memory_git.domain.trie import Entry
from memory_git.lethe import conflict_rows, events
from memory_git.lethe.authorship import authors_of
from memory_git.lethe.feed import Feed
from memory_git.lethe.meeting import meet
from memory_git.lethe.refs import move_ref, ref_moved, require_ref
from memory_git.lethe.session import View, is_redacted
from memory_git.lethe.transaction import Transaction
from memory_git.storage import lethe_history, lethe_receipts
from memory_git.storage.lethe_history import ChangesetRow, RefRow
from memory_git.storage.lethe_receipts import AdvanceRow

ACCEPTED_EVENT = "memory_accepted"
MAX_NAMED_OPS = 100
_TEXT_NAMES = (
    "ref_name",
    "expected_head",
    "new_head",
    "merge_proposal_id",
    "reviewer_principal",
    "merge_authorization",
)


def read_merge_request(
    project_id: str, raw: Mapping[str, Any], keys: MergeKeys | None, now: datetime
) -> tuple[Envelope, dict[str, Any]]:
    """Checks a merge request against its envelope (rule 1) and gives both."""
    if keys is None:
        raise Unavailable("merges_unavailable", "no merge key is set: protected merges are unavailable")
    for name in _TEXT_NAMES:
        if not isinstance(raw.get(name), str) or not raw[name]:
            raise Invalid("invalid_merge_request", f"{name} must be a non-empty string")
    request = MergeRequest(
        project_id,
        raw["ref_name"],
        raw["expected_head"],
        raw["new_head"],
        raw["merge_proposal_id"],
        raw["reviewer_principal"],
    )
    envelope = authorize(raw["merge_authorization"], request, keys, now)
    state = raw.get("proposal_state")
    if state is not None and not _state_agrees(state, envelope):
        raise NotAllowed(
            "invalid_authorization",
            "the proposal state is not the one that was signed",
            reason="field_mismatch",
        )
    if not is_uuid(request.new_head) or not is_uuid(request.expected_head):
        raise Invalid("invalid_merge_request", "heads are changeset ids")
    return envelope, dict(raw)


def _state_agrees(state: Any, envelope: Envelope) -> bool:
    if not isinstance(state, dict) or set(state) != {"judged", "reviews"}:
        return False
    judged, reviews = state["judged"], state["reviews"]
    if not isinstance(judged, dict) or not isinstance(judged.get("policy"), dict):
        return False
    if not isinstance(reviews, list) or not all(isinstance(review, dict) for review in reviews):
        return False
    return hmac.compare_digest(state_digest(state), envelope.proposal_digest)


def merge_ref(
    transaction: Transaction, feed: Feed, envelope: Envelope, raw: Mapping[str, Any]
) -> RefRow | Refused:
    """Burns the nonce and moves the ref, or gives the refusal as a value, so that the nonce stays burnt (rules 2, 3)."""
    row = require_ref(transaction, envelope.ref_name)
    if not row.protected:
        raise Invalid("ref_not_protected", "the ref is not protected: advance it, or commit a merge to it")
    at = format_time(transaction.sources.now())
    if not lethe_receipts.burn_nonce(
        transaction.connection, transaction.project_id, envelope.nonce, envelope.proposal_id, at
    ):
        raise Clash(
            "authorization_replayed",
            "this authorization was used before: ask for a new one",
            current_head=row.head_changeset_id,
        )
    try:
        with transaction.connection.savepoint():
            return _advance(transaction, feed, envelope, raw, row)
    except Refused as refusal:
        return refusal


def _advance(
    transaction: Transaction, feed: Feed, envelope: Envelope, raw: Mapping[str, Any], row: RefRow
) -> RefRow:
    if row.head_changeset_id != envelope.expected_head:
        raise ref_moved(row)
    new = transaction.changeset(envelope.new_head)
    _check_shape(transaction, envelope, new)
    _check_authors(transaction, envelope, raw.get("proposal_state"))
    _check_private(transaction, envelope)
    _check_conflicts(transaction, envelope, new)
    moved = move_ref(
        transaction, feed, row, envelope.new_head, envelope.merger_principal, f"merge {envelope.proposal_id}"
    )
    _materialize(transaction, envelope)
    _record_advance(transaction, envelope, raw)
    return moved


def _check_shape(view: View, envelope: Envelope, new: ChangesetRow) -> None:
    expected, parents = envelope.expected_head, new.parents
    right = {
        "fast_forward": envelope.new_head != expected
        and view.graph().is_ancestor(expected, envelope.new_head),
        "merge_commit": len(parents) == 2 and parents[0] == expected,
        "cherry_pick": parents == (expected,),
    }
    if not right[envelope.strategy]:
        raise Clash(
            "wrong_merge_shape",
            f"the new head is not a {envelope.strategy} of the current one",
            current_head=expected,
        )


def _check_authors(view: View, envelope: Envelope, state: Mapping[str, Any] | None) -> None:
    authors = authors_of(view, envelope.new_head, envelope.expected_head, envelope.strategy)
    lone = state is not None and lone_merge_allowed(state)
    for principal in (envelope.reviewer_principal, envelope.merger_principal):
        verdict = may_judge(principal, authors, lone_person_may_merge=lone, judge_kind="human")
        if isinstance(verdict, Denied):
            raise NotAllowed("denied", f"denied: {verdict.reason}")


def _check_private(view: View, envelope: Envelope) -> None:
    if private_in_delta(view, envelope.new_head, envelope.expected_head):
        raise Clash(
            "private_in_delta",
            "a private record, or an earlier private op, would become reachable: cherry-pick the rest",
            current_head=envelope.expected_head,
            private_ops=_private_ops(view, envelope.new_head, envelope.expected_head),
        )


def _private_ops(view: View, head: str, without: str) -> list[dict[str, Any]]:
    """Names the first private ops of a delta: `[{changeset_id, ordinal}]`."""
    delta = view.graph().reachable_not_from(head, [without])
    rows = lethe_history.changeset_rows(view.connection, view.project_id, delta)
    names = {row: changeset_id for changeset_id, row in rows.items()}
    places = lethe_history.private_op_places(view.connection, view.project_id, list(names), MAX_NAMED_OPS)
    return [{"changeset_id": names[row], "ordinal": ordinal} for row, ordinal in places]


def private_in_delta(view: View, head: str, without: str) -> int:
    """Counts the memories and ops that are private and would become reachable from `without`'s ref."""
    delta = view.graph().reachable_not_from(head, [without])
    rows = lethe_history.changeset_rows(view.connection, view.project_id, delta)
    ops = lethe_history.private_ops(view.connection, view.project_id, list(rows.values()))
    records = (view.record(entry) for entry in _made_reachable(view, without, head))
    return ops + sum(record.visibility == "private" and not is_redacted(record) for record in records)


def _made_reachable(view: View, before: str, after: str) -> list[Entry]:
    """Gives the entries of a state that are not in an earlier one, their records read ahead."""
    pairs = trie.diff(view, view.roots(before)[0], view.roots(after)[0])
    found = [entry for _, entry in pairs if entry is not None]
    view.load(found)
    return found


def _check_conflicts(transaction: Transaction, envelope: Envelope, new: ChangesetRow) -> None:
    source = new.parents[1] if envelope.strategy == "merge_commit" else envelope.new_head
    meeting = meet(transaction, envelope.expected_head, source)
    if envelope.strategy == "merge_commit":
        _check_own_ops(transaction, new, meeting.merged.conflicted.keys())
    unresolved = conflict_rows.unresolved_blocking(transaction, meeting)
    if unresolved:
        raise Clash(
            "merge_conflicts",
            f"{len(unresolved)} blocking conflict(s) have no recorded resolution",
            conflicts=unresolved,
            current_head=envelope.expected_head,
        )


def _check_own_ops(view: View, new: ChangesetRow, conflicted: Collection[str]) -> None:
    """Lets a merge changeset attest, and settle what both sides changed; anything more would be nobody's reviewed work."""
    for op in lethe_history.ops_of(view.connection, view.project_id, new.id):
        attests = op.op_type in ATTACH_OPS and op.target_event_id is None
        if not attests and op.target_event_id not in conflicted:
            raise Clash(
                "wrong_merge_shape",
                "a merge changeset's own ops only settle what both sides changed: propose the rest apart",
                ordinal=op.ordinal,
            )


def _materialize(transaction: Transaction, envelope: Envelope) -> None:
    """Appends one event per record that was accepted or changed: what became accepted, and when."""
    accepted = _made_reachable(transaction, envelope.expected_head, envelope.new_head)
    events.put(transaction, (_acceptance(transaction, envelope, entry) for entry in accepted))


def _acceptance(transaction: Transaction, envelope: Envelope, entry: Entry) -> events.Happening:
    return events.Happening(
        transaction.sources.new_id(),
        ACCEPTED_EVENT,
        "",
        transaction.record(entry).memory_id,
        envelope.merger_principal,
        envelope.new_head,
        entry.digest.hex(),
    )


def _record_advance(transaction: Transaction, envelope: Envelope, raw: Mapping[str, Any]) -> None:
    state = raw.get("proposal_state")
    lethe_receipts.put_advance(
        transaction.connection,
        AdvanceRow(
            transaction.project_id,
            lethe_receipts.next_advance_seq(transaction.connection, transaction.project_id),
            transaction.sources.new_id(),
            envelope.ref_name,
            envelope.expected_head,
            envelope.new_head,
            envelope.proposal_id,
            envelope.nonce,
            raw["merge_authorization"],
            canonical_bytes(state) if state is not None else None,
            format_time(transaction.sources.now()),
        ),
    )


def shown_advance(row: AdvanceRow) -> dict[str, Any]:
    """Gives the wire form of an advance: the envelope's fields, the signature apart."""
    envelope = decode(row.envelope_wire)["envelope"]
    return {
        "advance_id": row.advance_id,
        "seq": row.seq,
        "ref_name": row.ref_name,
        "from_head": row.from_head,
        "to_head": row.to_head,
        "proposal_id": row.proposal_id,
        "proposal_digest": envelope["proposal_digest"],
        "strategy": envelope["strategy"],
        "reviewer_principal": envelope["reviewer_principal"],
        "merger_principal": envelope["merger_principal"],
        "nonce": row.nonce,
        "version": envelope["version"],
        "at": row.at,
    }

"""Refs and their logs: made, moved by compare-and-swap, resolved at a time (5-lethe, writing)."""

from __future__ import annotations

from typing import Any

from memory_git.domain import chain
from memory_git.domain.errors import Clash, Invalid, NotAllowed, NotFound
from memory_git.domain.ids import is_uuid, parse_ref
from memory_git.domain.times import format_time, parse_time
from memory_git.lethe.feed import Feed
from memory_git.lethe.session import View
from memory_git.lethe.transaction import Transaction
from memory_git.storage import lethe_history
from memory_git.storage.lethe_history import RefMove, RefRow


def shown_ref(row: RefRow) -> dict[str, Any]:
    """Gives the wire form of a ref."""
    return {**row._asdict(), "protected": bool(row.protected)}


def require_ref(view: View, ref_name: str) -> RefRow:
    """Gives a ref, or raises NotFound `ref_not_found`."""
    parse_ref(ref_name)
    found = known_ref(view, ref_name)
    if found is None:
        raise NotFound("ref_not_found", "no such ref in this project")
    return found


def known_ref(view: View, ref_name: str) -> RefRow | None:
    """Gives a ref, or None."""
    return view.connection.recall(
        ("ref", view.project_id, ref_name),
        lambda: lethe_history.get_ref(view.connection, view.project_id, ref_name),
    )


def _last_move(view: View, ref_name: str) -> RefMove | None:
    return view.connection.recall(
        ("last move", view.project_id, ref_name),
        lambda: lethe_history.last_move(view.connection, view.project_id, ref_name),
    )


def refuse_protected(ref_name: str, row: RefRow | None, asked: bool = False) -> None:
    """Raises NotAllowed `protected_ref` for a ref that moves by signed merges only, or a request to make one."""
    if parse_ref(ref_name).is_protected_by_name or asked or (row is not None and row.protected):
        raise NotAllowed(
            "protected_ref", "a protected ref moves only by a reviewed, signed merge: propose one"
        )


def create_ref(
    transaction: Transaction,
    feed: Feed,
    ref_name: str,
    head: str,
    principal: str,
    *,
    protected: bool,
    reason: str,
) -> RefRow:
    """Makes a ref at a changeset and opens its log."""
    parse_ref(ref_name)
    at = format_time(transaction.sources.now())
    row = RefRow(transaction.project_id, ref_name, head, int(protected), 1, at, at, principal)
    lethe_history.put_ref(transaction.connection, row)
    _remember(transaction, row)
    _log(transaction, feed, row, None, reason)
    return row


def move_ref(
    transaction: Transaction, feed: Feed, row: RefRow, new_head: str, principal: str, reason: str
) -> RefRow:
    """Moves a ref from the head that was read; raises Clash `ref_moved` when it has another by now."""
    at = _monotone(transaction, row.ref_name, format_time(transaction.sources.now()))
    moved = row._replace(
        head_changeset_id=new_head, version=row.version + 1, updated_at=at, updated_by=principal
    )
    if not lethe_history.swap_head(transaction.connection, moved, row.head_changeset_id):
        raise ref_moved(require_ref(transaction, row.ref_name))
    _remember(transaction, moved)
    _log(transaction, feed, moved, row.head_changeset_id, reason)
    return moved


def _remember(transaction: Transaction, row: RefRow) -> None:
    transaction.connection.memo["ref", row.project_id, row.ref_name] = row


def ref_moved(row: RefRow) -> Clash:
    """Gives the refusal of a lost race, with the head to go on from."""
    return Clash(
        "ref_moved",
        f"{row.ref_name} has moved: rebase or merge onto its current head",
        ref_name=row.ref_name,
        current_head=row.head_changeset_id,
    )


def _monotone(transaction: Transaction, ref_name: str, at: str) -> str:
    last = _last_move(transaction, ref_name)
    return max(at, last.at) if last else at


def _log(transaction: Transaction, feed: Feed, row: RefRow, from_head: str | None, reason: str) -> None:
    last = _last_move(transaction, row.ref_name)
    move = RefMove(
        row.project_id,
        row.ref_name,
        last.seq + 1 if last else 1,
        from_head,
        row.head_changeset_id,
        row.updated_by,
        reason,
        row.updated_at,
        "",
    )
    move = move._replace(digest=chain.link(last.digest if last else None, move_view(move)))
    lethe_history.put_move(transaction.connection, move)
    transaction.connection.memo["last move", row.project_id, row.ref_name] = move
    facts: dict[str, Any] = {
        "ref_name": row.ref_name,
        "from_head": from_head,
        "to_head": row.head_changeset_id,
    }
    facts |= {"principal": row.updated_by, "protected": bool(row.protected)}
    transaction.connection.after_commit(lambda: _announce(feed, row.project_id, facts))


def _announce(feed: Feed, project_id: str, facts: dict[str, Any]) -> None:
    feed.publish("ref_moved", project_id, **facts)


def move_view(move: RefMove) -> dict[str, Any]:
    """Gives what the chain of a ref's log covers of one move (FORMAT §8)."""
    return {name: value for name, value in move._asdict().items() if name != "digest"}


def create_branch(
    transaction: Transaction, feed: Feed, ref_name: str, head: str, principal: str, protected: bool
) -> RefRow:
    """Makes an unprotected ref at a changeset; the same again gives the same ref."""
    found = known_ref(transaction, ref_name)
    refuse_protected(ref_name, found, asked=protected)
    transaction.changeset(head)
    if found is None:
        return create_ref(transaction, feed, ref_name, head, principal, protected=False, reason="branch")
    if found.head_changeset_id != head:
        raise Clash(
            "ref_exists",
            f"{ref_name} exists with another head",
            ref_name=ref_name,
            current_head=found.head_changeset_id,
        )
    return found


def advance_ref(
    transaction: Transaction, feed: Feed, ref_name: str, expected_head: str, new_head: str, principal: str
) -> RefRow:
    """Moves an unprotected ref to a descendant of the expected head."""
    row = require_ref(transaction, ref_name)
    refuse_protected(ref_name, row)
    if row.head_changeset_id != expected_head:
        raise ref_moved(row)
    transaction.changeset(new_head)
    if not transaction.graph().is_ancestor(expected_head, new_head):
        raise Clash(
            "not_fast_forward",
            "the new head does not descend from the current one: rebase or merge",
            current_head=expected_head,
        )
    return move_ref(transaction, feed, row, new_head, principal, "advance")


def resolve_ref(view: View, ref_name: str, at: str | None) -> dict[str, Any]:
    """Gives a ref as it is, or with the head that it had at a time, or when it stood at a changeset."""
    row = require_ref(view, ref_name)
    if at is None:
        return shown_ref(row)
    if is_uuid(at):
        move = lethe_history.move_to(view.connection, view.project_id, ref_name, at)
    else:
        moment = parse_time(at)
        if moment is None:
            raise Invalid("bad_time", "`at` is an RFC 3339 time or a changeset id")
        move = lethe_history.move_at(view.connection, view.project_id, ref_name, format_time(moment))
    if move is None:
        raise NotFound("ref_not_found", "the ref did not exist then")
    return {
        **shown_ref(row),
        "head_changeset_id": move.to_head,
        "updated_at": move.at,
        "updated_by": move.principal,
        "version": move.seq,
    }

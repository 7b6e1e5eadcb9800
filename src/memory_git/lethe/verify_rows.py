"""Checks of what stands beside the states: refs and logs, manifests, advances, conflicts, assemblies (5-lethe, verify).

A move that was made elsewhere has no signed authorization here. Such moves are let pass at the beginning of a protected ref's log only,
and counted; once a signed move has been made, each later one needs its own.
"""

from __future__ import annotations

from memory_git.domain import chain
from memory_git.domain.canonical import decode, sha256_hex
from memory_git.domain.conflicts import conflict_id
from memory_git.domain.envelope import MergeKeys, signature_holds
from memory_git.domain.ids import parse_ref
from memory_git.domain.proposals import state_digest
from memory_git.lethe import assemblies, manifests
from memory_git.lethe.adopting import IMPORTED, is_imported
from memory_git.lethe.refs import move_view
from memory_git.lethe.report import Report
from memory_git.lethe.session import View
from memory_git.storage import lethe_conflicts, lethe_history, lethe_receipts
from memory_git.storage.lethe_history import RefMove, RefRow
from memory_git.storage.lethe_receipts import AdvanceRow


def check_refs(view: View, report: Report) -> None:
    """Checks each ref against its own log, and each log's chain."""
    listed = lethe_history.list_refs(view.connection, view.project_id)
    for row in listed:
        with report.each("ref", row.ref_name):
            moves = lethe_history.ref_log(view.connection, view.project_id, row.ref_name)
            _check_log(view, moves, report)
            _check_ref(row, moves, report)
    names = {row.ref_name for row in listed}
    for name in lethe_history.logged_refs(view.connection, view.project_id):
        report.expect(name in names, "ref", name, "has a log and no row")


def _check_log(view: View, moves: list[RefMove], report: Report) -> None:
    previous, head, at = None, None, ""
    for place, move in enumerate(moves, 1):
        report.checked["ref_log"] += 1
        name = f"{move.ref_name}#{move.seq}"
        linked = chain.link(previous, move_view(move)) == move.digest
        report.expect(linked, "ref_log", name, "the chain does not agree")
        follows = move.seq == place and move.from_head == head
        report.expect(follows, "ref_log", name, "does not follow the one before")
        report.expect(move.at >= at, "ref_log", name, "is earlier than the one before")
        view.changeset(move.to_head)
        previous, head, at = move.digest, move.to_head, move.at


def _check_ref(row: RefRow, moves: list[RefMove], report: Report) -> None:
    newest = moves[-1]
    report.expect(row.head_changeset_id == newest.to_head, "ref", row.ref_name, "the head is not the log's")
    found = (row.version, row.updated_at, row.updated_by, row.created_at)
    wanted = (newest.seq, newest.at, newest.principal, moves[0].at)
    report.expect(found == wanted, "ref", row.ref_name, "a column does not agree with the log")
    protected = parse_ref(row.ref_name).is_protected_by_name
    report.expect(row.protected == protected, "ref", row.ref_name, "the protection is not the name's")


def check_manifests(view: View, report: Report) -> None:
    """Checks each manifest, and reproduces those that pin memories."""
    for row in lethe_receipts.list_manifests(view.connection, view.project_id):
        with report.each("manifest", row.manifest_id):
            body = decode(row.body)
            report.expect(
                sha256_hex(row.body) == row.manifest_digest,
                "manifest",
                row.manifest_id,
                "the body does not agree",
            )
            same = body["manifest_id"] == row.manifest_id and body["created_at"] == row.created_at
            report.expect(same, "manifest", row.manifest_id, "a column does not agree with the body")
            if body["kind"] == "input":
                manifests.reproduce(view, row, None)


def check_advances(view: View, keys: MergeKeys | None, report: Report) -> None:
    """Checks each move of a protected ref against its authorization, and that each has one."""
    burnt = set(lethe_receipts.list_nonces(view.connection, view.project_id))
    for place, row in enumerate(lethe_receipts.list_advances(view.connection, view.project_id), 1):
        with report.each("advance", row.advance_id):
            report.expect(row.seq == place, "advance", row.advance_id, "one before it is missing")
            report.expect(row.nonce in burnt, "advance", row.advance_id, "its nonce is not burnt")
            _check_advance(view, row, keys, report)
    for ref in lethe_history.list_refs(view.connection, view.project_id):
        if ref.protected:
            _check_moves_are_authorized(view, ref.ref_name, report)


def _check_advance(view: View, row: AdvanceRow, keys: MergeKeys | None, report: Report) -> None:
    envelope = decode(row.envelope_wire)["envelope"]
    found = (row.project_id, row.ref_name, row.from_head, row.to_head, row.proposal_id, row.nonce)
    names = ("project_id", "ref_name", "expected_head", "new_head", "proposal_id", "nonce")
    same = found == tuple(envelope[name] for name in names)
    report.expect(same, "advance", row.advance_id, "a column does not agree with the authorization")
    if row.proposal_state is not None:
        agrees = state_digest(decode(row.proposal_state)) == envelope["proposal_digest"]
        report.expect(agrees, "advance", row.advance_id, "the proposal state does not agree")
    moves = lethe_history.ref_log(view.connection, view.project_id, row.ref_name)
    made = any((move.from_head, move.to_head) == (row.from_head, row.to_head) for move in moves)
    report.expect(made, "advance", row.advance_id, "the ref's log does not know it")
    if is_imported(row):
        report.checked["imported advance"] += 1
        by_import = any(
            (move.from_head, move.to_head, move.reason) == (row.from_head, row.to_head, IMPORTED)
            for move in moves
        )
        report.expect(
            by_import, "advance", row.advance_id, "has no signature, and was not imported with its ref"
        )
    elif keys is not None and keys.secret(envelope["key_id"]) is not None:
        holds = signature_holds(row.envelope_wire, keys)
        report.expect(holds, "advance", row.advance_id, "the signature does not hold")


def _check_moves_are_authorized(view: View, ref_name: str, report: Report) -> None:
    made = {
        (row.from_head, row.to_head)
        for row in lethe_receipts.list_advances(view.connection, view.project_id)
        if row.ref_name == ref_name and not is_imported(row)
    }
    at_beginning = True
    for move in lethe_history.ref_log(view.connection, view.project_id, ref_name)[1:]:
        at_beginning = at_beginning and move.reason == IMPORTED
        report.checked["imported move"] += at_beginning
        report.expect(
            at_beginning or (move.from_head, move.to_head) in made,
            "ref_log",
            f"{ref_name}#{move.seq}",
            "no authorization stands behind the move",
        )


def check_conflicts(view: View, report: Report) -> None:
    """Checks what was found of each conflict; how it was settled is not covered."""
    for bound_id in lethe_conflicts.bound_to_nothing(view.connection, view.project_id):
        report.fault("conflict", bound_id, "is bound to a proposal and absent")
    for row in lethe_conflicts.list_conflicts(view.connection, view.project_id, None, None):
        with report.each("conflict", row.conflict_id):
            body = decode(row.body)
            found = conflict_id(
                view.project_id,
                body["base_changeset_id"],
                body["left_changeset_id"],
                body["right_changeset_id"],
                body["conflict_type"],
                body["identity"],
            )
            report.expect(
                found == row.conflict_id, "conflict", row.conflict_id, "the id is not that of its body"
            )
            digested = sha256_hex(row.body) == row.body_digest
            report.expect(digested, "conflict", row.conflict_id, "the body does not agree with its digest")
            met = lethe_conflicts.proposals_of(view.connection, view.project_id, row.conflict_id)
            report.expect(bool(met), "conflict", row.conflict_id, "is met by no proposal")
            same = body["identity_digest"] == row.identity_digest and body["conflict_id"] == row.conflict_id
            report.expect(same, "conflict", row.conflict_id, "a column does not agree with the body")


def check_assemblies(view: View, report: Report) -> None:
    """Checks what each model call was given."""
    for row in lethe_receipts.all_assemblies(view.connection, view.project_id):
        with report.each("assembly", row.assembly_id):
            assemblies.shown(row)

"""What a commit will read, asked for in one round trip where the database is another process (2-architecture, engines)."""

from __future__ import annotations

from collections.abc import Callable

from memory_git.domain.changeset import CreateRequest
from memory_git.lethe.caches import Caches
from memory_git.storage import lethe_history, lethe_redaction, lethe_states
from memory_git.storage.connection import Connection
from memory_git.storage.engine import Turn

FEW_OPS = 100
"""A commit of more ops takes the whole project: it would hold too many locks else."""


def commit_turn(request: CreateRequest, caches: Caches) -> Turn:
    """Gives whose turn a commit waits for, and what it reads: in the order of `commits.create_changeset`.

    Its idempotency key makes it repeatable.
    """
    is_small = len(request.ops) <= FEW_OPS
    return Turn(
        request.project_id,
        request.ref_name if is_small else None,
        _asking(request, caches) if is_small else None,
        repeatable=True,
    )


def _asking(request: CreateRequest, caches: Caches) -> Callable[[Connection], None]:
    def ask(connection: Connection) -> None:
        at = (connection, request.project_id)
        lethe_history.get_project(*at)
        lethe_redaction.epoch(*at)
        lethe_history.changeset_of_key(*at, request.author_principal, request.idempotency_key)
        lethe_history.get_ref(*at, request.ref_name)
        lethe_history.last_move(*at, request.ref_name)
        for name in request.parent_names():
            lethe_history.get_changeset(*at, name)
        for name in sorted({name for op in request.ops for name in op.memory_ids()}):
            if caches.salts.get((request.project_id, name)) is None:
                connection.lock("memory", request.project_id, name)
                lethe_states.get_salt(*at, name)
        connection.foresee_row()

    return ask

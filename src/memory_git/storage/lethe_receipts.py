"""SQL of manifests, assemblies, burnt nonces and protected advances."""

from __future__ import annotations

from dataclasses import astuple, dataclass

from memory_git.storage.connection import Connection
from memory_git.storage.lethe_history import ALL_ROWS

_ADVANCE = "project_id, seq, advance_id, ref_name, from_head, to_head, proposal_id, nonce, envelope_wire, proposal_state, at"
_ASSEMBLY = "project_id, session_key, seq, assembly_id, body, body_digest, verdict, note, created_at"


@dataclass(frozen=True, slots=True)
class ManifestRow:
    """One manifest: its canonical JSON and the digest of that."""

    project_id: str
    manifest_id: str
    body: bytes
    manifest_digest: str
    created_at: str


@dataclass(frozen=True, slots=True)
class AdvanceRow:
    """One move of a protected ref, with the authorization that allowed it, as it was received."""

    project_id: str
    seq: int
    advance_id: str
    ref_name: str
    from_head: str
    to_head: str
    proposal_id: str
    nonce: str
    envelope_wire: str
    proposal_state: bytes | None
    at: str


@dataclass(frozen=True, slots=True)
class AssemblyRow:
    """What one model call was given, and the verdict on it."""

    project_id: str
    session_key: str
    seq: int
    assembly_id: str
    body: bytes
    body_digest: str
    verdict: str | None
    note: str | None
    created_at: str


def get_manifest(connection: Connection, project_id: str, manifest_id: str) -> ManifestRow | None:
    """Gives a manifest, or None."""
    found = connection.row(
        "SELECT project_id, manifest_id, body, manifest_digest, created_at FROM manifest"
        " WHERE project_id = ? AND manifest_id = ?",
        (project_id, manifest_id),
    )
    return ManifestRow(*found) if found else None


def list_manifests(connection: Connection, project_id: str) -> list[ManifestRow]:
    """Gives all manifests of a project, by id."""
    rows = connection.rows(
        "SELECT project_id, manifest_id, body, manifest_digest, created_at FROM manifest"
        " WHERE project_id = ? ORDER BY manifest_id",
        (project_id,),
    )
    return [ManifestRow(*row) for row in rows]


def put_manifest(connection: Connection, row: ManifestRow) -> None:
    """Inserts a manifest."""
    connection.execute("INSERT INTO manifest VALUES (?, ?, ?, ?, ?)", astuple(row))


def burn_nonce(connection: Connection, project_id: str, nonce: str, proposal_id: str, at: str) -> bool:
    """Uses a nonce up; False when it was used before."""
    connection.execute(
        "INSERT INTO merge_nonce VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (project_id, nonce, proposal_id, at),
    )
    return connection.changes() == 1


def list_nonces(connection: Connection, project_id: str) -> list[str]:
    """Gives the nonces that were used up, sorted."""
    rows = connection.rows("SELECT nonce FROM merge_nonce WHERE project_id = ? ORDER BY nonce", (project_id,))
    return [nonce for (nonce,) in rows]


def next_advance_seq(connection: Connection, project_id: str) -> int:
    """Gives the position of a project's next advance."""
    return int(
        connection.value(
            "SELECT coalesce(max(seq), 0) + 1 FROM memory_protected_ref_advances WHERE project_id = ?",
            (project_id,),
        )
    )


def put_advance(connection: Connection, row: AdvanceRow) -> None:
    """Records a move of a protected ref."""
    connection.execute(
        "INSERT INTO memory_protected_ref_advances VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", astuple(row)
    )


def list_advances(
    connection: Connection, project_id: str, after: int = 0, limit: int = ALL_ROWS
) -> list[AdvanceRow]:
    """Gives the moves of protected refs beyond one, oldest first."""
    rows = connection.rows(
        f"SELECT {_ADVANCE} FROM memory_protected_ref_advances WHERE project_id = ? AND seq > ? ORDER BY seq LIMIT ?",
        (project_id, after, limit),
    )
    return [AdvanceRow(*row) for row in rows]


def put_assembly(connection: Connection, row: AssemblyRow) -> None:
    """Records what a model call was given."""
    connection.execute("INSERT INTO assembly VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", astuple(row))


def next_assembly_seq(connection: Connection, project_id: str, session_key: str) -> int:
    """Gives the position of a session's next assembly."""
    return int(
        connection.value(
            "SELECT coalesce(max(seq), 0) + 1 FROM assembly WHERE project_id = ? AND session_key = ?",
            (project_id, session_key),
        )
    )


def get_assembly(connection: Connection, project_id: str, assembly_id: str) -> AssemblyRow | None:
    """Gives an assembly, or None."""
    found = connection.row(
        f"SELECT {_ASSEMBLY} FROM assembly WHERE project_id = ? AND assembly_id = ?",
        (project_id, assembly_id),
    )
    return AssemblyRow(*found) if found else None


def list_assemblies(connection: Connection, project_id: str, session_key: str) -> list[AssemblyRow]:
    """Gives a session's assemblies, oldest first."""
    rows = connection.rows(
        f"SELECT {_ASSEMBLY} FROM assembly WHERE project_id = ? AND session_key = ? ORDER BY seq",
        (project_id, session_key),
    )
    return [AssemblyRow(*row) for row in rows]


def all_assemblies(connection: Connection, project_id: str) -> list[AssemblyRow]:
    """Gives all assemblies of a project, for verify."""
    rows = connection.rows(
        f"SELECT {_ASSEMBLY} FROM assembly WHERE project_id = ? ORDER BY session_key, seq", (project_id,)
    )
    return [AssemblyRow(*row) for row in rows]


def set_verdict(connection: Connection, project_id: str, assembly_id: str, verdict: str, note: str) -> None:
    """Writes the verdict on an assembly."""
    connection.execute(
        "UPDATE assembly SET verdict = ?, note = ? WHERE project_id = ? AND assembly_id = ?",
        (verdict, note, project_id, assembly_id),
    )

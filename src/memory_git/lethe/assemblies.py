"""The assembly ledger: what each model call was given, and how good that was (7-context)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memory_git.domain.canonical import MAX_INTEGER, canonical_bytes, decode, sha256_hex
from memory_git.domain.errors import Corrupt, Invalid, NotFound
from memory_git.domain.ids import is_digest, is_memory_id
from memory_git.domain.times import format_time
from memory_git.lethe.transaction import Transaction
from memory_git.storage import lethe_history, lethe_receipts
from memory_git.storage.connection import Connection
from memory_git.storage.lethe_receipts import AssemblyRow

VERDICTS = ("good", "stale_included", "missing_memory", "too_large", "irrelevant", "other")
_KEYS = frozenset({"project_id", "manifest_id", "head_changeset_id", "items", "token_counts", "model"})
_MAX_ITEMS = 1_000


def record(transaction: Transaction, session_key: str, raw: Mapping[str, Any]) -> AssemblyRow:
    """Stores an assembly; refuses a manifest of another project, or one that pins another head."""
    _check(session_key, raw)
    transaction.changeset(raw["head_changeset_id"])
    manifest_id = raw.get("manifest_id")
    if manifest_id is not None:
        row = lethe_receipts.get_manifest(transaction.connection, transaction.project_id, manifest_id)
        if row is None:
            raise NotFound("manifest_not_found", "no such manifest in this project")
        if decode(row.body).get("head_changeset_id") != raw["head_changeset_id"]:
            raise Invalid("invalid_assembly", "the manifest pins another head")
    body = canonical_bytes({name: value for name, value in raw.items() if value is not None})
    assembly_id = transaction.sources.new_id()
    stored = AssemblyRow(
        transaction.project_id,
        session_key,
        lethe_receipts.next_assembly_seq(transaction.connection, transaction.project_id, session_key),
        assembly_id,
        body,
        sha256_hex(body),
        None,
        None,
        format_time(transaction.sources.now()),
    )
    lethe_receipts.put_assembly(transaction.connection, stored)
    lethe_history.put_object(transaction.connection, assembly_id, transaction.project_id, "assembly")
    return stored


def shown(row: AssemblyRow) -> dict[str, Any]:
    """Gives the wire form of an assembly, verified against its digest."""
    if sha256_hex(row.body) != row.body_digest:
        raise Corrupt("assembly", row.assembly_id, "the body does not agree with its digest")
    return {
        **decode(row.body),
        "assembly_id": row.assembly_id,
        "session_key": row.session_key,
        "seq": row.seq,
        "verdict": row.verdict,
        "note": row.note,
        "created_at": row.created_at,
    }


def require(connection: Connection, project_id: str, assembly_id: str) -> AssemblyRow:
    """Gives an assembly, or raises NotFound `assembly_not_found`."""
    row = lethe_receipts.get_assembly(connection, project_id, assembly_id)
    if row is None:
        raise NotFound("assembly_not_found", "no such assembly")
    return row


def check_verdict(verdict: str, note: str) -> None:
    """Raises Invalid `bad_verdict` for a verdict that is not one of `VERDICTS`, or a note of over 4 KiB."""
    if verdict not in VERDICTS:
        raise Invalid("bad_verdict", f"a verdict is one of {', '.join(VERDICTS)}")
    if len(note.encode("utf-8", "surrogatepass")) > 4096:
        raise Invalid("bad_verdict", "a note has at most 4,096 bytes")


def _check(session_key: str, raw: Mapping[str, Any]) -> None:
    if not is_memory_id(session_key):
        raise Invalid("invalid_assembly", "a session key has 1 to 1,024 bytes without control characters")
    unknown = sorted(str(name)[:64] for name in raw.keys() - _KEYS)
    if unknown:
        raise Invalid("invalid_assembly", f"unknown field(s): {', '.join(unknown)}")
    if not isinstance(raw.get("head_changeset_id"), str) or not isinstance(
        raw.get("manifest_id"), str | None
    ):
        raise Invalid("invalid_assembly", "head_changeset_id is needed; manifest_id is a string")
    items = raw.get("items")
    if not isinstance(items, list) or len(items) > _MAX_ITEMS:
        raise Invalid("invalid_assembly", f"items is a list of at most {_MAX_ITEMS}")
    for item in items:
        if not isinstance(item, dict) or not item.keys() <= {"memory_id", "content_digest", "tokens"}:
            raise Invalid("invalid_assembly", "an item is {memory_id, content_digest, tokens?}")
        if not is_memory_id(item.get("memory_id")) or not is_digest(item.get("content_digest")):
            raise Invalid("invalid_assembly", "an item names a memory and the digest of its content")
        if not _is_count(item.get("tokens", 0)):
            raise Invalid("invalid_assembly", "the tokens of an item are a whole number from 0")
    counts = {} if raw.get("token_counts") is None else raw["token_counts"]
    if not isinstance(counts, dict) or not all(_is_count(value) for value in counts.values()):
        raise Invalid("invalid_assembly", "token_counts maps names to whole numbers from 0")
    if not isinstance(raw.get("model"), str | None):
        raise Invalid("invalid_assembly", "model is a string")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_INTEGER

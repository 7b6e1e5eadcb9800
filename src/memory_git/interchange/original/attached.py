"""A changeset's own fields in our words: its evidence and verification, its optional names, and where it came from.

The original's digests and names stand beside ours as one item of verification, which our own digest covers: so what was imported can
be compared with the file that it came from, at any time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from memory_git.domain.canonical import canonical_bytes
from memory_git.domain.changeset import MAX_ATTACHMENTS, CreateRequest
from memory_git.domain.errors import Invalid
from memory_git.domain.ops import ATTACHMENT_KEYS, MAX_NOTE_BYTES, MAX_STRING_BYTES, Op
from memory_git.interchange.fitting import bytes_of, clipped
from memory_git.interchange.imported import Findings
from memory_git.interchange.original.source import OriginalChangeset

Item = dict[str, str]
KIND = "lethe_import"
SOURCE = "openlethe/lethe"


def request_of(
    item: OriginalChangeset,
    project_id: str,
    ref_name: str,
    parents: Sequence[str],
    algorithm: str,
    findings: Findings,
) -> CreateRequest:
    """Gives the request that a changeset stands for, still without ops."""
    where = item.changeset_id
    evidence = _items(item.evidence or [], where, "evidence", MAX_ATTACHMENTS, findings)
    verification = _items(item.verification or [], where, "verification", MAX_ATTACHMENTS - 1, findings)
    return CreateRequest(
        project_id=project_id,
        ref_name=ref_name,
        parent_ids=tuple(parents),
        author_principal=item.author,
        message=item.message,
        idempotency_key=item.idempotency_key,
        ops=(),
        optional=dict(item.optional),
        evidence=tuple(evidence),
        verification=(*verification, _origin(item, ref_name, parents, algorithm)),
        expected_head=None,
        advance_ref=False,
        create_ref_if_missing=False,
        faults=(),
    )


def with_ops(request: CreateRequest, ops: Sequence[Op], *, resolves: bool) -> CreateRequest:
    """Gives a request with its ops; one that holds the import's own resolutions is of the surface `import` (4-history, state)."""
    numbered = tuple(replace(op, ordinal=place) for place, op in enumerate(ops))
    optional = {**request.optional, "surface": "import"} if resolves else request.optional
    return replace(request, ops=numbered, optional=optional)


def _origin(item: OriginalChangeset, ref_name: str, parents: Sequence[str], algorithm: str) -> Item:
    """Gives what the original recorded: its digests, and what stands otherwise here."""
    told = {"integrity_digest": item.integrity_digest, "digest_algorithm": algorithm}
    if item.request_digest:
        told["request_digest"] = item.request_digest
    if ref_name != item.ref_name:
        told["ref_name"] = item.ref_name
    if tuple(parents) != item.parent_ids:
        told["parent_ids"] = " ".join(item.parent_ids)
    if "surface" in item.optional:
        told["surface"] = item.optional["surface"]
    note = clipped(canonical_bytes(told).decode(), MAX_NOTE_BYTES)
    return {"kind": KIND, "source": SOURCE, "status": "verified", "note": note}


def _items(raw: Sequence[Any], where: str, name: str, most: int, findings: Findings) -> list[Item]:
    if len(raw) > most:
        findings.warn(where, name, f"{len(raw) - most} of {len(raw)} items left out: over {most}")
    return [_item(item, where, name, findings) for item in raw[:most] if item]


def _item(raw: dict[str, Any], where: str, name: str, findings: Findings) -> Item:
    """Gives an attachment by our rules: as it is where it fits, else its JSON as a note."""
    if all(key in ATTACHMENT_KEYS and _fits(key, value) for key, value in raw.items()):
        return dict(raw)
    try:
        text = canonical_bytes(raw).decode()
    except Invalid:
        text = ""
    if bytes_of(text) > MAX_NOTE_BYTES or not text:
        findings.warn(where, name, f"an item of {bytes_of(text)} bytes is cut to {MAX_NOTE_BYTES}")
    kind = raw.get("kind")
    kept = {"kind": kind} if isinstance(kind, str) and _fits("kind", kind) else {}
    return {**kept, "note": clipped(text, MAX_NOTE_BYTES)}


def _fits(key: str, value: Any) -> bool:
    most = MAX_NOTE_BYTES if key in ("note", "summary") else MAX_STRING_BYTES
    return isinstance(value, str) and bytes_of(value) <= most

"""A changeset's request, its views, and the digests over them (3-model, changeset and digests; FORMAT §6).

authored_digest   over what the author wrote: header, parents by digest, message, op, evidence and verification digests
integrity_digest  over authored_digest, changeset_id, created_at and state_root: a Merkle chain that covers the state
request_digest    over authored_digest and the control fields of the create request; what an idempotency key is bound to
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memory_git.domain import ops as rules
from memory_git.domain.author_signature import faults_of
from memory_git.domain.canonical import canonical_bytes, plain_bytes, plain_digest, sha256_hex
from memory_git.domain.errors import Clash, Fault, Invalid
from memory_git.domain.ids import check_project_id, is_uuid, parse_ref
from memory_git.domain.ops import Op
from memory_git.domain.payload import byte_length, kind_of, show_key
from memory_git.domain.validate import check_ops, presumed_ids

SCHEMA_VERSION = "memory_git/v1"
DIGEST_VERSION = 1
MAX_PARENTS = 2
MAX_ATTACHMENTS = 64

OPTIONAL_NAMES = (
    "persona_id",
    "actor_id",
    "surface",
    "model",
    "environment",
    "session_id",
    "topic_id",
    "context_manifest_id",
)
CONTROL_NAMES = ("expected_head", "advance_ref", "create_ref_if_missing", "protected")
_REQUIRED_NAMES = ("project_id", "ref_name", "author_principal", "message", "idempotency_key")
_LIST_NAMES = ("parent_ids", "ops", "evidence", "verification")
_SIGNED_NAMES = ("authored", "author_signature")
_KNOWN_NAMES = frozenset((*_REQUIRED_NAMES, *OPTIONAL_NAMES, *CONTROL_NAMES, *_LIST_NAMES, *_SIGNED_NAMES))
_ATTACHMENT_KEYS = frozenset(rules.ATTACHMENT_KEYS)
_OP_FRAME_BYTES = 64
"""What an op is counted as besides its payload."""


@dataclass(frozen=True, slots=True)
class CreateRequest:
    """A create request that is well formed; whether the state allows it is asked later."""

    project_id: str
    ref_name: str
    parent_ids: tuple[str, ...]
    author_principal: str
    message: str
    idempotency_key: str
    ops: tuple[Op, ...]
    optional: Mapping[str, str]
    evidence: tuple[Mapping[str, str], ...]
    verification: tuple[Mapping[str, str], ...]
    expected_head: str | None
    advance_ref: bool
    create_ref_if_missing: bool
    faults: tuple[Fault, ...]
    """Faults of ops: told together with those that the state adds."""
    protected: bool = False
    drawn_ids: tuple[str, ...] = ()
    """The memory ids that the request left to the store, in their order; a retry would be given others."""
    authored: Mapping[str, Any] | None = None
    """What the store prepared for the author to sign (`lethe.preparing`), with the signature beside."""
    author_signature: Mapping[str, str] | None = None
    presumed_ids: frozenset[str] = frozenset()
    """The memories that the faulty ops would have made (`projector.apply`, presumed)."""

    def parent_names(self) -> tuple[str, ...]:
        """Gives the parents that are named, else the expected head as the only one."""
        return self.parent_ids or ((self.expected_head,) if self.expected_head else ())

    def with_parents(self, names: Sequence[str]) -> CreateRequest:
        """Gives the request with its parents named."""
        return replace(self, parent_ids=tuple(names))


@dataclass(frozen=True, slots=True)
class Salts:
    """The salts of one changeset's own texts, 32 hex digits each; the ops' stand in their order."""

    message: str
    evidence: str
    verification: str
    ops: tuple[str, ...]


def read_request(raw: Mapping[str, Any], fresh_ids: Iterator[str]) -> CreateRequest:
    """Reads a create request; raises Invalid with all faults of the changeset's own fields, those of the ops included.

    When only ops are at fault the request comes back with `faults`, so that the state can add its own.
    """
    faults = _check_names(raw)
    drawn: list[str] = []
    ops, op_faults = check_ops(raw.get("ops", []), _noted(fresh_ids, drawn))
    if faults:
        raise invalid_changeset([*faults, *op_faults])
    try:
        project_id = check_project_id(raw["project_id"])
        ref = parse_ref(raw["ref_name"])
    except Invalid as error:
        raise Invalid(error.code, error.message, op_faults, **error.facts) from None
    parents = tuple(raw.get("parent_ids") or ())
    if len(parents) > MAX_PARENTS:
        raise Invalid("too_many_parents", f"a changeset has at most {MAX_PARENTS} parents", op_faults)
    if len(parents) < MAX_PARENTS and not raw.get("ops"):
        raise invalid_changeset(
            [Fault(None, "ops", "at least one op is needed, except in a merge changeset"), *op_faults]
        )
    _check_size(raw, ops, op_faults)
    return CreateRequest(
        project_id=project_id,
        ref_name=ref.name,
        parent_ids=parents,
        author_principal=raw["author_principal"],
        message=raw["message"],
        idempotency_key=raw["idempotency_key"],
        ops=tuple(ops),
        optional={name: raw[name] for name in OPTIONAL_NAMES if raw.get(name)},
        evidence=tuple(raw.get("evidence") or ()),
        verification=tuple(raw.get("verification") or ()),
        expected_head=raw.get("expected_head") or None,
        advance_ref=bool(raw.get("advance_ref")),
        create_ref_if_missing=bool(raw.get("create_ref_if_missing")),
        faults=tuple(op_faults),
        protected=bool(raw.get("protected")),
        drawn_ids=tuple(drawn),
        authored=raw.get("authored"),
        author_signature=raw.get("author_signature"),
        presumed_ids=presumed_ids(raw.get("ops", []), op_faults) if op_faults else frozenset(),
    )


def _noted(fresh_ids: Iterator[str], drawn: list[str]) -> Iterator[str]:
    for name in fresh_ids:
        drawn.append(name)
        yield name


def _check_size(raw: Mapping[str, Any], ops: Sequence[Op], op_faults: Sequence[Fault]) -> None:
    """Refuses a changeset that is too large, or ops that are not I-JSON: no wire could have brought them. All else is text by now."""
    if op_faults:
        canonical_bytes(raw["ops"])
    size = len(plain_bytes({name: value for name, value in raw.items() if name != "ops"}))
    size += sum([len(op.payload_bytes()) + _OP_FRAME_BYTES for op in ops])
    if size > rules.MAX_CHANGESET_BYTES:
        too_large = Fault(None, "ops", f"at most {rules.MAX_CHANGESET_BYTES} bytes", f"{size} bytes")
        raise invalid_changeset([too_large, *op_faults])


def invalid_changeset(faults: Sequence[Fault]) -> Invalid:
    """Gives the one error that tells all faults of a changeset."""
    shown = sorted(faults, key=lambda fault: (-1 if fault.ordinal is None else fault.ordinal, fault.field))
    where = "; ".join(
        f"{'changeset' if fault.ordinal is None else f'op {fault.ordinal}'}: {fault.field}: {fault.rule}"
        for fault in shown[:3]
    )
    more = f" (and {len(shown) - 3} more)" if len(shown) > 3 else ""
    return Invalid("invalid_changeset", f"the changeset has {len(shown)} fault(s): {where}{more}", shown)


def _check_names(raw: Mapping[str, Any]) -> list[Fault]:
    faults = [Fault(None, show_key(name), "unknown field") for name in sorted(raw.keys() - _KNOWN_NAMES)]
    for name in _REQUIRED_NAMES:
        value = raw.get(name)
        if value is None or (isinstance(value, str) and not value.strip()):
            faults.append(Fault(None, name, "must be a non-empty string", kind_of(value)))
    for name in (*_REQUIRED_NAMES, *OPTIONAL_NAMES):
        value = raw.get(name)
        if value is not None:
            faults += _check_string(name, value)
    for name in ("advance_ref", "create_ref_if_missing", "protected"):
        if not isinstance(raw.get(name), bool | None):
            faults.append(Fault(None, name, "must be true or false", kind_of(raw[name])))
    expected = raw.get("expected_head")
    if expected not in (None, "") and not is_uuid(expected):
        faults.append(Fault(None, "expected_head", "must be a changeset id", kind_of(expected)))
    faults += _check_parents(raw.get("parent_ids"))
    for name in ("evidence", "verification"):
        faults += _check_attachments(name, raw.get(name))
    return faults + _check_signed(raw) if raw.keys() & _SIGNED_NAMES else faults


def _check_signed(raw: Mapping[str, Any]) -> list[Fault]:
    authored, signature = (raw.get(name) for name in _SIGNED_NAMES)
    if authored is None and signature is None:
        return []
    if not isinstance(authored, dict):
        rule = "must be the object that was prepared, beside an author_signature"
        return [Fault(None, "authored", rule, kind_of(authored))]
    canonical_bytes(authored)
    return faults_of(signature)


def _check_string(name: str, value: Any) -> list[Fault]:
    if not isinstance(value, str):
        return [Fault(None, name, "must be a string", kind_of(value))]
    is_note = name.rpartition(".")[2] in ("message", "note", "summary")
    most = rules.MAX_NOTE_BYTES if is_note else rules.MAX_STRING_BYTES
    if (size := byte_length(value)) > most:
        return [Fault(None, name, f"at most {most} bytes", f"{size} bytes")]
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        return [Fault(None, name, "must not hold a lone surrogate")]
    return []


def _check_parents(parents: Any) -> list[Fault]:
    if parents is None:
        return []
    if not isinstance(parents, list) or not all(is_uuid(parent) for parent in parents):
        return [Fault(None, "parent_ids", "must be a list of changeset ids", kind_of(parents))]
    if len(set(parents)) != len(parents):
        return [Fault(None, "parent_ids", "names a parent twice")]
    return []


def _check_attachments(name: str, attachments: Any) -> list[Fault]:
    if attachments is None:
        return []
    if not isinstance(attachments, list) or len(attachments) > MAX_ATTACHMENTS:
        return [
            Fault(None, name, f"must be a list of at most {MAX_ATTACHMENTS} objects", kind_of(attachments))
        ]
    faults: list[Fault] = []
    for item in attachments:
        if not isinstance(item, dict) or not item or not item.keys() <= _ATTACHMENT_KEYS:
            faults.append(Fault(None, name, f"an item has keys of {', '.join(sorted(_ATTACHMENT_KEYS))}"))
        else:
            for key, value in item.items():
                faults += _check_string(f"{name}.{key}", value)
    return faults


def salted_digest(salt: str, value: str | Mapping[str, str]) -> str:
    """Gives SHA-256 of canonical JSON `[salt, value]`: of an op's view, a message, an attachment."""
    return plain_digest([salt, value if isinstance(value, str) else dict(value)])


def op_digest(salt: str, op: Op) -> str:
    """Gives an op's digest: SHA-256 of canonical JSON `[salt, view]` (FORMAT §5)."""
    return sha256_hex(b'["%s",%s]' % (salt.encode(), op.view_bytes()))


def authored_view(request: CreateRequest, parent_digests: Sequence[str], salts: Salts) -> dict[str, Any]:
    """Gives the view that `authored_digest` covers and an author signs; absent fields are null."""
    op_digests = [op_digest(salt, op) for salt, op in zip(salts.ops, request.ops, strict=True)]
    return _authored(request, parent_digests, salts, op_digests)


def authored_bytes(
    request: CreateRequest, parent_digests: Sequence[str], salts: Salts, op_digests: list[str]
) -> bytes:
    """Gives the canonical bytes of the authored view, from op digests that are known already."""
    return plain_bytes(_authored(request, parent_digests, salts, op_digests))


def _authored(
    request: CreateRequest, parent_digests: Sequence[str], salts: Salts, op_digests: list[str]
) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "project_id": request.project_id,
        "ref_name": request.ref_name,
        "parents": [
            {"changeset_id": parent, "integrity_digest": parent_digest}
            for parent, parent_digest in zip(request.parent_ids, parent_digests, strict=True)
        ],
        "author_principal": request.author_principal,
        **{name: request.optional.get(name) for name in OPTIONAL_NAMES},
        "idempotency_key": request.idempotency_key,
        "message_digest": salted_digest(salts.message, request.message),
        "op_digests": op_digests,
        "evidence_digests": [salted_digest(salts.evidence, item) for item in request.evidence],
        "verification_digests": [salted_digest(salts.verification, item) for item in request.verification],
    }


def integrity_digest(authored_digest: str, changeset_id: str, created_at: str, state_root: str) -> str:
    """Gives the digest by which children name this changeset."""
    return plain_digest(
        {
            "authored_digest": authored_digest,
            "changeset_id": changeset_id,
            "created_at": created_at,
            "state_root": state_root,
        }
    )


def request_digest(authored_digest: str, request: CreateRequest) -> str:
    """Gives what binds an idempotency key to a whole request, control fields included (FORMAT §6.5)."""
    controls = {name: getattr(request, name) for name in CONTROL_NAMES}
    return plain_digest([authored_digest, controls])


def check_replay(found_digest: str | None, stored_digest: str, changeset_id: str) -> None:
    """Decides that a request is the one that was stored under its key, or raises Clash `idempotency_mismatch`.

    `found_digest` is the request's digest under the stored salts; None when they are erased, so that nobody can tell.
    """
    if found_digest != stored_digest:
        raise Clash(
            "idempotency_mismatch",
            "the idempotency key was used for another request: use a new key",
            changeset_id=changeset_id,
        )

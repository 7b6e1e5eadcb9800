"""Authority is not a payload (3-model, record). Pure: the keys that the gate alone sets, and what a client may say of trust.

1. `approval`, `owner_principal`, `reviewer`, `proposal_id` and `rejected_from` are refused from a client, and so is clearing
   an approval.
2. `source_trust` stands on every op that changes a record: an agent's is `inference`, a person's `human`; a client may say
   less of itself, never more.
3. A new memory belongs to who adds it. A successor keeps the owner of what it succeeds, unless it is made private.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memory_git.domain.errors import Fault
from memory_git.domain.ops import PAYLOAD_KEYS, TRUSTS

GATE_KEYS = frozenset({"approval", "owner_principal", "reviewer", "proposal_id", "rejected_from"})
TRUST_OPS = frozenset(op_type for op_type, keys in PAYLOAD_KEYS.items() if "source_trust" in keys)
_REFUSED = "is set by the gate, never by a client"


def ceiling(principal_kind: str) -> str:
    """Gives the most that a principal's word is worth."""
    return "human" if principal_kind == "human" else "inference"


def authority_faults(ops: Sequence[Any], principal_kind: str) -> list[Fault]:
    """Gives every claim of authority in a client's ops (rules 1 and 2); malformed ops are the store's to refuse."""
    return [
        fault
        for ordinal, op in enumerate(ops)
        if isinstance(op, dict) and isinstance(op.get("payload", {}), dict)
        for fault in _faults(ordinal, op.get("payload", {}), ceiling(principal_kind))
    ]


def attested_faults(name: str, items: Iterable[Any]) -> list[Fault]:
    """Gives the claims of authority in a changeset's evidence or verification."""
    return [
        Fault(None, f"{name}.{key}", _REFUSED)
        for item in items
        if isinstance(item, dict)
        for key in sorted(GATE_KEYS & item.keys())
    ]


def stamped(ops: Sequence[Any], principal_id: str, principal_kind: str) -> list[Any]:
    """Gives the ops with the trust and owner that their author has (rules 2 and 3)."""
    return [_stamped(op, principal_id, ceiling(principal_kind)) for op in ops]


def _faults(ordinal: int, payload: Mapping[str, Any], most: str) -> list[Fault]:
    faults = [Fault(ordinal, f"payload.{key}", _REFUSED) for key in sorted(GATE_KEYS & payload.keys())]
    cleared = payload.get("clear")
    if isinstance(cleared, list):
        faults += [
            Fault(ordinal, f"payload.clear.{key}", _REFUSED) for key in sorted(GATE_KEYS) if key in cleared
        ]
    trust = payload.get("source_trust")
    if trust in TRUSTS and TRUSTS.index(trust) > TRUSTS.index(most):
        faults.append(
            Fault(ordinal, "payload.source_trust", f"this principal's word is worth {most} at most", trust)
        )
    return faults


def _stamped(op: Any, principal_id: str, most: str) -> Any:
    if not isinstance(op, dict) or not isinstance(op.get("payload", {}), dict):
        return op
    op_type = op.get("op_type")
    payload = dict(op.get("payload") or {})
    if isinstance(op_type, str) and op_type in TRUST_OPS and payload.get("source_trust") is None:
        payload["source_trust"] = most
    if op_type == "add_memory" or (payload.get("visibility") == "private" and _has_successor(op, payload)):
        payload["owner_principal"] = principal_id
    return {**op, "payload": payload}


def _has_successor(op: Mapping[str, Any], payload: Mapping[str, Any]) -> bool:
    if op.get("op_type") == "correct_memory":
        return bool(op.get("resulting_event_id"))
    return op.get("op_type") == "supersede_memory" and "content" in payload

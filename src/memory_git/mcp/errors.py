"""Refusals as tool errors that a model can act on (6-charon, MCP).

1. The text is: code and message, what to do, the plain facts as JSON; facts that hold stored text come last, fenced.
2. The same code, message and facts stand in `_meta` under REFUSAL, for programs.
3. A damaged store is told as `corrupt` with the object's kind; anything unforeseen as `internal` with an id that the log has,
   together with the exception's type and places, never its text.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
import traceback
from collections.abc import Mapping
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, CallToolResult, TextContent

from memory_git.domain.errors import (
    Corrupt,
    NotAllowed,
    NotFound,
    Refused,
    TooMany,
    Unauthenticated,
    Unavailable,
)
from memory_git.mcp.fence import fenced

REFUSAL = "memory-git/refusal"
_LOG = logging.getLogger("memory_git.mcp")
_PLAIN_TEXT = re.compile(r"[A-Za-z0-9._:/@+*-]{0,512}")
_OWN_FACTS = frozenset({"faults", "missing"})
"""Facts whose texts are the product's own words; a fault names fields and rules, never a value."""
_ADVICE = {
    "actor_needed": "Name a ref that you may write, or have the operator give this principal an actor.",
    "answer_too_large": "Ask for less: a smaller limit, one changeset, one memory.",
    "bad_cursor": "Pass the `next` of the page before, unchanged.",
    "conflict_closed": "Nothing: it was settled already. Look at it with memory_conflicts.",
    "denied": "Don't retry as is: another principal must do it, or an operator must grant the scope.",
    "expected_head_needed": "Look at current_head, then call again with it as expected_head, or with read_head: true.",
    "idempotency_mismatch": "Use a fresh idempotency_key for a different request; repeat the old request unchanged to get its answer.",
    "invalid_changeset": "Mend every fault in `faults` (ordinal = place of the op) and send all ops again.",
    "invalid_request": "Mend every fault in `faults` and call again.",
    "judged_changed": "Read the proposal again with fetch, then review with its new judged_digest.",
    "merge_conflicts": "Settle each conflict with memory_conflict_resolve (by someone who wrote neither side), or change the work and propose anew.",
    "not_approved": "It needs what `missing` lists; somebody else than its authors reviews with memory_merge_review.",
    "nothing_to_merge": "Nothing: the target holds all of it.",
    "ops_refused": "See `refused`: select or add what those ops need, or make the change anew on current_head.",
    "private_in_delta": "Propose again with selected_ops taken from selectable_ops.",
    "project_needed": "Name the project; memory_whoami lists those granted.",
    "proposal_closed": "Nothing can be done to a closed proposal; propose anew with memory_merge_propose.",
    "protected_ref": "Commit to your own branch, then propose it with memory_merge_propose.",
    "recovery_readonly": "Only reads work until an operator has finished the recovery.",
    "ref_exists": "The ref stands elsewhere: choose another name, or go on from its head.",
    "ref_moved": "Read current_head, check your ops against it, then call again with it as expected_head and a fresh idempotency_key.",
    "resolutions_needed": "Call memory_merge with `resolutions`: ops that set every field listed in `unsettled`.",
    "source_redacted": "That memory was erased for good; only supersede or retract may name it.",
    "target_not_protected": "Commit to that ref directly; only protected refs take proposals.",
    "unauthenticated": "Ask the operator for a token: `charon obol mint <principal> --project <project>`, then set it as CHARON_TOKEN or as the bearer.",
    "unrelated_histories": "Branch from a ref of this project with memory_branch_create and commit there.",
}


def refused(error: Exception) -> CallToolResult:
    """Gives the tool error that tells an exception."""
    code, message, facts = told(error)
    lines = [f"{code}: {message}", f"What to do: {_advice(error, code)}"]
    plain = {name: value for name, value in facts.items() if name in _OWN_FACTS or _is_plain(value)}
    if plain:
        lines.append(json.dumps(plain, ensure_ascii=False, sort_keys=True))
    stored = {name: value for name, value in facts.items() if name not in plain}
    if stored:
        lines.append(fenced(json.dumps(stored, ensure_ascii=False, sort_keys=True), secrets.token_hex(8)))
    machine = {"code": code, "message": message, **facts}
    return CallToolResult(
        content=[TextContent(type="text", text="\n".join(lines))], is_error=True, _meta={REFUSAL: machine}
    )


def protocol_error(error: Exception) -> MCPError:
    """Gives the protocol error that tells an exception, where there is no tool result: lists, resources, prompts."""
    code, message, facts = told(error)
    kind = INVALID_PARAMS if isinstance(error, Refused) else INTERNAL_ERROR
    return MCPError(kind, f"{code}: {message}", {"code": code, **facts})


def told(error: Exception) -> tuple[str, str, Mapping[str, Any]]:
    """Gives code, message and facts of an exception, and logs what nobody foresaw (rule 3)."""
    if isinstance(error, Refused):
        return error.code, error.message, error.facts
    if isinstance(error, Corrupt):
        _LOG.error("corrupt %s", error.kind, extra={"object_id": str(error.object_id)})
        return "corrupt", "a stored object does not agree with its digest", {"kind": error.kind}
    failure_id = secrets.token_hex(8)
    _LOG.error(
        "unexpected %s", type(error).__name__, extra={"failure_id": failure_id, "places": _places(error)}
    )
    return "internal", "something unexpected happened; the log knows the id", {"failure_id": failure_id}


def _advice(error: Exception, code: str) -> str:
    if code in _ADVICE:
        return _ADVICE[code]
    match error:
        case NotFound():
            return (
                "Check the id, the ref and the project; memory_status and memory_whoami show where you stand."
            )
        case NotAllowed() | Unauthenticated():
            return "Don't retry as is; ask the operator."
        case TooMany():
            return "Wait as long as retry_after_s says, then repeat."
        case Unavailable():
            return "Wait a moment and repeat the same call, with the same idempotency_key."
        case Refused():
            return "Nothing was changed. Change what the message names and call again."
        case _:
            return "Don't retry; tell the operator."


def _is_plain(value: Any) -> bool:
    """Decides whether a fact holds no stored text: ids, numbers, names of refs, and lists of them."""
    match value:
        case str():
            return _PLAIN_TEXT.fullmatch(value) is not None
        case list():
            return all(_is_plain(item) for item in value)
        case dict():
            return all(_is_plain(item) for item in value.values())
        case _:
            return value is None or isinstance(value, int | float)


def _places(error: Exception) -> list[str]:
    frames = traceback.extract_tb(error.__traceback__)
    return [
        f"{frame.filename.rpartition('memory_git/')[2]}:{frame.lineno} {frame.name}" for frame in frames[-20:]
    ]

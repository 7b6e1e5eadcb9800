"""What several tools share: arguments that mean the same everywhere, and texts about heads, changesets and proposals."""

from __future__ import annotations

from memory_git.domain.ops import PAYLOAD_KEYS
from memory_git.mcp.answers import Answer
from memory_git.mcp.schemas import Json, anything, flag, objects, text

PROJECT = text("default: the token's")
REF = text("default: your working branch")
KEY = text("same key = same call; safe to retry")
OP_TYPES = tuple(PAYLOAD_KEYS)
OPS = objects(
    required=("op_type",),
    op_type=text(choices=OP_TYPES),
    target_event_id=text(),
    resulting_event_id=text(),
    payload=anything(),
)
STRING = text()
WHOLE: Json = {"type": "integer"}
FLAG = flag()
OBJECT = anything()
LIST: Json = {"type": "array"}
"""A list in an answer; its items are described in the documentation, not on the wire."""


def shown_changeset(changeset: Json) -> Json:
    """Gives what a list tells of a changeset: everything but the ops, which are counted by type."""
    counted: dict[str, int] = {}
    for op in changeset["ops"]:
        name = op.get("op_type", "withheld")
        counted[name] = counted.get(name, 0) + 1
    kept = ("changeset_id", "parent_ids", "ref_name", "author_principal", "actor_id", "created_at", "message")
    shown = {**{name: changeset.get(name) for name in kept}, "ops": counted}
    return {**shown, "originals": changeset["originals"]} if "originals" in changeset else shown


def proposal_answer(proposal: Json) -> Answer:
    """Gives a proposal as a tool tells it: how it stands, and what is missing to merge it."""
    lacking = [item["what"] for item in proposal["verdict"]["missing"]]
    stands = f"Proposal {proposal['proposal_id']} for {proposal['target_ref']} is {proposal['status']}."
    if proposal["status"] == "merged":
        stands += f" Merged as {proposal['merged_changeset_id']}."
    elif lacking:
        stands += f" To merge it still needs: {'; '.join(lacking)}."
    elif proposal["verdict"]["mergeable"]:
        stands += " It can be merged now (memory_merge)."
    if proposal.get("refused_before"):
        stands += " Some of it was proposed before and refused: `refused_before` says by whom and why."
    if any(item["note"] == "direct_contradiction" for item in proposal.get("diff", {}).get("kind_notes", ())):
        stands += " It contradicts itself: see `kind_notes` in the diff."
    if proposal["stale"]:
        stands += f" The target has moved to {proposal['current_head']}; memory_rebase brings it up."
    return Answer(proposal, stands)

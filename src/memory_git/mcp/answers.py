"""What a tool answers: a structured value, exact, and a text for a model, fenced (6-charon, MCP; 12-lessons, size).

1. What holds stored text is marked `trust: untrusted-data` in the structured value, and fenced in the text.
2. An answer above MAX_BYTES is brought down to names first: items of its lists keep their ids, kinds and summaries, and the
   answer says `shortened: true`; if that is not enough, their ids alone. One still above it is refused, never cut.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from typing import Any

from mcp_types import CallToolResult, TextContent

from memory_git.domain.errors import TooLarge
from memory_git.mcp.fence import fenced, harmless
from memory_git.mcp.schemas import Json

MAX_BYTES = 96 * 1024
TRUST = "untrusted-data"
_IDS = (
    "memory_id",
    "changeset_id",
    "proposal_id",
    "conflict_id",
    "ref_name",
    "ordinal",
    "op_ordinal",
    "from_memory_id",
    "to_memory_id",
    "id",
)
_NAMES = (
    *_IDS,
    "memory_ids",
    "conflict_type",
    "severity",
    "op_type",
    "target_event_id",
    "resulting_event_id",
    "kind",
    "status",
    "summary",
    "note",
    "version",
    "title",
    "url",
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A tool's answer: `heading` is the product's own words; `body` the stored text, by default the value as JSON.

    `is_stored` False: nothing in it was written by others. `is_document`: the text is the value as JSON and nothing else, for
    clients that parse it: its `text` is fenced inside, its titles are made harmless.
    """

    value: Json
    heading: str = ""
    body: str | None = None
    is_stored: bool = True
    is_document: bool = False


def result(answer: Answer) -> CallToolResult:
    """Gives the tool result of an answer; raises TooLarge `answer_too_large`."""
    value, shortened = fitted(answer.value)
    if answer.is_stored:
        value = {**value, "trust": TRUST}
    told = _document(value) if answer.is_document else _told(answer, value, shortened=shortened)
    return CallToolResult(content=[TextContent(type="text", text=told)], structured_content=value)


def fitted(value: Json, max_bytes: int = MAX_BYTES) -> tuple[Json, bool]:
    """Gives a value within the cap, and whether it was shortened (rule 2)."""
    if _size(value) <= max_bytes:
        return value, False
    for kept in (_NAMES, _IDS):
        short = {**named(value, kept), "shortened": True}
        if _size(short) <= max_bytes:
            return short, True
    raise TooLarge("answer_too_large", f"the answer exceeds {max_bytes} bytes", max_bytes=max_bytes)


def named(value: Json, kept: tuple[str, ...] = _NAMES) -> Json:
    """Gives a value whose lists of objects keep only what names each.

    >>> named({"total": 1, "memories": [{"memory_id": "a", "record": {"content": "long"}}]})
    {'total': 1, 'memories': [{'memory_id': 'a'}]}
    """
    return {key: _named(item, kept) for key, item in value.items()}


def dumped(value: Any) -> str:
    """Gives a value as compact JSON, readable in every script."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def fence(text: str) -> str:
    """Gives a text in a fence of its own, with a fresh nonce."""
    return fenced(text, secrets.token_hex(8))


def _told(answer: Answer, value: Json, *, shortened: bool) -> str:
    body = dumped(value) if answer.body is None or shortened else answer.body
    lines = [answer.heading] if answer.heading else []
    if shortened:
        lines.append("Too large to show whole: names only. Ask for one item, or for less.")
    lines.append(fence(body) if answer.is_stored else body)
    return "\n".join(lines)


def _document(value: Json) -> str:
    shown = dict(value)
    if isinstance(value.get("text"), str):
        shown["text"] = fence(value["text"])
    if isinstance(value.get("title"), str):
        shown["title"] = harmless(value["title"])
    if isinstance(value.get("results"), list):
        shown["results"] = [{**item, "title": harmless(item["title"])} for item in value["results"]]
    return dumped(shown)


def _named(item: Any, kept: tuple[str, ...]) -> Any:
    if isinstance(item, dict):
        return named(item, kept)
    if isinstance(item, list) and any(isinstance(part, dict) for part in item):
        return [_kept(part, kept) for part in item if isinstance(part, dict)]
    return item


def _kept(part: Json, kept: tuple[str, ...]) -> Json:
    return {key: part[key] for key in kept if part.get(key) is not None}


def _size(value: Json) -> int:
    return len(dumped(value).encode("utf-8", "replace"))

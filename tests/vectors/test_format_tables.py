"""The tables of docs/FORMAT.md are those of the code: a second implementation reads no Python (FORMAT 5.1, 9.8)."""

from __future__ import annotations

import re
from pathlib import Path

from memory_git.domain import ops
from memory_git.domain.conflict import CONFLICT_TYPES, SYMMETRIC_TYPES
from memory_git.domain.record import ACTIVE_STATUSES, APPROVED_FIELDS

FORMAT = (Path(__file__).parents[2] / "docs" / "FORMAT.md").read_text("utf-8")


def table(after: str) -> list[list[str]]:
    """Gives the rows of the first table behind a heading or a phrase."""
    lines = FORMAT[FORMAT.index(after) :].splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith("|---"))
    rows = []
    for line in lines[start + 1 :]:
        if not line.startswith("|"):
            return rows
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def quoted(text: str) -> set[str]:
    return set(re.findall(r"`([a-z_]+)`", text))


def test_op_types_and_payload_keys() -> None:
    groups = {name: quoted(cell) for name, cell in table("## 5. Op")}
    assert groups == {"common": set(ops.COMMON_KEYS), "content": set(ops.CONTENT_KEYS)}
    found: dict[str, set[str]] = {}
    for names, cell in table("| op type | keys besides"):
        own = quoted(cell) | (groups["content"] if cell.startswith("content,") else set())
        found |= dict.fromkeys(quoted(names), own | groups["common"])
    assert found == {name: set(keys) for name, keys in ops.PAYLOAD_KEYS.items()}


def test_closed_values_and_caps() -> None:
    for values in (ops.KINDS, ops.TRUSTS):
        assert re.search(r"\s*,\s*".join(f"`{value}`" for value in values), FORMAT), values
    caps = {
        "content": ops.MAX_CONTENT_BYTES,
        "note": ops.MAX_NOTE_BYTES,
        "extra": ops.MAX_EXTRA_BYTES,
        "payload": ops.MAX_PAYLOAD_BYTES,
    }
    assert caps == {"content": 16384, "note": 4096, "extra": 4096, "payload": 65536}
    assert "up to 64 of up to 128" in FORMAT
    assert (ops.MAX_TAGS, ops.MAX_TAG_BYTES, ops.MAX_SOURCES, ops.MAX_OPS) == (64, 128, 64, 10_000)
    assert {"content", "kind", "visibility"} == ops.RECORD_KEYS - ops.CLEARABLE_KEYS


def test_what_an_approval_covers_and_what_is_active() -> None:
    phrase = FORMAT[FORMAT.index("If that changed") : FORMAT.index("and the payload has no `approval`")]
    assert quoted(phrase) == APPROVED_FIELDS
    phrase = FORMAT[FORMAT.index("Active memory is") :]
    assert quoted(phrase[: phrase.index(".")]) == ACTIVE_STATUSES


def test_every_op_type_has_its_effect() -> None:
    effects = table("| op | the record of the target")
    assert set().union(*(quoted(row[0]) for row in effects)) == set(ops.OP_TYPES)


def test_conflict_types_and_their_symmetry() -> None:
    rows = table("| `conflict_type` | symmetric")
    assert set().union(*(quoted(row[0]) for row in rows)) == CONFLICT_TYPES
    assert set().union(*(quoted(row[0]) for row in rows if row[1] == "yes")) == SYMMETRIC_TYPES

"""Digests and JSON of the original Lethe: rows that its own program wrote, and what its encoder gave (docs/COMPATIBILITY.md)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memory_git.interchange.original import go_json
from memory_git.interchange.original.cells import parse_moment
from memory_git.interchange.original.source import OPTIONAL, OriginalChangeset, OriginalOp
from memory_git.interchange.original.verifying import algorithm_of, digest_of

ROWS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent.parent / "data" / "original_changesets.json").read_text("utf-8")
)
"""Changesets as they stand in databases that commit 688057a wrote, with their ops."""


def changeset_of(row: dict[str, Any]) -> OriginalChangeset:
    return OriginalChangeset(
        changeset_id=row["changeset_id"],
        schema_version=row["schema_version"],
        project_id=row["project_id"],
        ref_name=row["ref_name"],
        parent_ids=tuple(json.loads(row["parent_ids_json"])),
        author=row["author_principal"],
        optional={name: row[name] for name in OPTIONAL if name in row},
        message=row["message"],
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        idempotency_key=row["idempotency_key"],
        evidence=go_json.read(row["evidence_json"]),
        verification=go_json.read(row["verification_json"]),
        integrity_digest=row["integrity_digest"],
        request_digest=row["request_digest"],
        ops=tuple(
            OriginalOp(
                op["ordinal"],
                op["op_type"],
                op.get("target_event_id", ""),
                op.get("resulting_event_id", ""),
                go_json.read(op["payload_json"]),
            )
            for op in row["ops"]
        ),
    )


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["changeset_id"][-12:])
def test_the_digest_of_a_row_that_the_original_wrote_is_found_again(row: dict[str, Any]) -> None:
    item = changeset_of(row)
    assert digest_of(item) == row["integrity_digest"]
    assert algorithm_of(item, digests_v2=True) == "v2"


def test_the_rows_hold_what_is_hard_to_write_alike() -> None:
    text = json.dumps(ROWS)
    assert max(len(json.loads(row["parent_ids_json"])) for row in ROWS) == 2
    assert all(hard in text for hard in ("003c", "2028", "65e5", "legacy_baseline"))


WRITTEN = (
    '{"a":"\\u003cx\\u003e\\b\\f\x7f\\u2028é😀","b":1,"c":1e+21,"d":1e-7,"e":0.000001,"f":123456789012345680000,"g":0.5,'
    '"h":-1.5e-10,"i":10000000000000000,"j":1e+100,"k":5e-324}'
)
"""What Go 1.26 gave for the values below."""


def test_values_are_written_as_go_writes_them() -> None:
    values = {
        "k": 5e-324,
        "b": 1.0,
        "a": "<x>\b\f\x7f\u2028é😀",
        "c": 1e21,
        "d": 1e-7,
        "e": 0.000001,
        "f": 123456789012345680000.0,
        "g": 0.5,
        "h": -1.5e-10,
        "i": 1e16,
        "j": 1e100,
    }
    assert go_json.write(values).decode() == WRITTEN
    assert go_json.write("\b\f", short_escapes=False) == b'"\\u0008\\u000c"'


@pytest.mark.parametrize("text", ["", "{", "NaN", '{"a":Infinity}', "1e999", "[" * 300, "'a'", '{"a":1,}'])
def test_what_go_would_not_read_is_not_read(text: str) -> None:
    with pytest.raises(go_json.Unread):
        go_json.read(text)


def test_of_equal_keys_the_last_counts_and_a_lone_surrogate_is_replaced() -> None:
    assert go_json.read('{"a":1,"a":"\\ud800"}') == {"a": "\ufffd"}


MOMENTS = {
    "the original's": (
        "2026-12-01 09:40:50.225165499 +0000 UTC",
        datetime(2026, 12, 1, 9, 40, 50, 225165, UTC),
    ),
    "whole seconds": ("2026-12-01 09:40:50 +0000 UTC", datetime(2026, 12, 1, 9, 40, 50, tzinfo=UTC)),
    "with a clock reading": (
        "2026-12-01 09:40:50.5 +0000 UTC m=+0.1",
        datetime(2026, 12, 1, 9, 40, 50, 500000, UTC),
    ),
    "another zone": ("2026-12-01 10:40:50 +0100 CET", datetime(2026, 12, 1, 9, 40, 50, tzinfo=UTC)),
    "west": ("2026-12-01 04:10:50 -0530 X", datetime(2026, 12, 1, 9, 40, 50, tzinfo=UTC)),
    "SQLite's": ("2026-12-01 09:40:50", datetime(2026, 12, 1, 9, 40, 50, tzinfo=UTC)),
    "RFC 3339": ("2026-12-01T09:40:50.25Z", datetime(2026, 12, 1, 9, 40, 50, 250000, UTC)),
    "RFC 3339 with an offset": ("2026-12-01T11:40:50+02:00", datetime(2026, 12, 1, 9, 40, 50, tzinfo=UTC)),
    "no day": ("2026-02-30 09:40:50", None),
    "before all time": ("0001-01-01 00:00:00 +0100 X", None),
    "no time": ("soon", None),
    "no text": (7, None),
    "more behind": ("2026-12-01 09:40:50 and more", None),
}


@pytest.mark.parametrize(("text", "moment"), MOMENTS.values(), ids=MOMENTS.keys())
def test_times_are_read_in_every_form_that_was_written(text: object, moment: datetime | None) -> None:
    assert parse_moment(text) == moment

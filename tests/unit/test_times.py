"""Times on the wire (3-model, ids and names)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from memory_git.domain.times import format_time, parse_time

READ = {
    "UTC with microseconds": ("2026-01-02T03:04:05.678901Z", "2026-01-02T03:04:05.678901Z"),
    "no fraction": ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000000Z"),
    "one digit of fraction": ("2026-01-02T03:04:05.5Z", "2026-01-02T03:04:05.500000Z"),
    "nanoseconds are cut, not rounded": ("2026-01-02T03:04:05.999999999Z", "2026-01-02T03:04:05.999999Z"),
    "an offset becomes UTC": ("2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05.000000Z"),
    "an offset across the day": ("2026-01-01T00:30:00+01:00", "2025-12-31T23:30:00.000000Z"),
    "minus zero is UTC": ("2026-01-02T03:04:05-00:00", "2026-01-02T03:04:05.000000Z"),
    "lower case": ("2026-01-02t03:04:05z", "2026-01-02T03:04:05.000000Z"),
    "a space for the T": ("2026-01-02 03:04:05Z", "2026-01-02T03:04:05.000000Z"),
    "a leap day": ("2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000000Z"),
    "a year below 1000 keeps four digits": ("0042-01-02T03:04:05Z", "0042-01-02T03:04:05.000000Z"),
    "the last instant": ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
}

REFUSED = {
    "a date alone": "2026-01-02",
    "no zone": "2026-01-02T03:04:05",
    "a day that isn't": "2026-02-30T00:00:00Z",
    "no leap day in 2023": "2023-02-29T00:00:00Z",
    "hour 24": "2026-01-02T24:00:00Z",
    "minute 60": "2026-01-02T03:60:00Z",
    "second 60": "2016-12-31T23:59:60Z",
    "an offset of 24 hours": "2026-01-02T03:04:05+24:00",
    "an offset of 60 minutes": "2026-01-02T03:04:05+01:60",
    "an offset without a colon": "2026-01-02T03:04:05+0100",
    "Arabic digits": "٢٠٢٦-01-02T03:04:05Z",
    "Arabic digits in the fraction": "2026-01-02T03:04:05.٥Z",
    "a dot without digits": "2026-01-02T03:04:05.Z",
    "white space around": " 2026-01-02T03:04:05Z",
    "a line feed at the end": "2026-01-02T03:04:05Z\n",
    "year zero": "0000-01-01T00:00:00Z",
    "beyond the first instant": "0001-01-01T00:00:00+01:00",
    "beyond the last instant": "9999-12-31T23:59:59-01:00",
    "nothing": "",
    "a number": 1767322445,
    "null": None,
}


@pytest.mark.parametrize(("text", "wire"), READ.values(), ids=READ.keys())
def test_a_time_is_read_as_an_instant_and_written_in_the_one_wire_form(text: str, wire: str):
    moment = parse_time(text)
    assert moment is not None
    assert format_time(moment) == wire
    assert parse_time(wire) == moment


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_rfc_3339_time_is_none(text: object):
    assert parse_time(text) is None


def test_wire_forms_sort_as_their_instants_do():
    moments = [
        datetime(1, 1, 1, tzinfo=UTC) + timedelta(days=days, microseconds=days)
        for days in range(0, 3_600_000, 90_001)
    ]
    assert sorted(map(format_time, moments)) == [format_time(moment) for moment in moments]


def test_a_datetime_of_another_zone_is_written_in_utc():
    moment = datetime(2026, 1, 2, 3, tzinfo=timezone(timedelta(hours=5, minutes=30)))
    assert format_time(moment) == "2026-01-01T21:30:00.000000Z"

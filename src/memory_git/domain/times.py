"""Times on the wire: RFC 3339, UTC, `Z`, microseconds (3-model, ids and names).

The domain never asks what time it is; `now` is a parameter.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

_RFC3339 = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]([01]\d|2[0-3]):\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)", re.ASCII
)


def format_time(moment: datetime) -> str:
    """Gives the wire form of an aware datetime.

    >>> format_time(datetime(2026, 1, 2, tzinfo=UTC))
    '2026-01-02T00:00:00.000000Z'
    """
    in_utc = moment.astimezone(UTC).replace(tzinfo=None)
    return in_utc.isoformat(timespec="microseconds") + "Z"


def parse_time(text: object) -> datetime | None:
    """Reads an RFC 3339 time, or gives None when it isn't one. Digits beyond microseconds are dropped."""
    if not isinstance(text, str) or not _RFC3339.fullmatch(text):
        return None
    main, _, fraction = text.upper().replace(" ", "T").partition(".")
    if fraction:
        zone = fraction.lstrip("0123456789")
        digits = fraction[: len(fraction) - len(zone)][:6]
        text = f"{main}.{digits.ljust(6, '0')}{zone}"
    else:
        text = main
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(UTC)
    except (ValueError, OverflowError):
        return None

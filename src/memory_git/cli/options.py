"""Options that many commands share."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import click

_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 24 * 3600, "w": 7 * 24 * 3600}
_DURATION = re.compile(r"(\d{1,6})([smhdw])")

Option = Callable[[Any], Any]


def project_option(help: str = "The project. Default: the only one there is.") -> Option:
    """Gives `--project`."""
    return click.option("--project", metavar="PROJECT", help=help)


def as_option() -> Option:
    """Gives `--as`, the principal that a local operator acts as."""
    return click.option(
        "--as",
        "principal",
        metavar="PRINCIPAL",
        help="The principal to act as. Default: the first person added.",
    )


class Duration(click.ParamType[int]):
    """A duration like 30m, 12h, 7d, in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Gives the seconds."""
        if isinstance(value, int):
            return value
        found = _DURATION.fullmatch(value)
        if found is None or int(found[1]) == 0:
            self.fail("a duration is a number with s, m, h, d or w: 30m, 12h, 7d", param, ctx)
        return int(found[1]) * _UNITS_S[found[2]]


def require_text(context: click.Context) -> None:
    """Refuses arguments with bytes that are not UTF-8, which could be stored nowhere; a path may have them."""
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, str) and any("\ud800" <= sign <= "\udfff" for sign in item):
                raise click.BadParameter("not UTF-8 text", ctx=context, param=parameter)

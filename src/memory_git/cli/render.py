"""What commands print: tables for people, plain columns for pipes, one JSON document for programs.

Stored text is written by others: control characters that could steer a terminal are shown as escapes.
"""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

# C0 but tab and newline, DEL, C1, lone surrogates, line separators, and marks that reorder text on a screen.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_GAP = "  "
_TEXT_COLUMNS = 24
_ANY_WIDTH = 1 << 20
_STEP = 100
_CLEAR = "\r\x1b[K"


def json_option(command: Command) -> Command:
    """Adds `--json`, handed to the command as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")(command)


def write_document(value: object) -> None:
    """Prints one JSON document, readable, with characters that could steer a terminal escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
    sys.stdout.write(_UNPRINTABLE.sub(_json_escape, text) + "\n")


def printable(text: str) -> str:
    """Gives the text with every character that could steer a terminal shown as an escape."""
    return _UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def one_line(value: object) -> str:
    """Gives a value as one printable line; None is empty, a list is joined by commas."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(one_line(item) for item in value)
    return printable(re.sub(r"[\t\n]+", " ", str(value)))


def write_table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, empty: str = "") -> None:
    """Prints rows under column names: a table on a terminal, plain columns into a pipe.

    Nothing is cut in a pipe. Without rows `empty` is printed on stderr, so that a pipe stays empty.
    """
    texts = [[one_line(cell) for cell in row] for row in rows]
    if not texts:
        if empty:
            sys.stderr.write(empty + "\n")
        return
    if sys.stdout.isatty():
        _write_on_terminal(columns, texts)
    else:
        _write_columns([[name.upper() for name in columns], *texts])


def write_fields(fields: Mapping[str, object]) -> None:
    """Prints the fields of one object, a line each, values aligned and their further lines indented."""
    width = max((len(name) for name in fields), default=0)
    for name, value in fields.items():
        text = printable(value) if isinstance(value, str) else one_line(value)
        first, *more = text.split("\n")
        sys.stdout.write(f"{name:<{width}}{_GAP}{first}".rstrip() + "\n")
        sys.stdout.writelines(f"{'':<{width}}{_GAP}{line}".rstrip() + "\n" for line in more)


def write_text(text: str) -> None:
    """Prints text for people, printable, with a final newline."""
    sys.stdout.write(printable(text).rstrip("\n") + "\n")


@contextmanager
def progress_on_terminal() -> Iterator[Callable[[str, int, int], None] | None]:
    """Gives what tells progress on stderr, wiped in the end; None where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    try:
        yield _tell_progress
    finally:
        sys.stderr.write(_CLEAR)


def _tell_progress(kind: str, done: int, total: int) -> None:
    if done % _STEP == 0 or done == total:
        sys.stderr.write(f"{_CLEAR}{kind}: {done} of {total}")
        sys.stderr.flush()


def columns_wide(text: str) -> int:
    """Counts the terminal columns of a printable line: East Asian wide characters take two, marks none."""
    return sum(
        0 if unicodedata.combining(sign) else 2 if unicodedata.east_asian_width(sign) in "WF" else 1
        for sign in text
    )


def _write_columns(lines: Sequence[Sequence[str]]) -> None:
    widths = [max(map(columns_wide, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = [cell + " " * (width - columns_wide(cell)) for cell, width in zip(line, widths, strict=True)]
        sys.stdout.write(_GAP.join(cells).rstrip() + "\n")


def _write_on_terminal(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints a table in which only running text is wrapped; what a narrow terminal can't hold so is told row by row.

    Ids, names and times are there to be copied, so they are never cut.
    """
    from rich import box
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

    console = Console(file=sys.stdout)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, cells in zip(columns, zip(*rows, strict=True), strict=True):
        is_text = any(" " in cell for cell in cells)
        least = min(_TEXT_COLUMNS, max(map(columns_wide, cells))) if is_text else None
        table.add_column(name, no_wrap=not is_text, min_width=least)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))  # Text: stored text is never read as markup
    if Measurement.get(console, console.options.update(max_width=_ANY_WIDTH), table).minimum <= console.width:
        console.print(table)
        return
    for number, row in enumerate(rows):
        sys.stdout.write("\n" if number else "")
        write_fields(dict(zip(columns, row, strict=True)))


def _json_escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"

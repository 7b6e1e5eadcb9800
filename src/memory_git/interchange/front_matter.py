"""Reads the YAML front matter of a Markdown file (9-repository, files).

1. The fence is a first line `---` and the next line that is `---` or `...`, both at the left edge: a `---` inside a
   value or an indented block is text.
2. PyYAML's safe loader composes the nodes; values become JSON here, so no tag makes an object. Times stay text.
   Aliases are refused: a few bytes of them can stand for gigabytes.
3. Where the YAML is broken, each top-level entry is read for itself, and one that is still broken is taken as plain
   text. Every fault has its line and field; none kills the file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import yaml

from memory_git.domain.canonical import MAX_INTEGER

MAX_FRONT_MATTER_BYTES = 64 * 1024
_OPEN = re.compile(r"\ufeff?---[ \t]*\r?\n")
_CLOSE = re.compile(r"^(?:---|\.\.\.)[ \t]*\r?(?:\n|\Z)", re.MULTILINE)
_ENTRY = re.compile(r"^(?=[^\s#\-\]}])", re.MULTILINE)
_KEY = re.compile(r"""(?:"([^"\n]*)"|'([^'\n]*)'|([^:\n]+?))[ \t]*:(?=[ \t\r\n]|\Z)""")
_INTEGER = re.compile(r"[-+]?[0-9]{1,16}")
_FLOAT = re.compile(r"[-+]?(?:[0-9]{1,20}\.[0-9]{0,20}|\.[0-9]{1,20})(?:[eE][-+]?[0-9]{1,3})?")


@dataclass(frozen=True, slots=True)
class Field:
    """One entry: its JSON value, its text as written when it is a scalar, its line in the file."""

    value: Any
    text: str | None
    line: int


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """A file taken apart: fields, body, the body's first line, and the faults as (line, field, why)."""

    fields: dict[str, Field]
    body: str
    body_line: int = 1
    faults: list[tuple[int, str, str]] = field(default_factory=list)


class _Loader(yaml.SafeLoader):
    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.composer.ComposerError(None, None, "aliases are not taken", None)
        return super().compose_node(parent, index)


def read_front_matter(text: str) -> FrontMatter:
    """Gives the fields and the body of a file; without a fence the whole text is the body."""
    opening = _OPEN.match(text)
    if opening is None:
        return FrontMatter({}, text.removeprefix("\ufeff"))
    closing = _CLOSE.search(text, opening.end())
    if closing is None:
        fault = (1, "", "the front matter is never closed: taken as text")
        return FrontMatter({}, text.removeprefix("\ufeff"), 1, [fault])
    source = text[opening.end() : closing.start()]
    body_line = 2 + source.count("\n") + 1
    fields, faults = _read_fields(source)
    if not fields and source.strip() and faults:
        return FrontMatter({}, text.removeprefix("\ufeff"), 1, faults)
    return FrontMatter(fields, text[closing.end() :], body_line, faults)


def _read_fields(source: str) -> tuple[dict[str, Field], list[tuple[int, str, str]]]:
    if len(source.encode("utf-8")) > MAX_FRONT_MATTER_BYTES:
        return {}, [(1, "", f"the front matter is over {MAX_FRONT_MATTER_BYTES} bytes: taken as text")]
    fields: dict[str, Field] = {}
    faults: list[tuple[int, str, str]] = []
    try:
        _take(_compose(source), 2, fields, faults)
    except (yaml.YAMLError, RecursionError) as error:
        fields, faults = {}, []
        _take_one_by_one(source, _line_of(error), fields, faults)
    return fields, faults


def _compose(source: str) -> yaml.Node | None:
    node: yaml.Node | None = yaml.compose(source, Loader=_Loader)
    return node


def _take(
    node: yaml.Node | None, first_line: int, fields: dict[str, Field], faults: list[tuple[int, str, str]]
) -> None:
    """Takes the entries of a mapping; anything else is a fault."""
    if node is None:
        return
    if not isinstance(node, yaml.MappingNode):
        faults.append((first_line, "", "the front matter is not a mapping: taken as text"))
        return
    for key_node, value_node in node.value:
        line = first_line + key_node.start_mark.line
        key = key_node.value if isinstance(key_node, yaml.ScalarNode) else ""
        if not key or not _is_utf8(key):
            faults.append((line, "", "a key that is not a text: left out"))
        elif key in fields:
            faults.append((line, key, f"stands twice: the one on line {fields[key].line} is taken"))
        else:
            _take_entry(key, value_node, line, fields, faults)


def _take_entry(
    key: str, node: yaml.Node, line: int, fields: dict[str, Field], faults: list[tuple[int, str, str]]
) -> None:
    try:
        text = node.value if isinstance(node, yaml.ScalarNode) else None
        fields[key] = Field(_plain(node), text, line)
    except ValueError as error:
        faults.append((line, key, f"{error}: left out"))


def _take_one_by_one(
    source: str, broken_line: int, fields: dict[str, Field], faults: list[tuple[int, str, str]]
) -> None:
    """Takes each top-level entry for itself, one that is broken as plain text."""
    starts = sorted({0, *(match.start() for match in _ENTRY.finditer(source))})
    for start, end in pairwise([*starts, len(source)]):
        entry = source[start:end]
        if not entry.strip() or entry.startswith("#"):
            continue
        line = 2 + source.count("\n", 0, start)
        try:
            node = _compose(entry)
            if isinstance(node, yaml.MappingNode):
                _take(node, line, fields, faults)
                continue
        except (yaml.YAMLError, RecursionError):
            pass
        key = _KEY.match(entry)
        if key is None or not _is_utf8(entry):
            faults.append((line, "", "not an entry: left out"))
            continue
        name = next(filter(None, key.groups()), "").strip()
        text = entry[key.end() :].strip()
        if name and name not in fields:
            fields[name] = Field(text, text, line)
        faults.append((line, name, "broken YAML: taken as plain text"))
    if not faults:
        faults.append((broken_line, "", "broken YAML: the entries were read one by one"))


def _plain(node: yaml.Node) -> Any:
    """Gives the JSON value of a node; a number that JSON would change stays text."""
    if isinstance(node, yaml.MappingNode):
        return {_key(key): _plain(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item) for item in node.value]
    text = str(node.value)
    if not _is_utf8(text):
        raise ValueError("holds a lone surrogate")
    return _scalar(text, node.tag.rpartition(":")[2])


def _scalar(text: str, tag: str) -> Any:
    if tag == "null":
        return None
    if tag == "bool" and text.lower() in ("true", "false", "yes", "no", "on", "off"):
        return text.lower() in ("true", "yes", "on")
    if tag == "int" and _INTEGER.fullmatch(text) and abs(int(text)) <= MAX_INTEGER:
        return int(text)
    if tag == "float" and _FLOAT.fullmatch(text) and abs(float(text)) <= 1e300:
        return float(text)
    return text


def _key(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode) or not _is_utf8(node.value):
        raise ValueError("has a key that is not a text")
    return str(node.value)


def _line_of(error: Exception) -> int:
    mark = getattr(error, "problem_mark", None)
    return 2 + mark.line if mark is not None else 2


def _is_utf8(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)

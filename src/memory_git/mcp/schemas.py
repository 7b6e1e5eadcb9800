"""Flat input schemas, and arguments read by them (6-charon, MCP; 12-lessons, clients).

1. A schema is one object with plain property types: no `$ref`, `$defs`, `anyOf`, `oneOf`, `allOf`, no union with null.
2. An argument that isn't declared is refused by name; every fault is told at once, by field and rule, never by value.
3. Null stands for an argument left out: clients send it for what a model did not fill in.
4. No text in an argument, however deep, holds a lone surrogate or the markup of a tool call (`mcp.markup`), no number is one
   that JSON does not know.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from memory_git.domain.errors import Fault, Invalid
from memory_git.mcp.markup import markup_at

Json = dict[str, Any]
MAX_NAME = 24
MAX_ARGUMENTS = 64
_UNIONS = ("$ref", "$defs", "definitions", "anyOf", "oneOf", "allOf", "not", "if")
_TYPES: dict[str, tuple[type[Any], str]] = {
    "string": (str, "is not a string"),
    "boolean": (bool, "is not true or false"),
    "integer": (int, "is not a whole number"),
    "array": (list, "is not an array"),
    "object": (dict, "is not an object"),
}


def text(about: str = "", *, choices: tuple[str, ...] = ()) -> Json:
    """Gives the schema of a string, one of the choices if there are any."""
    return _described({"type": "string", **({"enum": list(choices)} if choices else {})}, about)


def flag(about: str = "") -> Json:
    """Gives the schema of a yes or no."""
    return _described({"type": "boolean"}, about)


def count(about: str = "", *, least: int = 1, most: int | None = None) -> Json:
    """Gives the schema of a whole number."""
    limits = {"minimum": least} if most is None else {"minimum": least, "maximum": most}
    return _described({"type": "integer", **limits}, about)


def texts(about: str = "") -> Json:
    """Gives the schema of a list of strings."""
    return _described({"type": "array", "items": {"type": "string"}}, about)


def objects(about: str = "", *, required: tuple[str, ...] = (), **properties: Json) -> Json:
    """Gives the schema of a list of objects; other properties than these pass, the gate judges them."""
    item: Json = {"type": "object"}
    if properties:
        item["properties"] = properties
    if required:
        item["required"] = list(required)
    return _described({"type": "array", "items": item}, about)


def anything() -> Json:
    """Gives the schema of an object that the gate judges."""
    return {"type": "object"}


@dataclass(frozen=True, slots=True)
class Parameters:
    """The arguments that a tool takes."""

    properties: Mapping[str, Json]
    required: tuple[str, ...] = ()

    def schema(self) -> Json:
        """Gives the schema of an object with these properties and no others."""
        return {**self.shape(), "additionalProperties": False}

    def shape(self) -> Json:
        """Gives the schema of an object that has these properties, and may have others."""
        shape: Json = {"type": "object", "properties": dict(self.properties)}
        return {**shape, "required": list(self.required)} if self.required else shape

    def read(self, arguments: Mapping[str, Any]) -> Json:
        """Gives the arguments that were filled in; raises Invalid `invalid_request` with every fault."""
        given = {name: value for name, value in arguments.items() if value is not None}
        faults = list(self._faults(given))
        if faults:
            names = ", ".join(dict.fromkeys(fault.field for fault in faults))
            raise Invalid("invalid_request", f"the arguments do not fit the tool: {names}", faults)
        return given

    def _faults(self, given: Json) -> Iterator[Fault]:
        for name in self.required:
            if name not in given:
                yield Fault(None, name, "is required")
        for name in sorted(given.keys() - self.properties.keys())[:MAX_ARGUMENTS]:
            known = ", ".join(self.properties) or "none"
            yield Fault(None, _field(name), f"is not known here; there are: {known}")
        for name, schema in self.properties.items():
            if name in given:
                yield from _content_faults(name, given[name]) or _value_faults(name, given[name], schema)


def schema_faults(schema: Any, place: str = "schema") -> list[str]:
    """Gives what a strict client would refuse in a schema (rule 1); empty if nothing.

    >>> schema_faults({"type": "object", "properties": {"a": {"anyOf": []}}})
    ['schema.properties.a: anyOf', 'schema.properties.a: no single type']
    """
    if not isinstance(schema, dict):
        return [f"{place}: not an object"]
    faults = [f"{place}: {word}" for word in _UNIONS if word in schema]
    if not isinstance(schema.get("type"), str) or schema["type"] == "null":
        faults.append(f"{place}: no single type")
    for name, part in schema.get("properties", {}).items():
        faults += schema_faults(part, f"{place}.properties.{name}")
    if "items" in schema:
        faults += schema_faults(schema["items"], f"{place}.items")
    return faults


def _described(schema: Json, about: str) -> Json:
    return {**schema, "description": about} if about else schema


def _content_faults(name: str, value: Any) -> list[Fault]:
    """Gives what no argument may hold (rule 4), by place; the walk goes with a list, for callers choose how deep a value is."""
    faults: list[Fault] = []
    waiting: list[tuple[str, Any]] = [(name, value)]
    while waiting and len(faults) < MAX_ARGUMENTS:
        place, item = waiting.pop()
        if isinstance(item, dict):
            waiting += [(f"{place}.{_field(key)}", part) for key, part in reversed(item.items())]
            waiting += [(f"{place}.?", key) for key in item if not _is_text(key)]
        elif isinstance(item, list):
            waiting += [(f"{place}[{index}]", part) for index, part in reversed(list(enumerate(item)))]
        elif isinstance(item, str):
            faults += _text_faults(place, item)
        elif isinstance(item, float) and not math.isfinite(item):
            faults.append(Fault(None, place, "is a number that JSON does not know: send a finite one"))
    return faults


def _text_faults(place: str, item: str) -> Iterator[Fault]:
    if not _is_text(item):
        yield Fault(
            None, place, "holds half of a character (a lone surrogate): send it whole, or leave it out"
        )
    elif (start := markup_at(item)) is not None:
        yield Fault(
            None,
            place,
            "holds markup of a tool call: end the text before it and send what follows as arguments of their own; "
            "if the text is about such markup, set it in `code`",
            f"at character {start}",
        )


def _is_text(item: str) -> bool:
    try:
        item.encode()
    except UnicodeEncodeError:
        return False
    return True


def _value_faults(name: str, value: Any, schema: Json) -> Iterator[Fault]:
    kind, rule = _TYPES[schema["type"]]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        yield Fault(None, name, rule, type(value).__name__)
        return
    if "enum" in schema and value not in schema["enum"]:
        yield Fault(None, name, f"is not one of {', '.join(schema['enum'])}")
    if kind is int and not schema.get("minimum", -math.inf) <= value <= schema.get("maximum", math.inf):
        yield Fault(None, name, f"lies outside {schema['minimum']} to {schema.get('maximum', 'any')}")
    if kind is list:
        for place, item in enumerate(value):
            yield from _item_faults(f"{name}[{place}]", item, schema["items"])


def _item_faults(name: str, item: Any, schema: Json) -> Iterator[Fault]:
    kind, rule = _TYPES[schema["type"]]
    if not isinstance(item, kind):
        yield Fault(None, name, rule, type(item).__name__)
        return
    for key in schema.get("required", ()):
        if key not in item:
            yield Fault(None, f"{name}.{key}", "is required")


def _field(name: str) -> str:
    return name[:64] if name.isascii() and name.isidentifier() else "?"

"""Hostile requests over a socket to every operation that a face describes: no 5xx, no exception in its log, no content in an error.

A request begins as one that could be right, with ids of what is there, and up to three things of it are made wrong: a parameter, a member
of the body, the body's text, a header, the method, the path. Everything follows from the seed. What is asked:

1. The status is below 500, and an answer of 400 and above is a problem document with a code, save to HEAD.
2. No error holds a word of a stored text, the caller's key, a file of the program, or the name of an exception.
3. The connection is answered: nothing hangs, nothing breaks off.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

from bench.face_lethe import PLANTED
from bench.participant import Json

CONNECTIONS = 4
_WAIT_S = 20
_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)
_TYPE = re.compile(rb"\r\ncontent-type: ([^\r;]+)", re.IGNORECASE)
LEAKS = (PLANTED.encode(), b"Traceback", b"site-packages", b"memory_git/", b"Error(", b"apsw", b"sqlite3.")
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW")
_TEXTS = (
    *(
        "",
        " ",
        "\x00",
        "\n",
        "\u202e",
        "\ufeff",
        "\ud800",
        "e\u0301",
        "💥",
        "ß" * 600,
        "a" * 70_000,
        "%00",
        "%ff",
    ),
    *(
        "..",
        "../../x",
        "refs/shared/main",
        "refs/",
        "refs/agents/x/../y",
        "refs/agents/a/b.lock",
        "null",
        "true",
        "-1",
    ),
    *(
        "' OR 1=1 --",
        '"; DROP TABLE ref; --',
        "<script>",
        "{{7*7}}",
        "${x}",
        "\\",
        "changesets",
        "0" * 64,
        "NaN",
        "*",
    ),
    *("2026-02-30T00:00:00Z", "9999-12-31T23:59:59.9999999Z", "0000-00-00", "2026-12-01T10:00:00+99:99"),
    *(
        "018f0000-0000-7000-8000-000000000000",
        "AAAA",
        "a" * 344,
        "=",
        "e30",
        "obol_x_y",
        "add_memory",
        "private",
    ),
)
_VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2**31,
        2**53,
        2**63,
        10**40,
        1.5,
        1e308,
        -0.0,
        [],
        {},
        [[]],
        [None],
        {"": ""},
    ),
    *(
        {"a": {"b": {"c": [1, "x", None]}}},
        ["x"] * 300,
        {f"k{n}": n for n in range(300)},
        [{"op_type": "add_memory"}],
    ),
)
RAW = (
    b"",
    b"{",
    b"null",
    b"[]",
    b'"text"',
    b"1e400",
    b"NaN",
    b'{"a":1,"a":2}',
    b"\xff\xfe{}",
    b"\xef\xbb\xbf{}",
    b"[" * 5_000,
    b'{"a":' * 3_000,
    b'{"a":"\\ud800"}',
    b'{"a":123456789012345678901234567890}',
    b"\x00" * 64,
)
_MEDIA = (
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data",
    "application/json; charset=utf-16",
    "",
)


@dataclass(frozen=True, slots=True)
class Operation:
    """One described operation, with the schema of its parameters and body."""

    method: str
    path: str
    parameters: list[Json]
    body: Json | None


@dataclass(slots=True)
class Found:
    """What a run found: how many were sent, the answers by status, and what was wrong with some."""

    sent: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    server_errors: int = 0
    faults: list[str] = field(default_factory=list)

    def fault(self, what: str, sent: bytes, answer: bytes) -> None:
        """Notes a fault, with the beginning of what was sent and answered."""
        self.faults.append(f"{what}: {sent[:600]!r} -> {answer[:600]!r}")


def fuzz(served: Json, document: Json, *, count: int, seed: int = 1) -> Found:
    """Sends so many requests to a face; `served` is what its participant gave, `document` its description."""
    return asyncio.run(_fuzz(served, document, count, seed))


def operations(document: Json) -> list[Operation]:
    """Gives every operation of a description but those that stream without end."""
    found = []
    for path, item in document["paths"].items():
        for method, said in item.items():
            if "text/event-stream" not in said["responses"].get("200", {}).get("content", {}):
                content = said.get("requestBody", {}).get("content", {})
                body = content.get("application/json", {}).get("schema")
                found.append(Operation(method.upper(), path, said.get("parameters", []), body))
    return found


class Maker:
    """Makes requests from a seed."""

    def __init__(self, served: Json, document: Json, seed: int) -> None:
        self._draw = random.Random(seed)
        self._headers = served["headers"]
        self._ids: dict[str, list[str]] = served["ids"]
        self._schemas = document.get("components", {}).get("schemas", {})
        self._operations = operations(document)
        self._all: list[str] = [name for names in self._ids.values() for name in names]

    def request(self) -> tuple[str, bytes]:
        """Gives the method and the bytes of the next request."""
        operation = self._draw.choice(self._operations)
        wrongs = {self._draw.choice(_WRONGS) for _ in range(self._draw.choice((0, 1, 1, 2, 3)))}
        method = self._draw.choice(_METHODS) if "method" in wrongs else operation.method
        headers = {"Host": "127.0.0.1", **self._headers}
        target, body = self._target(operation, wrongs), self._body(operation, wrongs)
        if "header" in wrongs:
            self._spoil(headers)
        if body:
            headers.setdefault("Content-Type", "application/json")
        if "media" in wrongs:
            headers["Content-Type"] = self._draw.choice(_MEDIA)
        if "packed" in wrongs and body:
            body, headers["Content-Encoding"] = gzip.compress(body), "gzip"
        return method, _bytes(method, target, headers, body, chunked="chunked" in wrongs)

    def _target(self, operation: Operation, wrongs: set[str]) -> str:
        path, query = operation.path, []
        for parameter in operation.parameters:
            name, where = parameter["name"], parameter["in"]
            value = self._parameter(name, parameter["schema"], "parameter" in wrongs)
            if where == "path":
                path = path.replace(f"{{{name}}}", value or "x")
            elif where == "query" and (parameter.get("required") or self._draw.random() < 0.4):
                query.append(f"{quote(name)}={value}")
        if "query" in wrongs:
            query.append(
                self._draw.choice(
                    ("limmit=1", "reader=", "visibility=none", "&&&", "a", "%zz=%", "limit=1&limit=2")
                )
            )
        if "path" in wrongs:
            path += self._draw.choice(("/", "/x", "//", "/%2e%2e", "/%00", "?", ";a=1"))
        return f"{path}?{'&'.join(query)}" if query else path

    def _parameter(self, name: str, schema: Json, wrong: bool) -> str:
        value = self._text() if wrong and self._draw.random() < 0.6 else self._right(name, schema)
        return quote(str(value).encode("utf-8", "surrogatepass"), safe="/") if value is not None else ""

    def _right(self, name: str, schema: Json) -> Any:
        if "enum" in schema:
            return self._draw.choice(schema["enum"])
        if schema.get("type") == "boolean":
            return self._draw.choice(("true", "false"))
        if schema.get("type") in ("integer", "number"):
            return self._draw.randint(1, 100)
        return self._id(name)

    def _id(self, name: str) -> str:
        for part, kind in _KINDS:
            if part in name and kind in self._ids:
                return self._draw.choice(self._ids[kind])
        return self._draw.choice(self._all)

    def _text(self) -> str:
        return self._draw.choice(_TEXTS) if self._draw.random() < 0.8 else chr(self._draw.randrange(0x3000))

    def _body(self, operation: Operation, wrongs: set[str]) -> bytes:
        if operation.body is None:
            return self._draw.choice(RAW) if "raw" in wrongs else b""
        if "raw" in wrongs:
            return self._draw.choice(RAW)
        content = self._value("", operation.body, 0)
        if "member" in wrongs and isinstance(content, dict) and content:
            for name in self._draw.sample(sorted(content), min(len(content), self._draw.randint(1, 3))):
                content[name] = self._anything()
        if "unknown" in wrongs and isinstance(content, dict):
            content[self._text()[:64]] = self._anything()
        text = json.dumps(content).encode()
        if "cut" in wrongs:
            at = self._draw.randrange(len(text))
            text = text[:at] + self._draw.choice((b"", b"\xff", b'"', b"}", b'"a":1,"a":1')) + text[at + 1 :]
        return text

    def _anything(self) -> Any:
        return self._draw.choice(_VALUES) if self._draw.random() < 0.5 else self._text()

    def _value(self, name: str, schema: Json, depth: int) -> Any:
        if "$ref" in schema:
            schema = self._schemas[schema["$ref"].rpartition("/")[2]]
        kinds = schema.get("anyOf") or [schema]
        kind = self._draw.choice(kinds)
        if kind is not schema:
            return self._value(name, kind, depth)
        if schema.get("type") == "object" or "properties" in schema:
            return self._object(schema, depth)
        if schema.get("type") == "array":
            return [
                self._value(name, schema.get("items", {}), depth + 1) for _ in range(self._draw.randint(0, 3))
            ]
        if schema.get("type") == "null":
            return None
        if schema.get("type") == "boolean":
            return self._draw.random() < 0.5
        if schema.get("type") == "integer":
            return self._draw.randint(1, 50)
        return self._right(name, schema) if self._draw.random() < 0.8 else self._text()[:300]

    def _object(self, schema: Json, depth: int) -> Json:
        required = schema.get("required", ())
        found = {
            name: self._value(name, said, depth + 1)
            for name, said in schema.get("properties", {}).items()
            if name in required or self._draw.random() < 0.3
        }
        if "op_type" in found:
            found |= {"op_type": self._draw.choice(_OPS), "payload": self._payload()}
        return found

    def _payload(self) -> Json:
        names = self._draw.sample(_PAYLOAD, self._draw.randint(0, 5))
        return {name: self._anything() if self._draw.random() < 0.3 else self._id(name) for name in names}

    def _spoil(self, headers: dict[str, str]) -> None:
        name = self._draw.choice(
            ("Authorization", "Host", "Origin", "Last-Event-ID", "X-Forwarded-For", "Accept", "Range")
        )
        values = (
            "",
            "x",
            "Bearer",
            "Bearer ",
            "Basic eDp5",
            "Bearer \xff\xfe",
            "evil.example",
            "null",
            "a" * 4000,
            "bytes=0-",
        )
        headers[name] = self._draw.choice(values)


_WRONGS: tuple[str, ...] = (
    "parameter",
    "parameter",
    "member",
    "member",
    "member",
    "unknown",
    "cut",
    "raw",
    "media",
    "packed",
)
_WRONGS += ("chunked", "header", "method", "query", "path")
_KINDS: tuple[tuple[str, str], ...] = (
    *(
        ("project", "projects"),
        ("changeset", "changesets"),
        ("head", "changesets"),
        ("ref", "refs"),
        ("memory", "memories"),
    ),
    *(("manifest", "manifests"), ("event", "events"), ("assembly", "assemblies"), ("conflict", "conflicts")),
    *(
        ("proposal", "proposals"),
        ("principal", "principals"),
        ("author", "principals"),
        ("parent", "changesets"),
    ),
    *(
        ("target", "memories"),
        ("result", "memories"),
        ("base", "changesets"),
        ("left", "changesets"),
        ("right", "changesets"),
    ),
    *(("onto", "changesets"), ("source", "changesets"), ("without", "changesets"), ("duplicate", "memories")),
)
_OPS = (
    *(
        "add_memory",
        "correct_memory",
        "supersede_memory",
        "mark_duplicate",
        "add_relationship",
        "propose_deprecation",
    ),
    *("attach_evidence", "attach_verification", "set_status", "remove_relationship", "detach", "nonsense"),
)
_PAYLOAD = (
    *(
        "content",
        "memory_id",
        "kind",
        "summary",
        "tags",
        "confidence",
        "status",
        "reason",
        "duplicate_id",
        "duplicate_of",
    ),
    *(
        "from_memory_id",
        "to_memory_id",
        "valid_to",
        "visibility",
        "extra",
        "sources",
        "clear",
        "protected",
        "note",
        "source",
    ),
)


def _bytes(method: str, target: str, headers: dict[str, str], body: bytes, *, chunked: bool) -> bytes:
    lines = [f"{method} {target} HTTP/1.1"] + [f"{name}: {value}" for name, value in headers.items()]
    if chunked and body:
        lines.append("Transfer-Encoding: chunked")
        body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in _parts(body)) + b"0\r\n\r\n"
    elif body or method in ("POST", "PUT", "PATCH"):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + body


def _parts(body: bytes) -> Iterator[bytes]:
    for begin in range(0, len(body), 4096):
        yield body[begin : begin + 4096]


async def _fuzz(served: Json, document: Json, count: int, seed: int) -> Found:
    found, make = Found(), Maker(served, document, seed).request
    address = urlsplit(served["url"])
    left = iter(range(count))
    await asyncio.gather(
        *(_lane(address.hostname, address.port, left, make, found) for _ in range(CONNECTIONS))
    )
    return found


async def _lane(
    host: str | None,
    port: int | None,
    left: Iterator[int],
    make: Callable[[], tuple[str, bytes]],
    found: Found,
) -> None:
    reader, writer = await asyncio.open_connection(host, port, limit=1 << 26)
    for _ in left:
        method, sent = make()
        found.sent += 1
        try:
            head, body, ends = await asyncio.wait_for(_exchange(reader, writer, method, sent), _WAIT_S)
        except (TimeoutError, OSError, asyncio.IncompleteReadError) as error:
            found.fault(f"no answer ({type(error).__name__})", sent, b"")
            ends = True
        else:
            _judge(found, method, sent, head, body)
        if ends:
            writer.close()
            reader, writer = await asyncio.open_connection(host, port, limit=1 << 26)
    writer.close()


async def _exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, method: str, sent: bytes
) -> tuple[bytes, bytes, bool]:
    """Gives head and body of an answer, and whether the connection ends with it."""
    writer.write(sent)
    head = await reader.readuntil(b"\r\n\r\n")
    length = _LENGTH.search(head)
    size = int(length.group(1)) if length and method != "HEAD" else 0
    return head, await reader.readexactly(size), b"connection: close" in head.lower()


def _judge(found: Found, method: str, sent: bytes, head: bytes, body: bytes) -> None:
    status = int(head[9:12])
    found.statuses[status] += 1
    if status >= 500:
        found.server_errors += 1
        found.fault(f"status {status}", sent, body)
    if status < 400 or method == "HEAD":
        return
    leaked = [leak for leak in LEAKS if leak in body and leak not in sent]
    if leaked:
        found.fault(f"content in an error: {leaked}", sent, body)
    if body == b"Invalid HTTP request received.":
        return
    kind = _TYPE.search(head)
    if kind is None or kind.group(1) != b"application/problem+json" or b'"code":"' not in body:
        found.fault("no problem document", sent, head + body)

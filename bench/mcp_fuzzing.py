"""Hostile MCP messages over HTTP in both eras of the protocol: no 5xx, no exception in the log, no content in an error.

A message begins as one that could be right: a tool with arguments by its schema and ids of what is there, a resource, a prompt, a
completion, a list. Up to three things of it are made wrong: an argument, the params, the envelope, a header, the body's text.
Everything follows from the seed. What is asked:

1. The status is below 500, and no error is the internal one.
2. No error, of the protocol or of a tool, holds a word of a stored text, the caller's token, a file of the program, or the name of
   an exception.
3. Every request is answered.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Any

import httpx

from bench.fuzzing import CONNECTIONS, LEAKS, RAW, Found, Maker
from bench.participant import Json

_WAIT_S = 30
_OLD, _NEW = "2025-11-25", "2026-07-28"
_KEY = "io.modelcontextprotocol"
_INTERNAL = (b'"code":-32603', b'"internal:', b"internal: ")
_WRONGS = (
    "argument",
    "argument",
    "argument",
    "unknown",
    "params",
    "envelope",
    "header",
    "raw",
    "cut",
    "name",
)
_METHODS = (
    *("tools/list", "resources/list", "resources/templates/list", "prompts/list", "server/discover", "ping"),
    *("initialize", "subscriptions/listen", "resources/subscribe", "logging/setLevel", "tasks/get", "x"),
)


class Messages(Maker):
    """Makes messages from a seed."""

    def __init__(self, served: Json, tools: list[Json], seed: int) -> None:
        super().__init__(served, {"paths": {}}, seed)
        self._tools = tools

    def message(self) -> tuple[dict[str, str], bytes]:
        """Gives the headers and the body of the next request."""
        wrongs = {self._draw.choice(_WRONGS) for _ in range(self._draw.choice((0, 1, 1, 2, 3)))}
        era = self._draw.choice((_OLD, _NEW))
        method, params = self._call(wrongs)
        if era == _NEW:
            params["_meta"] = {f"{_KEY}/protocolVersion": era, f"{_KEY}/clientCapabilities": {}}
        if "params" in wrongs:
            params[self._draw.choice((*params, "x"))] = self._anything()
        body: Any = {"jsonrpc": "2.0", "id": self._draw.randrange(1000), "method": method, "params": params}
        if "envelope" in wrongs:
            body[self._draw.choice(("jsonrpc", "id", "method", "params", "x"))] = self._anything()
        headers = self._headers_of(era, method, params)
        if "header" in wrongs:
            headers[self._draw.choice((*headers, "Mcp-Session-Id", "Last-Event-ID"))] = self._header()
        return headers, self._written(body, wrongs)

    def _call(self, wrongs: set[str]) -> tuple[str, Json]:
        kind = self._draw.choice(("tool",) * 6 + ("resource", "prompt", "completion", "other"))
        if kind == "tool":
            tool = self._draw.choice(self._tools)
            name = self._text() if "name" in wrongs else tool["name"]
            return "tools/call", {"name": name, "arguments": self._arguments(tool["inputSchema"], wrongs)}
        if kind == "resource":
            return "resources/read", {"uri": self._uri(wrongs)}
        if kind == "prompt":
            name = self._draw.choice(("review_proposal", "summarise_changes"))
            given = {part: self._maybe(part, wrongs) for part in ("proposal_id", "base", "target", "project")}
            taken = self._draw.sample(sorted(given), self._draw.randint(0, 3))
            return "prompts/get", {"name": name, "arguments": {part: given[part] for part in taken}}
        if kind == "completion":
            name = self._draw.choice(
                ("project", "ref", "base", "proposal_id", "changeset_id", "memory_id", "x")
            )
            reference = {"type": "ref/prompt", "name": "summarise_changes"}
            return "completion/complete", {
                "ref": self._anything() if "name" in wrongs else reference,
                "argument": {"name": name, "value": self._maybe(name, wrongs)[: self._draw.randrange(9)]},
            }
        return self._draw.choice(_METHODS), {}

    def _arguments(self, schema: Json, wrongs: set[str]) -> Any:
        arguments = self._value("", schema, 0)
        if "argument" in wrongs and arguments:
            for name in self._draw.sample(sorted(arguments), min(len(arguments), self._draw.randint(1, 3))):
                arguments[name] = self._anything()
        if "unknown" in wrongs:
            arguments[self._text()[:64]] = self._anything()
        return arguments

    def _maybe(self, name: str, wrongs: set[str]) -> str:
        return self._text() if "argument" in wrongs else self._id(name)

    def _uri(self, wrongs: set[str]) -> str:
        kind, name = self._draw.choice(
            (("changesets", "changeset"), ("proposals", "proposal"), ("memories", "memory"))
        )
        rest = self._draw.choice((f"{kind}/{self._maybe(name, wrongs)}", self._maybe("ref", wrongs)))
        return f"memory://{self._maybe('project', wrongs)}/{rest}"

    def _headers_of(self, era: str, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        named = params.get("name") or params.get("uri") or ""
        fits = isinstance(named, str) and named.isascii() and named.isprintable()
        return {
            **self._headers,
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "MCP-Protocol-Version": era,
            "Mcp-Method": method,
            **({"Mcp-Name": named[:4000].strip()} if fits and named.strip() else {}),
        }

    def _header(self) -> str:
        return self._draw.choice(("", "x", "Bearer", "text/html", "2026-07-28", "\xff", "a" * 4000, "*/*"))

    def _written(self, body: Any, wrongs: set[str]) -> bytes:
        if "raw" in wrongs:
            return self._draw.choice(RAW)
        text = json.dumps(body).encode()
        if "cut" in wrongs:
            at = self._draw.randrange(len(text))
            text = text[:at] + self._draw.choice((b"", b"\xff", b'"', b"}")) + text[at + 1 :]
        return text


def fuzz_mcp(served: Json, tools: list[Json], *, count: int, seed: int = 1) -> Found:
    """Sends so many messages to a face's /mcp; `served` is what its participant gave, `tools` every tool as it is listed."""
    return asyncio.run(_fuzz(served, Messages(served, tools, seed), count))


async def _fuzz(served: Json, messages: Messages, count: int) -> Found:
    found = Found()
    left = iter(range(count))
    address = f"{served['url']}/mcp?toolsets=all"
    await asyncio.gather(*(_lane(address, left, messages, found) for _ in range(CONNECTIONS)))
    return found


async def _lane(address: str, left: Iterator[int], messages: Messages, found: Found) -> None:
    async with httpx.AsyncClient(timeout=_WAIT_S, trust_env=False) as client:
        for _ in left:
            headers, body = messages.message()
            found.sent += 1
            given = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
            try:
                answer = await client.post(address, content=body, headers=given)
            except httpx.HTTPError as error:
                found.fault(f"no answer ({type(error).__name__})", body, b"")
                continue
            _judge(found, body, answer)


def _judge(found: Found, sent: bytes, answer: httpx.Response) -> None:
    body = answer.content
    found.statuses[answer.status_code] += 1
    if answer.status_code >= 500:
        found.server_errors += 1
        found.fault(f"status {answer.status_code}", sent, body)
    if answer.status_code < 400 and b'"error":{' not in body and b'"isError":true' not in body:
        return
    if any(word in body for word in _INTERNAL):
        found.fault("internal error", sent, body)
    leaked = [leak for leak in LEAKS if leak in body and leak not in sent]
    if leaked:
        found.fault(f"content in an error: {leaked}", sent, body)

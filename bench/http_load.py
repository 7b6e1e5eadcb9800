"""Clients over HTTP in a process of their own: so many connections, each with one request under way, their answers checked.

The client is as cheap as can be, the same for all: bytes written, bytes read up to the length that the answer declares.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from statistics import quantiles
from typing import Any

import orjson
import uvloop

from bench import records
from bench.ours import add, correct
from bench.participant import Json, timed

_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)
_MADE = re.compile(rb'"changeset_id":"([0-9a-f-]{36})"')
Lane = Callable[[bytes], bytes]
"""Gives the next request's bytes from the last answer's (empty: none yet)."""


class Participant:
    """The clients in the worker's process."""

    def __init__(self, folder: Path) -> None:
        del folder
        self._run = secrets.token_hex(4)
        self._numbers = itertools.count()

    def close(self) -> None:
        """Has nothing to close."""

    def commits(self, server: Json, clients: int, count: int) -> Json:
        """Times commits of one change, each client on a branch of its own that it makes first; half of them add, half correct. With `gate`
        in what serves, the gate's route is asked."""
        lanes = [self._committing(server) for _ in range(clients)]
        return uvloop.run(_drive(server["port"], lanes, count, 1))

    def inserts(self, server: Json, path: str, clients: int, count: int) -> Json:
        """Times the bare route with the bodies of commits."""
        lanes = [self._inserting(server, path) for _ in range(clients)]
        return uvloop.run(_drive(server["port"], lanes, count, 1))

    def contexts(self, server: Json, count: int) -> Json:
        """Times contexts of twenty memories, one client."""
        asked = b"/api/memory/%s/context?ref_name=%s&limit=20" % (
            server["project"].encode(),
            server["ref"].encode(),
        )
        request = _request("GET", asked, server["key"], None)
        return uvloop.run(_drive(server["port"], [lambda _answer: request], count, 10))

    def _committing(self, server: Json) -> Lane:
        path, body = self._commit(server)
        number, version = 0, itertools.count(1)

        def lane(answer: bytes) -> bytes:
            nonlocal number
            if answer:
                found = _MADE.search(answer)
                assert found is not None, answer[:500]
                body["parent_ids"] = [found.group(1).decode()]
                body["expected_head"] = body["parent_ids"][0]
            if next(version) % 2:
                number = next(self._numbers)
                body["ops"] = [add(number, records.content(number))]
            else:
                body["ops"] = [correct(number, records.content(number, 1))]
            body["idempotency_key"] = f"{self._run}-{number}-{len(body['ops'][0])}"
            return _request("POST", path, server["key"], orjson.dumps(body))

        return lane

    def _inserting(self, server: Json, path: str) -> Lane:
        body = self._body({"project": "bench", "head": "0" * 36, **server})

        def lane(_answer: bytes) -> bytes:
            number = next(self._numbers)
            body["ops"] = [add(number, records.content(number))]
            body["idempotency_key"] = f"{self._run}-{number}"
            return _request("POST", path.encode(), "none", orjson.dumps(body))

        return lane

    def _commit(self, server: Json) -> tuple[bytes, Json]:
        """Gives the route of a commit and its body, of the store or of the gate before it (`gate`: whose branches)."""
        body = self._body(server)
        if "gate" not in server:
            return b"/api/memory/changesets", body
        ref = f"refs/agents/{server['gate']}/lane-{self._run}-{next(self._numbers)}"
        kept = {name: body[name] for name in ("parent_ids", "message", "expected_head")}
        return b"/api/v1/projects/%s/changesets" % server["project"].encode(), {**kept, "ref": ref}

    def _body(self, server: Json) -> Json:
        return {
            "project_id": server["project"],
            "ref_name": f"refs/agents/lane-{self._run}-{next(self._numbers)}/main",
            "parent_ids": [server["head"]],
            "author_principal": "bench",
            "message": "work",
            "expected_head": server["head"],
            "advance_ref": True,
            "create_ref_if_missing": True,
        }


def _request(method: str, path: bytes, key: str, body: bytes | None) -> bytes:
    head = b"%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n" % (
        method.encode(),
        path,
        key.encode(),
    )
    if body is None:
        return head + b"\r\n"
    return b"%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (head, len(body), body)


async def _drive(port: int, lanes: list[Lane], count: int, warm: int) -> Json:
    """Has each lane send its share of `count` requests, after some that are not timed; gives seconds and latencies."""
    connections = [await asyncio.open_connection("127.0.0.1", port, limit=1 << 24) for _ in lanes]
    last = await asyncio.gather(
        *(_ask(lane, b"", *connection, warm, []) for lane, connection in zip(lanes, connections, strict=True))
    )
    each = count // len(lanes)
    waits: list[float] = []
    with timed() as clock:
        await asyncio.gather(
            *(
                _ask(lane, answer, *connection, each, waits)
                for lane, answer, connection in zip(lanes, last, connections, strict=True)
            )
        )
    for _, writer in connections:
        writer.close()
    cuts: list[Any] = quantiles(waits, n=100)
    return clock.told(count=len(waits), p50_ms=cuts[49] * 1000, p99_ms=cuts[98] * 1000)


async def _ask(
    lane: Lane,
    answer: bytes,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    count: int,
    waits: list[float],
) -> bytes:
    for _ in range(count):
        request = lane(answer)
        began = time.perf_counter()
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(head)
        assert length is not None, head
        answer = await reader.readexactly(int(length.group(1)))
        waits.append(time.perf_counter() - began)
        assert head[9:12] in (b"200", b"201"), (head, answer[:500])
    return answer

"""One connection to PostgreSQL in pipeline mode: statements go out together and their answers come back together.

libpq itself, by psycopg's thin binding: a statement costs a tenth of what the driver's cursors take. Every statement is prepared
at its first use. Integers travel as text, whose type the server infers; texts, bytes and all answers in binary.
"""

from __future__ import annotations

import secrets
import select
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, NamedTuple

from psycopg import OperationalError, pq

from memory_git.domain.errors import Invalid
from memory_git.storage import dialect
from memory_git.storage.connection import Value
from memory_git.storage.postgres_errors import Lost, translate

_FLUSH_STATEMENTS = 256
_NOTHING = b""
_LIFE = "SELECT concat(pg_postmaster_start_time(), ' ', (SELECT stats_reset FROM pg_stat_wal))"
"""A crash of one of its processes resets the statistics of a server that goes on."""


def _integer(value: bytes) -> int:
    return int.from_bytes(value, signed=True)


def _text(value: bytes) -> str:
    return str(value, "utf-8")


_DECODERS: dict[int, Callable[[bytes], Any]] = {
    16: lambda value: value != b"\0",
    17: bytes,
    19: _text,
    20: _integer,
    21: _integer,
    23: _integer,
    25: _text,
    705: _text,
    1043: _text,
    2278: lambda _: None,
    5069: _integer,
}


class Answer(NamedTuple):
    """What one statement gave: its rows, and how many it touched."""

    rows: list[tuple[Any, ...]]
    touched: int


class Link:
    """One connection, used by one thread at a time. After `Lost` it is of no use."""

    def __init__(self, conninfo: str) -> None:
        self._conn = pq.PGconn.connect(conninfo.encode())
        if self._conn.status != pq.ConnStatus.OK:
            raise Lost(_message(self._conn))
        self.name = secrets.token_hex(8)
        self.marks = 0
        """How often it has marked what it wrote."""
        self.server_version = self._conn.server_version
        self._conn.nonblocking = 1
        self._conn.enter_pipeline_mode()
        self._poll = select.poll()
        self._prepared: dict[str, bytes] = {}
        self._decoders: dict[str, tuple[Callable[[bytes], Any], ...]] = {}
        self._names = count(1)
        self._sent: list[str | None] = []
        """What was sent since the last answers came: a statement's text, or None for its preparation."""
        self._unsure: list[str] = []
        self.is_open = True
        self.ask(_LIFE)
        answer = self.answers()[-1]
        self.life = str(answer.rows[0][0]) if answer else ""
        """Which life of the server this is a connection to: another after a restart, a crash or a failover."""

    def ask(self, sql: str, params: Sequence[Value] = ()) -> int:
        """Sends a statement behind those before it and gives its place among the answers of the next `answers`."""
        try:
            values, formats = _encoded(params)
        except UnicodeEncodeError as error:
            raise Invalid("not_text", "a text holds a lone surrogate, which UTF-8 can't write") from error
        try:
            name = self._prepared.get(sql) or self._prepare(sql)
            self._conn.send_query_prepared(name, values, formats, 1)
            self._sent.append(sql)
            if len(self._sent) % _FLUSH_STATEMENTS == 0:
                self._flush()
        except OperationalError as error:
            raise self._lost(str(error)) from error
        return len(self._sent) - 1

    def answers(self) -> list[Answer | None]:
        """Waits for everything sent and gives the answers by their places; raises what the first refused statement means."""
        try:
            self._conn.pipeline_sync()
            self._flush()
            return self._collect()
        except OperationalError as error:
            raise self._lost(str(error)) from error

    @property
    def has_sent(self) -> bool:
        """Says whether answers are due."""
        return bool(self._sent)

    def notices(self) -> list[str]:
        """Gives what others announced since, on the channels that were asked for."""
        found = []
        try:
            self._conn.consume_input()
            while (notice := self._conn.notifies()) is not None:
                found.append(_text(notice.extra))
        except OperationalError as error:
            raise self._lost(str(error)) from error
        return found

    @property
    def socket(self) -> int:
        """The descriptor to wait on for notices."""
        return self._conn.socket

    def close(self) -> None:
        """Closes; the server undoes what is open."""
        self.is_open = False
        self._conn.finish()

    def _prepare(self, sql: str) -> bytes:
        name = b"s%d" % next(self._names)
        self._conn.send_prepare(name, dialect.query(sql).encode())
        self._sent.append(None)
        self._unsure.append(sql)
        self._prepared[sql] = name
        return name

    def _flush(self) -> None:
        while self._conn.flush():
            self._wait(select.POLLIN | select.POLLOUT)
            self._conn.consume_input()

    def _wait(self, events: int) -> None:
        self._poll.register(self._conn.socket, events)
        self._poll.poll()

    def _next(self) -> pq.abc.PGresult | None:
        while self._conn.is_busy():
            self._wait(select.POLLIN)
            self._conn.consume_input()
        return self._conn.get_result()

    def _collect(self) -> list[Answer | None]:
        sent, self._sent = self._sent, []
        unsure, self._unsure = self._unsure, []
        found: list[Answer | None] = []
        refusal: Exception | None = None
        while True:
            result = self._next()
            if result is None:
                if self._conn.status != pq.ConnStatus.OK:
                    raise self._lost(_message(self._conn))
                continue
            status = result.status
            if status == pq.ExecStatus.PIPELINE_SYNC:
                break
            if status in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
                sql = sent[len(found)]
                found.append(None if sql is None else self._answer(sql, result))
            elif status != pq.ExecStatus.PIPELINE_ABORTED and refusal is None:
                refusal = _refusal(result)
        if refusal is not None:
            for sql in unsure:
                self._prepared.pop(sql, None)
            if isinstance(refusal, Lost):
                self.close()
            raise refusal
        return found

    def _answer(self, sql: str, result: pq.abc.PGresult) -> Answer:
        if not result.nfields:
            return Answer([], result.command_tuples or 0)
        decoders = self._decoders.get(sql)
        if decoders is None:
            decoders = self._decoders[sql] = tuple(
                [_DECODERS[result.ftype(column)] for column in range(result.nfields)]
            )
        get, columns = result.get_value, tuple(enumerate(decoders))
        rows = [
            tuple(
                [None if (value := get(row, column)) is None else decode(value) for column, decode in columns]
            )
            for row in range(result.ntuples)
        ]
        return Answer(rows, len(rows))

    def _lost(self, message: str) -> Lost:
        self.close()
        return Lost(message)


def _encoded(params: Sequence[Value]) -> tuple[list[bytes | None], list[int]]:
    values: list[bytes | None] = []
    formats: list[int] = []
    for param in params:
        if type(param) is int:
            values.append(b"%d" % param)
            formats.append(0)
        elif type(param) is str:
            values.append(param.encode())
            formats.append(1)
        elif param is None:
            values.append(None)
            formats.append(1)
        elif isinstance(param, bytes):
            values.append(param)
            formats.append(1)
        else:
            raise TypeError(f"no column holds a {type(param).__name__}")
    return values, formats


def _refusal(result: pq.abc.PGresult) -> Exception:
    state = (result.error_field(pq.DiagnosticField.SQLSTATE) or _NOTHING).decode()
    message = (result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or result.error_message).decode(
        "utf-8", "replace"
    )
    return translate(state, message) if state else Lost(message)


def _message(conn: pq.abc.PGconn) -> str:
    return conn.get_error_message("utf-8").strip()

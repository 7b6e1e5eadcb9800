"""A real process that kills itself before or after its n-th statement on either engine, and the world that it works in.

The child is forked from a process that holds no open gate. Each statement but a bare read is two points: before it reaches the
database, and after it was done (on PostgreSQL: after it was sent, so that the server may go on alone).
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

import apsw

from memory_git.charon import backup, journal_file, recovery, side_file
from memory_git.storage.postgres_link import Link

_READS = ("SELECT", "PRAGMA", "WITH", "EXPLAIN", "--")


class Bomb:
    """Counts points, and kills the process at the fatal one."""

    def __init__(self, fatal: int) -> None:
        self.left = fatal
        self.armed = False

    def point(self) -> None:
        if not self.armed:
            return
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def lay(self) -> None:
        """Puts itself around every statement of connections opened from now on, and around every durable file."""
        apsw.connection_hooks.append(self._watch)
        ask = Link.ask

        def asking(link: Link, sql: str, params: Any = ()) -> int:
            if not self.armed or sql.lstrip().upper().startswith(_READS):
                return ask(link, sql, params)
            self.point()
            place = ask(link, sql, params)
            if self.left == 1:
                link._flush()
            self.point()
            return place

        Link.ask = asking  # type: ignore[method-assign]
        write = side_file.write_durably

        def writing(*args: Any) -> None:
            self.point()
            write(*args)
            self.point()

        for module in (side_file, backup, recovery, journal_file):
            if hasattr(module, "write_durably"):
                module.write_durably = writing  # type: ignore[attr-defined]

    def _watch(self, connection: apsw.Connection) -> None:
        def traced(event: dict[str, Any]) -> None:
            sql = event.get("sql") or ""
            if sql and not sql.lstrip().upper().startswith(_READS):
                self.point()

        connection.trace_v2(apsw.SQLITE_TRACE_STMT | apsw.SQLITE_TRACE_PROFILE, traced)


def killed_at(fatal: int, prepare: Callable[[], Any], act: Callable[[Any], object]) -> bool:
    """Forks a process that prepares and then acts, killed at a point of the act; False when the act came to its end."""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            bomb = Bomb(fatal)
            bomb.lay()
            prepared = prepare()
            bomb.armed = True
            act(prepared)
            code = 0
        except BaseException:
            traceback.print_exc(file=sys.__stderr__)
        finally:
            os._exit(code)
    _, status = os.waitpid(process, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, -signal.SIGKILL), f"the child failed by itself: {code}"
    return code != 0

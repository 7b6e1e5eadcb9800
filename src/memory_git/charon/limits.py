"""Rates and quotas of the gate, per principal and per project (10-operations, trust and transport: limits).

1. A rate counts every call in this process (`lethe.rates`); a quota counts the changes of a day (UTC), of a principal in a project and
   of all in the project, over all processes: each adds what it let through, and reads what the others did, twice a second.
2. Over either is 429 with the seconds after which it is worth to come again, and nothing was done. The owner of the data directory is
   not counted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from memory_git.charon.caller import Caller
from memory_git.domain.errors import TooMany
from memory_git.lethe.rates import Rates
from memory_git.storage import charon_quotas
from memory_git.storage.connection import Connection
from memory_git.storage.engine import Database

_ALL = ""


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """What a gate lets through; 0 stands for any. Changes are those of one principal in one project, and of all in a project."""

    requests_per_s: int = 0
    project_requests_per_s: int = 0
    registrations_per_s: int = 0
    changes_per_day: int = 0
    project_changes_per_day: int = 0


class Limits:
    """What was let through lately; every method may be called from any thread."""

    def __init__(self, settings: LimitSettings, database: Database, now: Callable[[], datetime]) -> None:
        self._rates = [
            (counted, Rates(per_s))
            for counted, per_s in (
                ("principal", settings.requests_per_s),
                ("project", settings.project_requests_per_s),
            )
            if per_s
        ]
        per_s = settings.registrations_per_s
        self._registrations = Rates(per_s) if per_s else None
        self._per_day = {False: settings.changes_per_day, True: settings.project_changes_per_day}
        self._database = database
        self._now = now
        self._lock = threading.Lock()
        self._day = ""
        self._noted: dict[tuple[str, str], int] = {}
        self._waiting: dict[tuple[str, str], int] = {}

    def call(self, caller: Caller, project_id: str) -> None:
        """Counts a call, or raises TooMany `too_many_requests`."""
        named = {"principal": "" if caller.local_operator else caller.principal_id, "project": project_id}
        for counted, rates in self._rates:
            if named["principal"] and named[counted]:
                rates.take([(counted, named[counted])])

    def registration(self) -> None:
        """Counts an OAuth client that registers, which anybody may, or raises TooMany `too_many_requests`."""
        if self._registrations is not None:
            self._registrations.take([("registration", "")])

    def change(self, caller: Caller, project_id: str) -> None:
        """Counts a change, or raises TooMany `quota_spent`."""
        if caller.local_operator or not project_id:
            return
        names = [
            (project_id, principal)
            for principal in (caller.principal_id, _ALL)
            if self._per_day[principal == _ALL]
        ]
        with self._lock:
            self._turn_day()
            for name in names:
                if self._used(name) >= self._per_day[name[1] == _ALL]:
                    raise self._refusal(name[1])
            for name in names:
                self._waiting[name] = self._waiting.get(name, 0) + 1

    def note(self) -> None:
        """Adds what waits to what all processes know, and reads theirs."""
        with self._lock:
            day, waiting, self._waiting = self._day, self._waiting, {}
        for (project_id, principal_id), count in waiting.items():
            self._add(project_id, principal_id, day, count)

    def _add(self, project_id: str, principal_id: str, day: str, count: int) -> None:
        def add(connection: Connection) -> int:
            charon_quotas.add(connection, project_id, principal_id, day, count)
            return charon_quotas.used(connection, project_id, principal_id, day)

        try:
            total = self._database.write(add)
        except BaseException:
            with self._lock:
                key = (project_id, principal_id)
                self._waiting[key] = self._waiting.get(key, 0) + count
            raise
        with self._lock:
            if day == self._day:
                self._noted[project_id, principal_id] = total

    def _used(self, name: tuple[str, str]) -> int:
        if name not in self._noted:
            with self._database.read() as connection:
                self._noted[name] = charon_quotas.used(connection, *name, self._day)
        return self._noted[name] + self._waiting.get(name, 0)

    def _turn_day(self) -> None:
        today = self._now().date().isoformat()
        if today != self._day:
            self._day, self._noted, self._waiting = today, {}, {}

    def _refusal(self, principal: str) -> TooMany:
        counted = "principal" if principal else "project"
        now = self._now()
        midnight = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
        return TooMany(
            "quota_spent",
            f"the changes that one {counted} may make a day are spent: come again after midnight UTC, or ask an administrator",
            limited=counted,
            per_day=self._per_day[principal == _ALL],
            retry_after_s=max(1, int((midnight - now).total_seconds())),
        )

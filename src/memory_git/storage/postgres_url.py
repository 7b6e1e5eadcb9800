"""Where a PostgreSQL database is, and that it keeps what it acknowledges (10-operations, durability)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from memory_git.domain.errors import Invalid, Unavailable

OLDEST_SERVER = 150_000
LOCK_TIMEOUT_MS = 5_000
_IDLE_TIMEOUT_MS = 600_000
_SCHEMES = ("postgres", "postgresql")
_SCHEMA_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_SETTINGS = {
    "synchronous_commit": ("on", "remote_apply"),
    "fsync": ("on",),
    "full_page_writes": ("on",),
    "server_encoding": ("UTF8",),
}
SETTINGS_ASKED = "SELECT " + ", ".join(f"current_setting('{name}')" for name in _SETTINGS)


@dataclass(frozen=True, slots=True, repr=False)
class DatabaseUrl:
    """A libpq URL, which may hold a password and is never shown; `?schema=` names another schema than the program's own."""

    conninfo: str
    schema: str
    place: str

    @classmethod
    def parse(cls, url: str, schema: str) -> DatabaseUrl:
        """Reads a URL; raises Invalid `bad_database_url`."""
        parts = urlsplit(url)
        if parts.scheme not in _SCHEMES:
            raise _bad("it begins with postgresql://")
        named = dict(parse_qsl(parts.query, keep_blank_values=True))
        schema = named.pop("schema", schema)
        if not _SCHEMA_NAME.fullmatch(schema):
            raise _bad("a schema's name is lower-case letters, digits and _")
        try:
            found = conninfo_to_dict(urlunsplit(parts._replace(query=urlencode(named))))
        except ProgrammingError:
            raise _bad("libpq can't read it") from None
        where = f"postgresql://{found.get('host', '')}:{found.get('port', '5432')}/{found.get('dbname', '')}"
        return cls(make_conninfo("", **_defaults(found, schema)), schema, f"{where}?schema={schema}")


def _defaults(found: Mapping[str, Any], schema: str) -> dict[str, Any]:
    settings = {
        "search_path": schema,
        "lock_timeout": LOCK_TIMEOUT_MS,
        "idle_in_transaction_session_timeout": _IDLE_TIMEOUT_MS,
        "client_min_messages": "error",
        "jit": "off",
        "plan_cache_mode": "force_generic_plan",
    }
    own = " ".join(f"-c {name}={value}" for name, value in settings.items())
    return {
        "application_name": "memory-git",
        "connect_timeout": 5,
        "keepalives_idle": 10,
        "tcp_user_timeout": 15_000,
        "target_session_attrs": "read-write",
        "client_encoding": "UTF8",
        **found,
        "options": f"{found.get('options', '')} {own}".strip(),
    }


def require_server(version: int) -> None:
    """Refuses a server that is too old."""
    if version < OLDEST_SERVER:
        raise Unavailable(
            "postgres_too_old",
            f"the database server is PostgreSQL {version // 10_000}; 15 or newer is needed",
        )


def require_durable(found: tuple[str, ...]) -> str:
    """Gives how durable a commit is, by what SETTINGS_ASKED gave; refuses what could lose an acknowledged write."""
    for (name, allowed), value in zip(_SETTINGS.items(), found, strict=True):
        if value not in allowed:
            raise Unavailable(
                "weak_durability",
                f"the database has {name} = {value} and must have {' or '.join(allowed)}; "
                "an acknowledged write could be lost",
            )
    return f"synchronous_commit {found[0]}, fsync on"


def _bad(why: str) -> Invalid:
    return Invalid("bad_database_url", f"the database URL can't be used: {why}")

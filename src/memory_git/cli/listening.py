"""Where a server listens and under which names it is known, from settings and flags; and what it writes while it serves."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from memory_git.domain.errors import Invalid
from memory_git.http.limits import LOOPBACK_HOSTS
from memory_git.http.serving import Tls

_WILDCARDS = frozenset({"0.0.0.0", "::"})  # noqa: S104 (compared with, not bound to)
_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


@dataclass(frozen=True, slots=True)
class Names:
    """The names that a server answers to: hosts without ports, origins of pages, and the address that clients see."""

    hosts: frozenset[str]
    origins: frozenset[str]
    public_url: str | None = None

    @property
    def is_https(self) -> bool:
        """Says whether people come by HTTPS, through a proxy."""
        return (self.public_url or "").startswith("https:")


def names_of(host: str, public_url: str | None) -> Names:
    """Gives the names of a server on an address, seen at a public URL where there is one."""
    hosts = LOOPBACK_HOSTS | ({host} - _WILDCARDS)
    if public_url is None:
        return Names(frozenset(hosts), frozenset())
    parts = urlsplit(public_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Invalid("bad_public_url", "CHARON_PUBLIC_URL is of the form https://host[:port]")
    return Names(
        frozenset(hosts | {parts.hostname}),
        frozenset({f"{parts.scheme}://{parts.netloc}"}),
        public_url.rstrip("/"),
    )


def tls_of(certificate: Path | None, key: Path | None) -> Tls | None:
    """Gives the TLS files, both or neither."""
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise Invalid("usage", "give --tls-certificate and --tls-key together")
    return Tls(certificate, key)


def log_to_stderr() -> None:
    """Lets the program's warnings and errors be written to standard error as JSON lines; never content."""
    handler = logging.StreamHandler()
    handler.setFormatter(_JsonLines())
    root = logging.getLogger("memory_git")
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    root.propagate = False


class _JsonLines(logging.Formatter):
    """One JSON object a record: time, level, logger, message, and the facts that came with it."""

    def format(self, record: logging.LogRecord) -> str:
        shown: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        facts = {name: value for name, value in vars(record).items() if name not in _PLAIN}
        return json.dumps({**shown, **facts}, default=str)

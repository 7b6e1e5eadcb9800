"""The world of the story: a disposable directory, the processes in it, and who may act.

`split` runs Lethe and Charon as two servers, `embedded` Charon with the store inside. A world can be copied by backup and restore: the
copy is another directory with servers of its own. Its databases are files of the directory, unless others are given.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TextIO, TypeVar

import httpx

from memory_git.charon.keys import Keys
from memory_git.cli.story.actors import Agent, Operator, Person
from memory_git.cli.story.databases import Databases
from memory_git.cli.story.expect import StepFailed
from memory_git.lethe.client import LetheClient
from memory_git.lethe.protocol import Lethe
from memory_git.mcp.client import AgentClient

Mode = Literal["split", "embedded"]
C = TypeVar("C")
PROJECT = "foyer"
START_S = 30.0
READING = ("memory.search", "memory.read")
AGENTS = ("agent-a", "agent-b")
IMPORTER = "importer"
REVIEWERS = ("reviewer", "second-reviewer")
_KEPT_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "PYTHONPATH", "VIRTUAL_ENV", "SYSTEMROOT")


@dataclass
class World:
    """One directory with its servers. `tokens` are what each principal's token is, told once when it was minted."""

    directory: Path
    mode: Mode
    tokens: dict[str, str] = field(default_factory=dict)
    databases: Databases | None = None
    lethe_port: int = 0
    charon_port: int = 0
    _processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _open: list[Any] = field(default_factory=list)

    # where things are

    @property
    def data(self) -> Path:
        """The directory of both databases and the keys."""
        return self.directory / "data"

    @property
    def store_place(self) -> Path | str:
        """Where the store's database is."""
        return self.databases.store if self.databases else self.data / "lethe.db"

    def raw_store(self) -> bytes:
        """Gives every byte that is kept of the store, whatever table or file it is in."""
        if self.databases:
            return self.databases.raw()
        return b"".join(path.read_bytes() for path in self.data.glob("lethe.db*"))

    @property
    def url(self) -> str:
        """Where Charon listens."""
        return f"http://127.0.0.1:{self.charon_port}"

    @property
    def keys(self) -> Keys:
        """The keys, as whoever owns the data directory can read them."""
        return Keys(self.data / "keys")

    def environment(self) -> dict[str, str]:
        """Gives the environment of the world's processes: nothing of the caller's settings comes in."""
        kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        kept |= {"CHARON_DATA_DIR": str(self.data), "LETHE_DATA_DIR": str(self.data), "PYTHONUTF8": "1"}
        empty = self.directory / "settings.toml"
        empty.touch()
        kept |= {"MEMORY_GIT_CONFIG": str(empty)}
        if self.databases:
            kept |= self.databases.settings
        if self.mode == "split":
            kept |= {"CHARON_UPSTREAM": f"http://127.0.0.1:{self.lethe_port}"}
        return kept

    # processes

    def start(self) -> None:
        """Starts the servers and waits until they answer."""
        if self.mode == "split":
            self.lethe_port = self.lethe_port or free_port()
            self._spawn("lethe", "serve", "--http", f"127.0.0.1:{self.lethe_port}")
            self._await(f"http://127.0.0.1:{self.lethe_port}/api/readyz")
        self.charon_port = self.charon_port or free_port()
        self._spawn("charon", "serve", "--http", f"127.0.0.1:{self.charon_port}", "--json")
        self._await(f"{self.url}/readyz")

    def _spawn(self, program: str, *arguments: str) -> None:
        log = (self.directory / f"{program}.log").open("ab")
        process = subprocess.Popen(
            [sys.executable, "-m", f"memory_git.cli.{program}", *arguments],
            env=self.environment(),
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
        )
        log.close()
        self._processes.append(process)

    def _await(self, url: str) -> None:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            if any(process.poll() is not None for process in self._processes):
                raise StepFailed(f"a server ended while starting: {self._last_words()}")
            with suppress(httpx.HTTPError):
                if httpx.get(url, timeout=5).status_code == 200:
                    return
            time.sleep(0.05)
        raise StepFailed(f"{url} did not answer within {START_S:.0f} s: {self._last_words()}")

    def _last_words(self) -> str:
        logs = sorted(self.directory.glob("*.log"))
        return " | ".join(f"{log.name}: {log.read_text(errors='replace')[-600:]}" for log in logs)

    def stop(self) -> None:
        """Ends the servers as an operator would, and waits for their clean end."""
        self._close_clients()
        for process in reversed(self._processes):
            process.send_signal(signal.SIGTERM)
        for process in self._processes:
            try:
                code = process.wait(timeout=START_S)
            except subprocess.TimeoutExpired:
                process.kill()
                raise StepFailed("a server did not end on SIGTERM") from None
            if code != 0:
                raise StepFailed(f"a server ended with {code} on SIGTERM: {self._last_words()}")
        self._processes.clear()

    def kill(self) -> None:
        """Kills every process with SIGKILL."""
        for process in self._processes:
            process.kill()
            process.wait()
        self._processes.clear()
        self._close_clients()

    def restart(self) -> None:
        """Stops and starts the servers, on the same ports."""
        self.stop()
        self.start()

    def _close_clients(self) -> None:
        for client in self._open:
            with suppress(Exception):
                client.close()
        self._open.clear()

    # who acts

    @property
    def operator(self) -> Operator:
        """Somebody at the command line of this machine."""
        return Operator(self.environment())

    def person(self, principal: str) -> Person:
        """Somebody over HTTP, with their token."""
        return self._kept(Person(self.url, self.tokens[principal]))

    def agent(self, principal: str, transport: Literal["stdio", "http"] = "http") -> Agent:
        """An agent over MCP, with its token."""
        if transport == "http":
            return self._kept(
                Agent(
                    AgentClient.http(f"{self.url}/mcp?toolsets=all", self.tokens[principal]),
                    f"model of {principal}",
                )
            )
        environment = {**self.environment(), "CHARON_TOKEN": self.tokens[principal]}
        command = [sys.executable, "-m", "memory_git.cli.charon", "mcp", "--toolsets", "all"]
        errors = self._log("agent")
        return self._kept(
            Agent(AgentClient.stdio(command, environment, errors=errors), f"model of {principal}")
        )

    def _log(self, name: str) -> TextIO:
        return self._kept((self.directory / f"{name}.log").open("a", encoding="utf-8"))

    def store(self) -> Lethe:
        """Lethe itself, as whoever holds its key can reach it: the servers trust no such caller for integrity."""
        if self.mode == "split":
            return self._kept(LetheClient(f"http://127.0.0.1:{self.lethe_port}", self.keys.lethe_api))
        from memory_git.lethe.store import LetheStore

        return self._kept(LetheStore.open(self.store_place, merge_keys=self.keys.merge))

    def _kept(self, client: C) -> C:
        self._open.append(client)
        return client


def free_port() -> int:
    """Gives a loopback port that is free now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def opened(directory: Path, mode: Mode, databases: Databases | None = None) -> Iterator[World]:
    """Opens a world, its servers running, and ends it with everything in it; step 1 makes the principals."""
    world = World(directory, mode, databases=databases)
    directory.mkdir(parents=True, exist_ok=True)
    world.start()
    try:
        yield world
    finally:
        world.kill()


def people(world: World) -> None:
    """Makes the principals of the story, with their tokens: at the command line, as an operator does."""
    operator = world.operator
    operator.run("charon", "project", "init", PROJECT)
    for name in (*AGENTS, IMPORTER):
        _admit(world, operator, name, "agent", "propose", actor=name)
    for name in REVIEWERS:
        _admit(world, operator, name, "human", "review")
    _admit(world, operator, "reader", "service", "readonly")


def _admit(
    world: World, operator: Operator, name: str, kind: str, profile: str, actor: str | None = None
) -> None:
    actors = ("--actor", actor) if actor else ()
    operator.run("charon", "principal", "add", name, "--kind", kind, "--profile", profile, *actors)
    operator.run("charon", "grant", "add", name, "--project", PROJECT)
    minted = operator.run("charon", "obol", "mint", name, "--expires", "1d", "--project", PROJECT)
    world.tokens[name] = minted["token"]


def copied(world: World, directory: Path) -> World:
    """Gives a second world with what the first one holds now, made by backup and restore; it is not started."""
    directory.mkdir(parents=True)
    copy = World(directory, world.mode, dict(world.tokens))
    if world.mode == "split":
        copy.lethe_port = free_port()
    if world.databases:
        copy.databases = world.databases.copied()
        for name in ("keys", "anchor"):
            shutil.copytree(world.data / name, copy.data / name)
        copy.operator.run("charon", "restore", "--in-place")
        return copy
    backup = directory / "backup"
    world.operator.run("charon", "backup", "--out", str(backup), "--with-keys")
    copy.operator.run("charon", "restore", "--from", str(backup), "--anchor", str(world.data / "anchor"))
    return copy


def release(copy: World) -> Mapping[str, Any]:
    """Lifts the read-only state of a restored world, which takes a clean report; gives that."""
    if copy.mode == "split":
        copy._spawn("lethe", "serve", "--http", f"127.0.0.1:{copy.lethe_port}")
        copy._await(f"http://127.0.0.1:{copy.lethe_port}/api/readyz")
    report: Mapping[str, Any] = copy.operator.run("charon", "reconcile", "--repair")
    copy.kill()
    return report


def nonce() -> str:
    """Gives a fresh nonce for an envelope."""
    return secrets.token_hex(16)


def canonical(document: Any) -> bytes:
    """Gives a document's bytes, for comparing answers of two processes."""
    return json.dumps(document, sort_keys=True, ensure_ascii=False).encode()

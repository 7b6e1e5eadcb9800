"""Runs an application on an address until it is told to stop.

1. A port or socket in use is refused before anything else is opened: `port_in_use`, saying what to do.
2. An address that others can reach needs TLS, or an explicit word that a proxy with TLS stands before it.
3. SIGTERM and SIGINT end it cleanly: no new connections, running requests finish, then the call returns. A second SIGINT hurries.
"""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from memory_git.domain.errors import Invalid, Unavailable

_GRACE_S = 10
_KEEP_ALIVE_S = 65
_BACKLOG = 2048


@dataclass(frozen=True, slots=True)
class Where:
    """An address to listen on: a host and port (0 = any free one), or a Unix socket's path."""

    host: str = "127.0.0.1"
    port: int = 0
    unix_path: str | None = None
    scheme: str = "http"

    @property
    def url(self) -> str:
        """The base address for a client on this machine."""
        if self.unix_path is not None:
            return f"unix:{self.unix_path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @property
    def is_local(self) -> bool:
        """Says whether only this machine can reach it."""
        if self.unix_path is not None or self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


@dataclass(frozen=True, slots=True)
class Tls:
    """Files of a certificate chain and its key, in PEM."""

    certificate: Path
    key: Path


class Serving:
    """A server that runs in the thread that calls `run`; any thread may `stop` it."""

    def __init__(
        self,
        app: ASGIApp,
        where: Where,
        *,
        tls: Tls | None = None,
        behind_proxy: bool = False,
        on_stop: Callable[[], None] = lambda: None,
    ) -> None:
        """Takes the address at once; `on_stop` is called when the stop begins, to end what streams."""
        if not where.is_local and tls is None and not behind_proxy:
            raise Invalid(
                "exposed_address",
                f"{where.host} can be reached by others: give TLS files, or say that a proxy has TLS",
            )
        self._socket = _listen(where)
        self.where = _where_bound(where, self._socket, "https" if tls else "http")
        self._server = _Server(_config(app, tls), on_stop)

    def run(self, ready: Callable[[Where], None] = lambda _where: None) -> None:
        """Serves until it is stopped; `ready` is called once with the address when requests are accepted."""
        self._server.when_started = lambda: ready(self.where)
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._socket.close()
            if self.where.unix_path is not None:
                Path(self.where.unix_path).unlink(missing_ok=True)

    def stop(self) -> None:
        """Begins a clean stop."""
        self._server.should_exit = True


def serve(
    app: ASGIApp,
    where: Where,
    *,
    tls: Tls | None = None,
    behind_proxy: bool = False,
    ready: Callable[[Where], None] = lambda _where: None,
    on_stop: Callable[[], None] = lambda: None,
) -> None:
    """Serves until a signal; prints nothing."""
    Serving(app, where, tls=tls, behind_proxy=behind_proxy, on_stop=on_stop).run(ready)


@contextlib.contextmanager
def running(
    app: ASGIApp,
    where: Where | None = None,
    *,
    tls: Tls | None = None,
    on_stop: Callable[[], None] = lambda: None,
) -> Iterator[Where]:
    """Serves in a thread of its own while the block runs; gives the bound address once requests are accepted."""
    serving = Serving(app, where or Where(), tls=tls, on_stop=on_stop)
    started = threading.Event()
    thread = threading.Thread(target=serving.run, args=(lambda _where: started.set(),), name="serving")
    thread.start()
    try:
        started.wait()
        yield serving.where
    finally:
        serving.stop()
        thread.join()


class _Server(uvicorn.Server):
    """uvicorn's server, which says when it has started, ends streams first, and does not raise the signal again."""

    def __init__(self, config: uvicorn.Config, on_stop: Callable[[], None]) -> None:
        super().__init__(config)
        self.on_stop = on_stop
        self.when_started: Callable[[], None] = lambda: None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.when_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.on_stop()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        former = {
            number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)


def _config(app: ASGIApp, tls: Tls | None) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="auto",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_GRACE_S,
        ssl_certfile=str(tls.certificate) if tls else None,
        ssl_keyfile=str(tls.key) if tls else None,
    )


def _listen(where: Where) -> socket.socket:
    """Gives a listening socket, or raises Unavailable `port_in_use` or Invalid `bad_address`."""
    try:
        if where.unix_path is not None:
            return _listen_unix(Path(where.unix_path))
        family, kind, protocol, _, address = socket.getaddrinfo(
            where.host, where.port, type=socket.SOCK_STREAM
        )[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(_BACKLOG)
        except OSError:
            listener.close()
            raise
        return listener
    except OSError as error:
        raise _refusal(where, error) from error


def _listen_unix(path: Path) -> socket.socket:
    """Listens on a socket file that only this user may open; one that a dead process left is replaced."""
    if path.is_socket() and not _answers(path):
        path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        path.chmod(0o600)
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knock:
        return knock.connect_ex(str(path)) == 0


def _refusal(where: Where, error: OSError) -> Invalid | Unavailable:
    if error.errno == errno.EADDRINUSE:
        taken = where.unix_path or f"port {where.port} of {where.host}"
        message = f"{taken} is in use: stop what listens there, or choose another with the --http option"
        return Unavailable("port_in_use", message, address=where.url)
    return Invalid(
        "bad_address", f"can't listen on {where.url}: {error.strerror or error}", address=where.url
    )


def _where_bound(where: Where, listener: socket.socket, scheme: str) -> Where:
    if where.unix_path is not None:
        return where
    return Where(where.host, listener.getsockname()[1], None, scheme)

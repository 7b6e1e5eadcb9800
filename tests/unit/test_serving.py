"""Listening and stopping: over real sockets and a real process."""

from __future__ import annotations

import signal
import socket
import ssl
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from memory_git.domain.errors import Invalid, Unavailable
from memory_git.http.serving import Serving, Tls, Where, running


async def _hello(_request: Request) -> PlainTextResponse:
    return PlainTextResponse("hello")


APP = Starlette(routes=[Route("/", _hello)])
PROGRAM = """
from starlette.applications import Starlette
from memory_git.http.serving import Where, serve
serve(Starlette(), Where(), ready=lambda where: print(where.url, flush=True))
print("stopped", flush=True)
"""


def test_a_free_port_is_served_and_named_before_the_first_request() -> None:
    with running(APP) as where:
        assert where.port != 0
        assert httpx.get(where.url).text == "hello"
    with pytest.raises(httpx.ConnectError):
        httpx.get(where.url)


def test_a_port_in_use_is_refused_with_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(Unavailable) as refused:
        Serving(APP, Where(port=taken.getsockname()[1]))
    assert refused.value.code == "port_in_use"
    assert "choose another" in refused.value.message


def test_a_unix_socket_is_for_its_owner_alone_and_goes_with_the_server(tmp_path: Path) -> None:
    path = tmp_path / "lethe.sock"
    with running(APP, Where(unix_path=str(path))):
        assert path.stat().st_mode & 0o777 == 0o600
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(path))) as client:
            assert client.get("http://localhost/").text == "hello"
        with pytest.raises(Unavailable):
            Serving(APP, Where(unix_path=str(path)))
    assert not path.exists()


def test_the_socket_file_of_a_dead_process_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "lethe.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with running(APP, Where(unix_path=str(path))):
        assert path.is_socket()


def test_a_plain_file_in_the_place_of_a_socket_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    with pytest.raises(Unavailable):
        Serving(APP, Where(unix_path=str(path)))
    assert path.read_text() == "mine"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "memory.example"])
def test_an_address_that_others_reach_needs_tls_or_a_proxy_with_it(host: str) -> None:
    with pytest.raises(Invalid) as refused:
        Serving(APP, Where(host=host))
    assert refused.value.code == "exposed_address"


def test_an_address_of_another_machine_is_refused_as_bad() -> None:
    with pytest.raises(Invalid) as refused:
        Serving(APP, Where(host="192.0.2.1"), behind_proxy=True)
    assert refused.value.code == "bad_address"


def test_with_a_certificate_only_tls_is_spoken(tmp_path: Path) -> None:
    tls = _self_signed(tmp_path)
    trust = ssl.create_default_context(cafile=str(tls.certificate))
    with running(APP, tls=tls) as where:
        assert where.url.startswith("https://")
        assert httpx.get(where.url, verify=trust).text == "hello"
        with pytest.raises(httpx.HTTPError):
            httpx.get(where.url.replace("https", "http"))


def _self_signed(folder: Path) -> Tls:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "memory-git test")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    files = Tls(folder / "certificate.pem", folder / "key.pem")
    files.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return files


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_and_lets_the_program_go_on_to_its_own_end(number: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        process.send_signal(number)
        assert process.stdout.read() == "stopped\n"
        assert process.wait() == 0

"""`charon serve`: the gate as a server, with the store inside unless CHARON_UPSTREAM names one."""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memory_git.cli.charon_commands.first_start import (
    AGENT,
    first_start,
    how_to_mint,
    mcp_configuration,
    sign_in_url,
)
from memory_git.cli.program import config_file, read_settings
from memory_git.cli.render import json_option

if TYPE_CHECKING:
    from fastapi import FastAPI

    from memory_git.charon.gate import Gate
    from memory_git.cli.listening import Names
    from memory_git.cli.settings import Settings

_LOG = logging.getLogger("memory_git.cli")
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("serve")
@click.option(
    "--http", metavar="HOST:PORT", help="Where to listen. Default: CHARON_HTTP, else 127.0.0.1:18484."
)
@click.option("--data-dir", type=click.Path(path_type=Path), help="The folder of the databases and the keys.")
@click.option(
    "--project", help="The project that the first start makes. Default: one that is there, else `default`."
)
@click.option("--tls-certificate", type=_FILE, help="Serve HTTPS with this certificate chain, in PEM.")
@click.option("--tls-key", type=_FILE, help="The key of the certificate, in PEM.")
@json_option
@click.pass_context
def command(
    context: click.Context,
    http: str | None,
    data_dir: Path | None,
    project: str | None,
    tls_certificate: Path | None,
    tls_key: Path | None,
    as_json: bool,
) -> None:
    """Serve agents (MCP), programs (HTTP) and a page for the browser.

    The first start makes the keys, a project, a person (owner) and an agent with a token, which is shown once.
    Every start prints a fresh one-time link for the browser. With --json all of it is one line of JSON.
    Stop it with Ctrl-C.

    Example: charon serve --http 127.0.0.1:18484
    """
    from memory_git.cli.listening import log_to_stderr, names_of, tls_of
    from memory_git.cli.opening import gate_settings, open_gate
    from memory_git.client.opening import first_person
    from memory_git.http.charon_app import create_charon_app
    from memory_git.http.serving import Serving, Where
    from memory_git.web.app import create_pages

    settings = read_settings(context, charon__http=http, charon__data_dir=data_dir, lethe__data_dir=data_dir)
    where = Where(settings.charon.http.host, settings.charon.http.port)
    names = names_of(where.host, settings.charon.public_url)
    tls = tls_of(tls_certificate, tls_key)
    log_to_stderr()
    is_readonly, stopping = gate_settings(settings).is_readonly, threading.Event()
    gate = open_gate(settings)

    def on_stop() -> None:
        stopping.set()
        gate.feed.close()

    try:
        pages = create_pages(
            gate, secure_cookie=names.is_https or tls is not None, public_url=names.public_url
        )
        app = create_charon_app(
            gate,
            pages=pages,
            hosts=names.hosts,
            origins=names.origins,
            server_url=names.public_url or "/",
            public_url=names.public_url,
        )
        serving = Serving(app, where, tls=tls, behind_proxy=names.public_url is not None, on_stop=on_stop)
        token = None if is_readonly else first_start(gate, project)
        person = None if is_readonly else first_person(gate)

        def ready(bound: Where) -> None:
            address = names.public_url or bound.url
            mcp = mcp_configuration(settings, config_file(context), address, token)
            way_in = {
                "address": address,
                "listens": bound.url,
                "person": person,
                "sign_in_url": sign_in_url(gate, address, person),
                "mcp": mcp,
            }
            _tell(settings, way_in, token, as_json=as_json)
            mounting = (app, gate, names, address, stopping)
            threading.Thread(target=_mount_mcp, args=mounting, daemon=True).start()

        serving.run(ready)
    finally:
        gate.close()


def _mount_mcp(app: FastAPI, gate: Gate, names: Names, address: str, stopping: threading.Event) -> None:
    """Imports the MCP face, which takes a second, and puts it behind /mcp, unless the server stops meanwhile."""
    from memory_git.http.charon_app import mount_mcp
    from memory_git.mcp.http import mcp_app

    try:
        mcp = mcp_app(gate, hosts=sorted(names.hosts), origins=sorted(names.origins), server_url=address)
        if not stopping.is_set():
            mount_mcp(app, mcp)
    except Exception as error:  # a face that can't start must not take the others down
        if not stopping.is_set():
            _LOG.error("the MCP face could not be started: %s: %s", type(error).__name__, error)


def _tell(settings: Settings, way_in: Mapping[str, Any], token: str | None, *, as_json: bool) -> None:
    """Prints the way in, at once, for a person or as one line of JSON."""
    if as_json:
        sys.stdout.write(json.dumps({**way_in, **({"token": token} if token else {})}) + "\n")
    else:
        sys.stdout.write("\n".join(_lines(settings, way_in, token)) + "\n")
    sys.stdout.flush()


def _lines(settings: Settings, way_in: Mapping[str, Any], token: str | None) -> list[str]:
    lines = [
        f"Memory Git serves at {way_in['address']}",
        f"Data: {settings.charon.data_dir.absolute()}",
        "",
    ]
    if way_in["sign_in_url"]:
        title = f"For the browser, as '{way_in['person']}', once, within ten minutes:"
        lines += [title, f"  {way_in['sign_in_url']}", ""]
    if token is None:
        lines += ["Tokens are shown once. For another one:", f"  {how_to_mint(settings)}", ""]
        return [*lines, "Stop with Ctrl-C."]
    for title, name in (("over stdio", "stdio"), ("over HTTP", "http")):
        lines += [f"For an agent {title}:", json.dumps(way_in["mcp"][name], indent=2), ""]
    return [
        *lines,
        f"The token of the agent '{AGENT}', shown only now:",
        f"  {token}",
        "",
        "Stop with Ctrl-C.",
    ]

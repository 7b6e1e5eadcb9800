"""`charon serve`: the gate as a server, with the store inside unless CHARON_UPSTREAM names one."""

from __future__ import annotations

import json
import logging
import shutil
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memory_git.cli.program import read_settings
from memory_git.cli.render import json_option

if TYPE_CHECKING:
    from memory_git.charon.gate import Gate
    from memory_git.cli.settings import Settings

FIRST_PROJECT = "default"
OWNER = "owner"
AGENT = "agent"
OWNER_SCOPES = ("memory.review", "memory.merge", "memory.search", "memory.read")
TOKEN_LIFETIME_S = 90 * 24 * 3600
_LOG = logging.getLogger("memory_git.cli")


@click.command("serve")
@click.option(
    "--http", metavar="HOST:PORT", help="Where to listen. Default: CHARON_HTTP, else 127.0.0.1:18484."
)
@click.option("--data-dir", type=click.Path(path_type=Path), help="The folder of the databases and the keys.")
@click.option(
    "--project", default=FIRST_PROJECT, show_default=True, help="The project that the first start makes."
)
@json_option
@click.pass_context
def command(
    context: click.Context, http: str | None, data_dir: Path | None, project: str, as_json: bool
) -> None:
    """Serves agents (MCP), people's programs (HTTP) and a page for the browser.

    The first start makes the keys, a project, a person (owner) and an agent with a token; the token is shown once.
    Every start prints a fresh one-time link to sign in with. Stop it with Ctrl-C.

    Example: charon serve --http 127.0.0.1:18484
    """
    from memory_git.cli.opening import open_gate
    from memory_git.http.charon_app import create_charon_app
    from memory_git.http.serving import Serving, Where
    from memory_git.web.app import create_pages

    settings = read_settings(context, charon__http=http, charon__data_dir=data_dir, lethe__data_dir=data_dir)
    where = Where(settings.charon.http.host, settings.charon.http.port)
    gate = open_gate(settings)
    try:
        app = create_charon_app(gate, pages=create_pages(gate))
        serving = Serving(app, where, on_stop=gate.feed.close)
        told = _first_start(gate, project)

        def ready(bound: Where) -> None:
            threading.Thread(target=_mount_mcp, args=(app, gate, bound.url), daemon=True).start()
            _tell(gate, settings, bound.url, told, as_json=as_json)

        serving.run(ready)
    finally:
        gate.close()


def _mount_mcp(app: Any, gate: Gate, url: str) -> None:
    """Imports the MCP face, which takes a second, and puts it behind /mcp."""
    from memory_git.http.charon_app import mount_mcp
    from memory_git.mcp.http import mcp_app

    try:
        mount_mcp(app, mcp_app(gate, server_url=url))
    except Exception as error:  # a face that can't start must not take the others down
        _LOG.error("the MCP face could not be started: %s: %s", type(error).__name__, error)


def _first_start(gate: Gate, project: str) -> str | None:
    """Makes the first project and principals when there is no principal yet; gives the agent's token, shown this once."""
    operator = gate.as_operator()
    if gate.ready().get("recovery_readonly") or gate.principals(operator):
        return None
    if project not in gate.list_projects(operator):
        gate.init_project(operator, project)
    gate.add_principal(operator, OWNER, "human", "Owner", "review")
    gate.add_principal(operator, AGENT, "agent", "Agent", "propose")
    for principal in (OWNER, AGENT):
        gate.grant(operator, principal, project)
    minted = gate.mint_obol(operator, AGENT, TOKEN_LIFETIME_S, project=project)
    return str(minted["token"])


def _tell(gate: Gate, settings: Settings, url: str, token: str | None, *, as_json: bool) -> None:
    link = _sign_in_link(gate, url)
    mcp = _mcp_configuration(settings, url, token or "obol_…")
    if as_json:
        document = {"address": url, "sign_in_url": link, "mcp": mcp, **({"token": token} if token else {})}
        click.echo(json.dumps(document, ensure_ascii=False))
    else:
        for line in _lines(settings, url, link, token, mcp):
            click.echo(line)
    sys.stdout.flush()


def _sign_in_link(gate: Gate, url: str) -> str | None:
    """Gives a one-time link for the first person, or None in recovery or when there is nobody."""
    operator = gate.as_operator()
    people = [item for item in gate.principals(operator) if item["kind"] == "human" and not item["disabled"]]
    if not people or gate.ready().get("recovery_readonly"):
        return None
    code = gate.mint_sign_in(operator, people[0]["principal_id"])["code"]
    return f"{url}/sign-in?code={code}"


def _mcp_configuration(settings: Settings, url: str, token: str) -> dict[str, Any]:
    """Gives what goes into an `mcpServers` file, for both transports."""
    program = shutil.which("charon") or str(Path(sys.executable).with_name("charon"))
    data_dir = str(settings.charon.data_dir.absolute())
    environment = {"CHARON_TOKEN": token, "CHARON_DATA_DIR": data_dir, "LETHE_DATA_DIR": data_dir}
    if settings.charon.upstream:
        environment["CHARON_UPSTREAM"] = settings.charon.upstream
    headers = {"Authorization": f"Bearer {token}"}
    return {
        "stdio": {"mcpServers": {"memory-git": {"command": program, "args": ["mcp"], "env": environment}}},
        "http": {"mcpServers": {"memory-git": {"type": "http", "url": f"{url}/mcp", "headers": headers}}},
    }


def _lines(
    settings: Settings, url: str, link: str | None, token: str | None, mcp: dict[str, Any]
) -> list[str]:
    lines = [f"Memory Git serves at {url}", f"Data: {settings.charon.data_dir.absolute()}", ""]
    if link:
        lines += ["Sign in once with this link, within ten minutes:", f"  {link}", ""]
    if token:
        lines += [
            f"Token of the agent '{AGENT}', shown only now:",
            f"  {token}",
            "",
            "For an agent over stdio, in its mcpServers file:",
            json.dumps(mcp["stdio"], indent=2, ensure_ascii=False),
            "",
            "For an agent over HTTP:",
            json.dumps(mcp["http"], indent=2, ensure_ascii=False),
            "",
        ]
    else:
        lines += [f"A token for an agent: charon obol mint {AGENT}", ""]
    return [*lines, "Stop with Ctrl-C."]

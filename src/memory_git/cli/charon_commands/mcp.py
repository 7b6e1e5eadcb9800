"""`charon mcp`: the tools of an agent over standard input and output."""

from __future__ import annotations

from pathlib import Path

import click

from memory_git.cli.program import read_settings


@click.command("mcp")
@click.option(
    "--toolsets",
    default="default",
    show_default=True,
    help="Comma-separated, besides the default: review, history, admin, or all.",
)
@click.option(
    "--data-dir", type=click.Path(path_type=Path), help="The folder of charon.db, lethe.db and the keys."
)
@click.pass_context
def command(context: click.Context, toolsets: str, data_dir: Path | None) -> None:
    """Serves MCP to a local agent, for the principal of CHARON_TOKEN.

    Works on the data directory itself, also while a server runs on it; with CHARON_URL set, as a client of that server.

    Example: CHARON_TOKEN=obol_… charon mcp --toolsets review
    """
    from memory_git.cli.opening import open_gate
    from memory_git.mcp.stdio import serve_stdio, serve_stdio_client

    settings = read_settings(context, charon__data_dir=data_dir, lethe__data_dir=data_dir)
    secret = settings.charon.token
    token = secret.get_secret_value() if secret else None
    if settings.charon.url:
        serve_stdio_client(settings.charon.url, token, toolsets=toolsets)
    else:
        serve_stdio(open_gate(settings), token, toolsets=toolsets)

"""`charon mcp`: the tools of an agent over standard input and output."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("mcp")
@click.option(
    "--toolsets",
    metavar="NAMES",
    default="default",
    show_default=True,
    help="Comma-separated, besides the default: review, history, admin, or all.",
)
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder of the databases and the keys. Default: CHARON_DATA_DIR.",
)
@click.pass_context
def command(context: click.Context, toolsets: str, data_dir: Path | None) -> None:
    """Serve MCP to a local agent, for the principal of CHARON_TOKEN.

    Works on the data directory itself, also while a server runs on it; with CHARON_URL set and no --data-dir, as a
    client of that server. It is started by the agent's program: `charon serve` prints what to put into its settings.

    Example: CHARON_TOKEN=obol_... charon mcp --toolsets review
    """
    from memory_git.cli.charon_commands.local import local_settings, require_begun
    from memory_git.cli.opening import open_gate
    from memory_git.client.road import require_safe
    from memory_git.mcp.stdio import serve_stdio, serve_stdio_client

    settings = local_settings(context, data_dir)
    token = settings.charon.token.get_secret_value() if settings.charon.token else None
    if settings.charon.url and data_dir is None:
        require_safe(settings.charon.url)
        serve_stdio_client(settings.charon.url, token, toolsets=toolsets)
    else:
        require_begun(settings)
        serve_stdio(open_gate(settings), token, toolsets=toolsets)

"""`lethe serve`: the store as a server of its own."""

from __future__ import annotations

from pathlib import Path

import click

from memory_git.cli.program import read_settings


@click.command("serve")
@click.option(
    "--http", metavar="HOST:PORT", help="Where to listen. Default: LETHE_HTTP, else 127.0.0.1:18485."
)
@click.option("--data-dir", type=click.Path(path_type=Path), help="The folder of lethe.db and the keys.")
@click.pass_context
def command(context: click.Context, http: str | None, data_dir: Path | None) -> None:
    """Serves the store to one bearer, Charon, which knows who may do what.

    The key is made at the first start, in the keys folder of the data directory, unless LETHE_API_KEY names one.

    Example: lethe serve --http 127.0.0.1:18485
    """
    from memory_git.cli.opening import lethe_key, open_store
    from memory_git.http.lethe_app import create_lethe_app
    from memory_git.http.serving import Serving, Where

    settings = read_settings(context, lethe__http=http, lethe__data_dir=data_dir)
    store = open_store(settings)
    try:
        where = Where(settings.lethe.http.host, settings.lethe.http.port)
        app = create_lethe_app(store, api_key=lethe_key(settings))
        serving = Serving(app, where, on_stop=store.feed.close)
        serving.run(lambda bound: click.echo(f"Lethe serves at {bound.url}", err=True))
    finally:
        store.close()

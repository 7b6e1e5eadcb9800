"""`lethe serve`: the store as a server of its own, for Charon."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memory_git.cli.program import read_settings
from memory_git.cli.render import json_option

if TYPE_CHECKING:
    from memory_git.cli.settings import Settings

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("serve")
@click.option(
    "--http", metavar="HOST:PORT", help="Where to listen. Default: LETHE_HTTP, else 127.0.0.1:18485."
)
@click.option("--data-dir", type=click.Path(path_type=Path), help="The folder of lethe.db and the keys.")
@click.option("--tls-certificate", type=_FILE, help="Serve HTTPS with this certificate chain, in PEM.")
@click.option("--tls-key", type=_FILE, help="The key of the certificate, in PEM.")
@json_option
@click.pass_context
def command(
    context: click.Context,
    http: str | None,
    data_dir: Path | None,
    tls_certificate: Path | None,
    tls_key: Path | None,
    as_json: bool,
) -> None:
    """Serve the store to one bearer, Charon, which knows who may do what.

    The bearer is LETHE_API_KEY; without it, a key is made at the first start, in keys/lethe-api (0600) of the data
    directory, and so is the key that verifies merges. A Charon on the same data directory finds both.

    Example: lethe serve --http 127.0.0.1:18485
    """
    from memory_git.cli.listening import log_to_stderr, names_of, tls_of
    from memory_git.cli.opening import lethe_bearers, open_store
    from memory_git.http.lethe_app import create_lethe_app
    from memory_git.http.serving import Serving, Where

    settings = read_settings(context, lethe__http=http, lethe__data_dir=data_dir)
    where = Where(settings.lethe.http.host, settings.lethe.http.port)
    tls = tls_of(tls_certificate, tls_key)
    log_to_stderr()
    store = open_store(settings, begins=True)
    try:
        app = create_lethe_app(
            store,
            api_key=lethe_bearers(settings),
            hosts=names_of(where.host, public_url=None).hosts,
            requests_per_s=settings.lethe.requests_per_s,
        )
        serving = Serving(app, where, tls=tls, on_stop=store.feed.close)
        serving.run(lambda bound: _tell(settings, store.place, bound.url, as_json=as_json))
    finally:
        store.close()


def _tell(settings: Settings, place: str, address: str, *, as_json: bool) -> None:
    """Prints where the store is and where its key lies, never the key."""
    from memory_git.cli.opening import store_path

    path = store_path(settings).absolute()
    key = "LETHE_API_KEY" if settings.lethe.api_key else str(path.parent / "keys" / "lethe-api")
    if as_json:
        sys.stdout.write(json.dumps({"address": address, "database": place, "key_from": key}) + "\n")
    else:
        sys.stdout.write(
            f"Lethe serves at {address}\nData: {place}\nKey: {key}\n\n"
            f"For Charon: CHARON_UPSTREAM={address}\nStop with Ctrl-C.\n"
        )
    sys.stdout.flush()

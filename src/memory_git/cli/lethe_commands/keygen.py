"""`lethe keygen`: a random secret, for any of the keys that settings name."""

from __future__ import annotations

import secrets

import click

from memory_git.cli.render import json_option, write_document, write_text

KEY_BYTES = 32


@click.command("keygen")
@json_option
def command(as_json: bool) -> None:
    """Print a new random secret of 256 bits, as 64 hex digits.

    It fits LETHE_API_KEY and CHARON_MERGE_HMAC_KEY. It is stored nowhere: keep it yourself.
    """
    key = secrets.token_hex(KEY_BYTES)
    if as_json:
        write_document({"key": key, "bits": KEY_BYTES * 8})
    else:
        write_text(key)

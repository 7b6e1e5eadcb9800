"""An author who signs what they write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from memory_git.domain.author_signature import signed_bytes
from memory_git.lethe.store import LetheStore

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
Json = dict[str, Any]


def signed(prepared: Json, key: Ed25519PrivateKey = KEY, **more: Any) -> Json:
    """Gives what a create request adds for a preparation that its author signed; `more` is put into the signature."""
    signature = key.sign(signed_bytes("laptop", prepared["authored_digest"]))
    return {
        "authored": prepared,
        "author_signature": {
            "algorithm": "ed25519",
            "key_id": "laptop",
            "public_key": key.public_key().public_bytes_raw().hex(),
            "signature": signature.hex(),
            **more,
        },
    }


def create_signed(store: LetheStore, request: Mapping[str, Any]) -> str:
    """Prepares, signs and creates a changeset; gives its id."""
    changeset, _ = store.create_changeset({**request, **signed(store.prepare_changeset(request))})
    return str(changeset["changeset_id"])

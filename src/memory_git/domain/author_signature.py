"""An author's own signature over what they wrote of a changeset (3-model, changeset and digests; FORMAT 6.8).

1. It is `{algorithm: "ed25519", key_id, public_key, signature}`: 32 and 64 bytes as lower-case hex, and a name for the key.
2. What is signed is canonical JSON `["memory_git/author-signature/v1", key_id, authored_digest]`: no byte of it can change unseen.
3. It holds or it doesn't. Whose key it is, and whether it was valid then, is asked elsewhere: the store knows no users.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from memory_git.domain.canonical import plain_bytes
from memory_git.domain.errors import Fault

VERSION = "memory_git/author-signature/v1"
_FORMS = {
    "algorithm": ("is ed25519", re.compile("ed25519")),
    "key_id": (
        "is 1 to 128 letters, digits, dots, underscores or hyphens",
        re.compile("[A-Za-z0-9._-]{1,128}"),
    ),
    "public_key": ("is 32 bytes as lower-case hex", re.compile("[0-9a-f]{64}")),
    "signature": ("is 64 bytes as lower-case hex", re.compile("[0-9a-f]{128}")),
}


def faults_of(signature: Any) -> list[Fault]:
    """Gives what is wrong with the form of a signature, field by field (rule 1)."""
    if not isinstance(signature, dict) or signature.keys() != _FORMS.keys():
        return [
            Fault(None, "author_signature", f"is an object of {', '.join(_FORMS)}", type(signature).__name__)
        ]
    return [
        Fault(None, f"author_signature.{name}", rule, type(signature[name]).__name__)
        for name, (rule, form) in _FORMS.items()
        if not isinstance(signature[name], str) or form.fullmatch(signature[name]) is None
    ]


def signed_bytes(key_id: str, authored_digest: str) -> bytes:
    """Gives what an author signs (rule 2)."""
    return plain_bytes([VERSION, key_id, authored_digest])


def holds(signature: Mapping[str, str], authored_digest: str) -> bool:
    """Decides whether a signature that is well formed is one of the authored digest, under the key that it names."""
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signature["public_key"]))
    try:
        key.verify(bytes.fromhex(signature["signature"]), signed_bytes(signature["key_id"], authored_digest))
    except InvalidSignature:
        return False
    return True

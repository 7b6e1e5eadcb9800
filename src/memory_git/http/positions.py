"""Positions of a feed as a client is told them: sealed, for their numbers count what the client may not see.

A position is good in the process that gave it: another one has another feed, and begins it anew with `reset`.
"""

from __future__ import annotations

import base64
import binascii
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE_BYTES = 12
_PADDED_BYTES = 40
_MAX_CHARACTERS = 200


class SealedPositions:
    """Seals the positions of one process; what it has not sealed is no position."""

    def __init__(self) -> None:
        self._cipher = AESGCM(AESGCM.generate_key(128))

    def sealed(self, position: str) -> str:
        """Gives a position as text that tells nothing, not even whether it is the same as another."""
        nonce = os.urandom(_NONCE_BYTES)
        content = self._cipher.encrypt(nonce, position.encode().ljust(_PADDED_BYTES), None)
        return base64.urlsafe_b64encode(nonce + content).decode().rstrip("=")

    def opened(self, text: str) -> str:
        """Gives the position of such a text; empty, which no feed has, for any other."""
        if len(text) > _MAX_CHARACTERS:
            return ""
        try:
            raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
            return self._cipher.decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], None).decode().rstrip()
        except (binascii.Error, ValueError, InvalidTag):
            return ""

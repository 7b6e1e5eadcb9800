"""Rotating the gate's secrets with overlap (10-operations, trust and transport).

1. A rotation puts a new key in front: it signs from then on, and what older keys signed verifies still. Every process on the data
   directory sees it at its next use. Secrets are never shown; key ids are.
2. An older key is retired by its id. The ledger's keys never are: what they linked must verify. A token key takes the tokens with it
   that were made under it, which is only done when asked for.
3. Keys that stand in the environment are rotated there.
"""

from __future__ import annotations

from typing import Any

from memory_git.charon.caller import Caller
from memory_git.charon.house import House
from memory_git.charon.keys import KEY_NAMES, LEDGER, MERGE, TOKEN, new_key
from memory_git.domain.envelope import MergeKeys
from memory_git.domain.errors import Clash, Invalid, NotFound
from memory_git.storage import charon_identity


def secrets_of(house: House, caller: Caller) -> list[dict[str, Any]]:
    """Gives each key by name and id, and whether it signs: `[{name, key_id, signs}]`; never a secret."""
    with house.administers(caller, "secrets", reads=True):
        return [
            {"name": name, "key_id": key_id, "signs": place == 0}
            for name in KEY_NAMES
            for place, (key_id, _) in enumerate(_ring(house, name).secrets)
        ]


def rotate_secret(house: House, caller: Caller, name: str) -> dict[str, Any]:
    """Makes a new key that signs from now on: `{name, key_id, verifies}`, the last the older ids."""
    with house.administers(caller, "rotate_secret", name=name) as passage:
        _require_file(house, name)
        ring = house.keys.replace(name, lambda ring: MergeKeys((new_key(), *ring.secrets)))
        passage.ids.update(name=name, key_id=ring.signing_key_id)
        return {
            "name": name,
            "key_id": ring.signing_key_id,
            "verifies": [key_id for key_id, _ in ring.secrets[1:]],
        }


def retire_secret(
    house: House, caller: Caller, name: str, key_id: str, *, end_tokens: bool
) -> dict[str, Any]:
    """Drops an older key: `{name, key_id, tokens_ended}`."""
    with house.administers(caller, "retire_secret", name=name, key_id=key_id) as passage:
        _require_file(house, name)
        _require_retirable(house.keys.ring(name), name, key_id)
        with house.database.read() as connection:
            held = charon_identity.obols_of_key(connection, key_id, house.time()) if name == TOKEN else 0
        if held and not end_tokens:
            raise Clash(
                "tokens_held",
                f"{held} token(s) were made under {key_id} and would end: mint them anew first, or end them (`--end-tokens`)",
                tokens=held,
            )
        house.keys.replace(
            name, lambda ring: MergeKeys(tuple(pair for pair in ring.secrets if pair[0] != key_id))
        )
        passage.ids.update(name=name, key_id=key_id)
        return {"name": name, "key_id": key_id, "tokens_ended": held}


def _ring(house: House, name: str) -> MergeKeys:
    return house.keys.merge if name == MERGE else house.keys.ring(name)


def _require_file(house: House, name: str) -> None:
    if name not in KEY_NAMES:
        raise Invalid("bad_secret_name", f"the secrets are {', '.join(KEY_NAMES)}")
    if name == MERGE and house.keys.merge_elsewhere is not None:
        raise Clash(
            "keys_in_environment",
            "the merge keys come from CHARON_MERGE_HMAC_KEYS: put `new-id=new-secret,` in front there, for Lethe first "
            "where it runs apart (`lethe keygen` prints a secret)",
        )


def _require_retirable(ring: MergeKeys, name: str, key_id: str) -> None:
    if ring.secret(key_id) is None:
        raise NotFound("not_found", f"{name} has no key {key_id[:64]}")
    if ring.signing_key_id == key_id:
        raise Clash("key_signs", f"{key_id} is the key that signs: rotate {name} first")
    if name == LEDGER:
        raise Clash("key_kept", "the ledger's keys stay: what they linked must verify")

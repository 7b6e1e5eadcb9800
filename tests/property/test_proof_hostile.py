"""Proofs on any tree, and on anything but a proof (7-context, reproduce).

Sound: whatever is handed in under the root digest of a state, a proof is accepted only of what that state holds, or does not.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_git.domain.errors import Invalid
from memory_git.domain.proof import Proof, prove, verify_proof
from memory_git.domain.trie import EMPTY, Entry, MemoryNodes, Root, put_many

Parts = tuple[bytes, ...]

keys = st.integers(0, 300).map(lambda n: bytes(31) + bytes([n]) if n < 60 else sha256(b"%d" % n).digest())
"""A fifth of the keys share all but their last byte, so that paths are long."""
values = st.integers(0, 2).map(lambda n: bytes([n]) * 32)
states = st.dictionaries(keys, values, max_size=120)
parts = st.lists(
    st.binary(max_size=80) | st.binary(max_size=80).map(lambda b: b"\x12" + b) | st.just(b"\x11\0")
)


def planted(state: dict[bytes, bytes]) -> tuple[MemoryNodes, Root]:
    nodes = MemoryNodes()
    return nodes, put_many(nodes, EMPTY, {key: Entry(key, value, 1, 1, 1, 1) for key, value in state.items()})


@given(states, keys)
def test_each_key_is_proved_present_or_absent_and_never_both(state: dict[bytes, bytes], key: bytes) -> None:
    nodes, root = planted(state)
    proof = Proof.from_json(prove(nodes, root, key).to_json())
    for value in (None, *(bytes([n]) * 32 for n in range(3))):
        assert verify_proof(root.digest, key, value, proof) is (state.get(key) == value)


@st.composite
def tampered(draw: st.DrawFn, genuine: list[Parts]) -> Parts:
    """Gives parts of genuine proofs, cut, repeated, put in another order, changed in a byte, or with others between."""
    chosen = list(draw(st.sampled_from(genuine)))
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(chosen)))
        how = draw(st.sampled_from(["cut", "drop", "insert", "swap", "flip", "grow", "shorten"]))
        if how == "cut":
            chosen = chosen[:place]
        elif how == "insert":
            chosen.insert(place, draw(st.sampled_from([part for proof in genuine for part in proof])))
        elif place < len(chosen):
            part = chosen[place]
            at = draw(st.integers(0, len(part) - 1)) if part else 0
            if how == "drop":
                del chosen[place]
            elif how == "swap":
                chosen[place], chosen[-1] = chosen[-1], part
            elif how == "flip" and part:
                chosen[place] = part[:at] + bytes([part[at] ^ draw(st.integers(1, 255))]) + part[at + 1 :]
            elif how == "grow":
                chosen[place] = part + draw(st.binary(min_size=1, max_size=70))
            elif how == "shorten":
                chosen[place] = part[:at]
    return tuple(chosen)


@pytest.mark.slow
@settings(max_examples=examples(400))
@given(st.data())
def test_no_tampering_proves_what_is_not_so(data: Any) -> None:
    state, other = data.draw(states), data.draw(states)
    nodes, root = planted(state)
    other_nodes, other_root = planted({**state, **other})
    asked = data.draw(st.lists(keys, min_size=1, max_size=4)) + sorted(state)[:3]
    genuine = [prove(nodes, root, key).parts for key in asked]
    genuine += [prove(other_nodes, other_root, key).parts for key in asked]
    for key in asked:
        proof = Proof(data.draw(tampered(genuine)))
        for value in (None, *(bytes([n]) * 32 for n in range(3))):
            if verify_proof(root.digest, key, value, proof):
                assert state.get(key) == value


@given(states, keys, st.sampled_from([0, 1, 31, 33, 64]))
def test_a_key_or_a_digest_of_another_length_is_never_proved(
    state: dict[bytes, bytes], key: bytes, length: int
) -> None:
    nodes, root = planted(state)
    proof = prove(nodes, root, key)
    wrong = (key * 2)[:length]
    assert verify_proof(root.digest, wrong, state.get(key), proof) is False
    assert verify_proof(root.digest, key, wrong, proof) is False
    assert (
        verify_proof(root.digest[:length] if length < 32 else root.digest + b"x", key, state.get(key), proof)
        is False
    )


@given(st.binary(max_size=40), st.binary(max_size=40), st.none() | st.binary(max_size=40), parts)
def test_bytes_of_any_kind_are_answered_by_a_boolean(
    root_digest: bytes, key: bytes, record_digest: bytes | None, hostile: list[bytes]
) -> None:
    assert verify_proof(root_digest, key, record_digest, Proof(tuple(hostile))) is False


@given(
    parts.filter(bool), st.binary(min_size=32, max_size=32), st.none() | st.binary(min_size=32, max_size=32)
)
def test_a_first_part_under_its_own_digest_is_answered_by_a_boolean(
    hostile: list[bytes], key: bytes, record_digest: bytes | None
) -> None:
    root_digest = sha256(hostile[0]).digest()
    assert isinstance(verify_proof(root_digest, key, record_digest, Proof(tuple(hostile))), bool)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


@given(JSON | st.lists(st.sampled_from(["00", "0", "AB", "ab ", "zz", "\u0661\u0661", "1100"])))
def test_any_json_is_read_as_a_proof_or_refused(value: Any) -> None:
    try:
        proof = Proof.from_json(value)
    except Invalid as refused:
        assert refused.code == "bad_proof"
    else:
        assert proof.to_json() == value

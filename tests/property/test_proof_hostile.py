"""Proofs on any tree, and on anything but a proof (7-context, reproduce)."""

from __future__ import annotations

from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from memory_git.domain.proof import Proof, prove, verify_proof
from memory_git.domain.trie import EMPTY, Entry, MemoryNodes, put_many

keys = st.integers(0, 300).map(lambda n: bytes(31) + bytes([n]) if n < 60 else sha256(b"%d" % n).digest())
parts = st.lists(
    st.binary(max_size=80) | st.binary(max_size=80).map(lambda b: b"\x12" + b) | st.just(b"\x11\0")
)


@given(st.sets(keys, max_size=120), keys)
def test_each_key_is_proved_present_or_absent_and_never_both(present, key):
    nodes = MemoryNodes()
    root = put_many(nodes, EMPTY, {k: Entry(k, sha256(k).digest(), 1, 1, 1, 1) for k in present})
    proof = Proof.from_json(prove(nodes, root, key).to_json())
    assert verify_proof(root.digest, key, sha256(key).digest(), proof) is (key in present)
    assert verify_proof(root.digest, key, None, proof) is (key not in present)


@given(st.binary(max_size=40), st.binary(max_size=40), st.none() | st.binary(max_size=40), parts)
def test_bytes_of_any_kind_are_answered_by_a_boolean(root_digest, key, record_digest, hostile):
    assert verify_proof(root_digest, key, record_digest, Proof(tuple(hostile))) is False


@given(
    parts.filter(bool), st.binary(min_size=32, max_size=32), st.none() | st.binary(min_size=32, max_size=32)
)
def test_a_first_part_under_its_own_digest_is_answered_by_a_boolean(hostile, key, record_digest):
    root_digest = sha256(hostile[0]).digest()
    assert isinstance(verify_proof(root_digest, key, record_digest, Proof(tuple(hostile))), bool)

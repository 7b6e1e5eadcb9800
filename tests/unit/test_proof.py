"""Proofs of presence and absence, and what is refused (7-context, reproduce)."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest

from memory_git.domain.errors import Invalid
from memory_git.domain.proof import Proof, prove, verify_proof
from memory_git.domain.state_root import memory_key
from memory_git.domain.trie import EMPTY, Entry, MemoryNodes, put_many


def entry(number: int) -> Entry:
    return Entry(memory_key(str(number)), sha256(b"%d" % number).digest(), number, 1, 1, 1)


@pytest.fixture(scope="module")
def tree():
    nodes = MemoryNodes()
    root = put_many(nodes, EMPTY, {entry(number).key: entry(number) for number in range(3000)})
    return nodes, root


def test_presence_is_proved_by_a_path_of_digests(tree):
    nodes, root = tree
    proof = prove(nodes, root, entry(7).key)
    assert len(proof.parts) >= 3
    assert verify_proof(root.digest, entry(7).key, entry(7).digest, proof)
    assert not verify_proof(root.digest, entry(7).key, None, proof)
    assert not verify_proof(root.digest, entry(7).key, entry(8).digest, proof)
    assert not verify_proof(root.digest, entry(8).key, entry(8).digest, proof)
    assert not verify_proof(EMPTY.digest, entry(7).key, entry(7).digest, proof)


def test_absence_is_proved_by_a_leaf_without_the_key(tree):
    nodes, root = tree
    absent = memory_key("absent")
    proof = prove(nodes, root, absent)
    assert verify_proof(root.digest, absent, None, proof)
    assert not verify_proof(root.digest, absent, entry(7).digest, proof)


def test_absence_is_proved_by_a_node_without_the_child():
    nodes = MemoryNodes()
    entries = [entry(number) for number in range(1000)]
    low = {item.key: item for item in entries if item.key[0] < 0x80}
    root = put_many(nodes, EMPTY, low)
    absent = b"\xf0" * 32
    proof = prove(nodes, root, absent)
    assert len(proof.parts) == 1
    assert verify_proof(root.digest, absent, None, proof)
    present = next(iter(low))
    assert not verify_proof(root.digest, present, None, proof)


def test_the_state_of_nothing_proves_any_absence():
    proof = prove(MemoryNodes(), EMPTY, entry(1).key)
    assert verify_proof(EMPTY.digest, entry(1).key, None, proof)
    assert not verify_proof(EMPTY.digest, entry(1).key, entry(1).digest, proof)


def test_a_proof_survives_its_wire_form(tree):
    nodes, root = tree
    proof = prove(nodes, root, entry(9).key)
    assert Proof.from_json(json.loads(json.dumps(proof.to_json()))) == proof


def test_a_proof_with_a_part_missing_added_or_moved_proves_nothing(tree):
    nodes, root = tree
    parts = prove(nodes, root, entry(7).key).parts
    others = prove(nodes, root, entry(11).key).parts
    for wrong in (
        (),
        parts[:-1],
        parts[1:],
        (*parts, parts[-1]),
        parts[::-1],
        (*parts[:-1], others[-1]),
        parts * 40,
    ):
        for claim in (entry(7).digest, None):
            assert not verify_proof(root.digest, entry(7).key, claim, Proof(tuple(wrong)))


def test_a_proof_with_any_byte_flipped_proves_nothing(tree):
    nodes, root = tree
    parts = prove(nodes, root, entry(7).key).parts
    for place, part in enumerate(parts):
        for at in range(0, len(part), 7):
            flipped = part[:at] + bytes([part[at] ^ 0x20]) + part[at + 1 :]
            forged = Proof((*parts[:place], flipped, *parts[place + 1 :]))
            assert not verify_proof(root.digest, entry(7).key, entry(7).digest, forged)
            assert not verify_proof(root.digest, entry(7).key, None, forged)


def leaf(*pairs: bytes) -> bytes:
    return bytes((0x11, len(pairs))) + b"".join(pairs)


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\x11", id="a leaf without its count"),
        pytest.param(b"\x11\x01", id="a leaf without its entry"),
        pytest.param(b"\x11\x21" + bytes(64 * 33), id="a leaf of too many entries"),
        pytest.param(b"\x12\x00\x00", id="an inner node cut in its head"),
        pytest.param(b"\x12\x00\x00\x00\x21\xff\xff", id="an inner node without its children"),
        pytest.param(b"\x21\x00", id="another format"),
        pytest.param(leaf(bytes(64), bytes(64)), id="a leaf with one key twice"),
        pytest.param(leaf(b"\1" * 64, bytes(64)), id="a leaf with keys that descend"),
        pytest.param(leaf(bytes(64)) + b"\0", id="a leaf with a byte too many"),
    ],
)
def test_a_part_that_is_no_node_proves_nothing_even_under_its_own_digest(part):
    for claim in (bytes(32), None):
        assert not verify_proof(sha256(part).digest(), bytes(32), claim, Proof((part,)))


def test_a_path_deeper_than_a_key_proves_nothing():
    part = leaf()
    parts = [part]
    for _ in range(66):
        part = b"\x12\0\0\0\x21\0\1" + sha256(part).digest()
        parts.insert(0, part)
    for first in range(4):
        deep = Proof(tuple(parts[first:]))
        assert verify_proof(sha256(parts[first]).digest(), bytes(32), None, deep) is (first >= 2)


def test_a_path_of_inner_nodes_alone_deeper_than_a_key_proves_nothing():
    part = b"\x12\0\0\0\x21\0\0"
    parts = [part]
    for _ in range(64):
        part = b"\x12\0\0\0\x21\0\1" + sha256(part).digest()
        parts.insert(0, part)
    assert not verify_proof(sha256(part).digest(), bytes(32), None, Proof(tuple(parts)))


@pytest.mark.parametrize("key", [b"", b"\0" * 31, b"\0" * 33])
def test_a_key_of_the_wrong_size_proves_nothing(key):
    assert not verify_proof(EMPTY.digest, key, None, Proof((b"\x11\0",)))


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        "11",
        [1],
        [None],
        ["1"],
        ["zz"],
        ["11 00"],
        ["AA"],
        ["é"],
        ["\ud800"],
        ["11" * 3000],
        ["11"] * 66,
        [["11"]],
    ],
)
def test_a_wire_form_that_is_no_proof_is_refused(value):
    with pytest.raises(Invalid) as refusal:
        Proof.from_json(value)
    assert refusal.value.code == "bad_proof"


def test_a_proof_with_the_fullest_leaf_or_the_longest_path_is_read():
    """Both bounds hold what they say: 32 entries in a leaf, and 64 inner nodes above one."""
    nodes = MemoryNodes()
    root = put_many(nodes, EMPTY, {entry(number).key: entry(number) for number in range(32)})
    proof = Proof.from_json(prove(nodes, root, entry(5).key).to_json())
    assert verify_proof(root.digest, entry(5).key, entry(5).digest, proof)
    assert len(Proof.from_json(["1100"] * 65).parts) == 65
    with pytest.raises(Invalid):
        Proof.from_json(["1100"] * 66)
    with pytest.raises(Invalid):
        Proof.from_json(["00" * 2051])

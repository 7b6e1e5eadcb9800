"""Golden digests of the state tree: a change of encoding breaks the build (3-model, digests)."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest

from memory_git.domain.proof import Proof, prove, verify_proof
from memory_git.domain.state_root import edge_key, memory_key, state_root
from memory_git.domain.trie import EMPTY, Entry, MemoryNodes, put_many

GOLDEN = json.loads(Path(__file__).with_name("state_tree.json").read_text())


def entry(memory_id: str, row: int) -> Entry:
    return Entry(memory_key(memory_id), sha256(f"record {memory_id}".encode()).digest(), row, row, row + 1, 2)


@pytest.mark.parametrize("golden", GOLDEN["trees"], ids=lambda golden: f"{golden['memories']} memories")
def test_the_tree_of_these_memories_has_its_golden_digest_and_bodies(golden):
    nodes = MemoryNodes()
    wanted = [entry(f"memory/{number}", number + 1) for number in range(golden["memories"])]
    root = put_many(nodes, EMPTY, {item.key: item for item in wanted})
    assert root.digest.hex() == golden["root"]
    bodies = sha256(b"".join(nodes.bodies.values()))
    assert bodies.hexdigest() == golden["bodies_sha256"]


def root_by_the_format(entries: list[Entry], depth: int = 0) -> bytes:
    """Gives a root digest from the format's own words, by no code of the product."""
    if len(entries) <= 32:
        return sha256(bytes([0x11, len(entries)]) + b"".join(e.key + e.digest for e in entries)).digest()
    slots: dict[int, list[Entry]] = {}
    for item in entries:
        slots.setdefault(int(item.key.hex()[depth], 16), []).append(item)
    head = b"\x12" + len(entries).to_bytes(4, "big") + sum(1 << slot for slot in slots).to_bytes(2, "big")
    return sha256(
        head + b"".join(root_by_the_format(slots[slot], depth + 1) for slot in sorted(slots))
    ).digest()


@pytest.mark.parametrize("golden", GOLDEN["trees"], ids=lambda golden: f"{golden['memories']} memories")
def test_a_golden_digest_is_what_the_format_says(golden):
    wanted = sorted(entry(f"memory/{number}", 1) for number in range(golden["memories"]))
    assert root_by_the_format(wanted).hex() == golden["root"]


@pytest.mark.parametrize(
    "golden",
    GOLDEN["memory_keys"],
    ids=lambda golden: golden["memory_id"].encode("ascii", "replace").decode(),
)
def test_a_memory_has_its_golden_key(golden):
    assert memory_key(golden["memory_id"]).hex() == golden["key"]


@pytest.mark.parametrize("golden", GOLDEN["edge_keys"], ids=["one way", "the other way", "beyond ASCII"])
def test_a_relationship_has_its_golden_key(golden):
    assert edge_key(*golden["edge"]).hex() == golden["key"]


@pytest.mark.parametrize("golden", GOLDEN["state_roots"], ids=lambda golden: golden["name"])
def test_a_state_has_its_golden_root(golden):
    assert (
        state_root(bytes.fromhex(golden["memories"]), bytes.fromhex(golden["relationships"]))
        == golden["root"]
    )


def test_the_golden_keys_are_what_the_format_says():
    for golden in GOLDEN["memory_keys"]:
        assert golden["key"] == sha256(b"m\0" + golden["memory_id"].encode()).hexdigest()
    for golden in GOLDEN["edge_keys"]:
        text = json.dumps(golden["edge"], ensure_ascii=False, separators=(",", ":"))
        assert golden["key"] == sha256(b"r\0" + text.encode()).hexdigest()


@pytest.mark.parametrize("golden", GOLDEN["proofs"], ids=lambda golden: golden["name"])
def test_a_memory_has_its_golden_proof(golden):
    nodes = MemoryNodes()
    wanted = [entry(f"memory/{number}", number + 1) for number in range(golden["memories"])]
    root = put_many(nodes, EMPTY, {item.key: item for item in wanted})
    key = memory_key(golden["memory_id"])
    proof = prove(nodes, root, key)
    digest = None if golden["digest"] is None else bytes.fromhex(golden["digest"])
    assert (root.digest.hex(), proof.to_json()) == (golden["root"], golden["proof"])
    assert verify_proof(root.digest, key, digest, Proof.from_json(golden["proof"]))

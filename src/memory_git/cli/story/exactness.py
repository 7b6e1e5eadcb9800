"""Steps 13 and 14: the past, rebuilt byte for byte and proved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memory_git.cli.story.beginning import CACHE
from memory_git.cli.story.databases import flip_record_byte
from memory_git.cli.story.expect import StepFailed, expect, expect_equal
from memory_git.cli.story.tale import Tale
from memory_git.cli.story.world import PROJECT, World, canonical, copied, release
from memory_git.domain.errors import Corrupt
from memory_git.domain.ids import SHARED_MAIN
from memory_git.domain.proof import Proof, verify_proof
from memory_git.domain.record import record_digest, record_from_json
from memory_git.domain.state_root import memory_key, state_root
from memory_git.lethe.protocol import Json

LATER_CHANGESETS = 50
_VOLATILE = ("manifest_id",)


def contexts_are_rebuilt(tale: Tale) -> Mapping[str, Any]:
    """The context before the revert and the one after it are rebuilt and compared with what was recorded then."""
    compared = {}
    for name in ("before_revert", "after_revert"):
        then = tale.kept[name]
        asked = {
            "ref": SHARED_MAIN,
            "head": then["head_changeset_id"],
            "query": "seat map cache",
            "limit": 20,
        }
        asked |= {"now": then["evaluated_at"]}
        now = tale.world.person("agent-a").post(f"/projects/{PROJECT}/context", asked)
        expect_equal(_bytes(now), _bytes(then), f"the context {name.replace('_', ' the ')}")
        compared[name] = len(_bytes(now))
    contents = [_content_of(tale.kept[name]) for name in ("before_revert", "after_revert")]
    expect(contents[0] != contents[1], "the two contexts differ in the reverted memory")
    return {f"bytes_{name}": size for name, size in compared.items()}


def _bytes(context: Json) -> bytes:
    return canonical({name: value for name, value in context.items() if name not in _VOLATILE})


def _content_of(context: Json) -> str:
    return next(str(item["record"]["content"]) for item in context["memories"] if item["memory_id"] == CACHE)


def a_manifest_reproduces(tale: Tale) -> Mapping[str, Any]:
    """A manifest reproduces byte for byte after fifty changesets, a restart and a restore, and proves its digests.

    With one record byte flipped it fails; with one memory redacted it says so and the rest stays exact; no text is in the manifest.
    """
    manifest_id = tale.kept["before_revert"]["manifest_id"]
    first = _reproduced(tale, manifest_id)
    _prove(first)
    stored = tale.store.get_manifest(manifest_id)
    texts = [item["record"]["content"] for item in first["memories"]]
    expect(not any(text in canonical(stored).decode() for text in texts), "no text is in the manifest")

    _commit_many(tale)
    tale.world.restart()
    tale.forget_actors()
    expect_equal(
        canonical(_reproduced(tale, manifest_id)), canonical(first), "the reproduction after a restart"
    )

    copy = copied(tale.world, tale.world.directory / "restored")
    expect(release(copy)["ok"], "the restored copy reconciles")
    with_copy = Tale(copy, tale.input_path)
    copy.start()
    expect_equal(
        canonical(_reproduced(with_copy, manifest_id)), canonical(first), "the reproduction after a restore"
    )
    copy.stop()

    _fails_with_a_flipped_byte(copy, tale, manifest_id)
    erased = _says_what_is_redacted(copy, tale, manifest_id, first)
    return {
        "manifest": manifest_id,
        "records": len(first["memories"]),
        "later_changesets": LATER_CHANGESETS,
        "redacted": erased,
    }


def _reproduced(tale: Tale, manifest_id: str) -> Json:
    person = tale.world.person("agent-a")
    shown: Json = person.get(f"/manifests/{manifest_id}/reproduce")
    again: Json = person.get(f"/manifests/{manifest_id}/reproduce")
    expect_equal(canonical(again), canonical(shown), "two reproductions in a row")
    return shown


def _prove(shown: Json) -> None:
    """Verifies every record with its digest and the state root alone, without asking anybody."""
    memories_root = bytes.fromhex(shown["memories_root"])
    root = state_root(memories_root, bytes.fromhex(shown["relationships_root"]))
    expect_equal(root, shown["state_root"], "the state root of the two tries")
    for item in shown["memories"]:
        if item.get("redacted"):
            continue
        digest = record_digest(item["salt"], record_from_json(item["record"]))
        expect_equal(digest, item["record_digest"], f"the digest of {item['memory_id']}")
        proof = Proof.from_json(item["proof"])
        holds = verify_proof(memories_root, memory_key(item["memory_id"]), bytes.fromhex(digest), proof)
        expect(holds, f"the proof of {item['memory_id']}")


def _commit_many(tale: Tale) -> None:
    ref_name = "refs/sessions/agent-b/afternoon"
    head = tale.agent_b.call("memory_branch_create", project=PROJECT, ref=ref_name)["head_changeset_id"]
    for number in range(LATER_CHANGESETS):
        op = {
            "op_type": "add_memory",
            "payload": {"content": f"Afternoon note {number}.", "kind": "observation"},
        }
        changeset = tale.agent_b.commit(
            ref_name,
            [op],
            f"Note {number}",
            f"afternoon-{number}",
            project=PROJECT,
            expected_head=head,
            parent_ids=[head],
        )
        head = changeset["changeset_id"]


def _fails_with_a_flipped_byte(copy: World, tale: Tale, manifest_id: str) -> None:
    flip_record_byte(copy.store_place, CACHE)
    copy.start()
    try:
        try:
            Tale(copy, tale.input_path).store.reproduce(manifest_id)
        except Corrupt:
            pass
        else:
            raise StepFailed("a record with a flipped byte was reproduced")
    finally:
        copy.stop()
        flip_record_byte(copy.store_place, CACHE)


def _says_what_is_redacted(copy: World, tale: Tale, manifest_id: str, first: Json) -> str:
    copy.start()
    try:
        world = Tale(copy, tale.input_path)
        world.store.redact(PROJECT, CACHE, principal="privacy-officer", reason="Asked for by the owner")
        shown = world.store.reproduce(manifest_id)
        erased = [item for item in shown["memories"] if item.get("redacted")]
        expect_equal([item["memory_id"] for item in erased], [CACHE], "what is said to be redacted")
        expect(
            erased[0]["redacted_at"] and erased[0]["redacted_by"] == "privacy-officer",
            "when, and on whose order",
        )
        rest = {item["memory_id"]: item for item in shown["memories"] if not item.get("redacted")}
        for item in first["memories"]:
            if item["memory_id"] != CACHE:
                expect_equal(
                    canonical(rest[item["memory_id"]]), canonical(item), f"{item['memory_id']} beside it"
                )
        expect(world.store.verify(PROJECT)["ok"], "the store verifies after the redaction")
    finally:
        copy.stop()
    expect(
        b"The seat map is cached for" not in copy.raw_store(),
        "no trace of the erased text is in the store's files or tables",
    )
    return CACHE

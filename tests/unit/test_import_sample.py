import json
import re
from collections import Counter

from memory_git.domain.projector import apply
from memory_git.domain.state import MemoryState
from memory_git.domain.validate import check_ops
from memory_git.interchange.importing import in_changesets, read_import, to_ops
from memory_git.interchange.sample import sample_path


def test_the_sample_comes_in_whole_in_one_changeset() -> None:
    imported = read_import(sample_path())
    assert imported.report.skipped == ()
    assert imported.report.warnings == ()
    ops = to_ops(imported)
    assert len(list(in_changesets(ops))) == 1
    checked, faults = check_ops(ops, iter(()))
    result = apply(MemoryState(), checked, salts=lambda _: "0" * 32)
    assert faults == [] and result.faults == []
    assert len(result.records) == imported.report.taken >= 150
    assert len(result.edges) == imported.report.links >= 80


def test_the_sample_is_in_the_official_form() -> None:
    for line in sample_path().read_text("utf-8").splitlines():
        value = json.loads(line)
        keys = ["type", "name", "entityType", "observations"]
        assert list(value) in (keys, ["type", "from", "to", "relationType"])


def test_the_sample_holds_every_kind_and_several_languages() -> None:
    memories = read_import(sample_path()).memories
    kinds = Counter(memory.payload["kind"] for memory in memories)
    assert set(kinds) == {"fact", "decision", "task", "flag", "observation", "record"}
    text = "\n".join(memory.payload["content"] for memory in memories)
    for script in ("[äöüß]", "[éèç]", "[\u3041-\u30ff]", "[\u4e00-\u9fff]"):
        assert re.search(script, text)


def test_every_decision_of_the_sample_gives_its_reason() -> None:
    decisions = [item for item in read_import(sample_path()).memories if item.payload["kind"] == "decision"]
    assert all(re.search("Reason|Grund|Raison|理由|原因", item.payload["content"]) for item in decisions)

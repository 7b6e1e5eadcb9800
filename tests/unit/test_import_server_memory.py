from pathlib import Path

import pytest

from memory_git.domain.errors import Invalid
from memory_git.domain.projector import apply
from memory_git.domain.state import MemoryState
from memory_git.domain.validate import check_ops
from memory_git.interchange.imported import Import
from memory_git.interchange.importing import changes, in_changesets, read_import, to_ops
from memory_git.interchange.server_memory import import_server_memory

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
REAL = sorted((ROOT.parent / "shared" / "imports" / "server-memory").glob("*.jsonl"))
SALT = "0" * 32


def applied(imported: Import) -> MemoryState:
    ops, faults = check_ops(to_ops(imported), iter(()))
    assert faults == []
    result = apply(MemoryState(), ops, salts=lambda _: SALT)
    assert result.faults == []
    return MemoryState(result.records, frozenset(edge for edge, stands in result.edges.items() if stands))


def again(imported: Import, state: MemoryState) -> list[dict]:
    records = {memory_id: record.to_json() for memory_id, record in state.records.items()}
    edges = {(edge.from_memory_id, edge.kind, edge.to_memory_id) for edge in state.edges}
    return changes(imported, records, edges)[0]


@pytest.fixture(scope="module")
def dialects() -> Import:
    return read_import(DATA / "dialects.memory.jsonl")


@pytest.fixture(scope="module")
def state(dialects: Import) -> MemoryState:
    return applied(dialects)


def test_an_entity_is_one_memory_with_its_observations_as_a_list(state: MemoryState) -> None:
    record = state.record("entity/night-crossing")
    assert record.content == "- Suspended in fog\n- Resumed"
    assert (record.title, record.kind, record.type) == ("night-crossing", "flag", None)
    assert record.sources == ("dialects.memory.jsonl:4",)
    assert record.extra == {"observed_at": ["2026-02-01T06:00:00Z", "2026-02-02T06:00:00Z"]}


def test_a_later_line_of_an_observation_stays_under_its_bullet(state: MemoryState) -> None:
    assert state.record("entity/pier-lamp").content == "- Replace the sensor\n  before the winter"


@pytest.mark.parametrize(
    ("memory_id", "kind", "type_"),
    [
        ("entity/tide-cache", "decision", None),
        ("entity/pier-lamp", "task", None),
        ("entity/night-crossing", "flag", None),
        ("entity/ferry-timetable", "fact", "component"),
    ],
)
def test_only_the_name_of_a_kind_makes_the_kind(
    state: MemoryState, memory_id: str, kind: str, type_: str | None
) -> None:
    record = state.record(memory_id)
    assert (record.kind, record.type) == (kind, type_)


def test_an_entity_type_keeps_its_spelling(state: MemoryState) -> None:
    assert state.record("entity/tide-cache").extra == {"entityType": "Decision"}


def test_a_name_that_occurs_again_is_a_correction_and_the_older_text_is_in_the_ops(dialects: Import) -> None:
    ops = [op for op in to_ops(dialects) if "ferry-timetable" in str(op) and "content" in op["payload"]]
    assert [op["op_type"] for op in ops] == ["add_memory", "correct_memory"]
    assert "every minute" in ops[0]["payload"]["content"]
    assert "every 30 seconds" in ops[1]["payload"]["content"]
    notices = {(item.where, item.field) for item in dialects.report.warnings}
    assert ("dialects.memory.jsonl:6", "name") in notices


def test_what_an_earlier_version_said_and_the_later_does_not_is_cleared() -> None:
    lines = (
        b'{"name":"a","entityType":"fact","observations":["one"],"colour":"red"}\n'
        b'{"name":"a","entityType":"fact","observations":["two"]}'
    )
    record = applied(import_server_memory(lines, "m.jsonl")).record("entity/a")
    assert (record.content, record.extra) == ("- two", None)


def test_everything_that_was_not_taken_is_reported_with_its_line(dialects: Import) -> None:
    skipped = {item.where.rpartition(":")[2]: item.why for item in dialects.report.skipped}
    assert skipped["7"] == "the same as on line 3"
    assert skipped["11"] == "names an unknown entity: lighthouse"
    assert skipped["12"] == "the same as at dialects.memory.jsonl:9"
    assert skipped["13"] == "leads from an entity to itself"
    assert skipped["14"].startswith("not JSON")
    assert skipped["15"] == "neither an entity nor a relation"
    assert len(skipped) == 6


def test_relations_are_relationships(state: MemoryState) -> None:
    assert {(edge.from_memory_id, edge.kind, edge.to_memory_id) for edge in state.edges} == {
        ("entity/tide-cache", "feeds", "entity/ferry-timetable"),
        ("entity/pier-lamp", "delays", "entity/night-crossing"),
    }


def test_an_entity_that_says_nothing_has_its_name_as_content(dialects: Import) -> None:
    memory = next(item for item in dialects.memories if item.payload["title"] == "Ebbe und Flut")
    assert memory.payload["content"] == "Ebbe und Flut"
    assert memory.memory_id.startswith("entity/Ebbe-und-Flut-")


def test_a_whole_graph_is_read_like_its_lines() -> None:
    imported = read_import(DATA / "whole_graph.json")
    assert [memory.memory_id for memory in imported.memories] == ["entity/quay", "entity/crane"]
    assert [link.kind for link in imported.links] == ["stands on"]


def test_a_repeated_import_changes_nothing(dialects: Import, state: MemoryState) -> None:
    assert again(read_import(DATA / "dialects.memory.jsonl"), state) == []
    assert to_ops(read_import(DATA / "dialects.memory.jsonl")) == to_ops(dialects)


def test_a_line_that_only_moved_changes_nothing(tmp_path: Path, state: MemoryState) -> None:
    moved = tmp_path / "dialects.memory.jsonl"
    moved.write_bytes(b"\n\n" + (DATA / "dialects.memory.jsonl").read_bytes())
    assert again(read_import(moved), state) == []


def test_what_was_retired_here_is_not_brought_back(dialects: Import, state: MemoryState) -> None:
    records = {memory_id: record.to_json() for memory_id, record in state.records.items()}
    records["entity/pier-lamp"].update(status="retracted", content="- gone")
    edges = {(edge.from_memory_id, edge.kind, edge.to_memory_id) for edge in state.edges}
    ops, left = changes(dialects, records, edges)
    assert ops == []
    assert [item.why for item in left] == ["entity/pier-lamp is retracted: bring it back explicitly"]


def test_two_spellings_of_one_name_are_one_memory() -> None:
    lines = '{"name":"Cafe\u0301","entityType":"fact","observations":["1"]}\n{"name":"Caf\u00e9","entityType":"fact","observations":["2"]}'
    assert {item.memory_id for item in import_server_memory(lines.encode(), "m").memories} == {"entity/Café"}


def test_names_that_look_alike_stay_apart() -> None:
    names = ["a b", "a-b", "A-b", "a_b", "a/b", "a: b"]
    lines = "\n".join(f'{{"name":"{name}","entityType":"fact","observations":["x"]}}' for name in names)
    imported = import_server_memory(lines.encode(), "m")
    assert len({item.memory_id for item in imported.memories}) == len(names)


def test_an_entity_over_the_cap_is_split_into_linked_memories() -> None:
    said = ",".join(f'"{n:04} {"ü" * 500}"' for n in range(60))
    line = f'{{"name":"big","entityType":"fact","observations":[{said}]}}'
    imported = import_server_memory(line.encode(), "m")
    state = applied(imported)
    assert len(state.records) == len(imported.memories) == 4
    assert {(link.kind, link.to_id) for link in imported.links} == {("part_of", "entity/big")}
    assert "".join(item.payload["content"] for item in imported.memories).count("ü") == 30_000
    assert again(imported, state) == []


def test_a_long_name_is_cut_in_the_title_and_whole_in_the_content() -> None:
    name = "n" * 3000
    line = f'{{"name":"{name}","entityType":"fact","observations":["x"]}}'
    record = next(iter(applied(import_server_memory(line.encode(), "m")).records.values()))
    assert len(record.title.encode()) == 1024
    assert record.content == f"{name}\n\n- x"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("[" * 40 + "]" * 40, "left out: nested deeper than 32"),
        (f'"{"x" * 5000}"', "left out: no room in extra"),
    ],
)
def test_a_key_that_extra_can_not_hold_is_reported(value: str, why: str) -> None:
    line = f'{{"name":"a","entityType":"fact","observations":["x"],"odd":{value},"even":2}}'
    imported = import_server_memory(line.encode(), "m")
    assert imported.memories[0].payload["extra"] == {"even": 2}
    assert [(item.field, item.text) for item in imported.report.warnings] == [("odd", why)]


def test_large_imports_are_divided_into_changesets() -> None:
    ops = [
        {"op_type": "add_memory", "payload": {"content": "x" * 16_000, "memory_id": str(n)}}
        for n in range(1200)
    ]
    runs = list(in_changesets(ops))
    assert [op for run in runs for op in run] == ops
    assert len(runs) == 3
    small = [{"op_type": "add_memory", "payload": {"content": "x"}}] * 20_001
    assert [len(run) for run in in_changesets(small)] == [10_000, 10_000, 1]


@pytest.mark.parametrize("name", ["absent.jsonl", "prose.txt"])
def test_a_path_that_holds_no_memory_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "prose.txt").write_text("once upon a time")
    with pytest.raises(Invalid) as refusal:
        read_import(tmp_path / name)
    assert refusal.value.code == ("import_unreadable" if name == "absent.jsonl" else "import_unknown_form")


@pytest.mark.skipif(not REAL, reason="the shared import files are absent")
@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_real_files_come_in_whole_and_only_once(path: Path) -> None:
    imported = read_import(path)
    state = applied(imported)
    entities = {line for line in path.read_bytes().split(b"\n") if b'"entityType"' in line}
    assert len(state.records) == len({line.split(b'"name":"')[1].split(b'"')[0] for line in entities})
    assert again(read_import(path), state) == []
    assert all(item.why for item in imported.report.skipped)


@pytest.mark.skipif(not REAL, reason="the shared import files are absent")
def test_the_relation_to_an_entity_that_does_not_exist_is_reported() -> None:
    imported = read_import(next(path for path in REAL if path.name.startswith("dmetrics")))
    assert "names an unknown entity: TODO.md" in {item.why for item in imported.report.skipped}

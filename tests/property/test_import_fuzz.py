import json
import tempfile
from pathlib import Path

from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_git.domain.projector import apply
from memory_git.domain.state import MemoryState
from memory_git.domain.validate import check_ops
from memory_git.interchange.front_matter import read_front_matter
from memory_git.interchange.imported import Import
from memory_git.interchange.importing import changes, to_ops
from memory_git.interchange.markdown import import_markdown
from memory_git.interchange.server_memory import import_server_memory
from memory_git.interchange.splitting import split_text

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
)
NAMES = (
    st.sampled_from(["a", "b", "A b", "é", "e\u0301", "x\ty", "", " ", "a/b", "../..", "名", "n" * 1500])
    | st.text()
)
KEYS = st.sampled_from(
    [
        "type",
        "_type",
        "name",
        "entityType",
        "entity_type",
        "observations",
        "from",
        "to",
        "relationType",
        "extra",
    ]
)
LONG = st.builds(
    lambda text, times: text * times, st.text(min_size=1, max_size=9), st.sampled_from([1, 300, 6000])
)
ENTITIES = st.fixed_dictionaries(
    {"name": NAMES, "entityType": st.sampled_from(["fact", "Decision", "x", ""]) | SCALARS},
    optional={
        "type": st.just("entity"),
        "observations": st.lists(LONG | JSON, max_size=4) | JSON,
        "more": JSON,
    },
)
RELATIONS = st.fixed_dictionaries({"from": NAMES, "to": NAMES, "relationType": st.text(max_size=9) | JSON})
LINES = st.lists(ENTITIES | RELATIONS | st.dictionaries(KEYS, JSON, max_size=6) | JSON, max_size=8)
FRONT = st.lists(
    st.tuples(
        st.sampled_from(
            ["id", "kind", "tags", "status", "valid_from", "valid_until", "sources", "extra", "title", "x"]
        ),
        st.text(max_size=30) | JSON.map(json.dumps),
    ),
    max_size=6,
).map(lambda entries: "---\n" + "".join(f"{key}: {value}\n" for key, value in entries) + "---\n")


def assert_it_can_be_committed_once(imported: Import) -> None:
    ops, faults = check_ops(to_ops(imported), iter(()))
    assert faults == []
    result = apply(MemoryState(), ops, salts=lambda _: "0" * 32)
    assert result.faults == []
    assert imported.report.taken == len(imported.memories)
    records = {memory_id: record.to_json() for memory_id, record in result.records.items()}
    edges = {(edge.from_memory_id, edge.kind, edge.to_memory_id) for edge in result.edges}
    assert changes(imported, records, edges)[0] == []


@given(LINES)
def test_any_entities_and_relations_make_ops_that_hold(lines: list) -> None:
    content = "\n".join(json.dumps(line) for line in lines).encode()
    assert_it_can_be_committed_once(import_server_memory(content, "fuzz.jsonl"))


@given(st.binary(max_size=400))
def test_any_bytes_are_read_without_a_crash(content: bytes) -> None:
    assert_it_can_be_committed_once(import_server_memory(content, "fuzz.jsonl"))


@given(LINES, st.data())
def test_a_file_cut_anywhere_is_read_without_a_crash(lines: list, draw: st.DataObject) -> None:
    content = "\n".join(json.dumps(line) for line in lines).encode()
    cut = draw.draw(st.integers(0, len(content)))
    assert_it_can_be_committed_once(import_server_memory(content[:cut], "fuzz.jsonl"))


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(FRONT | st.just(""), LONG), max_size=3), st.binary(max_size=60))
def test_any_folder_makes_ops_that_hold(files: list, junk: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for number, (front, body) in enumerate(files):
            (Path(folder) / f"{number}.md").write_bytes((front + body).encode("utf-8", "surrogatepass"))
        (Path(folder) / "junk.md").write_bytes(junk)
        assert_it_can_be_committed_once(import_markdown(Path(folder)))


@given(st.text(alphabet="-.:[]{}&*!|>'\"#?%@`, \n\tab\u00e9\ud7ff0", max_size=120))
def test_any_front_matter_gives_json_and_keeps_the_body(source: str) -> None:
    front = read_front_matter(f"---\n{source}\n---\nthe body")
    assert front.body.endswith("the body")
    json.dumps({key: field.value for key, field in front.fields.items()}, allow_nan=False)


@given(
    st.lists(
        st.sampled_from(["# a\n", "## b\r\n", "```\n", "~~~~\n", "\n", "é" * 30, "word ", "x" * 90, " \n"]),
        max_size=60,
    ),
    st.integers(4, 200),
)
def test_the_pieces_of_a_text_are_the_text_and_fit(parts: list, limit_bytes: int) -> None:
    text = "".join(parts)
    pieces = split_text(text, limit_bytes)
    assert "".join(piece.text for piece in pieces) == text
    assert all(len(piece.text.encode()) <= limit_bytes for piece in pieces)

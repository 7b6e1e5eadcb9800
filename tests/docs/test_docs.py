"""The docs say what is so: commands, settings, error codes, files, links."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from memory_git.cli import reference
from memory_git.cli.program import LazyGroup
from memory_git.domain import errors
from memory_git.http.metrics import TEXTS

ROOT = Path(__file__).parent.parent.parent
DOCS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
REFUSALS = {
    name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, errors.Refused)
}
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
_QUOTED_FILE = re.compile(
    r"`((?:[\w.-]+/)*[\w-]+\.(?:md|toml|lock|py|sql|json|yaml|yml)|Makefile|LICENSE|\.ci/run)`"
)


def doc_id(path: Path) -> str:
    return str(path.relative_to(ROOT))


def every_command() -> Iterator[tuple[str, click.Command]]:
    for program in reference.PROGRAMS:
        for command, context in reference.commands(program):
            yield context.command_path, command


def raised_codes(source: Path) -> Iterator[tuple[str, str]]:
    """Yields (code, place) of every refusal that the source makes with a code in words."""
    for path in sorted(source.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and node.args
                and ast.unparse(node.func).rpartition(".")[2] in REFUSALS
            ):
                for part in ast.walk(node.args[0]):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        yield part.value, f"{path.relative_to(source)}:{node.lineno}"


@pytest.mark.parametrize(
    ("path", "command"), [pytest.param(*found, id=found[0]) for found in every_command()]
)
def test_every_command_and_option_has_help(path: str, command: click.Command) -> None:
    assert command.help, f"{path} has no help"
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    assert [option.name for option in options if not option.help] == []


def test_every_command_stands_in_its_table_under_its_own_name() -> None:
    for _, command in every_command():
        if isinstance(command, LazyGroup):
            context = click.Context(command)
            members = {name: command.get_command(context, name) for name in command.table}
            assert {name: member and member.name for name, member in members.items()} == {
                name: name for name in members
            }


def test_the_command_reference_is_up_to_date() -> None:
    written = (ROOT / "docs" / "CLI.md").read_text(encoding="utf-8")
    assert written == reference.reference(), "run `make docs`"


def test_every_error_code_of_the_source_is_documented() -> None:
    text = (ROOT / "docs" / "ERRORS.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
    found = dict(raised_codes(ROOT / "src" / "memory_git"))
    assert len(found) > 10
    missing = {code: place for code, place in found.items() if code not in documented}
    assert missing == {}, "docs/ERRORS.md lacks these codes"


def test_every_code_is_documented_once_with_what_to_do() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| (.*) \|$", (ROOT / "docs" / "ERRORS.md").read_text("utf-8"), re.MULTILINE
    )
    codes = [code for code, _ in rows]
    assert sorted(codes) == sorted(set(codes))
    assert [code for code, text in rows if len(text) < 20] == []


@pytest.mark.parametrize("doc", DOCS, ids=doc_id)
def test_every_link_to_a_file_leads_to_one(doc: Path) -> None:
    text = _FENCE.sub("", doc.read_text(encoding="utf-8"))
    targets = [target for target in _LINK.findall(text) if not re.match(r"[a-z]+:|#", target)]
    assert [target for target in targets if not (doc.parent / target.partition("#")[0]).exists()] == []


@pytest.mark.parametrize("doc", sorted(ROOT.glob("*.md")), ids=doc_id)
def test_every_file_that_the_doc_names_exists(doc: Path) -> None:
    named = set(_QUOTED_FILE.findall(doc.read_text(encoding="utf-8")))
    assert sorted(file for file in named if not (ROOT / file).exists()) == []


def test_every_decision_stands_in_the_index() -> None:
    folder = ROOT / "docs" / "adr"
    decisions = sorted(path.name for path in folder.glob("[0-9]*.md"))
    assert re.findall(r"\]\((\d{4}-[\w-]+\.md)\)", (folder / "README.md").read_text("utf-8")) == decisions


def test_the_locks_hold_hashes_and_no_index_address() -> None:
    for name in ("requirements.lock", "requirements-dev.lock"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert re.search(r"://|^-", text, re.MULTILINE) is None
        pinned = re.findall(r"^[\w.-]+==\S+", text, re.MULTILINE)
        assert len(pinned) == len(re.findall(r"^[\w.-]+==.*\\\n    --hash=sha256:", text, re.MULTILINE)) > 20


def test_make_targets_that_the_docs_name_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = {target for doc in DOCS for target in re.findall(r"`make ([a-z-]+)", doc.read_text("utf-8"))}
    assert named - targets == set()


def test_every_metric_is_documented_and_no_other() -> None:
    text = (ROOT / "docs" / "METRICS.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?`) \|", text, re.MULTILINE)
    documented = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    faces = {
        f"{face}_{name}_total"
        for face in ("lethe", "charon")
        for name in ("http_answers", "strict_parsing_rejections")
    }
    assert documented == faces | set(TEXTS)

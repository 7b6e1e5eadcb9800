"""The frame of both command lines: lazy help, exit codes, rendering, settings, completion (10-operations)."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from memory_git import __version__
from memory_git.cli import charon, lethe, render, settings
from memory_git.cli.exits import Exit, exit_code, explain, problem
from memory_git.cli.program import Entry, LazyGroup, make_program, read_settings, run
from memory_git.domain import errors

BIN = Path(sys.executable).parent
HEAVY = {"mcp", "pydantic", "starlette", "fastapi", "sqlalchemy", "cryptography", "apsw", "rich"}


@pytest.fixture(autouse=True)
def no_settings_around(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith(("LETHE_", "CHARON_", "MEMORY_GIT_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def one_command(action: Callable[..., object], monkeypatch: pytest.MonkeyPatch) -> LazyGroup:
    """A program with the one command `go`, which does `action`."""

    @click.command("go")
    @render.json_option
    @click.pass_context
    def command(context: click.Context, as_json: bool) -> object:
        return action(context)

    module = type(sys)("a_module_with_one_command")
    module.command = command  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return make_program("prog", {"go": Entry("Go.", module.__name__)}, "A program.")


def raising(error: BaseException) -> Callable[..., object]:
    def action(_context: click.Context) -> object:
        raise error

    return action


# --- help


@pytest.mark.parametrize("program", ["lethe", "charon"])
def test_help_imports_nothing_heavy(program: str) -> None:
    code = f"from memory_git.cli import {program}; import sys; sys.argv = ['{program}', '--help']; {program}.main()"
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", code], capture_output=True, text=True, check=True
    )
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "click" in imported
    assert imported & HEAVY == set()


@pytest.mark.parametrize("program", ["lethe", "charon"])
def test_help_answers_within_150_ms_of_processor_time(program: str) -> None:
    def seconds() -> float:
        before = os.times()
        subprocess.run([BIN / program, "--help"], capture_output=True, check=True)
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    assert min(seconds() for _ in range(3)) < 0.150


@pytest.mark.parametrize("program", [lethe.program, charon.program], ids=["lethe", "charon"])
def test_help_names_every_command_of_the_table(
    program: LazyGroup, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(program, ["--help"]) == Exit.DONE
    shown = capsys.readouterr().out
    for name, entry in program.table.items():
        assert re.search(rf"^  {name} +{re.escape(entry.help[:30])}", shown, re.MULTILINE)


@pytest.mark.parametrize("program", [lethe.program, charon.program], ids=["lethe", "charon"])
def test_no_line_of_a_list_of_commands_is_cut(program: LazyGroup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for name in program.table:
        found = program.get_command(click.Context(program), name)
        if isinstance(found, click.Group):
            listed = found.get_help(click.Context(found)).partition("Commands:")[2]
            assert [line for line in listed.splitlines() if line.endswith("...")] == []


def test_version_names_the_program_and_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(lethe.program, ["--version"]) == Exit.DONE
    assert capsys.readouterr().out == f"lethe {__version__}\n"


# --- exit codes


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.Invalid("x", "m"), 3),
        (errors.NotFound("x", "m"), 3),
        (errors.TooLarge("x", "m"), 3),
        (errors.Clash("ref_moved", "m"), 4),
        (errors.Unauthenticated("x", "m"), 5),
        (errors.NotAllowed("x", "m"), 5),
        (errors.TooMany("x", "m"), 6),
        (errors.Unavailable("x", "m"), 6),
        (PermissionError(13, "Permission denied", "lethe.db"), 6),
        (errors.Corrupt("node", 7, "digest differs"), 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_ends_the_command_with_the_code_of_its_kind(
    error: Exception, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(error) == code
    assert run(one_command(raising(error), monkeypatch), ["go"]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.endswith(f"({problem(error)['code']})\n") or "\n  " in err


def test_a_finding_is_what_the_command_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(one_command(lambda _context: Exit.FINDING, monkeypatch), ["go"]) == 1


def test_a_group_below_imports_its_members_when_called_and_hands_on_what_they_return(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    inner = one_command(lambda _context: Exit.FINDING, monkeypatch)
    table = {**inner.table, "broken": Entry("Never imported.", "no_such_module")}
    module = type(sys)("a_module_with_a_group")
    module.command = LazyGroup("below", table, "A group below.")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    program = make_program("prog", {"below": Entry("A group below.", module.__name__)}, "A program.")
    assert run(program, ["below", "--help"]) == 0
    assert "Never imported." in capsys.readouterr().out
    assert run(program, ["below", "go"]) == 1


@pytest.mark.parametrize("args", [["nope"], ["--nope"], ["go", "--nope"], ["go", "one-too-many"]])
def test_a_wrong_command_line_is_usage(
    args: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = one_command(lambda _context: None, monkeypatch)
    assert run(program, args) == 2
    out, err = capsys.readouterr()
    assert (out, "Usage: prog" in err) == ("", True)
    assert run(program, [*args, "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["code"] == "usage"


def test_a_refusal_tells_every_fault_and_fact() -> None:
    faults = [
        errors.Fault(2, "content", "must not be empty", "0 bytes"),
        errors.Fault(None, "message", "is too long"),
    ]
    text = explain(errors.Invalid("invalid_changeset", "two faults", faults, current_head="abc").to_problem())
    assert text.splitlines() == [
        "error: two faults (invalid_changeset)",
        "  op 2, content: must not be empty (found: 0 bytes)",
        "  message: is too long",
        "  current_head: abc",
    ]


def test_a_refusal_tells_a_person_what_is_missing_and_what_contradicts() -> None:
    missing = [{"code": "approval_missing", "what": "1 more approval"}]
    conflicts = [{"conflict_id": "ab12", "detail": "two decisions differ", "left": [], "right": []}]
    text = explain(errors.Clash("merge_conflicts", "no", missing=missing, conflicts=conflicts).to_problem())
    assert text.splitlines()[1:] == ["  missing: 1 more approval", "  conflicts: ab12: two decisions differ"]


def test_with_json_a_refusal_is_one_problem_document_on_stdout(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = one_command(raising(errors.Clash("ref_moved", "moved", current_head="abc")), monkeypatch)
    assert run(program, ["go", "--json"]) == 4
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert (document["code"], document["status"], document["current_head"], err) == (
        "ref_moved",
        409,
        "abc",
        "",
    )


def test_a_bug_is_not_told_as_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ZeroDivisionError):
        run(one_command(raising(ZeroDivisionError()), monkeypatch), ["go"])


def test_control_c_ends_quietly_with_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_context: click.Context) -> None:
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    try:
        assert run(one_command(interrupted, monkeypatch), ["go"]) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr() == ("", "")


def test_a_reader_that_goes_away_is_no_error() -> None:
    code = (
        "from memory_git.cli import charon, program, render; import sys; from types import SimpleNamespace as Module;"
        "import click; sys.modules['m'] = Module(command=click.Command('go', callback=lambda: "
        "[render.write_text('x' * 100) for _ in range(100_000)] and None));"
        "sys.exit(program.run(program.make_program('prog', {'go': program.Entry('Go.', 'm')}, 'P.'), ['go']))"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert (process.wait(), process.stderr.read()) == (141, b"")
    process.stderr.close()


def test_streams_are_utf8_under_any_locale() -> None:
    code = "from memory_git.cli import program, render; program.use_utf8(); render.write_text('æ 日 \\ud800')"
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1", "LC_ALL": "C"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=environment)
    assert done.stdout == "æ 日 \\ud800\n".encode()


# --- rendering


def test_a_pipe_gets_plain_columns_and_nothing_cut(capsys: pytest.CaptureFixture[str]) -> None:
    render.write_table(["ref", "head"], [["refs/shared/main", "a" * 200], ["日本", None], ["x", ["p", "q"]]])
    assert capsys.readouterr().out.splitlines() == [
        "REF               HEAD",
        "refs/shared/main  " + "a" * 200,
        "日本",
        "x                 p, q",
    ]


def test_no_rows_leave_stdout_empty(capsys: pytest.CaptureFixture[str]) -> None:
    render.write_table(["ref"], [], empty="no refs yet")
    assert capsys.readouterr() == ("", "no refs yet\n")


def on_a_terminal(code: str, columns: int = 80) -> str:
    """What code prints on a terminal of so many columns."""
    parent, child = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns)}
    subprocess.run([sys.executable, "-c", code], stdout=child, check=True, env=environment)
    os.close(child)
    shown = os.read(parent, 65536).decode()
    os.close(parent)
    return shown


def test_a_terminal_gets_a_table_in_which_markup_is_plain_text() -> None:
    shown = on_a_terminal(
        "from memory_git.cli import render; render.write_table(['ref'], [['[bold]main[/bold]']])"
    )
    assert "─" in shown
    assert "[bold]main[/bold]" in shown


@pytest.mark.parametrize("columns", [20, 60, 80, 200])
def test_no_terminal_is_too_narrow_for_an_id_to_be_copied(columns: int) -> None:
    row = ["01a22f51-4c05-741e-a008-a7b4b833e97d", "2026-12-01T01:56:26.757385Z", "some running text " * 9]
    code = f"from memory_git.cli import render; render.write_table(['changeset', 'at', 'message'], [{row}, {row}])"
    shown = on_a_terminal(code, columns)
    assert shown.count(row[0]) == shown.count(row[1]) == 2
    assert "…" not in shown
    assert shown.split().count("running") == 18
    assert ("─" in shown) == (columns > 90)


@pytest.mark.parametrize(
    "hostile",
    ["\x1b]0;title\x07", "\x1b[2J", "a\rb", "\x9b31m", "x\u202egnp", "\u2066x", "\x7f", "\u2028"],
    ids=["title", "clear", "carriage return", "C1", "override", "isolate", "delete", "line separator"],
)
def test_stored_text_can_not_steer_the_terminal(hostile: str, capsys: pytest.CaptureFixture[str]) -> None:
    render.write_table(["a"], [[hostile]])
    render.write_text(hostile)
    render.write_fields({"a": hostile})
    render.write_document({"a": hostile})
    out = capsys.readouterr().out
    assert {sign for sign in out if not (sign.isprintable() or sign == "\n")} == set()
    assert json.loads(out[out.index("{") :]) == {"a": hostile}


# --- settings


def test_flags_beat_the_environment_which_beats_the_file_which_beats_the_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "c.toml"
    file.write_text(
        '[lethe]\nhttp = "127.0.0.1:1"\napi_url = "http://f"\nsqlite_busy_timeout_ms = 7\n[charon]\n'
    )
    monkeypatch.setenv("LETHE_HTTP", "127.0.0.1:2")
    monkeypatch.setenv("LETHE_API_URL", "http://e")
    monkeypatch.setenv("LETHE_API_KEY", "")
    found = settings.load(config=file, flags={"lethe.http": "[::1]:3", "charon.http": None})
    assert (str(found.lethe.http), found.lethe.api_url, found.lethe.sqlite_busy_timeout_ms) == (
        "[::1]:3",
        "http://e",
        7,
    )
    assert (found.lethe.api_key, str(found.charon.http)) == (None, "127.0.0.1:18484")
    assert [
        found.origin(f"lethe.{name}") for name in ("http", "api_url", "sqlite_busy_timeout_ms", "trust")
    ] == [
        "flag --http",
        "environment LETHE_API_URL",
        f"file {file}",
        "default",
    ]


def test_every_wrong_setting_is_refused_at_once_with_its_origin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LETHE_HTTP", "nowhere")
    monkeypatch.setenv("CHARON_RECOVERY_READONLY", "maybe")
    with pytest.raises(errors.Invalid) as refused:
        settings.load(flags={"lethe.trust": "everybody"})
    assert refused.value.code == "invalid_setting"
    assert [(fault.field, fault.rule.rpartition(" [from ")[2]) for fault in refused.value.faults] == [
        ("lethe.http", "environment LETHE_HTTP]"),
        ("lethe.trust", "flag --trust]"),
        ("charon.recovery_readonly", "environment CHARON_RECOVERY_READONLY]"),
    ]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[lethe\n", "invalid_settings_file"),
        ("[leth]\n", "invalid_settings_file"),
        ("http = 1\n", "invalid_settings_file"),
        ("[lethe]\nhtp = 1\n", "invalid_setting"),
        (None, "invalid_settings_file"),
    ],
    ids=["no TOML", "unknown table", "no table", "unknown name", "absent"],
)
def test_a_wrong_settings_file_is_refused(text: str | None, code: str, tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(errors.Invalid) as refused:
        settings.load(config=file)
    assert refused.value.code == code


def test_a_refused_secret_is_not_quoted(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text('[charon]\ntoken = ["hunter2hunter2"]\n')
    with pytest.raises(errors.Invalid) as refused:
        settings.load(config=file)
    assert "hunter2" not in json.dumps(refused.value.to_problem())


@pytest.mark.parametrize("word", ["1", "true", "yes", "on"])
def test_recovery_readonly_takes_each_word_for_yes(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LETHE_RECOVERY_READONLY", word)
    assert settings.load().lethe.recovery_readonly is True


@pytest.mark.parametrize("text", ["127.0.0.1", ":80", "h:65536", "h:-1", "::1:80", "[h]:1", "h:", "h:٣"])
def test_a_wrong_listening_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="host"):
        settings.Address.parse(text)


def test_a_command_reads_the_file_that_config_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "c.toml"
    file.write_text('[charon]\nurl = "http://from-file"\n')
    seen: list[tuple[str | None, str]] = []

    def action(context: click.Context) -> None:
        found = read_settings(context, charon__http="127.0.0.1:0")
        seen.append((found.charon.url, found.origin("charon.http")))

    program = one_command(action, monkeypatch)
    assert run(program, ["--config", str(file), "go"]) == 0
    monkeypatch.setenv("MEMORY_GIT_CONFIG", str(file))
    assert run(program, ["go"]) == 0
    assert seen == [("http://from-file", "flag --http")] * 2


# --- keygen, completion


def test_keygen_prints_256_new_random_bits_each_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert [run(lethe.program, ["keygen"]) for _ in range(2)] == [0, 0]
    assert run(lethe.program, ["keygen", "--json"]) == 0
    first, second, *rest = capsys.readouterr().out.splitlines()
    third = json.loads("\n".join(rest))["key"]
    assert len({first, second, third}) == 3
    assert all(re.fullmatch("[0-9a-f]{64}", key) for key in (first, second, third))


@pytest.mark.parametrize("program", ["lethe", "charon"])
def test_bash_completes_the_commands_of_the_table(program: str) -> None:
    script = (
        f'eval "$({program} completion bash)"; COMP_WORDS=({program} comp); COMP_CWORD=1; '
        f'_{program}_completion {program}; printf "%s\\n" "${{COMPREPLY[@]}}"'
    )
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.splitlines() == ["completion"]


@pytest.mark.parametrize("program", ["lethe", "charon"])
def test_zsh_is_answered_with_the_commands_and_their_help(program: str) -> None:
    script = subprocess.run(
        [BIN / program, "completion", "zsh"], capture_output=True, text=True, check=True
    ).stdout
    assert f"#compdef {program}" in script
    asked = {
        "COMP_WORDS": f"{program} comp",
        "COMP_CWORD": "1",
        f"_{program.upper()}_COMPLETE": "zsh_complete",
    }
    done = subprocess.run(
        [BIN / program], capture_output=True, text=True, check=True, env={**os.environ, **asked}
    )
    assert done.stdout.split("\n")[:3] == ["plain", "completion", "Print the completion script of a shell."]

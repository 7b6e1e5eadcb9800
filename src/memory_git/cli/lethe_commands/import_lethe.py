"""`lethe import-lethe`: the history of a database of the original."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from memory_git.cli.lethe_commands.local import store_options
from memory_git.cli.options import require_text
from memory_git.cli.program import read_settings
from memory_git.cli.render import progress_on_terminal, write_document, write_fields, write_table
from memory_git.domain.errors import Invalid

if TYPE_CHECKING:
    from memory_git.interchange.original.importing import Wanted
    from memory_git.interchange.original.report import ImportReport

_SHOWN = 50


@click.command("import-lethe")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--project", "only", metavar="NAME", multiple=True, help="Only this project of the file. Can be repeated."
)
@click.option(
    "--rename",
    metavar="OLD=NEW",
    multiple=True,
    help="Take a project in under another name. Can be repeated.",
)
@click.option(
    "--skip-damaged",
    is_flag=True,
    help="Leave out what does not hold by the file's own rules, and take the rest.",
)
@click.option("--preview", is_flag=True, help="Say what would be taken, and write nothing.")
@store_options
@click.pass_context
def command(
    context: click.Context,
    file: Path,
    only: Sequence[str],
    rename: Sequence[str],
    skip_damaged: bool,
    preview: bool,
    data_dir: Path | None,
    as_json: bool,
) -> None:
    """Take in the history of FILE, a database of the original Lethe (SQLite, its schemas 001 to 013).

    Everything is verified by the original's own rules first; the file is only read. Ids, authors and times are kept,
    and each changeset's digest of then stands beside ours. A second time changes nothing, and an import that was
    broken off goes on.

    Example: lethe import-lethe old/lethe.db --preview
    """
    from memory_git.interchange.original.importing import Wanted

    wanted = Wanted(only, dict(map(_pair, rename)), skip_damaged)
    require_text(context)
    report = _run(context, file, wanted, data_dir, preview=preview)
    if as_json:
        write_document(report.to_json())
    else:
        _show(report.to_json(), data_dir)


def _pair(text: str) -> tuple[str, str]:
    old, found, new = text.partition("=")
    if not found or not old or not new:
        raise click.BadParameter("write it as OLD=NEW", param_hint="--rename")
    return old, new


def _run(
    context: click.Context, file: Path, wanted: Wanted, data_dir: Path | None, *, preview: bool
) -> ImportReport:
    from memory_git.cli.opening import open_store, store_path, url_of
    from memory_git.interchange.original.importing import prepare, preview_original

    settings = read_settings(context, **({} if data_dir is None else {"lethe__data_dir": data_dir}))
    if data_dir is None and settings.lethe.api_url:
        raise Invalid(
            "local_only", "this works on the data directory: give --data-dir, or unset LETHE_API_URL"
        )
    with progress_on_terminal() as shown:
        progress = shown or _silent
        if preview and url_of(settings, "lethe") is None and not store_path(settings).exists():
            return preview_original(file, None, wanted, progress)
        prepared = None if preview else prepare(file, wanted, progress)
        store = open_store(settings, begins=not preview)
        try:
            if prepared is None:
                return preview_original(file, store, wanted, progress)
            return prepared.take(store, progress)
        finally:
            store.close()


def _silent(kind: str, done: int, total: int) -> None:
    """Tells nobody."""


def _show(report: Mapping[str, Any], data_dir: Path | None) -> None:
    digests = ", ".join(f"{count} by {name}" for name, count in report["digests_verified"].items())
    write_fields(
        {
            "file": report["file"],
            "schema": f"{report['schema_version']:03}",
            "digests verified": digests or "none: no changesets",
            "written": "nothing: this is a preview" if report["preview"] else "yes",
        }
    )
    rows = [row for project in report["projects"] for row in _counts(project)]
    click.echo()
    write_table(("project", "what", "taken", "here before"), rows, empty="nothing in it")
    for name, columns in (("damage", ("kind", "object_id", "why")), ("skipped", ("what", "where", "why"))):
        _show_list(name, columns, [item for project in report["projects"] for item in project[name]])
    warnings = [item for project in report["projects"] for item in project["warnings"]]
    _show_list("warnings", ("where", "field", "text"), warnings)
    if not report["preview"]:
        place = [] if data_dir is None else ["--data-dir", str(data_dir.absolute())]
        click.echo()
        for project in report["projects"]:
            for words in (["lethe", "verify-chain"], ["charon", "project", "init"]):
                click.echo(f"next: {shlex.join([*words, project['project'], *place])}")


def _counts(project: Mapping[str, Any]) -> Iterator[tuple[str, str, int, int]]:
    for kind, taken in project["taken"].items():
        there = project["there"][kind]
        if taken or there:
            yield project["project"], kind, taken, there


def _show_list(name: str, columns: Sequence[str], items: Sequence[Mapping[str, str]]) -> None:
    if not items:
        return
    click.echo(f"\n{name}: {len(items)}")
    write_table(columns, [[item[column] for column in columns] for item in items[:_SHOWN]])
    if len(items) > _SHOWN:
        click.echo(f"and {len(items) - _SHOWN} more: --json tells all", err=True)

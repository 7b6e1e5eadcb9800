"""What the commands of the gate share: their options, the gate on the local data directory, and how they print."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from memory_git.cli.program import read_settings
from memory_git.cli.render import json_option, write_document, write_fields, write_table

if TYPE_CHECKING:
    from memory_git.cli.settings import Settings
    from memory_git.client.opening import AnyGate

Command = TypeVar("Command", bound=Callable[..., Any])


def gate_options(command: Command) -> Command:
    """Adds `--data-dir` and `--json`."""
    data_dir = click.option(
        "--data-dir",
        type=click.Path(file_okay=False, path_type=Path),
        help="The folder of the databases and the keys. Default: CHARON_DATA_DIR.",
    )
    return data_dir(json_option(command))


def local_settings(context: click.Context, data_dir: Path | None) -> Settings:
    """Gives the settings, with the data directory of the flag."""
    return read_settings(context, charon__data_dir=data_dir, lethe__data_dir=data_dir)


@contextmanager
def local_gate(
    context: click.Context, data_dir: Path | None, *, begins: bool = False, reconciling: bool = False
) -> Iterator[AnyGate]:
    """Opens the gate for one command: at CHARON_URL, unless a data directory is named; else on the data directory.

    One that is absent is made only for work that `begins` there.
    """
    from memory_git.cli.opening import gate_of

    _require_text(context)
    settings = local_settings(context, data_dir)
    if settings.charon.url and data_dir is None:
        with gate_of(settings, remote=True) as gate:
            yield gate
        return
    if not begins:
        require_begun(settings)
    with gate_of(settings, reconciling=reconciling) as gate:
        yield gate


def require_begun(settings: Settings) -> None:
    """Refuses a data directory on which no gate has been; opening it would make an empty one."""
    from memory_git.domain.errors import NotFound

    if settings.charon.database_url is None and not settings.charon.database_path.exists():
        raise NotFound(
            "data_directory_absent",
            f"{settings.charon.data_dir} holds no charon.db; `charon serve` or `charon project init` makes one",
        )


def _require_text(context: click.Context) -> None:
    """Refuses an argument with bytes that are not UTF-8: it could be stored nowhere."""
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        for item in value if isinstance(value, tuple) else (value,):
            if any("\ud800" <= sign <= "\udfff" for sign in str(item)):
                raise click.BadParameter("not UTF-8 text", ctx=context, param=parameter)


def show_object(found: Mapping[str, Any], *, as_json: bool, fields: Sequence[str] | None = None) -> None:
    """Prints one object: whole as JSON, else its fields, or those named."""
    if as_json:
        write_document(found)
    else:
        write_fields({name: found.get(name) for name in (fields or found)})


def show_list(
    name: str, found: Sequence[Mapping[str, Any]], columns: Sequence[str], *, as_json: bool, **more: Any
) -> None:
    """Prints the items of a list under the named columns; as JSON `{name: [...]}`, with `more` beside."""
    if as_json:
        write_document({name: list(found), **more})
    else:
        titles = [column.removesuffix("_id").replace("_", " ") for column in columns]
        rows = [[item.get(column) for column in columns] for item in found]
        write_table(titles, rows, empty=f"no {name}")

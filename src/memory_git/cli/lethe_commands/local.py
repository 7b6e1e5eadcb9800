"""What the commands of the store share: their options, the store that is meant, and what stands for a changeset."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from memory_git.cli.options import require_text
from memory_git.cli.program import read_settings
from memory_git.cli.render import json_option
from memory_git.domain.errors import Invalid, NotFound
from memory_git.domain.ids import SHARED_MAIN, is_uuid

if TYPE_CHECKING:
    from memory_git.lethe.protocol import Lethe
    from memory_git.lethe.store import LetheStore

Command = TypeVar("Command", bound=Callable[..., Any])


def store_options(command: Command) -> Command:
    """Adds `--data-dir` and `--json`."""
    data_dir = click.option(
        "--data-dir",
        type=click.Path(file_okay=False, path_type=Path),
        help="The folder of lethe.db. Default: LETHE_DATA_DIR.",
    )
    return data_dir(json_option(command))


def by_option(help: str) -> Callable[[Command], Command]:
    """Gives `--by`, the name that is written down as whoever did it."""
    return click.option(
        "--by",
        "principal",
        metavar="PRINCIPAL",
        default=_user_name,
        show_default="your user name",
        help=help,
    )


@contextmanager
def local_store(context: click.Context, data_dir: Path | None) -> Iterator[Lethe]:
    """Opens the store for one command: that of a data directory named by flag, else at LETHE_API_URL, else of the settings."""
    from memory_git.cli.opening import lethe_of

    require_text(context)
    at = {} if data_dir is None else {"lethe__data_dir": data_dir, "lethe__api_url": ""}
    with lethe_of(read_settings(context, **at)) as lethe:
        yield lethe


@contextmanager
def embedded_store(context: click.Context, data_dir: Path | None) -> Iterator[LetheStore]:
    """Opens the store itself for one command: what it does is no verb of a server."""
    from memory_git.cli.opening import open_store

    require_text(context)
    settings = read_settings(context, **({} if data_dir is None else {"lethe__data_dir": data_dir}))
    if data_dir is None and settings.lethe.api_url:
        raise Invalid(
            "local_only", "this works on the data directory: give --data-dir, or unset LETHE_API_URL"
        )
    store = open_store(settings)
    try:
        yield store
    finally:
        store.close()


def the_project(lethe: Lethe, named: str | None) -> str:
    """Gives the project that is meant: the named one, else the only one there is."""
    if named is not None:
        return named
    found = lethe.list_projects()
    if not found:
        raise NotFound("no_project", "there is no project yet: `charon project init NAME` makes one")
    if len(found) > 1:
        raise Invalid("project_needed", f"name one of the projects: {', '.join(found)}")
    return found[0]


def the_head(lethe: Lethe, project: str, name: str = SHARED_MAIN) -> str:
    """Gives a changeset id as it is, and the head of what else is a ref."""
    return name if is_uuid(name) else str(lethe.resolve_ref(project, name)["head_changeset_id"])


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container's user may have no name
        return "operator"

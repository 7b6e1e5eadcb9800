"""Opens what a command works on: the gate, or the store, as the settings say."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from memory_git.domain.errors import Unauthenticated, Unavailable

if TYPE_CHECKING:
    from memory_git.charon.gate import Gate, GateSettings
    from memory_git.cli.settings import Settings
    from memory_git.client.opening import AnyGate
    from memory_git.client.remote import RemoteGate
    from memory_git.domain.envelope import MergeKeys
    from memory_git.lethe.protocol import Lethe
    from memory_git.lethe.store import LetheStore
    from memory_git.storage.sqlite import SqliteSettings


def merge_keys(settings: Settings) -> MergeKeys | None:
    """Gives the merge keys of the settings; None where they name none and the key file counts."""
    from memory_git.domain.envelope import parse_merge_keys

    charon = settings.charon
    named = [charon.merge_hmac_keys, charon.merge_hmac_key, charon.hmac_key]
    values = [secret.get_secret_value() if secret is not None else None for secret in named]
    keys, warnings = parse_merge_keys(*values)
    if keys is not None:
        warn(warnings)
    return keys


def warn(warnings: tuple[str, ...]) -> None:
    """Writes warnings to standard error."""
    import click

    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)


def gate_settings(settings: Settings, *, reconciling: bool = False) -> GateSettings:
    """Gives what a gate on the data directory is opened with, the store inside or at CHARON_UPSTREAM."""
    from memory_git.charon.gate import GateSettings
    from memory_git.charon.limits import LimitSettings

    key = settings.lethe.api_key
    return GateSettings(
        data_dir=settings.charon.data_dir,
        lethe_path=store_path(settings),
        lethe_url=settings.charon.upstream,
        lethe_api_key=key.get_secret_value() if key else None,
        merge_keys=merge_keys(settings),
        anchor_path=settings.charon.ledger_anchor_path,
        recovery_readonly=settings.charon.recovery_readonly or settings.lethe.recovery_readonly,
        reconciling=reconciling,
        sqlite=durability(settings),
        max_history=settings.lethe.memory_git_max_history,
        database_url=url_of(settings, "charon"),
        lethe_database_url=url_of(settings, "lethe"),
        oauth_author_scopes=settings.charon.oauth_allow_author_scopes,
        limits=LimitSettings(
            requests_per_s=settings.charon.requests_per_s,
            project_requests_per_s=settings.charon.project_requests_per_s,
            registrations_per_s=settings.charon.oauth_registrations_per_s,
            changes_per_day=settings.charon.changes_per_day,
            project_changes_per_day=settings.charon.project_changes_per_day,
        ),
    )


def open_gate(settings: Settings, *, reconciling: bool = False) -> Gate:
    """Opens the gate that the settings name."""
    from memory_git.charon.gate import Gate

    return Gate.open(gate_settings(settings, reconciling=reconciling))


def store_path(settings: Settings) -> Path:
    """Gives the path of lethe.db: where LETHE_DATA_DIR says, else beside the gate's database."""
    if settings.origin("lethe.data_dir") == "default":
        return settings.charon.data_dir / "lethe.db"
    return settings.lethe.database_path


def url_of(settings: Settings, table: str) -> str | None:
    """Gives the URL of a program's PostgreSQL database, or None where its file counts."""
    url = getattr(settings, table).database_url
    return url.get_secret_value() if url is not None else None


def durability(settings: Settings) -> SqliteSettings:
    """Gives how both SQLite files are opened; weaker settings than FULL are refused here."""
    from memory_git.storage.sqlite import SqliteSettings

    lethe = settings.lethe
    return SqliteSettings(
        synchronous=lethe.sqlite_synchronous,
        busy_timeout_ms=lethe.sqlite_busy_timeout_ms,
        autocheckpoint_pages=lethe.sqlite_autocheckpoint,
    )


def open_remote(settings: Settings) -> RemoteGate:
    """Gives the Charon at CHARON_URL, for the token of CHARON_TOKEN."""
    from memory_git.client.remote import RemoteGate

    charon = settings.charon
    if charon.token is None:
        raise Unauthenticated(
            "token_needed", "CHARON_URL is set: set CHARON_TOKEN too, or unset it to act here"
        )
    return RemoteGate(charon.url or "", charon.token.get_secret_value())


@contextmanager
def gate_of(settings: Settings, *, reconciling: bool = False, remote: bool = False) -> Iterator[AnyGate]:
    """Opens the gate for one command: on the data directory, or the one that runs at CHARON_URL."""
    gate = open_remote(settings) if remote else open_gate(settings, reconciling=reconciling)
    try:
        yield gate
    finally:
        gate.close()


def open_store(settings: Settings, *, begins: bool = False) -> LetheStore:
    """Opens lethe.db, or the database at LETHE_DATABASE_URL, with the keys of the data directory; only what `begins` work makes a file."""
    from memory_git.charon.keys import Keys
    from memory_git.charon.recovery import MARKER
    from memory_git.lethe.store import LetheStore

    path = store_path(settings)
    url = url_of(settings, "lethe")
    if not (begins or url or path.exists()):
        raise Unavailable(
            "database_absent",
            f"{path.parent} holds no lethe.db: `charon serve` or `lethe serve` makes one, LETHE_DATA_DIR names another",
        )
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    keys = Keys(path.parent / "keys")
    return LetheStore.open(
        url or path,
        merge_keys=merge_keys(settings) or (lambda: keys.merge),
        recovery_readonly=settings.lethe.recovery_readonly or (path.parent / MARKER).exists(),
        settings=durability(settings),
        max_history=settings.lethe.memory_git_max_history,
    )


def lethe_key(settings: Settings) -> str:
    """Gives the bearer of Lethe: that of the settings, else of the key file beside the store; makes neither."""
    from memory_git.charon.keys import LETHE_API, Keys

    if settings.lethe.api_key is not None:
        return settings.lethe.api_key.get_secret_value()
    keys = store_path(settings).parent / "keys"
    if not (keys / LETHE_API).exists():
        raise Unauthenticated("key_needed", f"set LETHE_API_KEY: {keys} holds no key of Lethe")
    return Keys(keys).lethe_api


def lethe_bearers(settings: Settings) -> Callable[[], Collection[str]]:
    """Gives what says which bearers Lethe takes: that of the settings, else those of the key file, which is made."""
    from memory_git.charon.keys import Keys

    if settings.lethe.api_key is not None:
        named = (settings.lethe.api_key.get_secret_value(),)
        return lambda: named
    return Keys(store_path(settings).parent / "keys").lethe_bearers


@contextmanager
def lethe_of(settings: Settings) -> Iterator[Lethe]:
    """Opens the store for one command: at LETHE_API_URL, else in the data directory."""
    from memory_git.lethe.client import LetheClient

    url = settings.lethe.api_url
    store = LetheClient(url, lethe_key(settings)) if url else open_store(settings)
    try:
        yield store
    finally:
        store.close()

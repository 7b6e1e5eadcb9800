"""Opens what a command works on: the gate, or the store, as the settings say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memory_git.charon.gate import Caller, Gate
    from memory_git.cli.settings import Settings
    from memory_git.domain.envelope import MergeKeys
    from memory_git.lethe.protocol import Lethe
    from memory_git.lethe.store import LetheStore


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


def open_gate(settings: Settings, *, reconciling: bool = False) -> Gate:
    """Opens the gate on the data directory, the store inside or at CHARON_UPSTREAM."""
    from memory_git.charon.gate import Gate, GateSettings

    lethe_key = settings.lethe.api_key
    return Gate.open(
        GateSettings(
            data_dir=settings.charon.data_dir,
            lethe_url=settings.charon.upstream,
            lethe_api_key=lethe_key.get_secret_value() if lethe_key else None,
            merge_keys=merge_keys(settings),
            anchor_path=settings.charon.ledger_anchor_path,
            recovery_readonly=settings.charon.recovery_readonly,
            reconciling=reconciling,
            max_history=settings.lethe.memory_git_max_history,
        )
    )


@contextmanager
def gate_of(settings: Settings, *, reconciling: bool = False) -> Iterator[Gate]:
    """Opens the gate for one command."""
    gate = open_gate(settings, reconciling=reconciling)
    try:
        yield gate
    finally:
        gate.close()


def acting(gate: Gate, principal: str | None) -> Caller:
    """Gives who a command acts as: a named principal, else the first person there is, else nobody but the operator."""
    if principal is not None:
        return gate.as_principal(principal)
    people = [
        item
        for item in gate.principals(gate.as_operator())
        if item["kind"] == "human" and not item["disabled"]
    ]
    return gate.as_principal(people[0]["principal_id"]) if people else gate.as_operator()


def open_store(settings: Settings) -> LetheStore:
    """Opens lethe.db of the data directory, with the keys that stand beside it."""
    from memory_git.charon.keys import load_keys
    from memory_git.charon.opening import RECOVERY_MARKER
    from memory_git.lethe.store import LetheStore
    from memory_git.storage.sqlite import SqliteSettings

    lethe = settings.lethe
    return LetheStore.open(
        lethe.database_path,
        merge_keys=merge_keys(settings) or load_keys(lethe.data_dir / "keys").merge,
        recovery_readonly=lethe.recovery_readonly or (lethe.data_dir / RECOVERY_MARKER).exists(),
        settings=SqliteSettings(
            synchronous=lethe.sqlite_synchronous,
            busy_timeout_ms=lethe.sqlite_busy_timeout_ms,
            autocheckpoint_pages=lethe.sqlite_autocheckpoint,
        ),
        max_history=lethe.memory_git_max_history,
    )


def lethe_key(settings: Settings) -> str:
    """Gives the bearer of Lethe: that of the settings, else of the key file."""
    from memory_git.charon.keys import load_keys

    if settings.lethe.api_key is not None:
        return settings.lethe.api_key.get_secret_value()
    return load_keys(settings.lethe.data_dir / "keys").lethe_api


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

"""The one settings model: defaults < TOML file < environment < flags (10-operations, configuration).

The file has two tables, `[lethe]` and `[charon]`, with the names below; the environment has the same names in
capitals behind LETHE_ and CHARON_. An empty variable counts as not set. A wrong value, an unknown name in
the file, a variable that is nearly one of ours or a file that can't be read is refused with the name and where it
stood; secrets are never quoted.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from platformdirs import user_config_path, user_data_path
from pydantic import BeforeValidator, Field, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from memory_git.domain.errors import Fault, Invalid

APP = "memory-git"


@dataclass(frozen=True, slots=True)
class Address:
    """A listening address; port 0 asks the system for a free one."""

    host: str
    port: int

    @classmethod
    def parse(cls, value: object) -> Self:
        """Reads `host:port`, with an IPv6 host in brackets."""
        if isinstance(value, cls):
            return value
        host, colon, port = str(value).rpartition(":")
        bare = host.removeprefix("[").removesuffix("]")
        bracketed = bare != host
        if not (colon and bare and port.isascii() and port.isdigit()) or int(port) > 65535:
            raise ValueError("not of the form host:port")
        if (":" in bare) != bracketed:
            raise ValueError("an IPv6 host stands in brackets, another does not")
        return cls(bare, int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


HostPort = Annotated[Address, BeforeValidator(Address.parse)]
Natural = Annotated[int, Field(ge=0)]
Synchronous = Annotated[
    Literal["OFF", "NORMAL", "FULL", "EXTRA"], BeforeValidator(lambda value: str(value).upper())
]


def default_data_dir() -> Path:
    """Gives the folder of the data: `memory-git/` in the platform's user data directory."""
    return user_data_path(APP)


def default_config_file() -> Path:
    """Gives the place where a settings file is looked for when none is named; it may be absent."""
    return user_config_path(APP) / "config.toml"


class _Table(BaseSettings):
    """One table of settings; values come merged from `load`, never from a source of pydantic's own."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        *args: Any,
        **kwargs: Any,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Takes only what `load` has merged, so that it knows where each value came from."""
        return (init_settings,)


def _prefixed(prefix: str) -> SettingsConfigDict:
    return SettingsConfigDict(
        env_prefix=prefix,
        env_ignore_empty=True,
        enable_decoding=False,
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
    )


class LetheSettings(_Table):
    """Settings of the store."""

    model_config = _prefixed("LETHE_")

    api_key: SecretStr | None = Field(None, description="The bearer that Lethe asks for and Charon sends.")
    api_url: str | None = Field(None, description="Where clients of a Lethe of its own find it.")
    data_dir: Path = Field(default_factory=default_data_dir, description="The folder of lethe.db.")
    database_url: SecretStr | None = Field(
        None, description="A PostgreSQL database in place of lethe.db: postgresql://user@host/name."
    )
    http: HostPort = Field(Address("127.0.0.1", 18485), description="Where `lethe serve` listens.")
    requests_per_s: Natural = Field(
        5_000,
        description="Requests a second that `lethe serve` takes of one project, and of one principal; 0: any.",
    )
    trust: Literal["loopback"] | None = Field(
        None, description="Kept for old configurations; replaces no key."
    )
    sqlite_synchronous: Synchronous = Field("FULL", description="Weaker than FULL is refused at start.")
    sqlite_busy_timeout_ms: Natural = Field(5000, description="How long a statement waits for a lock.")
    sqlite_autocheckpoint: Natural = Field(0, description="Pages; 0 = a background thread checkpoints.")
    recovery_readonly: bool = Field(False, description="Refuses every write; every read works.")
    memory_git_max_history: Annotated[int, Field(ge=1)] = Field(
        1_000_000, description="A walk over more changesets is an explicit error."
    )

    @property
    def database_path(self) -> Path:
        """Gives the path of the SQLite file."""
        return self.data_dir / "lethe.db"


class CharonSettings(_Table):
    """Settings of the gate."""

    model_config = _prefixed("CHARON_")

    data_dir: Path = Field(
        default_factory=default_data_dir, description="The folder of charon.db, keys, anchor."
    )
    database_url: SecretStr | None = Field(
        None, description="A PostgreSQL database in place of charon.db; it may be the same one."
    )
    http: HostPort = Field(Address("127.0.0.1", 18484), description="Where `charon serve` listens.")
    url: str | None = Field(None, description="A running Charon, for commands that act as its client.")
    token: SecretStr | None = Field(None, description="The token of this caller (an obol).")
    upstream: str | None = Field(None, description="A Lethe of its own; none = embedded.")
    public_url: str | None = Field(None, description="The address that clients see, behind a proxy.")
    merge_hmac_key: SecretStr | None = Field(None, description="The merge key, with an empty key id.")
    merge_hmac_keys: SecretStr | None = Field(
        None, description="Merge keys `id=secret,...`; the first signs."
    )
    hmac_key: SecretStr | None = Field(None, description="Deprecated; used only when no merge key is set.")
    oauth_allow_author_scopes: bool = Field(
        True, description="0 narrows OAuth clients to read, search, propose."
    )
    oauth_registrations_per_s: Natural = Field(
        5, description="OAuth clients that may register a second, which anybody may ask; 0: any."
    )
    ledger_anchor_path: Path | None = Field(
        None, description="The ledger's anchor; none = anchor/ of the data."
    )
    recovery_readonly: bool = Field(False, description="Refuses every write; every read works.")
    requests_per_s: Natural = Field(
        500, description="Calls a second that one process takes of one principal; 0: any."
    )
    project_requests_per_s: Natural = Field(
        2_000, description="Calls a second that one process takes on one project; 0: any."
    )
    changes_per_day: Natural = Field(
        20_000, description="Changes a day (UTC) of one principal in one project; 0: any."
    )
    project_changes_per_day: Natural = Field(
        200_000, description="Changes a day (UTC) of all in one project; 0: any."
    )

    @property
    def database_path(self) -> Path:
        """Gives the path of the SQLite file."""
        return self.data_dir / "charon.db"

    @property
    def keys_dir(self) -> Path:
        """Gives the folder of the key files, each 0600."""
        return self.data_dir / "keys"

    @property
    def anchor_path(self) -> Path:
        """Gives the place of the ledger's anchor and of the journals beside it."""
        return self.ledger_anchor_path or self.data_dir / "anchor"


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a run; `origins` says where a value came from, for those that are not defaults."""

    lethe: LetheSettings
    charon: CharonSettings
    origins: Mapping[str, str] = field(default_factory=dict)

    def origin(self, name: str) -> str:
        """Says where the value of `lethe.http` and the like came from; `default` if nobody set it."""
        return self.origins.get(name, "default")


TABLES: dict[str, type[_Table]] = {"lethe": LetheSettings, "charon": CharonSettings}


def environment_name(table: str, name: str) -> str:
    """Gives the environment's name of a setting."""
    return f"{table}_{name}".upper()


def load(*, config: Path | None = None, flags: Mapping[str, object] | None = None) -> Settings:
    """Reads all settings; `flags` are named `lethe.http`, and None there means that the flag was not given.

    Raises:
        Invalid: `invalid_setting` with every wrong one as a fault, or `invalid_settings_file`.
    """
    path, document = _read_file(config)
    merged: dict[str, dict[str, object]] = {table: {} for table in TABLES}
    origins: dict[str, str] = {}
    for table, model in TABLES.items():
        for name, value in document.get(table, {}).items():
            merged[table][name] = value
            origins[f"{table}.{name}"] = f"file {path}"
        for name, value in EnvSettingsSource(model)().items():
            merged[table][name] = value
            origins[f"{table}.{name}"] = f"environment {environment_name(table, name)}"
    misspelt = [fault for name in unknown_names() if (fault := _misspelt(name)) is not None]
    for dotted, value in (flags or {}).items():
        if value is not None:
            table, _, name = dotted.partition(".")
            merged[table][name] = value
            origins[dotted] = f"flag --{name.replace('_', '-')}"
    return _validated(merged, origins, misspelt)


def unknown_names() -> list[str]:
    """Gives the variables of the environment that begin like ours and are none of our settings; an orchestrator sets such."""
    known = _known_names()
    return sorted(
        name
        for name, value in os.environ.items()
        if value and name.upper().startswith(("LETHE_", "CHARON_")) and name.upper() not in known
    )


def _known_names() -> list[str]:
    return [environment_name(table, name) for table, model in TABLES.items() for name in model.model_fields]


def _misspelt(name: str) -> Fault | None:
    near = get_close_matches(name.upper(), _known_names(), n=1, cutoff=0.88)
    return Fault(None, name, f"no setting; did you mean {near[0]}? [from environment]") if near else None


def _validated(
    merged: Mapping[str, dict[str, Any]], origins: Mapping[str, str], misspelt: Sequence[Fault]
) -> Settings:
    tables: dict[str, Any] = {}
    faults: list[Fault] = list(misspelt)
    for table, model in TABLES.items():
        try:
            tables[table] = model(**merged[table])
        except ValidationError as error:
            faults += [_fault(table, dict(item), origins) for item in error.errors(include_input=False)]
    if faults:
        names = ", ".join(sorted({fault.field for fault in faults}))
        raise Invalid("invalid_setting", f"settings are wrong: {names}", faults)
    return Settings(tables["lethe"], tables["charon"], origins)


def _fault(table: str, item: Mapping[str, Any], origins: Mapping[str, str]) -> Fault:
    name = f"{table}.{item['loc'][0]}"
    rule = item["msg"].removeprefix("Value error, ")
    return Fault(None, name, f"{rule} [from {origins.get(name, 'default')}]")


def _read_file(named: Path | None) -> tuple[Path, dict[str, dict[str, object]]]:
    path = named or default_config_file()
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if named is None:
            return path, {}
        raise Invalid("invalid_settings_file", f"there is no settings file {path}") from None
    except (OSError, ValueError) as error:
        raise Invalid("invalid_settings_file", f"settings file {path} can't be read: {error}") from None
    for key, value in document.items():
        if key not in TABLES or not isinstance(value, dict):
            raise Invalid(
                "invalid_settings_file",
                f"settings file {path}: no table [{key}]; there are [lethe] and [charon]",
            )
    return path, document

"""`charon config`: every setting, its value and where it came from."""

from __future__ import annotations

from typing import Any

import click

from memory_git.cli.program import config_file, read_settings
from memory_git.cli.render import json_option, write_document, write_fields, write_table

command = click.Group("config", help="Show the settings and where they come from.")


@command.command("show")
@json_option
@click.pass_context
def show(context: click.Context, as_json: bool) -> None:
    """Show every setting of both programs, its value and its origin. Secrets are told as set, never shown.

    Example: charon config show
    """
    from memory_git.cli.settings import TABLES, default_config_file, environment_name, unknown_names

    settings = read_settings(context)
    file = config_file(context) or default_config_file()
    rows: list[dict[str, Any]] = [
        {
            "name": f"{table}.{name}",
            "value": _told(getattr(getattr(settings, table), name)),
            "origin": settings.origin(f"{table}.{name}"),
            "environment": environment_name(table, name),
        }
        for table, model in TABLES.items()
        for name in model.model_fields
    ]
    unknown = unknown_names()
    if as_json:
        write_document(
            {"file": str(file), "file_exists": file.exists(), "settings": rows, "unknown": unknown}
        )
        return
    write_table(("setting", "value", "from"), [(row["name"], row["value"], row["origin"]) for row in rows])
    write_fields({"settings file": f"{file}{'' if file.exists() else ' (absent)'}"})
    if unknown:
        write_fields({"no settings of ours": unknown})


def _told(value: object) -> str | int | bool | None:
    """Gives a value for display."""
    from pydantic import SecretStr

    if isinstance(value, SecretStr):
        return "(set)"
    return value if value is None or isinstance(value, str | int | bool) else str(value)

"""`lethe migrate`: makes or brings up to date the tables of the PostgreSQL databases that the settings name."""

from __future__ import annotations

import click

from memory_git.cli.program import read_settings
from memory_git.cli.render import json_option, write_document, write_fields
from memory_git.domain.errors import Invalid


@click.command("migrate")
@json_option
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """Bring the databases at LETHE_DATABASE_URL and CHARON_DATABASE_URL up to this program.

    Run it once before the first start, and once after an update, while no older program runs: it goes forward only, in one
    transaction each. Both may name one database: each program has a schema of its own, or the one that ?schema= in the URL
    names. A SQLite file is migrated by whoever opens it.

    Example: LETHE_DATABASE_URL=postgresql://memory@db/memory lethe migrate
    """
    from memory_git.cli.opening import url_of
    from memory_git.storage.charon_schema import CHARON_SCHEMA
    from memory_git.storage.lethe_schema import SCHEMA
    from memory_git.storage.postgres_migrate import migrate
    from memory_git.storage.postgres_url import DatabaseUrl

    settings = read_settings(context)
    done = []
    for table, schema in (("lethe", SCHEMA), ("charon", CHARON_SCHEMA)):
        url = url_of(settings, table)
        if url is not None:
            place = DatabaseUrl.parse(url, schema.name)
            before, now = migrate(place, schema)
            done.append({"database": place.place, "program": table, "before": before, "now": now})
    if not done:
        raise Invalid("database_url_needed", "set LETHE_DATABASE_URL, CHARON_DATABASE_URL, or both")
    if as_json:
        write_document({"migrated": done})
        return
    for item in done:
        write_fields(
            {
                "program": item["program"],
                "database": item["database"],
                "schema": f"{item['before']} -> {item['now']}"
                if item["before"] != item["now"]
                else item["now"],
            }
        )

"""Every key begins with the project and no statement or transaction spans two (2-architecture, sharding).

Excepted, as the design says: `project` and `object_project`, which name projects, and the gate's identity tables. Besides: what the engine
keeps of itself (`migration`), and reconcile's and readiness's questions over all chains of the gate, listed here one by one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from gate_world import GateWorld
from postgres_server import Schemas
from store_world import KEYS, add

from memory_git.lethe.store import LetheStore
from memory_git.storage import charon_schema, dialect, lethe_schema
from memory_git.storage.postgres_link import Link

STORAGE = Path(lethe_schema.__file__).parent
ABOVE_PROJECTS = {"project", "object_project", "migration"}
IDENTITY = {
    "oauth_client",
    "oauth_request",
    "oauth_agent",
    "oauth_grant",
    "oauth_code",
    "oauth_token",
    "identity_epoch",
    "journal",
    "principal",
    "actor",
    "obol",
    "sign_in",
    "web_session",
}
OF_A_PRINCIPAL = {"grant_of_principal", "created_ref_of_principal"}
"""Indexes of the gate's identity over all projects: what a principal may do anywhere."""
OVER_ALL_PROJECTS = {
    "charon_identity.grants": "what a principal may do anywhere is its identity",
    "charon_identity.created_refs": "the same",
    "charon_ledger.heads": "verify, backup and start look at every chain",
    "charon_ledger.intents_without_outcome": "reconcile",
    "charon_proposals.unfinished": "reconcile and the sweep",
    "charon_proposals.overdue": "the sweep",
    "charon_proposals.intended_attempts": "reconcile",
}
_STATEMENT = re.compile(r"^\s*(SELECT|INSERT|UPDATE|DELETE)\b")
_TABLE = re.compile(r"\b(?:FROM|JOIN|INTO|UPDATE)\s+([a-z_]+)\b")


def _text(node: ast.AST) -> str:
    """Gives the text of a literal, what is put into it as a bare name."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return "…"
    return ""


def _statements() -> Iterator[tuple[str, str]]:
    """Yields every statement of the tables' functions with the function's name."""
    for path in sorted([*STORAGE.glob("lethe_*.py"), *STORAGE.glob("charon_*.py")]):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef):
                parts = {
                    id(part)
                    for node in ast.walk(function)
                    if isinstance(node, ast.JoinedStr)
                    for part in node.values
                }
                for node in ast.walk(function):
                    if id(node) not in parts and _STATEMENT.match(text := _text(node)):
                        yield f"{path.stem}.{function.name}", text


def test_every_statement_of_a_table_of_projects_names_the_project() -> None:
    found = list(_statements())
    assert len(found) > 100
    without = {
        where
        for where, text in found
        if not set(_TABLE.findall(text)) <= ABOVE_PROJECTS | IDENTITY | {"version_words"}
        and not re.search(r"project_id|\b(VALUES|SELECT) \(?(\?|…)", text)
    }
    assert without <= OVER_ALL_PROJECTS.keys()


@pytest.mark.parametrize(
    "schema", [lethe_schema.SCHEMA, charon_schema.CHARON_SCHEMA], ids=lambda item: item.name
)
def test_every_key_and_index_begins_with_the_project(schemas: Schemas, schema: Any) -> None:
    url = schemas.new(schema)
    base, _, name = url.partition("?schema=")
    with psycopg.connect(base) as connection:
        rows = connection.execute(
            "SELECT t.relname, i.relname, a.attname, am.amname FROM pg_index x"
            " JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid"
            " JOIN pg_namespace n ON n.oid = t.relnamespace JOIN pg_am am ON am.oid = i.relam"
            " JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = x.indkey[0] WHERE n.nspname = %s",
            (name,),
        ).fetchall()
    assert len(rows) > 10
    wrong = [
        (table, index)
        for table, index, column, method in rows
        if table not in ABOVE_PROJECTS | IDENTITY
        and index not in OF_A_PRINCIPAL
        and column != "project_id"
        and (method, column) != ("gin", "words")
    ]
    assert wrong == [], "the word index is over digests of project and word; all others begin with project_id"


class Transactions:
    """What was sent in each transaction, by connection."""

    def __init__(self) -> None:
        self.open: dict[int, list[tuple[str, tuple[Any, ...]]]] = {}
        self.done: list[list[tuple[str, tuple[Any, ...]]]] = []

    def note(self, link: int, sql: str, params: tuple[Any, ...]) -> None:
        if sql.startswith("BEGIN"):
            self.open[link] = []
        elif sql in ("COMMIT", "ROLLBACK"):
            self.done.append(self.open.pop(link, []))
        elif link in self.open:
            self.open[link].append((sql, params))


@contextmanager
def _watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Transactions]:
    found, ask = Transactions(), Link.ask

    def noting(link: Link, sql: str, params: Any = ()) -> int:
        found.note(id(link), sql, tuple(params))
        return ask(link, sql, params)

    with monkeypatch.context() as patch:
        patch.setattr(Link, "ask", noting)
        yield found


def test_no_transaction_touches_two_projects(
    schemas: Schemas, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    names = {"demo", "other"}
    with _watched(monkeypatch) as watched:
        world = GateWorld(
            tmp_path / "data",
            database_url=schemas.new(charon_schema.CHARON_SCHEMA),
            lethe_database_url=schemas.new(lethe_schema.SCHEMA),
        )
        world.gate.init_project(world.gate.as_principal("ann"), "other")
        for name in ("one", "two"):
            world.gate.grant(world.operator, name, "other")
            made = world.gate.commit(
                world.caller(name), "demo", message="m", ops=[add(f"{name}-a", "text")], read_head=True
            )
            world.gate.commit(
                world.caller(name), "other", message="m", ops=[add(f"{name}-b", "text")], read_head=True
            )
            world.gate.propose(
                world.caller(name),
                "demo",
                message="take it",
                head_changeset_id=made["changeset"]["changeset_id"],
            )
        world.gate.memories(world.caller("one"), "demo")
        assert world.gate.ledger_verify(world.operator)["ok"] is True
        world.close()
    assert len(watched.done) > 50
    for sent in watched.done:
        writes = [params for sql, params in sent if _STATEMENT.match(sql) and not sql.startswith("SELECT")]
        if writes:
            assert len({param for params in writes for param in params if param in names}) <= 1, sent


def test_the_store_alone_touches_one_project_a_transaction(
    schemas: Schemas, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _watched(monkeypatch) as watched:
        store = LetheStore.open(schemas.new(lethe_schema.SCHEMA), merge_keys=KEYS)
        for name in ("demo", "other"):
            store.append_event(name, {"event_type": "note", "content": "x"})
            store.init_project(name)
            store.verify(name)
        store.close()
    for sent in watched.done:
        assert len({param for _, params in sent for param in params if param in {"demo", "other"}}) <= 1


def test_what_only_sqlite_understands_is_told_otherwise() -> None:
    for _, text in _statements():
        told = dialect.query(text)
        assert not re.search(r"\?|\+project_id|json_each|INDEXED BY|CROSS JOIN|INSERT OR", told), told

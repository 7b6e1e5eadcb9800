"""Durable commits on PostgreSQL, a second: ours from one process with eight threads, over pgbench with eight clients, prepared, same server.

pgbench runs the statements that one of our commits sent, in their order, with its arguments or others of the same sizes: rows, ids and keys
differ at each run, each client has a ref of its own, as each of our threads has. Long arguments stand in its statements, which are
prepared once, so it has a little less to send. Both run in turns; the figure is the ratio of the middles.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from bench import records
from bench.figures import Figure, middle, progress
from bench.fixtures import Fixtures
from bench.ours import PROJECT, add
from bench.processes import ROOT
from bench.writers import request
from memory_git.lethe.store import LetheStore
from memory_git.storage import dialect
from memory_git.storage.lethe_schema import FIRST_ROW, SCHEMA
from memory_git.storage.postgres_link import Link
from memory_git.storage.postgres_migrate import migrate
from memory_git.storage.postgres_url import DatabaseUrl

sys.path.insert(0, str(ROOT / "tests" / "support"))

from postgres_server import Server, new_server, programs  # type: ignore[import-not-found]

_CLIENTS = 8
_ROUNDS = 3
_SCHEMA = "lethe"
_PREAMBLE = "\\set base random(1, 4000000000000000)\n\\set n random(1, 4000000000000000)\n"
Sent = list[tuple[str, tuple[Any, ...]]]


def run(fixtures: Fixtures, *, quick: bool) -> list[Figure]:
    """Gives the figures of this benchmark."""
    seconds = 3 if quick else 10
    server = new_server(shared_buffers="256MB", max_wal_size="2GB")
    try:
        migrate(DatabaseUrl.parse(server.url, SCHEMA.name), SCHEMA)
        store = LetheStore.open(server.url, merge_keys=None)
        root = store.init_project(PROJECT)["changeset"]["changeset_id"]
        heads = [_commit(store, client, root, 0) for client in range(_CLIENTS)]
        for client in range(_CLIENTS):
            store.create_branch(PROJECT, f"refs/topics/p{client}", root, "bench")
        sent = _recorded(store, heads)
        script = fixtures.scratch / "commit.sql"
        script.write_text(_script(sent), encoding="utf-8")
        runs = []
        for turn in range(_ROUNDS):
            ours = _ours(store, heads, seconds, turn)
            runs.append({"ours": ours, "pgbench": _pgbench(server, script, seconds)})
            progress(f"ours {ours:.0f}/s, pgbench {runs[-1]['pgbench']:.0f}/s")
        store.close()
    finally:
        server.close()
    ratio = middle([item["ours"] for item in runs]) / middle([item["pgbench"] for item in runs])
    note = f"{len(sent)} statements a commit, {_CLIENTS} clients, PostgreSQL {programs().parent.name}"
    ours = middle([item["ours"] for item in runs])
    return [
        Figure("pg_commit_vs_pgbench", ratio, _CLIENTS, runs, note=note),
        Figure("pg_commit_s", ours, _CLIENTS, runs, note=note),
    ]


def _commit(store: LetheStore, client: int, head: str, number: int) -> str:
    op = add(client * 10_000_000 + number, records.content(number))
    made, _ = store.create_changeset(request(f"refs/topics/t{client}", head, op))
    return str(made["changeset_id"])


def _recorded(store: LetheStore, heads: list[str]) -> Sent:
    """Gives what one commit sends, once its statements are prepared and its caches warm."""
    for number in range(1, 20):
        heads[0] = _commit(store, 0, heads[0], number)
    sent: Sent = []
    ask = Link.ask

    def noting(link: Link, sql: str, params: Any = ()) -> int:
        sent.append((sql, tuple(params)))
        return ask(link, sql, params)

    setattr(Link, "ask", noting)  # noqa: B010
    heads[0] = _commit(store, 0, heads[0], 20)
    setattr(Link, "ask", ask)  # noqa: B010
    return sent


def _ours(store: LetheStore, heads: list[str], seconds: int, turn: int) -> float:
    """Gives the commits a second of as many threads as there are clients, each on a branch of its own."""
    until = time.monotonic() + seconds
    counts = [0] * _CLIENTS

    def work(client: int) -> None:
        number = (turn + 1) * 1_000_000
        while time.monotonic() < until:
            heads[client] = _commit(store, client, heads[client], number)
            number += 1
            counts[client] += 1

    threads = [threading.Thread(target=work, args=(client,)) for client in range(_CLIENTS)]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.monotonic() - begun)


def _pgbench(server: Server, script: Path, seconds: int) -> float:
    program = programs() / "pgbench"
    found = program if program.exists() else Path(shutil.which("pgbench") or "pgbench")
    done = subprocess.run(
        [
            *(found, "-n", "-M", "prepared", "-c", str(_CLIENTS), "-j", "2", "-T", str(seconds)),
            *("-h", "127.0.0.1", "-p", str(server.port), "-U", "memory", "-f", script, "postgres"),
        ],
        env={**os.environ, "PGOPTIONS": f"-c search_path={_SCHEMA} -c plan_cache_mode=force_generic_plan"},
        capture_output=True,
        text=True,
        check=False,
    )
    told = re.search(r"^tps = ([0-9.]+)", done.stdout, re.MULTILINE)
    assert done.returncode == 0, done.stderr[-2000:]
    assert told is not None, done.stderr
    return float(told[1])


def _script(sent: Sent) -> str:
    """Gives the statements as pgbench takes them."""
    rows = [
        param
        for _, params in sent
        for param in params
        if type(param) is int and FIRST_ROW <= param < 2 * FIRST_ROW
    ]
    inserted = {
        param
        for sql, params in sent
        if sql.startswith("INSERT")
        for param in params
        if isinstance(param, str) and re.fullmatch(r"[0-9a-f]{8}-.{27}|[0-9a-f]{32}", param)
    }
    least = min(row for row in rows if row >> 8 == max(rows) >> 8)
    return _PREAMBLE + "".join(f"{_told(sql, params, least, inserted)};\n" for sql, params in sent)


def _told(sql: str, params: tuple[Any, ...], least: int, inserted: set[str]) -> str:
    sql = dialect.query(sql)
    if "head_changeset_id = $7" in sql:
        sql = sql.replace("head_changeset_id = $7", "head_changeset_id = head_changeset_id")
    names = re.search(r"INSERT INTO ref_log \(([^)]*)\)", sql)
    seq = names[1].split(", ").index("seq") + 1 if names else 0

    def value(place: re.Match[str]) -> str:
        number = int(place[1])
        param = params[number - 1]
        if number == seq:
            return ":n::bigint"
        if "advisory" in sql:
            return f"({param % 1_000_000_007} + (:client_id)::bigint)" if "shared" not in sql else str(param)
        return _literal(param, least, inserted)

    return re.sub(r"\$(\d+)", value, sql)


def _literal(param: Any, least: int, inserted: set[str]) -> str:
    if param is None:
        return "NULL"
    if isinstance(param, bytes):
        return f"'\\x{param.hex()}'::bytea"
    if isinstance(param, int):
        return f"(:base::bigint + {param - least})" if least <= param < 2 * FIRST_ROW else str(param)
    if param in inserted:
        return f"lpad((:base::bigint)::text, {len(param)}, '0')"
    if param.startswith("refs/topics/t"):
        return "('refs/topics/p' || (:client_id)::bigint)"
    quoted = param.replace("'", "''").replace(":", "' || chr(58) || '")
    return f"('{quoted}')"

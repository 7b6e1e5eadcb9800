"""Durable commits over HTTP against a bare FastAPI route that does one durable insert a request: same clients, bodies and server settings.

`http_commit_32_vs_bare`: commits a second of 32 clients, each on a branch of its own, over inserts a second of 32 clients.
`http_commit_tail_vs_bare`: p99 over p50 of commits at 8 clients, over the same of the bare route, in each of five runs or more.
"""

from __future__ import annotations

from bench.alternating import Json, alternate, each
from bench.figures import Figure, middle, progress
from bench.fixtures import Fixtures, Process

_WAYS = ("/threaded", "/inline")
_MANY, _FEW = 32, 8


def run(fixtures: Fixtures, *, quick: bool) -> list[Figure]:
    """Gives the figures of this benchmark."""
    with (
        fixtures.empty("http_ours") as ours,
        fixtures.empty("http_bare") as bare,
        fixtures.empty("http_load") as load,
    ):
        servers = ours.ask("serve"), bare.ask("serve")
        version = bare.ask("version")
        load.ask("commits", server=servers[0], clients=_MANY, count=640)
        way = _faster_way(load, servers[1])
        rates = _rates(load, (ours, bare), servers, way, 5 if quick else 9)
        tails = _tails(load, servers, way, 5 if quick else 9)
    many, few = (middle(item["ratio"] for item in runs) for runs in (rates[0], tails))
    per_s = {name: 1 / middle(item[f"{name}_s"] for item in rates[0]) for name in ("ours", "theirs")}
    cpu = {name: middle(item[f"{name}_cpu_us"] for item in rates[0]) for name in ("ours", "theirs")}
    note = (
        f"processor time of the server for one: {cpu['ours']:.0f} us, {cpu['theirs']:.0f} us; commits/s {per_s['ours']:.0f}, inserts/s {per_s['theirs']:.0f} ({way[1:]}); "
        f"of raw SQLite, one insert a transaction without HTTP ({rates[1]:.0f}/s), {per_s['ours'] / rates[1]:.2f}"
    )
    progress(f"http_commit_32_vs_bare {many:.3g} ({note}); tail {few:.3g}")
    peer = "bare FastAPI route"
    return [
        Figure("http_commit_32_vs_bare", many, _MANY, rates[0], peer, version, note),
        Figure("http_commit_tail_vs_bare", few, _FEW, tails, peer, version, f"{way[1:]} route"),
    ]


def _faster_way(load: Process, server: Json) -> str:
    """Gives the route of the bare application that takes more inserts a second."""
    took = {
        way: each(load.ask("inserts", server=server, path=way, clients=_MANY, count=1600)) for way in _WAYS
    }
    return min(took, key=took.__getitem__)


def _rates(
    load: Process, processes: tuple[Process, Process], servers: tuple[Json, Json], way: str, rounds: int
) -> tuple[list[Json], float]:
    """Gives rounds of 32 clients in turns, and the raw inserts a second of the same run."""
    bare = processes[1]
    asks = (
        lambda: load.ask("commits", server=servers[0], clients=_MANY, count=1600),
        lambda: load.ask("inserts", server=servers[1], path=way, clients=_MANY, count=1600),
    )
    used: tuple[list[float], list[float]] = ([], [])

    def turn(place: int) -> Json:
        before = processes[place].ask("cpu")
        told: Json = asks[place]()
        used[place].append(1e6 * (processes[place].ask("cpu") - before) / told["count"])
        return told

    raw = [1 / each(bare.ask("raw", count=500))]
    runs = alternate(rounds, lambda: turn(0), lambda: turn(1))
    raw.append(1 / each(bare.ask("raw", count=500)))
    for run, ours, theirs in zip(runs, *used, strict=True):
        run |= {"ours_cpu_us": round(ours), "theirs_cpu_us": round(theirs)}
    return runs, middle(raw)


def _tails(load: Process, servers: tuple[Json, Json], way: str, rounds: int) -> list[Json]:
    runs = []
    for _ in range(rounds):
        commits = load.ask("commits", server=servers[0], clients=_FEW, count=1600)
        inserts = load.ask("inserts", server=servers[1], path=way, clients=_FEW, count=1600)
        ours, theirs = (told["p99_ms"] / told["p50_ms"] for told in (commits, inserts))
        names = ("p50_ms", "p99_ms")
        runs.append(
            {
                "ratio": ours / theirs,
                **{f"ours_{name}": commits[name] for name in names},
                **{f"theirs_{name}": inserts[name] for name in names},
            }
        )
    return runs

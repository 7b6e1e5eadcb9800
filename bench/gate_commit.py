"""What the gate costs a commit: durable commits a second over HTTP without Charon, over with it, the store inside; same clients, same changes.

`gate_commit_cost`: at 32 clients, each on a branch of its own. At one client it is told beside (`gate_commit_cost_one`), without a bar.
"""

from __future__ import annotations

from bench.alternating import Json, alternate
from bench.figures import Figure, middle, progress
from bench.fixtures import Fixtures, Process

_MANY, _ONE = 32, 1


def run(fixtures: Fixtures, *, quick: bool) -> list[Figure]:
    """Gives the figures of this benchmark."""
    rounds = 5 if quick else 9
    with (
        fixtures.empty("http_gate") as gate,
        fixtures.empty("http_ours") as store,
        fixtures.empty("http_load") as load,
    ):
        processes = gate, store
        servers = gate.ask("serve"), store.ask("serve")
        for server in servers:
            load.ask("commits", server=server, clients=_MANY, count=640)
        many = _rounds(load, processes, servers, _MANY, 1600, rounds)
        one = _rounds(load, processes, servers, _ONE, 200, rounds)
    return [_figure("gate_commit_cost", many, _MANY), _figure("gate_commit_cost_one", one, _ONE)]


def _rounds(
    load: Process,
    processes: tuple[Process, Process],
    servers: tuple[Json, Json],
    clients: int,
    count: int,
    rounds: int,
) -> list[Json]:
    """Gives rounds in turns: how much longer a commit takes with the gate, and the processor time of both servers."""
    used: tuple[list[float], list[float]] = ([], [])

    def turn(place: int) -> Json:
        before = processes[place].ask("cpu")
        told: Json = load.ask("commits", server=servers[place], clients=clients, count=count)
        used[place].append(1e6 * (processes[place].ask("cpu") - before) / told["count"])
        return told

    runs = alternate(rounds, lambda: turn(0), lambda: turn(1))
    for told, gate, store in zip(runs, *used, strict=True):
        told |= {"cost": 1 / told["ratio"], "gate_cpu_us": round(gate), "store_cpu_us": round(store)}
    return runs


def _figure(key: str, runs: list[Json], clients: int) -> Figure:
    cost = middle(told["cost"] for told in runs)
    with_gate, without = (1 / middle(told[f"{name}_s"] for told in runs) for name in ("ours", "theirs"))
    cpu = [middle(told[name] for told in runs) for name in ("gate_cpu_us", "store_cpu_us")]
    note = (
        f"commits/s with the gate {with_gate:.0f}, without {without:.0f}; "
        f"processor time of the server for one: {cpu[0]:.0f} us, {cpu[1]:.0f} us"
    )
    progress(f"{key} {cost:.3g} ({note})")
    return Figure(key, cost, clients, runs, note=note)

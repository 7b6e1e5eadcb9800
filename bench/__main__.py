"""`python -m bench [--quick] [NAME ...]`: runs benchmarks, writes their figures and prints them beside their bars.

All keys, or those of the benchmarks or keys that are named, which then replace theirs in the results file. Ends with 0 when every bar
among what was run is met, 1 when one is missed or has no figure, 2 when the command line is wrong.
"""

from __future__ import annotations

import argparse
import importlib
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

from bench.figures import Figure, Json, load, machine, progress, save, table, unmeasured
from bench.fixtures import Fixtures
from bench.processes import Failed
from bench.registry import BY_NAME, FULL, KEYS, QUICK, Scale, benchmarks

ROOT = Path(__file__).parent.parent


def main(arguments: list[str] | None = None) -> int:
    """Runs what was asked for; gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="benchmarks or keys (default: all)")
    parser.add_argument("--quick", action="store_true", help="at most 100k memories, within five minutes")
    parser.add_argument("--list", action="store_true", help="only names the benchmarks and their keys")
    parser.add_argument("--table", action="store_true", help="only prints what the results file holds")
    parser.add_argument("--results", type=Path, help="the file to write (default: in bench/)")
    parser.add_argument("--scratch", type=Path, default=ROOT / "build", help="where the databases are made")
    wanted = parser.parse_args(arguments)
    if wanted.list:
        print("\n".join(f"{key.benchmark}\t{key.name}\t{key.shown_bar}" for key in KEYS))
        return 0
    known = {*benchmarks(), *BY_NAME}
    if unknown := sorted(set(wanted.names) - known):
        parser.error(f"no such benchmark: {', '.join(unknown)}; --list names them")
    asked = {BY_NAME[name].benchmark if name in BY_NAME else name for name in wanted.names}
    names = [name for name in benchmarks() if not asked or name in asked]
    path = wanted.results or ROOT / "bench" / ("results-quick.json" if wanted.quick else "results.json")
    if wanted.table:
        found = load(path)
        print(
            f"{table(found['figures'])}\n\n{', '.join(f'{name} {value}' for name, value in found['machine'].items())}"
        )
        return 0
    figures = measure(names, path, wanted.scratch, quick=wanted.quick)
    print(table(figures))
    print(f"written to {path}")
    return (
        0
        if all(figure["met"] is not False and not _lacks(name, figure) for name, figure in figures.items())
        else 1
    )


def _lacks(name: str, figure: Json) -> bool:
    return BY_NAME[name].bar is not None and figure["value"] is None


def measure(
    names: list[str], path: Path, scratch: Path, *, quick: bool, scale: Scale | None = None
) -> dict[str, Json]:
    """Runs benchmarks one after the other, writes the results after each, and gives the figures of this run."""
    scratch.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=scratch))
    fixtures = Fixtures(folder, scale or (QUICK if quick else FULL))
    results = load(path)
    results["machine"] = machine(folder)
    found: dict[str, Json] = {}
    begun = time.monotonic()
    try:
        for name in names:
            progress(f"== {name}")
            command = f"python -m bench {'--quick ' if quick else ''}{name}"
            found |= {figure.key: figure.to_json(command) for figure in _run(name, fixtures, quick=quick)}
            results["figures"] |= found
            save(path, results)
        progress(f"all in {time.monotonic() - begun:.0f} s")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return found


def _run(name: str, fixtures: Fixtures, *, quick: bool) -> list[Figure]:
    """Gives a benchmark's figures; one that fails says so in each of its keys."""
    try:
        figures: list[Figure] = importlib.import_module(f"bench.{name}").run(fixtures, quick=quick)
        return figures
    except (Failed, AssertionError) as error:
        traceback.print_exc()
        why = f"failed: {error}"
        return [unmeasured(key.name, why) for key in KEYS if key.benchmark == name]


if __name__ == "__main__":
    sys.exit(main())

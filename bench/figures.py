"""Figures in the wire form of the results file, and the table that is printed."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import apsw

from bench.registry import BY_NAME, KEYS

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured key, or why it could not be measured (`value` None). `n` is the size that was measured at."""

    key: str
    value: float | None
    n: int | None = None
    runs: list[Any] = field(default_factory=list)
    peer: str | None = None
    peer_version: str | None = None
    note: str | None = None

    def to_json(self, command: str) -> Json:
        """Gives the figure as it stands in the results file."""
        key = BY_NAME[self.key]
        return {
            "value": None if self.value is None else float(f"{self.value:.4g}"),
            "unit": key.unit,
            "bar": key.bar,
            "better": key.better if key.bar is not None else None,
            "met": None if self.value is None else key.met(self.value),
            "n": self.n,
            "runs": self.runs,
            "peer": self.peer,
            "peer_version": self.peer_version,
            "note": self.note,
            "command": command,
        }


def unmeasured(key: str, why: str, peer: str | None = None) -> Figure:
    """Gives a figure that says why there is none."""
    return Figure(key, None, peer=peer, note=why)


def middle(ratios: Iterable[float]) -> float:
    """Gives the median of the runs."""
    return median(ratios)


def machine(folder: Path) -> Json:
    """Says on what was measured; `fdatasync_s` is how many appended blocks of 4 KiB the disk syncs a second just now."""
    return {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "file_system": _file_system(folder),
        "load": round(os.getloadavg()[0], 2),
        "fdatasync_s": round(_syncs(folder)),
        "commit": _commit(),
    }


def _file_system(folder: Path) -> str:
    done = subprocess.run(["df", "--output=fstype", str(folder)], capture_output=True, text=True, check=False)
    return done.stdout.split()[-1] if done.returncode == 0 else "unknown"


def _syncs(folder: Path, count: int = 200) -> float:
    with tempfile.TemporaryFile(dir=folder) as file:
        start = time.perf_counter()
        for _ in range(count):
            os.write(file.fileno(), bytes(4096))
            os.fdatasync(file.fileno())
        return count / (time.perf_counter() - start)


def _commit() -> str | None:
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or None


def load(path: Path) -> Json:
    """Gives what an earlier run wrote, or nothing; keys that are no more are left out."""
    found: Json = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    figures = {name: figure for name, figure in found.get("figures", {}).items() if name in BY_NAME}
    return {"figures": figures, "machine": found.get("machine", {})}


def save(path: Path, results: Json) -> None:
    """Writes the results, keys in the order of the registry."""
    figures = results["figures"]
    ordered = {key.name: figures[key.name] for key in KEYS if key.name in figures}
    text = json.dumps({"figures": ordered, "machine": results["machine"]}, indent=1, ensure_ascii=False)
    path.write_text(f"{text}\n", encoding="utf-8")


def table(figures: Mapping[str, Json]) -> str:
    """Gives the figures as a Markdown table, those with a bar first."""
    rows: list[tuple[str, ...]] = [("key", "value", "bar", "met", "n", "against")]
    for key in sorted(KEYS, key=lambda key: key.bar is None):
        if (figure := figures.get(key.name)) is not None:
            rows.append(_row(key.name, figure))
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def _row(name: str, figure: Json) -> tuple[str, ...]:
    value = "not measured" if figure["value"] is None else f"{figure['value']:g}"
    unit = "" if figure["unit"] == "ratio" or figure["value"] is None else f" {figure['unit']}"
    met = {True: "yes", False: "NO", None: ""}[figure["met"]]
    against = figure["peer_version"] or figure["peer"] or ""
    said = f"{against}; {figure['note']}" if against and figure["note"] else figure["note"] or against
    return f"`{name}`", f"{value}{unit}", BY_NAME[name].shown_bar, met, f"{figure['n'] or ''}", said


def progress(text: str) -> None:
    """Says on standard error what is going on, with the time of day."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)

"""Every key that the benchmarks write, with its unit and bar, and the benchmark that measures it.

A key of the issue has a bar. The others say what stands behind it, at another size or against another peer, and have none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

AT_LEAST, AT_MOST = ">=", "<="


@dataclass(frozen=True, slots=True)
class Key:
    """One figure: what it is called, measured in, held against, and by which module of this folder."""

    name: str
    benchmark: str
    unit: str
    bar: float | None = None
    better: str = AT_LEAST

    def met(self, value: float) -> bool | None:
        """Decides whether a value meets the bar; None where there is none."""
        if self.bar is None:
            return None
        return value >= self.bar if self.better == AT_LEAST else value <= self.bar

    @property
    def shown_bar(self) -> str:
        """Gives the bar as it is printed."""
        return "" if self.bar is None else f"{self.better} {self.bar:g}"


PEERS = ("doltlite", "pygit2", "dulwich", "git")
SIZES = ("10k", "100k", "1m")
_RATIO = "ratio"


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is measured: how many memories stand behind each name of a size, and how long the long history is."""

    sizes: Mapping[str, int]
    changesets: int

    @property
    def most(self) -> int:
        """Gives the greatest size."""
        return max(self.sizes.values())


FULL = Scale({"10k": 10_000, "100k": 100_000, "1m": 1_000_000}, 100_000)
QUICK = Scale({"10k": 10_000, "100k": 100_000}, 20_000)
_BARS = (
    Key("import_1m_vs_raw", "importing", _RATIO, 0.3),
    Key("import_1m_peak_rss_mb", "importing", "MiB", 1_200, AT_MOST),
    Key("commit_one_vs_doltlite", "commit_one", _RATIO, 1.2),
    Key("commit_batch32_vs_doltlite", "commit_batch", _RATIO, 3),
    Key("commit_batch32_vs_pygit2", "commit_batch", _RATIO, 25),
    Key("diff10_1m_over_10k", "diff", _RATIO, 2, AT_MOST),
    Key("diff10_vs_doltlite_100k", "diff", _RATIO, 1.2),
    Key("merge100x100_vs_doltlite_100k", "merge", _RATIO, 1),
    Key("merge100x100_vs_git_100k", "merge", _RATIO, 2),
    Key("checkout_one_1m_over_10k", "checkout", _RATIO, 2, AT_MOST),
    Key("context_100k_changesets_over_100", "context", _RATIO, 1.5, AT_MOST),
    Key("merge_base_100k_vs_pygit2", "merge_base", _RATIO, 1),
    Key("bytes_per_commit_100k_vs_doltlite", "bytes_per_commit", _RATIO, 0.6, AT_MOST),
    Key("lost_acknowledged", "durability", "changesets", 0, AT_MOST),
    Key("spurious_refusals", "durability", "refusals", 0, AT_MOST),
    Key("contended_least_share", "contention", _RATIO, 0.5),
    Key("start_1m_s", "start", "s", 2, AT_MOST),
    Key("http_context_100k_over_1k", "http_context", _RATIO, 1.5, AT_MOST),
    Key("http_commit_32_vs_bare", "http_commit", _RATIO, 0.8),
    Key("http_commit_tail_vs_bare", "http_commit", _RATIO, 1.5, AT_MOST),
    Key("pg_commit_vs_pgbench", "pg_commit", _RATIO, 0.3),
    Key("gate_commit_cost", "gate_commit", _RATIO, 1.6, AT_MOST),
    Key("mcp_call_overhead", "mcp_call", _RATIO, 2, AT_MOST),
    Key("tools_list_bytes", "tools_list", "bytes", 8_192, AT_MOST),
    Key("tools_list_with_output_bytes", "tools_list", "bytes", 12_288, AT_MOST),
    Key("schemathesis_failures", "api", "failures", 0, AT_MOST),
    Key("fuzz_5xx", "api", "answers", 0, AT_MOST),
    Key("mcp_fuzz_faults", "mcp_fuzz", "answers", 0, AT_MOST),
)
_BESIDE = (
    Key("gate_commit_cost_one", "gate_commit", _RATIO),
    Key("import_1m_ops_s", "importing", "ops/s"),
    Key("pg_commit_s", "pg_commit", "commits/s"),
    *(Key(f"commit_one_{size}_ms", "commit_one", "ms") for size in SIZES),
    *(Key(f"diff10_{size}_ms", "diff", "ms") for size in SIZES),
    *(Key(f"merge100x100_{size}_ms", "merge", "ms") for size in SIZES),
    *(Key(f"checkout_one_{size}_ms", "checkout", "ms") for size in SIZES),
    Key("merge100x100_planned_100k_ms", "merge", "ms"),
    Key("merge100x100_protected_100k_ms", "merge", "ms"),
    *(
        Key(f"commit_one_vs_{peer}_{size}", "commit_one", _RATIO)
        for size in ("10k", "100k")
        for peer in PEERS
    ),
    *(Key(f"diff10_vs_{peer}_{size}", "diff", _RATIO) for size in ("10k", "100k") for peer in PEERS),
    *(Key(f"merge100x100_vs_{peer}_{size}", "merge", _RATIO) for size in ("10k", "100k") for peer in PEERS),
    Key("diff10_mixed_vs_doltlite_100k", "diff", _RATIO),
    Key("merge100x100_mixed_vs_doltlite_100k", "merge", _RATIO),
    Key("merge_base_verb_100k_vs_pygit2", "merge_base", _RATIO),
    Key("bytes_per_commit_100k_vs_pygit2", "bytes_per_commit", _RATIO),
)
_NAMED_OTHERWISE = {"commit_one_vs_doltlite_100k"}
KEYS = (
    *_BARS,
    *(
        key
        for key in _BESIDE
        if key not in _BARS and key.name not in {*_NAMED_OTHERWISE, *(bar.name for bar in _BARS)}
    ),
)
BY_NAME = {key.name: key for key in KEYS}


def benchmarks() -> list[str]:
    """Gives the benchmarks in the order in which they run."""
    return list(dict.fromkeys(key.benchmark for key in KEYS))

"""Benchmarks: ours beside its peers, each in a process of its own (docs/BENCHMARKS.md)."""

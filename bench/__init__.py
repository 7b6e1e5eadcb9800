"""Benchmarks: each module `bench/<name>.py` measures one thing and has `run(quick: bool) -> dict`."""

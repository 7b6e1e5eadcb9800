"""Reading one memory at a head, warm: time at 1M over that at 10k. `LetheStore.memory`: record, digest, relationships, proof."""

from __future__ import annotations

from bench.alternating import CPU, over_sizes
from bench.figures import Figure, middle
from bench.fixtures import Fixtures

_MEMORIES = 500


def run(fixtures: Fixtures, *, quick: bool) -> list[Figure]:
    """Gives the figures of this benchmark."""
    found, runs = over_sizes(
        fixtures,
        "checkout_one",
        11 if quick else 21,
        lambda ours: ours.ask("prepare_checkout", count=_MEMORIES),
        lambda ours: ours.ask("checkout", rounds=1),
        CPU,
    )
    ratio = middle(run["ratio"] for run in runs)
    return [*found, Figure("checkout_one_1m_over_10k", ratio, fixtures.scale.most, runs)]

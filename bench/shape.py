"""One history for everybody: sessions side by side that are merged by twos, and branches that live long (evidence: a sixth are merges).

A round: LANES sessions fork from main's head, commit COMMITS times each, and are merged by twos until one is left, which moves main.
Besides, `syncing` takes main in every SYNC rounds, `forgotten` forked in the first round and never came back, and `session` forked a
round before the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field

LANES = 32
COMMITS = 5
SYNC = 50
MEMORIES = 1_000
_FIRST_ADDS = 100
ROUND = LANES * COMMITS + LANES


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit by its place; `parents` are places, `changes` (memory, version), version 0 being a new memory."""

    place: int
    ref: str
    parents: tuple[int, ...]
    changes: tuple[tuple[int, int], ...] = ()


@dataclass(slots=True)
class History:
    """Commits in waves: those of one wave do not depend on each other. Place 0 is the root, which is there already."""

    waves: list[list[Commit]] = field(default_factory=list)
    named: dict[str, int] = field(default_factory=dict)
    count: int = 0

    @property
    def tip(self) -> int:
        """Gives the place of main's head."""
        return self.named["main"]

    def wave(self, *commits: tuple[str, tuple[int, ...], tuple[tuple[int, int], ...]]) -> list[int]:
        """Adds commits that do not depend on each other and gives their places."""
        made = [
            Commit(self.count + place, ref, parents, changes)
            for place, (ref, parents, changes) in enumerate(commits, start=1)
        ]
        self.waves.append(made)
        self.count += len(made)
        return [commit.place for commit in made]


def history(changesets: int) -> History:
    """Gives a history of exactly so many changesets, MEMORIES of which main's head holds; few changesets make a line."""
    plan = History()
    head = 0
    for first in range(0, MEMORIES, MEMORIES // _FIRST_ADDS):
        adds = tuple((number, 0) for number in range(first, first + MEMORIES // _FIRST_ADDS))
        [head] = plan.wave((_main(), (head,), adds))
    if changesets > plan.count + 4 * ROUND:
        head = _rounds(plan, head, changesets)
    while plan.count < changesets:
        [head] = plan.wave((_main(), (head,), ((plan.count % MEMORIES, plan.count),)))
    plan.named["main"] = head
    return plan


def _main() -> str:
    return "refs/agents/bench/main"


def _rounds(plan: History, head: int, changesets: int) -> int:
    syncing, forgotten = head, head
    for turn in range((changesets - plan.count) // (ROUND + 2) - 1):
        if turn == 0:
            [forgotten] = plan.wave(("refs/agents/forgotten/main", (head,), ((MEMORIES - 1, 1),)))
        if turn % SYNC == 0:
            [syncing] = plan.wave((_syncing(), (syncing,), ((MEMORIES - 2, plan.count + 1),)))
            if turn:
                [syncing] = plan.wave((_syncing(), (syncing, head), ()))
        before, head = head, _round(plan, head, turn)
    [session] = plan.wave(("refs/agents/session/main", (before,), ((MEMORIES - 3, 1),)))
    plan.named |= {"session": session, "syncing": syncing, "forgotten": forgotten}
    return head


def _syncing() -> str:
    return "refs/agents/syncing/main"


def _round(plan: History, head: int, turn: int) -> int:
    tips = [head] * LANES
    for step in range(COMMITS):
        tips = plan.wave(
            *((_lane(turn, lane), (tips[lane],), (_change(turn, step, lane),)) for lane in range(LANES))
        )
    refs = [_lane(turn, lane) for lane in range(LANES)]
    while len(tips) > 1:
        refs = refs[::2]
        tips = plan.wave(*((refs[at], (tips[2 * at], tips[2 * at + 1]), ()) for at in range(len(refs))))
    [merged] = plan.wave((_main(), (head, tips[0]), ()))
    return merged


def _lane(turn: int, lane: int) -> str:
    return f"refs/agents/session-{turn}-{lane}/main"


def _change(turn: int, step: int, lane: int) -> tuple[int, int]:
    """Gives a memory that no other lane of the round changes, and its next version."""
    each = (MEMORIES - 8) // LANES
    return lane * each + (turn * COMMITS + step) % each, turn * COMMITS + step + 1

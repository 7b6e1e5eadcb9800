"""Work in steps: between them it waits for something durable, in a thread that has nothing else to do, or on a loop that has.

A generator yields each step and is sent its answer, or thrown what went wrong. So one body of rules serves callers of both kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Told = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Step(Generic[T]):
    """What is waited for: `now` gives it at once; `soon` begins it, and gives what to call for it once it was told."""

    now: Callable[[], T]
    soon: Callable[[Told], Callable[[], T]]


Steps = Generator[Step[Any], Any, T]


def now_told(now: Callable[[], T]) -> Callable[[Told], Callable[[], T]]:
    """Gives a `soon` that waits all the same."""

    def soon(told: Told) -> Callable[[], T]:
        made = now()
        told()
        return lambda: made

    return soon


def at_once(steps: Steps[T]) -> T:
    """Gives the outcome of work, waiting in this thread."""
    try:
        step = next(steps)
        while True:
            try:
                answer = step.now()
            except BaseException as error:
                step = steps.throw(error)
            else:
                step = steps.send(answer)
    except StopIteration as end:
        outcome: T = end.value
        return outcome

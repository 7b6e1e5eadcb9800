"""Who may see an op, and which op last touched what (3-model; 4-history, state)."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from memory_git.domain.merge import merge_records
from memory_git.domain.projector import Applied, Reach, apply
from memory_git.domain.record import Conflicted, Edge, Record
from memory_git.domain.state import freeze
from memory_git.domain.validate import check_ops

OPEN = Record("open", "Tabs.", visibility="public")
MINE = Record("mine", "Spaces.", visibility="private", owner_principal="ada")
OWNERLESS = Record("ownerless", "Three.", visibility="private")
BASE = Record("met", "One.", visibility="shared")


def applied(*raw: dict[str, Any], conflicted: tuple[Conflicted, ...] = ()) -> Applied:
    ops, faults = check_ops(list(raw), iter(()))
    assert not faults
    found = apply(freeze([OPEN, MINE, OWNERLESS]), ops, salts=lambda _: "0" * 32, conflicted=conflicted)
    assert not found.faults
    return found


def relate(one: str, two: str) -> dict[str, Any]:
    return {
        "op_type": "add_relationship",
        "target_event_id": one,
        "resulting_event_id": two,
        "payload": {"kind": "about"},
    }


def test_an_op_is_seen_by_whom_may_see_each_record_that_it_touched():
    found = applied(relate("open", "mine"), relate("open", "ownerless"), relate("mine", "ownerless"))
    assert found.reach == {0: Reach("private", "ada"), 1: Reach("private", ""), 2: Reach("private", "")}


def test_of_a_memory_in_conflict_both_sides_count_beside_what_else_is_touched():
    sides = [replace(BASE, content="Left."), replace(BASE, content="Right.", visibility="internal")]
    conflict = merge_records(BASE, *sides)
    assert isinstance(conflict, Conflicted)
    found = applied(relate("mine", "met"), relate("met", "open"), conflicted=(conflict,))
    assert found.reach == {0: Reach("private", "ada"), 1: Reach("internal", "")}


def test_each_relationship_names_the_op_that_last_touched_it():
    again = {**relate("open", "mine"), "op_type": "remove_relationship"}
    found = applied(relate("open", "mine"), relate("mine", "open"), again)
    assert found.edges_touched_by == {Edge("open", "about", "mine"): 2, Edge("mine", "about", "open"): 1}
    assert found.edges == {Edge("mine", "about", "open"): True}

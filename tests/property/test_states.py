"""States: what a diff says leads from one to the other, and a root is content alone (4-history, state and diff)."""

from __future__ import annotations

from typing import Any

import pytest
from depth import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from op_lists import HISTORY, START, allowed, laid, records, salts

from memory_git.domain.change import Change, EdgeChange, OpRef
from memory_git.domain.diff import SECTIONS, is_empty, semantic_diff
from memory_git.domain.projector import apply
from memory_git.domain.record import Edge, Record, edge_digest, record_digest
from memory_git.domain.state import MemoryState
from memory_git.domain.state_root import edge_key, memory_key, state_root
from memory_git.domain.trie import EMPTY, Entry, MemoryNodes, Root, put_many

BY = OpRef("changeset", 0)
Json = dict[str, Any]


def changes(before: MemoryState, after: MemoryState) -> list[Change]:
    named = sorted(before.records.keys() | after.records.keys())
    pairs = [(name, before.records.get(name), after.records.get(name)) for name in named]
    return [Change(name, one, two, BY) for name, one, two in pairs if one != two]  # type: ignore[arg-type]


def edge_changes(before: MemoryState, after: MemoryState) -> list[EdgeChange]:
    return [EdgeChange(edge, edge in after.edges, BY) for edge in sorted(before.edges ^ after.edges)]


def difference(before: MemoryState, after: MemoryState) -> Json:
    return semantic_diff(changes(before, after), edge_changes(before, after))


def active(state: MemoryState) -> dict[str, Json]:
    return {record.memory_id: record.to_json() for record in records(state) if record.is_active}


@pytest.mark.slow
@given(HISTORY, HISTORY)
@settings(max_examples=examples(300))
def test_what_a_diff_shows_leads_from_the_active_memory_of_one_state_to_that_of_the_other(
    base_raw: list[Any], raw: list[Any]
) -> None:
    _, before = allowed(START, base_raw)
    _, after = allowed(before, raw)
    shown = difference(before, after)
    found = active(before)
    items = [item for section in SECTIONS for item in shown[section] if "before" in item]
    for item in items:
        if item["before"]:
            found.pop(item["before"]["memory_id"], None)
    for item in items:
        if item["after"] and item["after"]["memory_id"] in active(after):
            found[item["after"]["memory_id"]] = item["after"]
    assert found == active(after)
    edges = {(edge.from_memory_id, edge.kind, edge.to_memory_id) for edge in before.edges}
    ends = ("from_memory_id", "kind", "to_memory_id")
    edges |= {tuple(item[name] for name in ends) for item in shown["relationships_added"]}
    edges -= {tuple(item[name] for name in ends) for item in shown["relationships_removed"]}
    assert edges == {(edge.from_memory_id, edge.kind, edge.to_memory_id) for edge in after.edges}


@given(HISTORY, HISTORY)
@settings(max_examples=examples(200))
def test_changes_laid_on_a_state_give_the_other_and_taken_back_the_first(
    base_raw: list[Any], raw: list[Any]
) -> None:
    _, before = allowed(START, base_raw)
    _, after = allowed(before, raw)
    there = {change.memory_id: change.after for change in changes(before, after)}
    back = {change.memory_id: change.before for change in changes(before, after)}
    assert {**before.records, **there} == dict(after.records)
    returned = {**after.records, **back}
    assert {name: record for name, record in returned.items() if record is not None} == dict(before.records)
    assert is_empty(difference(after, MemoryState({**before.records, **there}, after.edges)))  # type: ignore[dict-item]


def entries(state: MemoryState) -> tuple[list[Entry], list[Entry]]:
    memories = [
        Entry(memory_key(one.memory_id), bytes.fromhex(record_digest(salts(one.memory_id), one)), 1, 1, 1, 1)
        for one in records(state)
    ]
    edges = [
        Entry(edge_key(*_ends(edge)), bytes.fromhex(edge_digest(edge)), 1, 1, 1, 1) for edge in state.edges
    ]
    return memories, edges


def _ends(edge: Edge) -> tuple[str, str, str]:
    return edge.from_memory_id, edge.kind, edge.to_memory_id


def root_of(state: MemoryState) -> str:
    nodes = MemoryNodes()
    tries = [put_many(nodes, EMPTY, {entry.key: entry for entry in part}) for part in entries(state)]
    return state_root(*(tree.digest for tree in tries))


@pytest.mark.slow
@given(HISTORY, st.lists(st.integers(1, 4), min_size=14, max_size=14))
@settings(max_examples=examples(200))
def test_a_root_does_not_depend_on_how_ops_fell_into_changesets(raw: list[Any], sizes: list[int]) -> None:
    """Each cut of the same ops puts its own changed records on the tries, and ends at one root."""
    ops, final = allowed(START, raw)
    nodes, state = MemoryNodes(), START
    tries = [put_many(nodes, EMPTY, {entry.key: entry for entry in part}) for part in entries(START)]
    while ops:
        size = sizes.pop()
        applied = apply(state, ops[:size], salts=salts)
        state, ops = laid(state, applied), ops[size:]
        tries = _put(nodes, tries, state, applied.records, applied.edges)
    assert state == final
    assert state_root(*(tree.digest for tree in tries)) == root_of(final)


def _put(
    nodes: MemoryNodes,
    tries: list[Root],
    state: MemoryState,
    changed: dict[str, Record],
    edges: dict[Edge, bool],
) -> list[Root]:
    memories, related = entries(MemoryState(changed, state.edges))
    standing = {entry.key: entry for entry in related}
    edge_puts = {edge_key(*_ends(edge)): standing.get(edge_key(*_ends(edge))) for edge in edges}
    return [
        put_many(nodes, tries[0], {entry.key: entry for entry in memories}),
        put_many(nodes, tries[1], edge_puts),
    ]


@given(HISTORY, HISTORY)
@settings(max_examples=examples(150))
def test_two_states_have_one_root_only_if_they_are_equal(one_raw: list[Any], two_raw: list[Any]) -> None:
    (_, one), (_, two) = allowed(START, one_raw), allowed(START, two_raw)
    assert (root_of(one) == root_of(two)) is (one == two)

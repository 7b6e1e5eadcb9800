"""The live feed: positions, resumption, what a reader is told when it has missed too much."""

from __future__ import annotations

import threading

from memory_git.lethe.feed import Feed


def test_a_reader_after_a_position_gets_all_that_came_since_in_order() -> None:
    feed = Feed()
    start = feed.position
    feed.publish("ref_moved", "atlas", ref_name="refs/shared/main")
    second = feed.publish("conflict_opened", "atlas", conflict_id="c")
    seen = feed.after(start)
    assert [event.event_type for event in seen] == ["ref_moved", "conflict_opened"]
    assert feed.after(seen[0].position) == [second]
    assert feed.after(second.position) == []
    assert seen[0].to_json() == {"type": "ref_moved", "project_id": "atlas", "ref_name": "refs/shared/main"}


def test_a_reader_that_has_missed_more_than_the_ring_holds_is_told_to_read_anew() -> None:
    feed = Feed(capacity=2)
    start = feed.position
    for _ in range(3):
        feed.publish("ref_moved", "atlas")
    (reset,) = feed.after(start)
    assert (reset.event_type, reset.position) == ("reset", feed.position)


def test_a_position_of_another_start_of_the_future_or_of_no_form_is_a_reset() -> None:
    feed = Feed(epoch="aaaa0000")
    feed.publish("ref_moved", "atlas")
    for position in (
        "bbbb0000-0",
        "aaaa0000-2",
        "aaaa0000-",
        "aaaa0000--1",
        "x",
        "",
        "aaaa0000-" + "9" * 400,
        "aaaa0000-\u0661",
    ):
        assert [event.event_type for event in feed.after(position)] == ["reset"], position


def test_watchers_are_woken_by_each_event_and_by_the_close_until_they_leave() -> None:
    feed, woken = Feed(), []
    leave = feed.watch(lambda: woken.append(feed.closed))
    feed.publish("ref_moved", "atlas")
    feed.close()
    leave()
    feed.publish("ref_moved", "atlas")
    assert woken == [False, True]


def test_publishers_in_many_threads_give_every_event_a_position_of_its_own() -> None:
    feed = Feed()
    start = feed.position
    threads = [
        threading.Thread(target=lambda: [feed.publish("ref_moved", "atlas") for _ in range(100)])
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen = feed.after(start)
    assert len({event.position for event in seen}) == 800
    assert feed.position == seen[-1].position

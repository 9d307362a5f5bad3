"""Assignors of the ZooKeeper consumer, with results computed by hand."""

from dataclasses import replace

import pytest

from kassay import Group
from kassay.reference.assignors import assign
from kassay.reference.assignors.zookeeper_consumer import range_threads, roundrobin_threads
from kassay.reference.java_collections import string_hash
from kassay.reference.model.errors import UpstreamError
from tests.notation import group, lists


def with_streams(group: Group, **streams: int) -> Group:
    """Set the number of streams per topic of some members."""
    return replace(
        group,
        members=tuple(
            replace(m, streams=tuple((t, streams.get(m.id, 1)) for t in m.subscription))
            for m in group.members
        ),
    )


def test_range_splits_a_topic_over_threads_not_consumers() -> None:
    start = with_streams(group("t:5", a="t", b="t"), a=3)
    assert lists(start, "legacy-range") == {"a": "t-0 t-1 t-2 t-3", "b": "t-4"}
    threads = range_threads(start)
    assert [str(thread) for thread in threads.values()] == ["a-0", "a-0", "a-1", "a-2", "b-0"]


def test_consumer_thread_10_sorts_before_consumer_thread_2() -> None:
    start = with_streams(group("t:11", a="t"), a=11)
    numbers = [thread.number for thread in range_threads(start).values()]
    assert numbers == [0, 1, 10, 2, 3, 4, 5, 6, 7, 8, 9]


def test_consumer_threads_are_sorted_by_their_text() -> None:
    start = group("t:2", c_1="t", c="t")
    ids = {str(thread) for thread in range_threads(start).values()}
    assert ids == {"c-0", "c-1-0"}
    assert lists(start, "legacy-range") == {"c-1": "t-1", "c": "t-0"}


def test_consumer_threads_in_excess_of_the_partitions_are_idle() -> None:
    assert lists(with_streams(group("t:1", a="t", b="t"), a=2), "legacy-range") == {
        "a": "t-0",
        "b": "",
    }


def test_round_robin_sorts_partitions_by_hash() -> None:
    start = group("orders:2 audit:2", a="orders audit", b="orders audit")
    names = [(t, p) for t in ("audit", "orders") for p in range(2)]
    expected = sorted(names, key=lambda name: string_hash(f"[{name[0]},{name[1]}]"))
    assert list(roundrobin_threads(start)) == expected
    assignment = assign(start, "legacy-roundrobin")
    assert list(assignment["a"]) == expected[0::2]
    assert list(assignment["b"]) == expected[1::2]


def test_round_robin_rejects_different_topics() -> None:
    with pytest.raises(UpstreamError, match="IllegalArgumentException") as failure:
        assign(group("t:2 u:2", a="t u", b="t"), "legacy-roundrobin")
    assert "'u' has [a-0]" in failure.value.detail
    assert "'t' has [a-0, b-0]" in failure.value.detail


def test_round_robin_rejects_different_stream_counts() -> None:
    start = group("t:2 u:2", a="t u")
    (member,) = start.members
    uneven = replace(start, members=(replace(member, streams=(("t", 2), ("u", 1))),))
    with pytest.raises(UpstreamError, match="same threads for every topic"):
        assign(uneven, "legacy-roundrobin")

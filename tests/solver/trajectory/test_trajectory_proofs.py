"""Statements of docs/proofs.md on sequences of rebalances, on all small streams.

The environment variable ``LARGE_PROOFS`` selects the sizes of ``make proofs``.
"""

import os
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise, product

import pytest

from kassay.reference.assignors import assign
from kassay.reference.model.assignment import movement, rejoin
from kassay.reference.model.group import Group, Member, Topic
from kassay.solver.trajectory.trajectory import optimal_trajectory
from tests.solver.trajectory.all_streams import StreamSearch

LARGE = "LARGE_PROOFS" in os.environ
SOLVED_SIZES = [(3, 2, 4, 182), (2, 3, 3, 71), (3, 3, 2, 190)] if LARGE else [(2, 3, 3, 71)]
"""Members, partitions, rebalances, and number of streams with different costs."""

State = tuple[frozenset[int], int]  # members, partitions


def equal_streams(members: int, partitions: int, rebalances: int) -> Iterator[tuple[State, ...]]:
    """Yield all streams of equal subscriptions in which the number of partitions never falls."""
    sets = [
        frozenset(chosen)
        for size in range(1, members + 1)
        for chosen in combinations(range(members), size)
    ]
    counts = [
        row
        for row in product(range(1, partitions + 1), repeat=rebalances)
        if sorted(row) == list(row)
    ]
    for row in counts:
        for chosen in product(sets, repeat=rebalances):
            yield tuple(zip(chosen, row, strict=True))


def only_leaves_or_only_joins(stream: tuple[State, ...]) -> bool:
    pairs = pairwise(stream)
    return all(old <= new or new <= old for (old, _), (new, _) in pairs)


def costs(stream: tuple[State, ...]) -> tuple[int, int]:
    """Return the moves with hindsight, and the most if each rebalance makes the fewest moves.

    Partitions of equal subscriptions are interchangeable, so loads describe an assignment.
    """
    hindsight: dict[tuple[tuple[int, int], ...], int] = {(): 0}
    each = dict(hindsight)
    for members, partitions in stream:
        low, more = divmod(partitions, len(members))
        even = [
            tuple((member, low + (member in chosen)) for member in sorted(members))
            for chosen in combinations(sorted(members), more)
        ]
        moves = {
            (past, loads): sum(max(dict(past).get(m, 0) - load, 0) for m, load in loads)
            for past in {*hindsight, *each}
            for loads in even
        }
        fewest = {past: min(moves[past, loads] for loads in even) for past in each}
        each = {
            loads: max(each[past] + fewest[past] for past in ends)
            for loads in even
            if (ends := [past for past in each if moves[past, loads] == fewest[past]])
        }
        hindsight = {
            loads: min(value + moves[past, loads] for past, value in hindsight.items())
            for loads in even
        }
    return min(hindsight.values()), max(each.values())


def test_fewest_moves_at_each_rebalance_are_fewest_in_total() -> None:
    size = (4, 5, 3) if LARGE else (3, 4, 3)
    streams = [one for one in equal_streams(*size) if only_leaves_or_only_joins(one)]
    assert len(streams) == (33_355 if LARGE else 2_900)
    assert [one for one in streams if len(set(costs(one))) > 1] == []


@pytest.mark.parametrize(
    ("members", "partitions", "smallest"),
    [(4, 3, (4, 3)), (3, 6, None), (5, 2, None)] if LARGE else [(4, 3, (4, 3)), (3, 4, None)],
)
def test_the_smallest_counterexample_replaces_a_member_by_two(
    members: int, partitions: int, smallest: tuple[int, int] | None
) -> None:
    streams = equal_streams(members, partitions, 2)
    found = [one for one in streams if len(set(costs(one))) > 1]
    assert all(not only_leaves_or_only_joins(one) for one in found)
    sizes = {(len(first | second), count) for (first, _), (second, count) in found}
    assert sizes == ({smallest} if smallest else set())


@pytest.mark.parametrize("assignor", ["sticky", "uniform"])
def test_assignors_make_the_fewest_moves_in_total(assignor: str) -> None:
    streams = [one for one in equal_streams(3, 4, 3) if only_leaves_or_only_joins(one)]
    for stream in streams[:: 1 if LARGE else 25]:
        groups = [_group(*state) for state in stream]
        past, moves = None, 0
        for group in groups:
            owning = group if past is None else rejoin(group, past)
            past = assign(owning, assignor)
            moves += movement(owning, past)
        assert moves == optimal_trajectory(groups).moves


@pytest.mark.parametrize(
    ("members", "partitions", "rebalances"),
    [(3, 2, 4), (4, 2, 3), (2, 4, 4)] if LARGE else [(3, 2, 3), (2, 3, 3)],
)
def test_smaller_streams_need_no_hindsight(members: int, partitions: int, rebalances: int) -> None:
    found = StreamSearch(members, partitions).prefixes(rebalances)
    assert [one.groups for one in found if one.each.min() > one.hindsight.min()] == []


def test_three_rebalances_of_three_members_and_partitions_can_need_twice_the_moves() -> None:
    search = StreamSearch(3, 3)
    found = [*search.prefixes(3 if LARGE else 2)]
    assert all(one.each.min() == one.hindsight.min() for one in found if len(one.groups) < 3)
    if LARGE:
        ratios = {(int(one.each.min()), int(one.hindsight.min())) for one in found}
        assert {pair for pair in ratios if pair[0] > pair[1]} == {(2, 1), (3, 2)}


@pytest.mark.parametrize(("members", "partitions", "rebalances", "streams"), SOLVED_SIZES)
def test_the_search_finds_the_fewest_moves_of_all_small_streams(
    members: int, partitions: int, rebalances: int, streams: int
) -> None:
    count = 0
    for prefix in StreamSearch(members, partitions).prefixes(rebalances):
        found = optimal_trajectory([_group_of(masks, members) for masks in prefix.groups])
        assert (found.moves, found.bound) == (prefix.hindsight.min(), prefix.hindsight.min())
        count += 1
    assert count == streams


@pytest.mark.parametrize("length", [2, 3, 6])
def test_a_chain_needs_as_many_moves_as_its_length_without_hindsight(length: int) -> None:
    groups = chain_stream(length)
    found = optimal_trajectory(groups)
    assert (found.moves, found.bound) == (1, 1)
    assert found.one_after_the_other == (0, 0, length)


def chain_stream(length: int) -> list[Group]:
    """Return the stream of docs/proofs.md in which one early move saves a chain of moves."""
    consumers: list[dict[int, tuple[int, ...]]] = [
        {1: (0,)},
        {at: (at - 1, at % length) for at in range(1, length + 1)},
        {0: (0,), **{at: (at - 1, at) for at in range(1, length + 1)}},
    ]
    return [
        Group(
            topics=tuple(Topic(name=f"t{at}", partitions=1) for at in table),
            members=tuple(
                Member(
                    id=f"m{member}",
                    subscription=tuple(f"t{at}" for at, own in table.items() if member in own),
                )
                for member in range(length + 1)
            ),
        )
        for table in consumers
    ]


def _group_of(masks: Sequence[int], members: int) -> Group:
    topics = tuple(Topic(name=f"t{at}", partitions=1) for at in range(len(masks)))
    subscriptions = (
        tuple(f"t{at}" for at, mask in enumerate(masks) if mask >> member & 1)
        for member in range(members)
    )
    return Group(
        topics=topics,
        members=tuple(
            Member(id=f"m{at}", subscription=own) for at, own in enumerate(subscriptions)
        ),
    )


def _group(members: frozenset[int], partitions: int) -> Group:
    return Group(
        topics=(Topic(name="t", partitions=partitions),),
        members=tuple(Member(id=f"m{member}", subscription=("t",)) for member in sorted(members)),
    )

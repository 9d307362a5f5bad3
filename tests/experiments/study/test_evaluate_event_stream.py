from dataclasses import replace
from itertools import groupby

import pytest

from kassay.experiments.implementations.run_assignor import run_until_stable
from kassay.experiments.study.evaluate_case import (
    OPTIMUM,
    compare_trajectories,
    hindsight_trajectory,
)
from kassay.experiments.study.families.event_streams import (
    EventStreamFamily,
    StreamEvent,
    StreamStep,
)
from kassay.reference.model.group import Group, Member, Topic
from tests.integer_program import IntegerProgram
from tests.tiers import short_and_long

SMALL = EventStreamFamily(
    name="small",
    rebalances=12,
    large_groups=0.0,
    median_members=5,
    members_deviation=0.4,
    median_partitions_per_member=3.0,
    one_service=0.2,
)
ASSIGNORS = ("sticky", "cooperative-sticky", "uniform", "roundrobin", "range")


class FixedStream(EventStreamFamily):
    """Stream of one topic with 4 partitions: c joins a and b, then a leaves."""

    def stream(self, seed):
        topics = (Topic(name="t", partitions=4),)
        groups = ("ab", "abc", "bc")
        events = (StreamEvent.START, StreamEvent.SCALE_OUT, StreamEvent.SCALE_IN)
        for event, names in zip(events, groups, strict=True):
            members = tuple(Member(id=name, subscription=("t",)) for name in names)
            yield StreamStep(event, topics, members)


def rows_of(assignor, family=None, seed=0):
    family = family or FixedStream(name="fixed")
    rows = compare_trajectories(family, seed, [assignor]).rows
    return [row for row in rows if row.assignor == assignor]


def test_a_small_stream_has_the_moves_that_were_counted_by_hand():
    # Round robin gives a: 0, 2 and b: 1, 3; then a: 0, 3 and b: 1 and c: 2; then b: 0, 2, c: 1, 3.
    start, join, leave = rows_of("roundrobin")
    assert (start.owned, start.moves, start.makespan, start.least_makespan) == (0, 0, 2, 2)
    assert (join.owned, join.moves, join.fewest_moves, join.fewest_moves_within) == (4, 2, 1, 1)
    assert (join.sum_of_squares, join.least_sum_of_squares) == (6, 6)
    assert (leave.owned, leave.moves, leave.fewest_moves_within) == (2, 2, 0)


def test_each_assignor_has_the_same_events_and_its_own_past():
    rows = compare_trajectories(SMALL, 3, ASSIGNORS).rows
    shared = {
        (row.rebalance, row.event, row.members, row.partitions, row.least_sum_of_squares)
        for row in rows
    }
    assert len(shared) == SMALL.rebalances + 1
    assert [row.moves for row in rows if row.assignor == "range"] == [
        row.moves for row in rows_of("range", SMALL, 3)
    ]


@pytest.mark.parametrize("seed", short_and_long(*range(3)))
def test_all_values_equal_an_independent_computation(seed):
    rows = compare_trajectories(SMALL, seed, ASSIGNORS).rows
    steps = list(SMALL.stream(seed))
    for assignor, own in groupby(sorted(rows, key=lambda row: row.assignor), lambda r: r.assignor):
        owner: dict[tuple[str, int], str] = {}
        for step, row in zip(steps, own, strict=True):
            names = {member.id for member in step.members}
            owner = {p: member for p, member in owner.items() if member in names}
            valid = {p: m for p, m in owner.items() if p[0] in subscriptions(step)[m]}
            program = IntegerProgram(rebalancing(step, valid, row.rebalance))
            squares, moves = program.flow_optimum()
            assert (row.least_sum_of_squares, row.fewest_moves) == (squares, moves)
            assert row.owned == len(valid)
            if assignor == OPTIMUM:
                assert (row.sum_of_squares, row.moves) == (squares, moves)
                break  # equal optima can differ, and with them the further states
            group = rebalancing(step, owner, row.rebalance)
            lists = run_until_stable(group, assignor).assignment.items()
            owner = {tuple(p): member for member, partitions in lists for p in partitions}
            loads = {member: list(owner.values()).count(member) for member in names}
            assert row.makespan == max(loads.values())
            assert row.sum_of_squares == sum(load**2 for load in loads.values())
            assert row.moves == sum(owner[p] != member for p, member in valid.items())
            within = program.least("moves", squares=row.sum_of_squares)
            assert row.fewest_moves_within in (None, within)
            assert row.fewest_moves_within is not None or within < row.moves


def subscriptions(step):
    return {member.id: set(member.subscription) for member in step.members}


def rebalancing(step, owner, generation):
    """Return the group of a step, in which each owner claims its partitions."""
    claims = {one.id: [p for p, name in owner.items() if name == one.id] for one in step.members}
    members = (
        replace(one, owned=claims[one.id], generation=generation if claims[one.id] else -1)
        for one in step.members
    )
    return Group(step.topics, tuple(members))


def test_hindsight_has_minimum_imbalance_and_at_most_the_moves_of_the_optimum() -> None:
    family = replace(SMALL, one_service=0.0)
    hindsight = [row for seed in range(2) for row in hindsight_trajectory(family, seed).rows]
    optimum = [row for seed in range(4) for row in compare_trajectories(family, seed, []).rows]
    assert all(row.sum_of_squares == row.least_sum_of_squares for row in hindsight)
    assert 0 < len(hindsight) <= len(optimum)
    assert sum(row.moves or 0 for row in hindsight) <= sum(row.moves or 0 for row in optimum)

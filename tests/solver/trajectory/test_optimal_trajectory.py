"""Trajectories with the fewest moves, against exhaustive search and an integer program."""

from collections.abc import Sequence

import pytest

from kassay.reference.model.assignment import movement, rejoin
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import Group, Member, Topic
from kassay.reference.model.load_metrics import Measure, sum_of_squares
from kassay.solver.certificate.certificate import Proof
from kassay.solver.certificate.check import trajectory_errors
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import Imbalance, Movement, Tolerance, TopicSpread
from kassay.solver.solve import solve
from kassay.solver.trajectory import trajectory_search
from kassay.solver.trajectory.trajectory import Trajectory, optimal_trajectory
from tests.notation import changed, even_group
from tests.solver.trajectory.reference_optima import (
    churning_stream,
    fewest_moves,
    fewest_moves_by_integer_program,
    random_stream,
    tiny_streams,
)
from tests.tiers import short_and_long


def checked(groups: Sequence[Group], found: Trajectory) -> Trajectory:
    """Check the certificate of a trajectory, and its moves by the metric of single rebalances."""
    assert list(trajectory_errors(groups, found.assignments, found.certificate)) == []
    group, moves = groups[0], []
    for number, assignment in enumerate(found.assignments):
        moves.append(movement(group, assignment))
        if number + 1 < len(groups):
            group = rejoin(groups[number + 1], assignment)
    assert tuple(moves) == found.per_rebalance
    assert found.bound <= found.moves <= sum(found.one_after_the_other)
    return found


# All streams with the given partitions of two topics, up to the names of the members, or a sample.
@pytest.mark.parametrize(
    ("sizes", "members", "sample"),
    short_and_long(
        (((2, 2), (2, 2), (2, 2), (2, 2)), 2, 40),
        (((2, 2), (2, 2), (2, 2), (2, 2)), 2, 1_000),
        (((2, 2), (2, 2), (2, 2)), 2, None),
        (((1, 2), (2, 2), (3, 1)), 2, None),
        (((1, 1), (2, 2)), 3, None),
        (((2, 2), (2, 2), (2, 2)), 3, 1_000),
        (((1, 1), (2, 1), (2, 2)), 3, 1_000),
    ),
)
def test_tiny_streams_match_exhaustive_search(
    sizes: Sequence[tuple[int, int]], members: int, sample: int | None
) -> None:
    for groups in tiny_streams(sizes, members, sample):
        found = checked(groups, optimal_trajectory(groups))
        assert (found.moves, found.is_optimal) == (fewest_moves(groups), True)


@pytest.mark.parametrize(("first", "end"), short_and_long((0, 20), (20, 1_000), (1_000, 2_000)))
def test_random_streams_match_an_integer_program(first: int, end: int) -> None:
    for seed in range(first, end):
        groups = random_stream(seed)
        found = checked(groups, optimal_trajectory(groups))
        assert (found.moves, found.bound) == (fewest_moves_by_integer_program(groups),) * 2


@pytest.mark.parametrize("seed", range(10))
def test_each_rebalance_has_minimum_imbalance(seed: int) -> None:
    groups = random_stream(seed)
    for group, assignment in zip(groups, optimal_trajectory(groups).assignments, strict=True):
        loads = [len(partitions) for partitions in assignment.values()]
        assert sum_of_squares(loads) == solve(group).imbalance.value


@pytest.mark.parametrize("seed", range(20))
def test_a_tolerance_of_the_maximum_load_matches_an_integer_program(seed: int) -> None:
    groups = random_stream(seed)
    most = max(max(map(len, one.values()), default=0) for one in _even(groups))
    levels = (Imbalance(Measure.MAKESPAN, Tolerance(up_to=most)), Movement())
    found = checked(groups, optimal_trajectory(groups, levels=levels))
    assert found.moves == fewest_moves_by_integer_program(groups, most=most)


def test_a_tolerance_never_increases_the_moves() -> None:
    groups = random_stream(3)
    moves = [
        optimal_trajectory(
            groups, levels=(Imbalance(Measure.MAKESPAN, Tolerance(absolute=excess)), Movement())
        ).moves
        for excess in range(4)
    ]
    assert moves == sorted(moves, reverse=True)


def test_capacities_limit_the_loads() -> None:
    def group(*capacities: int) -> Group:
        limits = {f"c{at}": {"capacity": one} for at, one in enumerate(capacities)}
        return changed(even_group([1] * 6, len(capacities)), **limits)

    groups = [group(2, 6), group(5, 5), group(1, 5)]
    found = checked(groups, optimal_trajectory(groups))
    assert [[len(own) for own in one.values()] for one in found.assignments] == [
        [2, 4],
        [3, 3],
        [1, 5],
    ]
    assert (found.moves, found.proof) == (3, Proof.CERTIFICATE)
    with pytest.raises(InputError, match=r"groups\[1\]: no assignment meets the capacities"):
        optimal_trajectory([groups[0], group(1, 2)])


def test_a_search_without_time_returns_the_fewest_moves_one_after_the_other() -> None:
    groups = random_stream(7)
    found = checked(groups, optimal_trajectory(groups, limits=SearchLimits(time=0)))
    assert found.moves == sum(found.one_after_the_other)
    assert found.bound == 0


def test_empty_groups_have_no_moves() -> None:
    found = checked([Group(topics=(), members=())] * 2, optimal_trajectory([Group((), ())] * 2))
    assert (found.moves, found.is_optimal) == (0, True)


def test_unsupported_input_is_a_usage_error() -> None:
    weighted = even_group((1, 2), 1)
    with pytest.raises(UsageError, match="pass at least one group"):
        optimal_trajectory([])
    with pytest.raises(UsageError, match="must be makespan, got sum_of_squares"):
        optimal_trajectory([Group((), ()), weighted], levels=(Imbalance(), Movement()))
    large = even_group((1, 2**44), 1)
    with pytest.raises(UsageError, match=r"groups\[0\]: the total load must be below 175921860444"):
        optimal_trajectory([large])
    shared = Group((Topic("t", 1, copies=((2, 2),)),), (Member("a", ("t",)), Member("b", ("t",))))
    with pytest.raises(UsageError, match="neither partitions with several members"):
        optimal_trajectory([shared])
    with pytest.raises(UsageError, match="a trajectory minimises makespan"):
        optimal_trajectory([Group((), ())], levels=(Imbalance(), Movement(), TopicSpread()))


def _even(groups: Sequence[Group]) -> list[dict[str, object]]:
    return [dict(solve(group).assignment or {}) for group in groups]


def test_large_streams_reach_the_bound_by_flows_and_windows(monkeypatch) -> None:
    monkeypatch.setattr(trajectory_search, "_MAX_SIMPLEX", 0)
    monkeypatch.setattr(trajectory_search, "_MAX_BRANCHING", 0)
    groups = churning_stream(0, members=8, partitions=80, rebalances=12)
    found = checked(groups, optimal_trajectory(groups))
    assert found.moves == found.bound < sum(found.one_after_the_other)

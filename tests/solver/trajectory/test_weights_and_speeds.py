"""Trajectories with weights and speeds, against exhaustive search."""

import random
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import pytest

from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group, Member, Topic
from kassay.solver.certificate.certificate import Proof
from kassay.solver.certificate.check import trajectory_errors
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import Imbalance, Movement, Tolerance
from kassay.solver.trajectory import linear_program
from kassay.solver.trajectory.trajectory import Trajectory, optimal_trajectory
from tests.notation import changed, even_group
from tests.solver.trajectory.reference_optima import fewest_moves, weighted_stream
from tests.tiers import short_and_long


def checked(groups: Sequence[Group], found: Trajectory) -> Trajectory:
    assert list(trajectory_errors(groups, found.assignments, found.certificate)) == []
    return found


def makespan(excess: Fraction) -> tuple[Imbalance, Movement]:
    return Imbalance("makespan", Tolerance(relative=excess)), Movement()


@pytest.mark.parametrize(("first", "end"), short_and_long((0, 15), (15, 300)))
@pytest.mark.parametrize("excess", [Fraction(0), Fraction(1, 4)])
def test_weights_and_speeds_match_exhaustive_search(first: int, end: int, excess: Fraction) -> None:
    for seed in range(first, end):
        groups = weighted_stream(seed, partitions=5, members=3)
        found = checked(groups, optimal_trajectory(groups, levels=makespan(excess)))
        expected = fewest_moves(groups, measure="makespan", excess=excess)
        assert (found.moves, found.is_optimal) == (expected, True)


def test_no_program_of_a_stream_with_different_speeds_is_solved_by_highs(monkeypatch) -> None:
    monkeypatch.setattr(linear_program, "milp", None)

    for seed in range(10):
        rng = random.Random(seed)
        groups = [
            changed(
                even_group([1] * 5, 3),
                **{f"c{at}": {"speed": rng.randint(1, 3)} for at in range(3)},
            )
            for _ in range(3)
        ]
        assert checked(groups, optimal_trajectory(groups)).is_optimal


def test_an_unproven_limit_of_the_load_is_no_optimum() -> None:
    groups = weighted_stream(1, partitions=40, members=5, most=10**6)
    found = checked(groups, optimal_trajectory(groups, limits=SearchLimits(time=0)))
    assert not all(one.is_proven for one in found.load_limits)
    assert (found.is_optimal, found.proof) == (False, Proof.NONE)


def test_a_capacity_is_a_load_if_weights_differ() -> None:
    group = even_group((5, 3, 3), 2)
    groups = [group, changed(group, c0={"capacity": 4})]
    found = checked(groups, optimal_trajectory(groups))
    assert [one.value for one in found.load_limits] == [6, 8]
    assert (found.moves, found.proof) == (1, Proof.CERTIFICATE)


@pytest.mark.parametrize("weight", [1, 10])
@pytest.mark.parametrize("excess", [0, 1, 2])
def test_a_tolerance_has_the_unit_of_equal_weights(weight, excess):
    group = even_group([weight] * 4, 2, [0] * 4)
    for tolerance in (
        Tolerance(absolute=excess * weight),
        Tolerance(absolute=excess * weight + weight - 1),
        Tolerance(up_to=(2 + excess) * weight),
        Tolerance(relative=Fraction(excess, 2)),
    ):
        found = optimal_trajectory([group], levels=(Imbalance("makespan", tolerance), Movement()))
        assert (found.moves, found.bound) == (2 - excess, 2 - excess)
        checked([group], found)


@pytest.mark.parametrize("weights", [(1, 1, 1), (1, 2, 3)])
def test_a_tolerance_may_exceed_64_bits(weights):
    members = (Member("a", ("t",), owned=[("t", 0), ("t", 1), ("t", 2)]), Member("b", ("t",)))
    group = Group((Topic("t", 3, weights=weights),), members)
    levels = (Imbalance("makespan", Tolerance(up_to=2**70)), Movement())
    assert checked([group], optimal_trajectory([group], levels=levels)).moves == 0


def test_capacities_are_not_called_impossible_if_the_time_ends():
    rng = random.Random(0)
    pairs = [(rng.randint(201, 399), rng.randint(251, 349)) for _ in range(12)]
    weights = tuple(weight for a, b in pairs for weight in (a, b, 1000 - a - b))
    members = tuple(Member(f"m{at}", ("t",), capacity=1000) for at in range(12))
    group = Group((Topic("t", 36, weights=weights),), members)
    with pytest.raises(InputError, match="was found; increase the work limit"):
        optimal_trajectory([group], limits=SearchLimits(time=0))
    smaller = replace(group, members=members[:-1])
    with pytest.raises(InputError, match="no assignment meets the capacities"):
        optimal_trajectory([smaller], limits=SearchLimits(time=10))

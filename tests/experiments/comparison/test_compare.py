from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kassay import Assignment, Group, Member, Topic, movement, violations
from kassay.experiments.comparison.compare import CaseLimits, compare, keep_owners, solve_optimum
from kassay.experiments.comparison.comparison_result import ComparedValue
from kassay.experiments.implementations.runner import Ending, StableResult
from kassay.experiments.study.families.fixed_groups import NAMED_GROUPS
from kassay.reference.assignors import assign
from tests import brute_force
from tests.strategies import groups, valid_assignments


def stable(assignment: Assignment) -> StableResult:
    return StableResult(ending=Ending.OK, assignment=assignment, rounds=1)


def three_members() -> Group:
    owned = [[("t", 0), ("t", 1), ("t", 2)], [("t", 3), ("t", 4), ("t", 5)], []]
    return Group(
        id="three",
        topics=(Topic(name="t", partitions=6),),
        members=tuple(
            Member(id=f"c{i}", subscription=("t",), owned=owned[i], generation=1) for i in range(3)
        ),
    )


def test_with_weights_only_the_makespan_has_an_optimum():
    group = Group(
        topics=(Topic(name="t", partitions=3, weights=(5, 4, 1)),),
        members=(Member(id="a", subscription=("t",)), Member(id="b", subscription=("t",))),
    )
    result = compare(group, "any", result=stable(Assignment({"a": [("t", n) for n in range(3)]})))
    assert result.measure == "makespan"
    assert (
        result.imbalance["makespan"].value,
        result.imbalance["makespan"].optimum,
        result.imbalance["makespan"].gap,
    ) == (10, 5, 5)
    assert result.imbalance["sum_of_squares"] == ComparedValue(100)
    assert result.imbalance["sum_of_squares"].gap is None


def test_capacities_are_ignored():
    group = three_members()
    limited = replace(group, members=tuple(replace(m, capacity=0) for m in group.members))
    assert solve_optimum(limited).imbalance.value == solve_optimum(group).imbalance.value == 12


@pytest.mark.parametrize("ending", [Ending.NONTERMINATING, Ending.FAILED, Ending.INVALID])
def test_without_an_assignment_only_the_optimum_is_known(ending):
    no_assignment = StableResult(ending=ending, assignment=None, rounds=1, detail="why")
    result = compare(three_members(), "any", result=no_assignment)
    assert (result.ending, result.detail) == (str(ending), "why")
    assert (result.imbalance["sum_of_squares"].optimum, result.movement.optimum) == (12, 2)
    assert result.least_imbalance is None
    assert result.imbalance["sum_of_squares"].gap is None
    assert result.unnecessary_moves is None


def test_necessary_moves_of_groups_above_the_size_limit_are_unknown():
    uneven = Assignment(
        {"c0": [("t", 3), ("t", 1), ("t", 2)], "c1": [("t", 0), ("t", 4)], "c2": [("t", 5)]}
    )
    limits = CaseLimits(within_partitions=5)
    result = compare(three_members(), "any", result=stable(uneven), limits=limits)
    assert (result.movement_within, result.unnecessary_moves) == (None, None)
    assert result.movement.value == 3


@pytest.mark.parametrize(
    ("name", "assignor", "gap", "moves", "fewest", "unnecessary"),
    [
        ("A", "sticky", 2, 0, 0, 0),
        ("B", "sticky", 2, 0, 2, 0),
        ("C", "sticky", 0, 2, 1, 1),
        ("E", "uniform", 2, 0, 2, 0),
    ],
)
def test_named_groups_have_their_documented_gaps(name, assignor, gap, moves, fewest, unnecessary):
    result = compare(NAMED_GROUPS[name].group, assignor)
    assert result.imbalance["sum_of_squares"].gap == gap
    assert result.movement == ComparedValue.with_optimum(moves, fewest)
    assert result.unnecessary_moves == unnecessary


def test_sticky_does_not_terminate_on_group_d():
    result = compare(NAMED_GROUPS["D"].group, "sticky")
    assert result.ending == "nonterminating"
    assert "repeats" in result.detail
    assert (result.imbalance["makespan"].optimum, result.movement.optimum) == (5, 4)


@given(data=st.data(), group=groups())
def test_unnecessary_moves_match_brute_force(data, group):
    assignment = data.draw(valid_assignments(group))
    result = compare(group, "any", result=stable(assignment))
    level = result.imbalance["sum_of_squares"].value
    fewest = min(
        moves
        for loads, moves in brute_force.reachable(group).items()
        if sum(load * load for load in loads) <= level
    )
    assert result.movement_within == fewest
    assert result.unnecessary_moves == movement(group, assignment) - fewest
    assert (
        result.imbalance["sum_of_squares"].optimum,
        result.movement.optimum,
    ) == brute_force.optimum(group)


@given(group=groups(messy=True))
def test_keeping_owners_is_valid_and_moves_nothing(group):
    assignment = keep_owners(group)
    assert list(violations(group, assignment)) == []
    assert movement(group, assignment) == 0


def test_a_function_is_compared_as_an_assignor():
    group = NAMED_GROUPS["C"].group

    def own(group):
        return assign(group, "sticky")

    def broken(_group):
        raise KeyError("m")

    def incomplete(_group):
        return {}

    assert compare(group, own).movement == compare(group, "sticky").movement
    assert compare(group, own).assignor == "own"
    failed = compare(group, broken)
    assert (failed.ending, failed.detail) == ("failed", "KeyError: 'm'")
    assert compare(group, incomplete).ending == "invalid"

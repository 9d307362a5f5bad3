import pytest
from hypothesis import given
from hypothesis import strategies as st

from kassay import Assignment, movement, violations
from kassay.experiments.comparison.compare import CaseLimits, compare, keep_owners, solve_optimum
from kassay.experiments.comparison.comparison_result import ComparedValue
from kassay.experiments.implementations.run_assignor import Ending, StableResult
from kassay.experiments.study.families.finite_families import NAMED_GROUPS
from kassay.reference.assignors import assign
from tests import brute_force
from tests.notation import changed, even_group
from tests.stored_cases import stored_cases
from tests.strategies import groups, valid_assignments


def stable(assignment: Assignment) -> StableResult:
    return StableResult(ending=Ending.OK, assignment=assignment, rounds=1)


THREE_MEMBERS = even_group([1] * 6, 3, [0, 0, 0, 1, 1, 1])


def test_with_weights_only_the_makespan_has_an_optimum():
    group = even_group((5, 4, 1), 2)
    result = compare(group, "any", result=stable(Assignment({"c0": [("t", n) for n in range(3)]})))
    assert result.measure == "makespan"
    makespan = result.imbalance["makespan"]
    assert (makespan.value, makespan.optimum, makespan.gap) == (10, 5, 5)
    assert result.imbalance["sum_of_squares"] == ComparedValue(100)
    assert result.imbalance["sum_of_squares"].gap is None


def test_capacities_are_ignored():
    limited = changed(THREE_MEMBERS, **{f"c{at}": {"capacity": 0} for at in range(3)})
    for group in (limited, THREE_MEMBERS):
        assert solve_optimum(group).imbalance.value == 12


@pytest.mark.parametrize("ending", [Ending.NONTERMINATING, Ending.FAILED, Ending.INVALID])
def test_without_an_assignment_only_the_optimum_is_known(ending):
    no_assignment = StableResult(ending=ending, assignment=None, rounds=1, detail="why")
    result = compare(THREE_MEMBERS, "any", result=no_assignment)
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
    result = compare(THREE_MEMBERS, "any", result=stable(uneven), limits=limits)
    assert (result.movement_within, result.unnecessary_moves) == (None, None)
    assert result.movement.value == 3


@pytest.mark.parametrize(
    ("name", "assignor", "gap", "moves", "fewest", "unnecessary"), stored_cases("documented_gaps")
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

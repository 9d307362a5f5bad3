"""Comparison of all placements, against brute force: every level and constraint."""

import random

import pytest

from kassay.reference import Group
from kassay.solver.enumeration.complete_search import minimal_conflict, search_all
from kassay.solver.enumeration.placement_table import list_placements
from kassay.solver.objective import leximax_rank
from kassay.solver.problem import build_problem
from tests import brute_force
from tests.solver.random_cases import (
    allows,
    random_constraint,
    random_group,
    random_level,
    value_of,
)
from tests.solver.test_weighted import even_group


def as_number(value: object) -> object:
    return leximax_rank(value) if isinstance(value, tuple) else value


@pytest.mark.parametrize("seed", range(4))
def test_any_levels_under_any_constraints_agree_with_brute_force(seed):
    rng = random.Random(seed)
    for _ in range(60):
        group = random_group(rng, weighted=rng.random() < 0.5, racked=True, most=(3, 3, 6))
        levels = [random_level(rng, group) for _ in range(rng.randint(1, 3))]
        constraints = tuple(random_constraint(rng, group) for _ in range(rng.randint(0, 3)))
        result = search_all(build_problem(group), levels, constraints)
        best = brute_force.lexicographic_optimum(
            group,
            [value_of(group, level) for level in levels],
            allowed=allows(group, constraints),
        )
        assert (result.placement is None) == (best is None)
        if best is not None:
            assert list(result.minima) == [as_number(value) for value in best]


def test_a_conflict_is_infeasible_and_minimal():
    rng = random.Random(7)
    seen = 0
    while seen < 30:
        group = random_group(rng, most=(3, 3, 5))
        constraints = tuple(random_constraint(rng, group) for _ in range(4))
        if any(map(allows(group, constraints), brute_force.every_placement(group))):
            continue
        seen += 1
        conflict = minimal_conflict(build_problem(group), constraints)
        for left_out in conflict:
            others = tuple(one for one in conflict if one is not left_out)
            assert any(map(allows(group, others), brute_force.every_placement(group)))


def test_a_group_without_partitions_has_one_placement():
    table = list_placements(build_problem(Group(topics=(), members=())), ())
    assert len(table.members) == 1


def test_a_group_with_many_placements_is_not_listed():
    assert list_placements(build_problem(even_group([1] * 40, 3)), ()) is None

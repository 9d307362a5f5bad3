"""Costs of moves beyond 64 bits within constraints."""

import random

import pytest

from kassay import Group, Imbalance, Member, Movement, Topic, solve
from kassay.solver.constraints import Colocated, MaxMoves, MaxPartitions
from kassay.solver.limits import SearchLimits


@pytest.mark.parametrize("rules", [(MaxPartitions(9),), (Colocated(("t", "u")), MaxMoves(13))])
def test_costs_of_moves_beyond_64_bits_are_accepted(rules):
    rng = random.Random(2)
    topics = tuple(
        Topic(name, 12, weights=tuple(rng.randint(1, 50) for _ in range(12))) for name in "tu"
    )
    owned = [[(name, at) for name in "tu" for at in range(12) if at % 3 == m] for m in range(3)]
    members = tuple(
        Member(f"m{at}", ("t", "u"), owned=owned[at], generation=1, speed=1 + at // 2)
        for at in range(3)
    )
    costs = {(name, at): 2**80 + at for name in "tu" for at in range(12)}
    levels = (Imbalance("makespan"), Movement(costs))
    for group in (Group(topics, members), Group(topics, members[:2])):
        limits = SearchLimits(work=0.5)
        solution = solve(group, levels=levels, constraints=rules, limits=limits)
        assert solution.assignment is None or solution.levels[0].bound > 0

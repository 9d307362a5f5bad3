"""Constraints, levels and tolerances that the answer already meets make it no worse."""

import pytest

from kassay.solver.limits import SearchLimits
from tests.solver.void_additions import is_worse, medium_call, void_additions
from tests.tiers import short_and_long

LIMITS = SearchLimits(time=600, deterministic=0.003)


@pytest.mark.parametrize("seed", short_and_long(0, 1, 2, 3, 4, 5, 6, 7))
def test_a_void_addition_makes_the_answer_no_worse(seed):
    call = medium_call(seed, partitions=18, members=5)
    before = call.solve(LIMITS)
    worse = [
        (added.levels, added.constraints, after.levels)
        for added in void_additions(call, before, seed)
        if is_worse(call, before, after := added.solve(LIMITS))
    ]
    assert worse == []

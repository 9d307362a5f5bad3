"""Default levels and their tolerance: 2% of the maximum load if weights differ."""

import pytest

from kassay import Group, Imbalance, InputError, Member, Movement, SearchLimits, Topic, solve
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import UsageError
from kassay.solver.certificate.documents import parse_certificate
from kassay.solver.objective import default_levels
from kassay.solver.solution import LevelValue, Solution
from tests.log_normal_groups import log_normal_group

EVEN = Group((Topic("t", 3),), (Member("a", ("t",), owned=[("t", 0)]), Member("b", ("t",))))
WEIGHTED = log_normal_group(60, 5, seed=1)


def test_equal_weights_have_no_tolerance():
    assert default_levels(EVEN) == (Imbalance(), Movement())


def test_the_maximum_load_of_a_weighted_group_exceeds_its_bound_by_at_most_two_percent():
    exact = solve(WEIGHTED, levels=["makespan", "movement"], limits=SearchLimits(work=3))
    default = solve(WEIGHTED)
    assert [level.name for level in default.levels] == ["makespan", "movement", "sum_of_squares"]
    assert default.imbalance.value <= exact.imbalance.value * 102 // 100
    assert default.movement.value < exact.movement.value


@pytest.mark.parametrize(("is_preference", "status"), [(True, "optimal"), (False, "feasible")])
def test_only_a_preference_needs_no_proof(is_preference, status):
    even = LevelValue("sum_of_squares", 9, 8, is_preference=is_preference)
    levels = (LevelValue("makespan", 5, 5), LevelValue("movement", 1, 1), even)
    assert Solution(Assignment({}), "cp-sat", levels=levels).status == status


def test_only_the_last_level_may_be_a_preference():
    with pytest.raises(UsageError, match="only the last level"):
        solve(EVEN, levels=[Imbalance(is_preference=True), Movement()])
    claim = {"value": 0, "bound": 0, "origin": "counting"}
    claims = [
        {"level": "sum_of_squares", "preference": True, **claim},
        {"level": "movement", **claim},
    ]
    with pytest.raises(InputError, match=r"claims\[0\].preference"):
        parse_certificate({"version": 4, "claims": claims})

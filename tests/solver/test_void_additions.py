"""Constraints, levels and tolerances that the answer already meets make it no worse."""

import pytest

from kassay import solver
from kassay.reference import Group, Member, Topic
from kassay.solver.evaluation import binding_constraints
from kassay.solver.limits import SearchLimits
from kassay.solver.problem import build_problem
from tests.solver.void_additions import is_worse, medium_call, void_additions
from tests.tiers import short_and_long

GROUP = Group(
    topics=(Topic(name="t", partitions=3), Topic(name="own", partitions=1)),
    members=(
        Member(id="a", subscription=("t", "own"), owned=[("t", 0), ("t", 1)], generation=1),
        Member(id="b", subscription=("t",), capacity=4),
    ),
)
VOID = (
    solver.Capacity(4),
    solver.MaxPartitions(4, "a"),
    solver.MaxMoves(2),
    solver.Pinned("own", 0, "a"),
    solver.Forbidden("b", "own"),
    solver.Colocated(("t",)),
    solver.Separated((("t", 0),)),
)
BINDING = (
    solver.Capacity(3),
    solver.MaxPartitions(3, "a"),
    solver.MaxMoves(1),
    solver.Pinned("t", 0, "a"),
    solver.Forbidden("a", "own"),
    solver.Colocated(("t", "own")),
    solver.Separated((("t", 0), ("t", 1))),
)


@pytest.mark.parametrize("rules", [*((rule,) for rule in VOID), VOID], ids=str)
def test_the_method_does_not_depend_on_constraints_that_every_assignment_meets(rules):
    plain, solution = solver.solve(GROUP), solver.solve(GROUP, constraints=rules)
    assert solution.method == plain.method == "flow"
    assert solution.levels == plain.levels
    errors = solver.certificate_errors(GROUP, solution.assignment, solution.certificate)
    assert list(errors) == []
    assert solution.certificate.constraints == rules


@pytest.mark.parametrize("rule", BINDING, ids=str)
def test_a_constraint_that_some_assignment_violates_is_kept(rule):
    problem = build_problem(GROUP)
    assert binding_constraints(problem, [*VOID, rule]) == (rule,)


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

"""Constraints that all assignments or the answer meet, and constraints that are added in turn."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import kassay
from kassay import Assignment, Group, Member, Topic
from kassay.reference.model.errors import UsageError
from kassay.solver.certificate import check
from kassay.solver.certificate.certificate import LevelClaim, Origin, stable_claims
from kassay.solver.cpsat.model import symmetry_classes
from kassay.solver.enumeration import list_placements
from kassay.solver.evaluation import binding_constraints, violated
from kassay.solver.objective import Imbalance, MembersUsed, Movement, Tolerance, TopicSpread
from kassay.solver.problem import build_problem
from tests.solver.void_additions import LIMITS, medium_call, void_additions

GROUP = Group(
    topics=(Topic(name="t", partitions=3), Topic(name="own", partitions=1)),
    members=(
        Member(id="a", subscription=("t", "own"), owned=[("t", 0), ("t", 1)], generation=1),
        Member(id="b", subscription=("t",), capacity=4),
    ),
)
# Each constraint with a value that every assignment meets, and with one that some violate.
VOID, BINDING = zip(
    (kassay.Capacity(4), kassay.Capacity(3)),
    (kassay.MaxPartitions(4, "a"), kassay.MaxPartitions(3, "a")),
    (kassay.MaxMoves(2), kassay.MaxMoves(1)),
    (kassay.Pinned("own", 0, "a"), kassay.Pinned("t", 0, "a")),
    (kassay.Forbidden("b", "own"), kassay.Forbidden("a", "own")),
    (kassay.Colocated(("t",)), kassay.Colocated(("t", "own"))),
    (kassay.Separated((("t", 0),)), kassay.Separated((("t", 0), ("t", 1)))),
    strict=True,
)


@pytest.mark.parametrize("rules", [*((rule,) for rule in VOID), VOID], ids=str)
def test_the_method_does_not_depend_on_constraints_that_every_assignment_meets(rules):
    plain, solution = kassay.solve(GROUP), kassay.solve(GROUP, constraints=rules)
    assert solution.method == plain.method == "flow"
    assert solution.levels == plain.levels
    errors = check.certificate_errors(GROUP, solution.assignment, solution.certificate)
    assert list(errors) == []
    assert solution.certificate.constraints == rules


@pytest.mark.parametrize("rule", BINDING, ids=str)
def test_a_constraint_that_some_assignment_violates_is_kept(rule):
    problem = build_problem(GROUP)
    assert binding_constraints(problem, [*VOID, rule]) == (rule,)


@dataclass(frozen=True)
class Unknown:
    """Constraint of a type that the solver does not know."""


@pytest.mark.parametrize(
    "ask",
    [
        lambda problem, rule: list(violated(problem, [rule], np.zeros(4, dtype=np.int32))),
        lambda problem, rule: binding_constraints(problem, [rule]),
        lambda problem, rule: list_placements(problem, [rule]),
        lambda problem, rule: symmetry_classes(problem, (), [rule]),
    ],
    ids=["evaluation", "void constraints", "enumeration", "cp-sat"],
)
def test_a_constraint_without_a_definition_is_an_error(ask):
    with pytest.raises(AssertionError, match="Unknown"):
        ask(build_problem(GROUP), Unknown())
    with pytest.raises(UsageError, match="got Unknown"):
        kassay.solve(GROUP, constraints=[Unknown()])


@pytest.mark.parametrize("rule", [kassay.MaxMoves(1), kassay.Separated((("t", 0), ("t", 1)))])
def test_an_optimum_of_flows_that_meets_a_constraint_is_the_answer(rule):
    levels = ("sum_of_squares", "topic_spread", "movement")
    plain, solution = (
        kassay.solve(GROUP, levels=levels, constraints=rules) for rules in ((), (rule,))
    )
    assert (solution.method, solution.levels) == (plain.method, plain.levels)
    certificate = solution.certificate
    assert list(check.certificate_errors(GROUP, solution.assignment, certificate)) == []
    moved = Assignment({"a": (("t", 0), ("t", 1), ("t", 2), ("own", 0)), "b": ()})
    assert list(check.certificate_errors(GROUP, moved, certificate)) != []


def test_constraints_are_added_one_by_one_if_no_answer_meets_all_of_them_at_once():
    call = medium_call(16)
    added = [*void_additions(call, call.solve(LIMITS), 16)][7]
    assert len(added.constraints) > len(call.constraints) >= 2
    found = added.solve(LIMITS)
    assert found.assignment is not None
    problem = build_problem(call.group)
    assert not any(violated(problem, added.constraints, problem.to_placement(found.assignment)))


def test_bounds_stay_valid_up_to_the_level_after_the_first_that_can_become_lower():
    group = Group((Topic("t", 4),), (Member("a", ("t",)), Member("b", ("t",))))
    levels = (Imbalance("makespan"), Movement(), MembersUsed(), TopicSpread())
    values = [(2, 2), (3, 1), (2, 2), (8, 8)]
    claims = [
        LevelClaim(level, value, bound, Origin.COUNTING)
        for level, (value, bound) in zip(levels, values, strict=True)
    ]
    problem = build_problem(group)
    assert stable_claims(problem, claims) == claims[:3]
    assert stable_claims(problem, [claims[0], *claims[2:]]) == [claims[0], *claims[2:]]
    loose = replace(claims[1], level=Movement(tolerance=Tolerance(up_to=9)))
    claims[1] = loose
    assert stable_claims(problem, claims) == claims

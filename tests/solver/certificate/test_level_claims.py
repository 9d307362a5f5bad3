"""Bounds of weighted solutions: counted or trusted."""

from dataclasses import replace

from kassay import Assignment, Certificate, Group, Measure, Member, Topic, certify, solve
from kassay.solver.certificate.certificate import LevelClaim, Origin
from kassay.solver.certificate.check import certificate_errors
from kassay.solver.objective import Imbalance, Movement, MovementCost
from tests.solver.certified_group import GROUP, complaints

WEIGHTED = Group(
    topics=(Topic(name="t", partitions=5, weights=(8, 7, 6, 5, 4)),),
    members=tuple(Member(id=name, subscription=("t",)) for name in "ab"),
)


def test_bounds_of_weighted_answers_are_counted_again_or_trusted():
    solution = solve(WEIGHTED, levels=(Imbalance(Measure.MAKESPAN),))
    certificate = certify(WEIGHTED, solution)
    assert certificate == solution.certificate
    assert list(certificate_errors(WEIGHTED, solution.assignment, certificate)) == []
    (claim,) = certificate.claims
    assert (claim.value, claim.bound, claim.origin) == (15, 15, Origin.COUNTING)
    assert certificate.trusted == ()
    apart = Assignment({"a": [("t", 0)], "b": [("t", n) for n in range(1, 5)]})
    forged = replace(certificate, claims=(replace(claim, value=22, bound=22),))
    assert list(certificate_errors(WEIGHTED, apart, forged)) == [
        "the bound 22 on makespan is above 15, the bound by counting"
    ]
    trusted = replace(
        certificate, claims=(replace(claim, value=22, bound=22, origin=Origin.CP_SAT),)
    )
    assert list(certificate_errors(WEIGHTED, apart, trusted)) == []
    assert trusted.trusted == trusted.claims


def test_a_counted_bound_uses_the_limits_of_earlier_levels():
    certificate = certify(GROUP, solve(GROUP, levels=(Imbalance(Measure.MAKESPAN), Movement())))
    assert [(c.bound, c.origin) for c in certificate.claims] == [
        (2, Origin.COUNTING),
        (1, Origin.COUNTING),
    ]
    assert complaints(certificate) == []


def test_weighted_assignments_are_certified_by_counting():
    apart = Assignment({"a": [("t", 0)], "b": [("t", n) for n in range(1, 5)]})
    certificate = certify(WEIGHTED, apart)
    assert [(c.level.name, c.value, c.bound) for c in certificate.claims] == [
        ("makespan", 22, 15),
        ("movement", 0, 0),
        ("sum_of_squares", 548, 450),
    ]
    assert not certificate.is_optimal
    assert certificate.chain == ()


def test_moved_weight_is_measured_again():
    owner = replace(WEIGHTED.members[0], owned=[("t", 0), ("t", 2)])
    group = replace(WEIGHTED, members=(owner, WEIGHTED.members[1]))
    assignment = Assignment({"a": [("t", 1), ("t", 2)], "b": [("t", 0), ("t", 3), ("t", 4)]})
    for value, expected in ((8, []), (7, ["movement is 8, but the claim is 7"])):
        claimed = Certificate((LevelClaim(Movement(MovementCost.WEIGHT), value, 0, Origin.CP_SAT),))
        assert list(certificate_errors(group, assignment, claimed)) == expected

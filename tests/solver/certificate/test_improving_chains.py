"""Improving chains: they refute certificates, and lead to the optimum."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from kassay import Imbalance, Member, Method, Movement, certify, solve, violations
from kassay.solver.certificate.certificate import Certificate, LevelClaim, Origin
from kassay.solver.certificate.check import certificate_errors
from kassay.solver.limits import SearchLimits
from kassay.solver.network.improving_chains import Transfer, apply_chain, improving_chain
from tests import brute_force
from tests.solver.certified_group import BEST, GROUP, LOPSIDED, complaints, quality
from tests.strategies import groups, valid_assignments


@given(st.data())
def test_a_chain_improves_and_chains_lead_to_the_optimum(data):
    group = data.draw(groups())
    assignment = data.draw(valid_assignments(group))
    while chain := improving_chain(group, assignment):
        better = apply_chain(group, assignment, chain)
        assert list(violations(group, better)) == []
        assert quality(group, better) < quality(group, assignment)
        assignment = better
    assert quality(group, assignment) == brute_force.optimum(group)


def test_a_certificate_of_a_suboptimal_assignment_has_an_improving_chain():
    rushed = solve(GROUP, method=Method.CP_SAT, limits=SearchLimits(time=0))
    suboptimal = replace(rushed, assignment=LOPSIDED, certificate=certify(GROUP, LOPSIDED))
    certificate = certify(GROUP, suboptimal)
    assert certificate.chain == (Transfer(BEST["b"][0]._replace(partition=0), "a", "b"),)
    assert not certificate.is_optimal
    assert complaints(certificate, LOPSIDED) == []


def test_a_chain_that_does_not_improve_is_rejected():
    chain = certify(GROUP, LOPSIDED).chain
    step = chain[0]
    base = certify(GROUP, LOPSIDED)
    for bad, expected in [
        ((replace(step, giver="b"),), "the chain cannot be applied: member 'b' does not have t-0"),
        (
            (replace(step, taker="zoe"),),
            "the chain cannot be applied: the group has no member 'zoe'",
        ),
        ((step, replace(step, giver="b", taker="a")), "the chain does not improve the assignment"),
    ]:
        assert complaints(replace(base, chain=bad), LOPSIDED) == [expected]


def test_a_chain_to_a_member_without_subscription_is_rejected():
    group = replace(GROUP, members=(*GROUP.members, Member(id="idle", subscription=())))
    certificate = certify(group, LOPSIDED)
    forged = replace(certificate, chain=(replace(certificate.chain[0], taker="idle"),))
    (error,) = certificate_errors(group, LOPSIDED, forged)
    assert error.startswith("the chain leads to an assignment that is not valid")


def test_trusted_bounds_are_refuted_by_an_improving_chain():
    trusted = Certificate(
        (LevelClaim(Imbalance(), 9, 9, Origin.CP_SAT), LevelClaim(Movement(), 0, 0, Origin.CP_SAT))
    )
    assert complaints(trusted, LOPSIDED) == [
        "the bounds are wrong: transfers improve the assignment, first a gives t-0 to b"
    ]

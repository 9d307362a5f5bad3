from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kassay import Assignment, MaxMoves, MaxPartitions, Measure, Method, certify, solve
from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group, Member, Topic
from kassay.solver.certificate.certificate import LevelClaim, Origin
from kassay.solver.certificate.check import certificate_errors
from kassay.solver.certificate.documents import certificate_document
from kassay.solver.network.improving_chains import improving_chain
from kassay.solver.objective import CrossRack, Imbalance, Movement, Tolerance
from tests import brute_force
from tests.solver.certified_group import BEST, GROUP, LOPSIDED, PROOF, complaints, quality
from tests.stored_cases import stored_cases
from tests.strategies import groups, valid_assignments


def claims(squares, moves):
    return (
        LevelClaim(Imbalance(), squares, squares, Origin.NODE_PRICES),
        LevelClaim(Movement(), moves, moves, Origin.NODE_PRICES),
    )


@given(groups(messy=True))
def test_the_certificate_of_an_optimum_has_no_errors(group):
    solution = solve(group)
    assert list(certificate_errors(group, solution.assignment, solution.certificate)) == []
    assert certify(group, solution.assignment) == solution.certificate


@given(groups(messy=True), st.integers(0, 40), st.integers(0, 6))
def test_the_certificate_of_levels_with_upper_limits_has_no_errors(group, squares, moves):
    even = Imbalance(tolerance=Tolerance(up_to=squares))
    still = Movement(tolerance=Tolerance(up_to=moves))
    solution = solve(group, levels=(even, still, CrossRack()))
    assert list(certificate_errors(group, solution.assignment, solution.certificate)) == []


@pytest.mark.parametrize("wrong", [{"up_to": -1}, {"up_to": 3, "absolute": 1}])
def test_an_upper_limit_is_not_negative_and_excludes_other_tolerances(wrong):
    with pytest.raises(UsageError, match="up_to"):
        Tolerance(**wrong)


@given(st.data())
def test_an_assignment_is_certified_exactly_if_brute_force_finds_nothing_better(data):
    group = data.draw(groups())
    assignment = data.draw(valid_assignments(group))
    optimal = quality(group, assignment) == brute_force.optimum(group)
    certificate = certify(group, assignment)
    assert certificate.is_optimal == bool(certificate.node_prices) == optimal
    assert (improving_chain(group, assignment) == ()) == optimal
    assert (certificate.chain == ()) == optimal
    assert list(certificate_errors(group, assignment, certificate)) == []


@given(st.data())
def test_prices_of_one_assignment_prove_no_worse_assignment(data):
    group = data.draw(groups())
    other = data.draw(valid_assignments(group))
    solution = solve(group)
    assume(quality(group, other) != quality(group, solution.assignment))
    assert list(certificate_errors(group, other, solution.certificate)) != []
    claimed = replace(solution.certificate, claims=claims(*quality(group, other)))
    assert list(certificate_errors(group, other, claimed)) != []


@given(st.data())
def test_arbitrary_prices_certify_only_optimal_assignments(data):
    group = data.draw(groups())
    assignment = data.draw(valid_assignments(group))
    solution = solve(group)
    prices = st.integers(-30, 90)
    forged = replace(
        solution.certificate,
        claims=claims(*quality(group, assignment)),
        node_prices=tuple(data.draw(prices) for _ in solution.certificate.node_prices),
    )
    if not list(certificate_errors(group, assignment, forged)):
        assert quality(group, assignment) == brute_force.optimum(group)


def test_the_example_is_proven_by_these_prices():
    assert complaints(PROOF) == []
    assert PROOF.is_optimal
    assert certificate_document(PROOF) == {
        "version": 4,
        "claims": [
            {"level": "sum_of_squares", "value": 5, "bound": 5, "origin": "node_prices"},
            {"level": "movement", "cost": "count", "value": 1, "bound": 1, "origin": "node_prices"},
        ],
        # Topic, members and sink; a unit of the sum of squares has the price 5.
        "node_prices": [16, 16, 15, 0],
    }


@pytest.mark.parametrize(("squares", "moves", "expected"), stored_cases("changed_claims"))
def test_changed_values_are_errors(squares, moves, expected):
    assert complaints(replace(PROOF, claims=claims(squares, moves))) == expected


@pytest.mark.parametrize("origin", list(Origin))
@pytest.mark.parametrize("change", [1, -1])
def test_a_changed_bound_is_an_error_or_no_claim_of_optimality(origin, change):
    first, second = PROOF.claims
    forged = replace(
        PROOF, claims=(replace(first, bound=first.bound + change, origin=origin), second)
    )
    assert complaints(forged) != [] or not forged.is_optimal
    if change > 0 or origin is Origin.NODE_PRICES:
        assert complaints(forged) != []


@pytest.mark.parametrize("node", range(3))
@pytest.mark.parametrize("change", [-5, -1, 1, 5])
def test_a_changed_price_is_an_error(node, change):
    prices = list(PROOF.node_prices)
    prices[node] += change
    assert complaints(replace(PROOF, node_prices=tuple(prices))) != []


def test_missing_prices_of_a_certificate_are_reported():
    assert complaints(replace(PROOF, node_prices=(1, 2))) == ["there must be 4 node prices, got 2"]
    assert complaints(replace(PROOF, node_prices=())) == ["there must be 4 node prices, got 0"]


def test_prices_do_not_prove_other_levels():
    weighted = Group(
        topics=(Topic(name="t", partitions=3, weights=(1, 1, 5)),), members=GROUP.members
    )
    expected = list(
        certificate_errors(
            weighted,
            BEST,
            replace(PROOF, claims=(LevelClaim(Imbalance(), 29, 29, Origin.NODE_PRICES),)),
        )
    )
    assert expected == ["node prices cannot prove these levels optimal for this group"]
    tolerant = LevelClaim(Imbalance(tolerance=Tolerance(absolute=1)), 5, 5, Origin.NODE_PRICES)
    assert complaints(replace(PROOF, claims=(tolerant,))) == expected
    makespan = LevelClaim(Imbalance(Measure.MAKESPAN), 2, 2, Origin.NODE_PRICES)
    assert complaints(replace(PROOF, claims=(makespan, PROOF.claims[1]))) == expected
    assert complaints(replace(PROOF, claims=PROOF.claims[::-1])) != []


@pytest.mark.parametrize("measure", list(Measure))
def test_prices_prove_every_measure_alone(measure):
    solution = solve(GROUP, levels=(Imbalance(measure),))
    assert [claim.origin for claim in solution.certificate.claims] == [Origin.NODE_PRICES]
    assert complaints(solution.certificate, solution.assignment) == []


def test_cp_sat_certificates_have_origins_and_prices_if_these_exist():
    solution = solve(GROUP, method=Method.CP_SAT)
    assert Origin.NODE_PRICES not in {claim.origin for claim in solution.certificate.claims}
    assert [(c.value, c.bound, c.slack) for c in solution.certificate.claims] == [
        (level.value, level.bound, level.slack) for level in solution.levels
    ]
    certificate = certify(GROUP, solution)
    assert {claim.origin for claim in certificate.claims} == {Origin.NODE_PRICES}
    assert complaints(certificate, solution.assignment) == []


def test_constraints_must_hold_and_exclude_better_assignments():
    solution = solve(GROUP, constraints=(MaxMoves(0),))
    certificate = certify(GROUP, solution)
    assert certificate.chain == ()
    assert certificate.constraints == (MaxMoves(0),)
    assert complaints(certificate, solution.assignment) == []
    assert "the assignment violates a constraint: at most 0 partitions move" in complaints(
        certificate, BEST
    )


def test_capacities_of_the_group_must_hold():
    small = replace(GROUP, members=(replace(GROUP.members[0], capacity=2), GROUP.members[1]))
    assert certify(small, BEST).is_optimal
    with pytest.raises(ValueError, match="violates a constraint: the load of 'a' is at most 2"):
        certify(small, LOPSIDED)


def test_certify_rejects_a_solution_without_assignment_and_conflict():
    nothing = replace(solve(GROUP, constraints=(MaxPartitions(1),)), certificate=None)
    with pytest.raises(ValueError, match="the solution has no assignment and no conflict"):
        certify(GROUP, nothing)


def test_a_changed_assignment_is_an_error():
    certificate = PROOF
    incomplete = Assignment({"a": [("t", 0)], "b": [("t", 2)]})
    assert list(certificate_errors(GROUP, incomplete, certificate)) == [
        "the assignment is not valid: t-1 is not assigned"
    ]
    worse = Assignment({"a": [("t", 0)], "b": [("t", 1), ("t", 2)]})
    assert "movement is 2, but the claim is 1" in [*certificate_errors(GROUP, worse, certificate)]
    with pytest.raises(ValueError, match="t-1 is not assigned"):
        certify(GROUP, incomplete)


def test_optimal_counts_with_unnecessary_moves_are_not_certified():
    members = (
        Member(id="a", subscription=("t",), owned=[("t", 0)]),
        Member(id="b", subscription=("t",), owned=[("t", 1)]),
    )
    group = Group(topics=(Topic(name="t", partitions=2),), members=members)
    swapped = Assignment({"a": [("t", 1)], "b": [("t", 0)]})
    assert not certify(group, swapped).is_optimal
    assert [str(transfer) for transfer in improving_chain(group, swapped)] == [
        "b gives t-0 to a",
        "a gives t-1 to b",
    ]
    forged = replace(solve(group).certificate, claims=claims(2, 2))
    assert list(certificate_errors(group, swapped, forged)) == [
        "movement is 2, but the minimum with these counts is 0"
    ]


@pytest.mark.parametrize(("prices", "expected"), stored_cases("limits_of_node_prices"))
def test_prices_are_checked_exactly_at_their_limits(prices, expected):
    group = Group(
        topics=(Topic(name="t", partitions=3),), members=(Member(id="a", subscription=("t",)),)
    )
    everything = Assignment({"a": [("t", number) for number in range(3)]})
    certificate = replace(certify(group, everything), node_prices=tuple(prices))
    # A unit of the sum of squares has the weight 4, so that the last partition costs 5 * 4.
    assert list(certificate_errors(group, everything, certificate)) == expected

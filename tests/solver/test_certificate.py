import pickle
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from reference import (
    Assignment,
    Group,
    InvalidGroupError,
    Member,
    Topic,
    imbalance,
    movement,
    violations,
)
from solver import certify, improving_chain, objections, solve
from solver.certificate import Certificate, certificate_document, parse_certificate
from solver.chains import apply_chain
from tests import brute_force
from tests.strategies import groups, valid_assignments


def quality(group, assignment):
    return imbalance(group, assignment), movement(group, assignment)


@given(groups(messy=True))
def test_the_optimum_comes_with_a_proof_that_holds(group):
    solution = solve(group)
    assert list(objections(group, solution.assignment, solution.certificate)) == []
    assert certify(group, solution.assignment) is not None


@given(st.data())
def test_an_assignment_is_certified_exactly_if_brute_force_finds_nothing_better(data):
    group = data.draw(groups())
    assignment = data.draw(valid_assignments(group))
    optimal = quality(group, assignment) == brute_force.optimum(group)
    certificate = certify(group, assignment)
    assert (certificate is not None) == optimal
    assert (improving_chain(group, assignment) == ()) == optimal
    if certificate is not None:
        assert list(objections(group, assignment, certificate)) == []


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


@given(st.data())
def test_a_proof_of_one_assignment_proves_no_worse_one(data):
    group = data.draw(groups())
    other = data.draw(valid_assignments(group))
    solution = solve(group)
    assume(quality(group, other) != quality(group, solution.assignment))
    assert list(objections(group, other, solution.certificate)) != []
    claimed = replace(
        solution.certificate,
        imbalance=imbalance(group, other),
        movement=movement(group, other),
    )
    assert list(objections(group, other, claimed)) != []


@given(st.data())
def test_prices_of_anybody_prove_nothing_false(data):
    group = data.draw(groups())
    assignment = data.draw(valid_assignments(group))
    solution = solve(group)
    prices = st.tuples(st.integers(-3, 9), st.integers(-3, 3))
    forged = replace(
        solution.certificate,
        imbalance=imbalance(group, assignment),
        movement=movement(group, assignment),
        members={name: data.draw(prices) for name in solution.certificate.members},
        topics={name: data.draw(prices) for name in solution.certificate.topics},
    )
    if not list(objections(group, assignment, forged)):
        assert quality(group, assignment) == brute_force.optimum(group)


GROUP = Group(
    topics=(Topic(name="t", partitions=3),),
    members=(
        Member(id="a", subscription=("t",), owned=[("t", 0), ("t", 1), ("t", 2)]),
        Member(id="b", subscription=("t",)),
    ),
)
BEST = Assignment({"a": [("t", 0), ("t", 1)], "b": [("t", 2)]})


def complaints(**changes):
    certificate = replace(certify(GROUP, BEST), **changes)
    return list(objections(GROUP, BEST, certificate))


def test_the_example_is_proven_by_these_prices():
    certificate = certify(GROUP, BEST)
    assert certificate_document(certificate) == {
        "version": 1,
        "imbalance": 5,
        "movement": 1,
        "members": {"a": [3, 1], "b": [3, 0]},
        "topics": {"t": [3, 1]},
    }


@pytest.mark.parametrize("value", [4, 6])
def test_a_tampered_imbalance_is_seen(value):
    assert complaints(imbalance=value) == [f"the sum of squared loads is 5, not {value}"]


@pytest.mark.parametrize("value", [0, 2])
def test_a_tampered_movement_is_seen(value):
    assert complaints(movement=value) == [f"the movement is 1, not {value}"]


@pytest.mark.parametrize("member", ["a", "b"])
@pytest.mark.parametrize("change", [(1, 0), (-1, 0), (0, 1), (0, -1)])
def test_a_tampered_member_price_is_seen_or_still_proves(member, change):
    prices = dict(certify(GROUP, BEST).members)
    squared, moved = prices[member]
    prices[member] = (squared + change[0], moved + change[1])
    seen = complaints(members=prices)
    # Only raising a's price from (3, 1) within its bounds keeps every condition: none does.
    assert seen != []


@pytest.mark.parametrize("change", [(1, 0), (-1, 0), (0, 1), (0, -1)])
def test_a_tampered_topic_price_is_seen(change):
    price = (3 + change[0], 1 + change[1])
    assert complaints(topics={"t": price}) != []


def test_missing_prices_are_named():
    assert complaints(members={"a": (3, 1)}) == ["member 'b' has no price"]
    assert complaints(topics={}) == ["topic 't' has no price"]


def test_a_tampered_assignment_is_seen():
    certificate = certify(GROUP, BEST)
    incomplete = Assignment({"a": [("t", 0)], "b": [("t", 2)]})
    assert list(objections(GROUP, incomplete, certificate)) == [
        "the assignment is not valid: t-1 is assigned to nobody"
    ]
    worse = Assignment({"a": [("t", 0)], "b": [("t", 1), ("t", 2)]})
    assert "the movement is 2, not 1" in list(objections(GROUP, worse, certificate))
    with pytest.raises(ValueError, match="t-1 is assigned to nobody"):
        certify(GROUP, incomplete)


def test_right_counts_of_the_wrong_partitions_are_not_certified():
    members = (
        Member(id="a", subscription=("t",), owned=[("t", 0)]),
        Member(id="b", subscription=("t",), owned=[("t", 1)]),
    )
    group = Group(topics=(Topic(name="t", partitions=2),), members=members)
    swapped = Assignment({"a": [("t", 1)], "b": [("t", 0)]})
    assert certify(group, swapped) is None
    assert [str(transfer) for transfer in improving_chain(group, swapped)] == [
        "b gives t-0 to a",
        "a gives t-1 to b",
    ]
    forged = replace(solve(group).certificate, movement=2)
    assert list(objections(group, swapped, forged)) == [
        "the movement is 2, but with these counts it can be 0"
    ]


def test_a_chain_can_be_carried_out_only_by_those_who_have_its_partitions():
    chain = improving_chain(GROUP, Assignment({"a": [("t", n) for n in range(3)]}))
    with pytest.raises(ValueError, match="'a' does not have t-0"):
        apply_chain(GROUP, Assignment({"b": [("t", n) for n in range(3)]}), chain)


@given(groups())
def test_certificates_travel_as_json_and_as_pickles(group):
    certificate = solve(group).certificate
    assert parse_certificate(certificate_document(certificate)) == certificate
    assert pickle.loads(pickle.dumps(certificate)) == certificate


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"colour": "red"}, "colour"),
        ({"members": {"a": [3, 1, 0], "b": [3, 0]}}, r"members\['a'\]: expected a pair"),
        ({"topics": {"t": [3]}}, r"topics\['t'\]: expected a pair"),
    ],
)
def test_a_certificate_of_another_form_is_refused_where_it_differs(change, said):
    document = certificate_document(certify(GROUP, BEST)) | change
    with pytest.raises(InvalidGroupError, match=said):
        parse_certificate(document)


def test_a_price_below_what_a_members_last_partition_costs_hides_no_imbalance():
    members = tuple(Member(id=name, subscription=("t",)) for name in "ab")
    group = Group(topics=(Topic(name="t", partitions=2),), members=members)
    lopsided = Assignment({"a": [("t", 0), ("t", 1)]})
    prices = {"a": (1, 0), "b": (1, 0)}
    forged = Certificate(imbalance=4, movement=0, members=prices, topics={"t": (1, 1)})
    assert list(objections(group, lopsided, forged)) == [
        "member 'a': price (1, 0) is below (3, 0), its last partition"
    ]


@pytest.mark.parametrize(
    ("member", "topic", "said"),
    [
        ((5, 0), (5, 1), []),
        ((7, 0), (7, 1), []),
        ((4, 9), (4, 10), ["member 'a': price (4, 9) is below (5, 0), its last partition"]),
        ((5, -1), (5, 0), ["member 'a': price (5, -1) is below (5, 0), its last partition"]),
        ((7, 1), (7, 2), ["member 'a': price (7, 1) is above (7, 0), one more partition"]),
        (
            (5, 0),
            (5, 0),
            [
                "topic 't' at member 'a': price (5, 0) is below (5, 1), the last partition there",
            ],
        ),
        (
            (5, 0),
            (5, 2),
            ["topic 't' at member 'a': price (5, 2) is above (5, 1), one more partition there"],
        ),
    ],
)
def test_prices_are_held_to_their_limits_exactly(member, topic, said):
    group = Group(
        topics=(Topic(name="t", partitions=3),), members=(Member(id="a", subscription=("t",)),)
    )
    everything = Assignment({"a": [("t", number) for number in range(3)]})
    prices = Certificate(imbalance=9, movement=0, members={"a": member}, topics={"t": topic})
    assert list(objections(group, everything, prices)) == said

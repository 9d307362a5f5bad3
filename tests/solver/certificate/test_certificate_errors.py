"""Errors in certificates at the limits of what is valid."""

from dataclasses import replace

import pytest

from kassay import Assignment, Group, Measure, Member, Topic, certify, solve
from kassay.solver.certificate.certificate import Certificate, LevelClaim, Origin
from kassay.solver.certificate.check import certificate_errors
from kassay.solver.objective import CrossRack, Imbalance, MembersUsed, Movement, TopicSpread
from tests.notation import group as small_group
from tests.notation import joined
from tests.solver.certified_group import GROUP, LOPSIDED, complaints

UNLIKE = small_group("t:3", a="t | t-0", b="t | t-1..2")


def test_a_certificate_with_prices_is_returned_unchanged():
    solution = solve(GROUP)
    assert certify(GROUP, solution) is solution.certificate


@pytest.mark.parametrize(
    ("weight", "other", "proven"),
    [
        (1, Topic(name="unread", partitions=2, weights=(1, 7)), True),
        (1, Topic(name="u", partitions=1, weights=(1,)), True),
        (1, Topic(name="u", partitions=1, weights=(2,)), False),
        (1, Topic(name="u", partitions=1, weights=(0,)), False),
        (5, Topic(name="u", partitions=1, weights=(5,)), True),
        (5, Topic(name="u", partitions=0), True),
    ],
)
def test_weights_of_topics_without_subscribers_do_not_prevent_prices(weight, other, proven):
    group = Group(
        topics=(Topic(name="t", partitions=3, weights=(weight,) * 3), other),
        members=(Member(id="a", subscription=("t", "u")), Member(id="b", subscription=("t", "u"))),
    )
    consumed = [(other.name, n) for n in range(other.partitions) if other.name == "u"]
    even = Assignment({"a": [("t", 0), ("t", 1)], "b": [("t", 2), *consumed]})
    assert bool(certify(group, even).node_prices) == proven


def test_an_unnecessary_move_between_members_of_different_loads_is_found():
    certificate = certify(UNLIKE, Assignment({"a": [("t", 0), ("t", 1)], "b": [("t", 2)]}))
    assert not certificate.is_optimal
    (transfer,) = certificate.chain
    assert str(transfer) == "a gives t-1 to b"


@pytest.mark.parametrize("names", ["", "a"])
def test_a_group_without_subscriptions_is_proven(names):
    group, none = (
        small_group("t:3", **dict.fromkeys(names, "")),
        Assignment(dict.fromkeys(names, ())),
    )
    certificate = certify(group, none)
    assert certificate.is_optimal
    assert list(certificate_errors(group, none, certificate)) == []


def test_a_trusted_bound_below_the_value_is_not_refuted_by_an_improvement():
    modest = Certificate(
        (LevelClaim(Imbalance(), 9, 5, Origin.CP_SAT), LevelClaim(Movement(), 0, 0, Origin.CP_SAT))
    )
    assert not modest.is_optimal
    assert complaints(modest, LOPSIDED) == []


def test_a_low_price_of_a_member_without_partitions_is_an_error_at_the_topic():
    forged = Certificate(
        tuple(
            LevelClaim(level, value, value, Origin.NODE_PRICES)
            for level, value in ((Imbalance(), 9), (Movement(), 0))
        ),
        node_prices=(26, 26, -2, 0),
    )
    expected = "topic 't' at member 'b': price difference 28 > cost 1"
    assert expected in complaints(forged, LOPSIDED)
    assert not any(text.startswith("member 'b'") for text in complaints(forged, LOPSIDED))


def test_bounds_after_a_movement_are_counted_too():
    levels = (Movement(), Imbalance(Measure.MAKESPAN), Imbalance(Measure.SPREAD))
    certificate = certify(GROUP, solve(GROUP, levels=levels))
    counted = replace(
        certificate,
        claims=tuple(
            replace(claim, bound=0, origin=Origin.COUNTING) for claim in certificate.claims
        ),
    )
    assignment = solve(GROUP, levels=levels).assignment
    assert complaints(counted, assignment) == []
    forged = replace(counted.claims[1], bound=3)
    assert complaints(replace(counted, claims=(counted.claims[0], forged)), assignment) == [
        "the bound 3 on makespan is above 2, the bound by counting"
    ]


def test_a_topic_price_above_the_last_partition_of_an_owner_is_an_error():
    group = joined(UNLIKE, c="t")
    spread = Assignment({"a": [("t", 0)], "b": [("t", 1)], "c": [("t", 2)]})
    certificate = certify(group, spread)
    assert certificate.is_optimal
    assert list(certificate_errors(group, spread, certificate)) == []


@pytest.mark.parametrize(
    ("level", "value"), [(CrossRack(), 0), (TopicSpread(), 5), (MembersUsed(), 2)]
)
def test_levels_beyond_imbalance_and_movement_are_measured_again(level, value):
    assert complaints(Certificate((LevelClaim(level, value, 0, Origin.CP_SAT),))) == []
    assert complaints(Certificate((LevelClaim(level, value + 1, 0, Origin.CP_SAT),))) == [
        f"{level.name} is {value}, but the claim is {value + 1}"
    ]

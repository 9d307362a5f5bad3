"""Refutations by prices and by cases, compared with all assignments of small groups."""

import random
from dataclasses import replace

import pytest

from kassay import Assignment, Group, Measure, Member, Topic, solve
from kassay.solver.certificate.certificate import Certificate, Conflict, LevelClaim, Origin, Proof
from kassay.solver.certificate.check import certificate_errors, conflict_errors
from kassay.solver.certificate.refutation import PartitionPrices, cases_refute, prices_refute
from kassay.solver.certify import certify, find_prices
from kassay.solver.constraints import (
    Capacity,
    Colocated,
    Forbidden,
    MaxMoves,
    MaxPartitions,
    Pinned,
    Separated,
)
from kassay.solver.evaluation import group_constraints
from kassay.solver.objective import (
    CrossRack,
    Imbalance,
    MembersUsed,
    Movement,
    Tolerance,
    TopicSpread,
)
from kassay.solver.problem import build_problem
from tests import brute_force
from tests.forgeries.requests import random_request
from tests.notation import changed, even_group, with_topics
from tests.notation import group as small_group
from tests.solver.random_cases import allows, value_of


def has_solution(group, rules, limits):
    """Return whether some assignment meets rules and limits, by their definitions."""
    measures = [(value_of(group, level), limit) for level, limit in limits]
    return any(
        all(measure(placement) <= limit for measure, limit in measures)
        for placement in filter(allows(group, rules), brute_force.every_placement(group))
    )


def random_limits(rng, request):
    """Draw levels with limits near the values of some assignment."""
    group = request.question.group
    levels = [
        level
        for level in request.question.levels
        if getattr(level, "measure", None) is not Measure.LEXIMAX
    ]
    placement = rng.choice(list(brute_force.every_placement(group)))
    return [(level, value_of(group, level)(placement) - rng.randint(0, 3)) for level in levels]


def random_prices(rng, group, count):
    most = rng.choice((1, 2, 9))
    return PartitionPrices(
        {t.name: tuple(rng.randint(-1, most) for _ in range(t.partitions)) for t in group.topics},
        max_moves=rng.choice((0, 1, 2, -1)),
        levels=tuple(rng.choice((0, 1, 2, 3, -1)) for _ in range(count)),
    )


def test_refutations_are_right_and_cases_decide_small_groups():
    found = 0
    for seed in range(120):
        rng = random.Random(seed)
        request = random_request(rng)
        group = request.question.group
        problem, limits = build_problem(group), random_limits(rng, request)
        rules = (*group_constraints(group), *request.question.constraints)
        feasible = has_solution(group, rules, limits)
        assert cases_refute(problem, rules, limits) == (not feasible), seed
        for _ in range(3):
            prices = random_prices(rng, group, len(limits))
            assert not (prices_refute(problem, rules, limits, prices) and feasible), seed
        prices = find_prices(problem, rules, limits)
        if prices is not None:
            found += 1
            assert prices_refute(problem, rules, limits, prices)
            assert not feasible, seed
    assert found > 30


GROUP = changed(small_group("t:6,5,4,3 u:2", a="t u | t-0..3", b="t"), a={"rack": "r"})
PROBLEM = build_problem(GROUP)


@pytest.mark.parametrize(
    ("rules", "limits", "prices", "refuted"),
    [
        ((Capacity(10),), (), {"t": (6, 5, 4, 3)}, False),
        ((Capacity(9, "a"), Capacity(8, "b")), (), {"t": (6, 5, 4, 3)}, True),
        ((Capacity(9, "a"), Capacity(9, "b")), (), {"t": (6, 5, 4, 3)}, False),
        ((MaxPartitions(1, "a"),), (), {"u": (1, 1)}, True),
        ((MaxPartitions(2, "a"),), (), {"u": (1, 1)}, False),
        ((MaxPartitions(1, "a"), MaxPartitions(4, "b")), (), {"t": (1,) * 4, "u": (1, 1)}, True),
        ((Pinned("t", 0, "b"), Forbidden("b", "t")), (), {}, True),
        ((Pinned("t", 0, "b"), Forbidden("b", "t", 1)), (), {"t": (1,)}, False),
        ((Pinned("u", 0, "b"),), (), {}, True),
        ((Colocated(("t", "u")), Pinned("t", 1, "b")), (), {}, True),
        ((Colocated(("t", "u")), Pinned("t", 2, "b")), (), {"t": (1,)}, False),
        ((Separated((("u", 0), ("u", 1))),), (), {"u": (1, 1)}, True),
        ((Separated((("u", 0), ("t", 1))),), (), {"u": (1,), "t": (0, 1)}, False),
        ((Colocated(("t", "u")), Separated((("t", 0), ("u", 0)))), (), {}, True),
        ((), ((Imbalance(Measure.MAKESPAN), 9),), {}, True),
        ((), ((Imbalance(Measure.MAKESPAN), 10),), {"t": (6, 5, 4, 3)}, False),
        ((), ((CrossRack(), -1),), {}, True),
        ((), ((TopicSpread(), 10),), {}, True),
        ((), ((TopicSpread(), 12),), {"t": (1, 1, 1, 1)}, False),
    ],
)
def test_cuts_prove_that_limits_cannot_be_met(rules, limits, prices, refuted):
    prices = PartitionPrices(prices, levels=(1,) * len(limits))
    assert prices_refute(PROBLEM, rules, limits, prices) == refuted
    if refuted:
        assert cases_refute(PROBLEM, rules, limits)


@pytest.mark.parametrize(
    ("moves", "multiplier", "refuted"),
    [(1, 1, True), (2, 1, False), (1, 0, False), (1, -1, False), (1, 2, False)],
)
def test_the_multiplied_limit_of_moves_counts(moves, multiplier, refuted):
    rules = (Capacity(10), MaxMoves(moves))
    # Member a must give away at least 10 of its load of 20, so two partitions of t.
    prices = PartitionPrices({"t": (1, 1, 1, 1)}, max_moves=multiplier)
    assert prices_refute(PROBLEM, rules, (), prices) == refuted
    limits = ((Movement(), moves),)
    prices = PartitionPrices({"t": (1, 1, 1, 1)}, levels=(multiplier,))
    assert prices_refute(PROBLEM, rules[:1], limits, prices) == refuted


def test_the_multiplied_sum_of_squares_counts():
    limits = ((Imbalance(Measure.SUM_OF_SQUARES), 199),)
    assert prices_refute(PROBLEM, (), limits, PartitionPrices())
    equal = with_topics(GROUP, "t:3")
    limits = ((Imbalance(Measure.SUM_OF_SQUARES), 8),)
    rules = (MaxPartitions(3, "a"), Forbidden("b", "t"))
    problem, prices = build_problem(equal), PartitionPrices({"t": (5,) * 3}, levels=(1,))
    assert prices_refute(problem, rules, limits, prices)
    assert not prices_refute(problem, rules, ((limits[0][0], 9),), prices)
    assert not prices_refute(problem, rules[:1], limits, prices)


def test_a_group_with_many_assignments_is_not_decided_by_cases():
    problem = build_problem(even_group(range(1, 41), 5))
    assert not cases_refute(problem, (), ((Imbalance(Measure.SPREAD), 0), (TopicSpread(), 320)))
    assert cases_refute(problem, (), ((Imbalance(Measure.MAKESPAN), 163),))


def proven(group, **request):
    """Solve and certify; return origins and proof after the check."""
    solution = solve(group, **request)
    certificate = certify(group, solution)
    if solution.assignment is None:
        assert list(conflict_errors(group, certificate)) == []
        return certificate
    assert list(certificate_errors(group, solution.assignment, certificate)) == []
    return certificate


def test_bounds_of_flows_with_limits_are_proven_by_prices():
    rng = random.Random(3)
    topics = tuple(Topic(name=f"t{n}", partitions=8) for n in range(5))
    partitions = [(topic.name, number) for topic in topics for number in range(8)]
    owned = [tp for tp in rng.sample(partitions, 30) if tp[0] != "t1"]
    members = tuple(
        Member(
            id=f"c{n}",
            subscription=tuple(t.name for t in topics if n != 2 or t.name != "t1"),
            owned=owned[n * n : (n + 1) ** 2],
        )
        for n in range(5)
    )
    group = Group(topics=topics, members=members)
    tolerant = (Imbalance(tolerance=Tolerance(relative=0.1)), Movement())
    for request in (
        {"levels": tolerant},
        {"constraints": (MaxMoves(9),)},
        {"constraints": (MaxPartitions(7, "c0"), Pinned("t3", 3, "c1"), Forbidden("c3", "t2"))},
        {"constraints": (MaxPartitions(7),)},
    ):
        assert proven(group, **request).proof is Proof.CERTIFICATE


def test_a_conflict_must_be_part_of_the_constraints():
    stated = Certificate((), constraints=(MaxMoves(3),))
    other = Conflict((MaxPartitions(1),), Origin.CASES)
    for conflict, expected in (
        (None, ["the certificate has no conflict"]),
        (other, ["the conflict has an unknown constraint: every member has at most 1 partition"]),
    ):
        assert list(conflict_errors(GROUP, replace(stated, conflict=conflict))) == expected
    for arguments, reason in (
        ((Origin.CASES,), "there are too many cases, or a case meets all limits"),
        ((Origin.PARTITION_PRICES,), "the certificate contains no partition prices"),
        (
            (Origin.PARTITION_PRICES, PartitionPrices()),
            "the partition prices do not exceed the limits",
        ),
        ((Origin.COUNTING,), "a conflict cannot have the origin counting"),
        ((Origin.NODE_PRICES,), "a conflict cannot have the origin node_prices"),
    ):
        unproven = replace(stated, conflict=Conflict((MaxMoves(3),), *arguments))
        assert list(conflict_errors(GROUP, unproven)) == [f"the conflict is not proven: {reason}"]
    trusted = replace(stated, conflict=Conflict((MaxMoves(3),), Origin.CP_SAT))
    assert list(conflict_errors(GROUP, trusted)) == []


def test_capacities_of_the_group_are_part_of_a_conflict():
    small = changed(GROUP, a={"capacity": 9}, b={"capacity": 9})
    certificate = proven(small)
    assert certificate.proof is Proof.CERTIFICATE
    assert set(certificate.conflict.constraints) == set(group_constraints(small))
    assert "the conflict has an unknown constraint: the load of 'a' is at most 9" in list(
        conflict_errors(GROUP, certificate)
    )


def test_a_certificate_of_an_assignment_has_no_conflict():
    everything = Assignment({"a": [(t.name, n) for t in GROUP.topics for n in range(t.partitions)]})
    certificate = certify(GROUP, everything)
    forged = replace(certificate, conflict=Conflict((), Origin.CASES))
    assert not forged.is_optimal
    assert list(certificate_errors(GROUP, everything, forged)) == [
        "the certificate has an assignment and a conflict"
    ]


def test_many_partitions_are_not_checked_by_cases():
    group = Group((Topic("t", 400),), tuple(Member(name, ("t",)) for name in "ab"))
    assignment = Assignment({"a": [("t", at) for at in range(399)], "b": [("t", 399)]})
    claim = LevelClaim(MembersUsed(), 2, 2, Origin.CASES)
    [error] = certificate_errors(group, assignment, Certificate((claim,)))
    assert "too many cases" in error


def test_a_multiplier_beyond_64_bits_is_checked():
    group = small_group("t:0,3,3,3", a="t", b="t")
    assignment = Assignment({"a": [("t", at) for at in range(4)], "b": []})
    prices = PartitionPrices({"t": (1, 0, 0, 0)}, 0, (2**70,))
    claim = LevelClaim(Imbalance(), 81, 60, Origin.PARTITION_PRICES, prices=prices)
    assert len(list(certificate_errors(group, assignment, Certificate((claim,))))) == 1

"""Groups with several members per partition: brute force and certificates."""

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, combinations, product

import pytest

from kassay.experiments.planning.plan import plan
from kassay.reference.model.assignment import Assignment, violations
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import Group, Member, Topic
from kassay.solver.capacity_planning import Resizing
from kassay.solver.certificate.certificate import Certificate, Conflict, LevelClaim, Origin
from kassay.solver.certificate.check import certificate_errors, conflict_errors
from kassay.solver.certificate.documents import certificate_document, parse_certificate
from kassay.solver.certificate.refutation import PartitionPrices
from kassay.solver.certify import certify
from kassay.solver.constraints import Capacity, MaxMoves, MaxPartitions
from kassay.solver.frontier import frontier
from kassay.solver.network.improving_chains import explain
from kassay.solver.objective import Imbalance
from kassay.solver.solve import solve
from kassay.solver.trajectory.trajectory import optimal_trajectory
from tests.tiers import short_and_long

LEVELS = (
    *("sum_of_squares", "topic_spread", "movement"),
    *("members_per_partition", "slots", "idle_members"),
)


def _values(group: Group, pairs: list[tuple[str, int, str]]) -> dict[str, int]:
    """Return the value of (topic, partition, member) triples on each level."""
    numbers = dict.fromkeys(LEVELS, 0)
    held = {(tp.topic, tp.partition, m.id) for m in group.members for tp in m.holds}
    known = {key[:2] for key in held if key[0] in group.member_table()[key[2]].subscription}
    for member in group.members:
        mine = [pair for pair in pairs if pair[2] == member.id]
        numbers["sum_of_squares"] += len(mine) ** 2
        numbers["idle_members"] += not mine
        for topic in group.topics:
            numbers["topic_spread"] += sum(pair[0] == topic.name for pair in mine) ** 2
    for topic in group.topics:
        for number in range(topic.partitions):
            count = sum(pair[:2] == (topic.name, number) for pair in pairs)
            numbers["members_per_partition"] += count**2
    numbers["slots"] = len(pairs)
    numbers["movement"] = sum(pair[:2] in known and pair not in held for pair in pairs)
    return numbers


def _assignments(group: Group) -> Iterator[list[tuple[str, int, str]]]:
    """Yield all assignments of a group."""
    choices = []
    for topic in group.topics:
        members = [m.id for m in group.members if topic.name in m.subscription]
        for number, (least, most) in enumerate(topic.copies or ()):
            sizes = range(least, min(most, len(members)) + 1)
            sets = chain.from_iterable(combinations(members, size) for size in sizes)
            choices.append([[(topic.name, number, member) for member in one] for one in sets])
    return (list(chain.from_iterable(one)) for one in product(*choices))


def _group(rng: random.Random) -> Group:
    """Return a random group with copies and holders, and few assignments."""
    names = [f"t{index}" for index in range(rng.randint(1, 2))]
    members = [
        (f"m{index}", tuple(rng.sample(names, rng.randint(1, len(names)))))
        for index in range(rng.randint(1, 3))
    ]
    topics = []
    for name in names:
        subscribers = sum(name in subscription for _, subscription in members)
        if subscribers:
            lows = [rng.randint(0, subscribers) for _ in range(rng.randint(1, 4 - len(names)))]
            ranges = tuple((low, rng.randint(low, 3)) for low in lows)
            topics.append(Topic(name, len(ranges), copies=ranges))
    tps = [(topic.name, number) for topic in topics for number in range(topic.partitions)]
    holds = {id: [tp for tp in tps if rng.random() < 0.35] for id, _ in members}
    return Group(tuple(topics), tuple(Member(id, s, holds=holds[id]) for id, s in members))


@pytest.mark.parametrize("count", short_and_long(120, 4_000))
def test_the_optimum_of_groups_with_copies_equals_brute_force(count: int) -> None:
    for seed in range(count):
        rng = random.Random(seed)
        group = _group(rng)
        levels = rng.sample(LEVELS, rng.randint(1, len(LEVELS)))
        best = min([_values(group, one)[name] for name in levels] for one in _assignments(group))
        solution = solve(group, levels=levels)
        assert [level.value for level in solution.levels] == best, (seed, levels)
        assert solution.is_optimal
        assert solution.assignment is not None
        assert solution.certificate is not None
        assert not list(violations(group, solution.assignment))
        assert not list(certificate_errors(group, solution.assignment, solution.certificate))


def _share_group() -> Group:
    members = tuple(Member(f"m{n}", ("t",), holds=[("t", 0)] if n < 2 else ()) for n in range(3))
    return Group((Topic("t", 2, copies=((1, 3), (1, 3))),), members)


def test_three_members_share_two_partitions_in_three_slots() -> None:
    levels = ("idle_members", "members_per_partition", "sum_of_squares", "movement", "slots")
    solution = solve(_share_group(), levels=levels)
    assert [level.value for level in solution.levels] == [0, 5, 3, 0, 3]
    assert str(solution.proof) == "proven by certificate"


def test_forged_certificates_of_copies_are_refused() -> None:
    group = _share_group()
    solution = solve(group, levels=("idle_members", "slots", "movement"))
    certificate = solution.certificate
    assert certificate is not None
    assert solution.assignment is not None
    document = certificate_document(certificate)
    assert parse_certificate(document) == certificate
    worse = Assignment({"m0": [("t", 0)], "m1": [("t", 1)], "m2": [("t", 0), ("t", 1)]})
    raised = replace(certificate.claims[1], value=4, bound=4)
    claimed = replace(certificate, claims=(certificate.claims[0], raised, certificate.claims[2]))
    assert list(certificate_errors(group, worse, claimed))
    for index in range(len(certificate.node_prices)):
        prices = list(certificate.node_prices)
        prices[index] += 10**6
        forged = replace(certificate, node_prices=tuple(prices))
        assert list(certificate_errors(group, solution.assignment, forged))
    missing = replace(certificate, node_prices=())
    assert list(certificate_errors(group, solution.assignment, missing))


def test_evenness_per_topic_is_proven_for_many_members() -> None:
    rng = random.Random(1)
    topics = tuple(Topic(f"c{index}", rng.randint(1, 20)) for index in range(40))
    names = tuple(topic.name for topic in topics)
    owned: list[list[tuple[str, int]]] = [[] for _ in range(20)]
    for topic in topics:
        for number in range(topic.partitions):
            owned[rng.randrange(19)].append((topic.name, number))
    members = tuple(Member(f"w{n}", names, owned=each) for n, each in enumerate(owned))
    group = Group(topics, members)
    solution = solve(group, levels=("sum_of_squares", "topic_spread", "movement"))
    assert str(solution.proof) == "proven by certificate"
    assert solution.assignment is not None
    assert solution.certificate is not None
    assert not list(certificate_errors(group, solution.assignment, solution.certificate))


def test_a_partition_with_too_few_subscribers_is_an_error() -> None:
    group = Group((Topic("t", 1, copies=((2, 2),)),), (Member("a", ("t",)),))
    with pytest.raises(InputError, match="t-0 needs 2 members, but has 1 subscribers"):
        solve(group, levels=("slots",))


def test_constraints_on_groups_with_copies_are_refused() -> None:
    with pytest.raises(UsageError, match="no constraints"):
        solve(_share_group(), levels=("slots",), constraints=[MaxMoves(1)])


def test_a_repeated_copy_and_a_missing_copy_are_violations() -> None:
    found = list(violations(_share_group(), Assignment({"m0": [("t", 0), ("t", 0)]})))
    assert found == ["t-1 is not assigned", "t-0 is assigned twice to member 'm0'"]


@pytest.mark.parametrize(
    "function",
    [
        Resizing.of,
        lambda group: optimal_trajectory([group]),
        frontier,
        lambda group: explain(group, Assignment({})),
        plan,
    ],
)
def test_other_functions_refuse_several_members_per_partition(function):
    members = tuple(Member(f"m{at}", ("t",)) for at in range(3))
    group = Group((Topic("t", 2, copies=((1, 3), (1, 3))),), members)
    with pytest.raises(UsageError, match="supports neither partitions with several members"):
        function(group)


@pytest.mark.parametrize("origin", [Origin.COUNTING, Origin.CASES, Origin.PARTITION_PRICES])
def test_optional_copies_count_in_no_bound(origin):
    members = tuple(Member(name, ("t",)) for name in "ab")
    group = Group((Topic("t", 1, copies=((1, 2),)),), members)
    both = Assignment({"a": [("t", 0)], "b": [("t", 0)]})
    prices = PartitionPrices() if origin is Origin.PARTITION_PRICES else None
    claim = LevelClaim(Imbalance(), 2, 2, origin, prices=prices)
    assert list(certificate_errors(group, both, Certificate((claim,)))) != []
    assert not certify(group, both, levels="sum_of_squares").is_optimal
    assert solve(group, levels="sum_of_squares").imbalance.value == 1


def test_optional_copies_prove_no_conflict():
    members = (Member("a", ("t",), capacity=0), Member("b", ("t",), capacity=1))
    group = Group((Topic("t", 1, copies=((1, 2),)),), members)
    conflict = Conflict((Capacity(0, "a"), Capacity(1, "b")), Origin.CASES)
    assert list(conflict_errors(group, Certificate((), conflict=conflict))) != []
    assert solve(group).status == "optimal"


def test_the_checker_refuses_constraints_that_solve_refuses():
    members = tuple(Member(name, ("t",)) for name in "ab")
    group = Group((Topic("t", 1, copies=((1, 2),)),), members)
    claim = LevelClaim(Imbalance(), 1, 1, Origin.COUNTING)
    certificate = Certificate((claim,), constraints=(MaxPartitions(1),))
    with pytest.raises(UsageError, match="supports no constraints except capacities"):
        list(certificate_errors(group, Assignment({"a": [("t", 0)], "b": []}), certificate))


def test_the_number_of_copies_is_limited():
    with pytest.raises(InputError, match="copies of partition 0"):
        Topic("t", 1, copies=((1, 2**70),))

"""Groups with colocated partitions, solved with one partition per set."""

import random
from dataclasses import replace

import pytest

from kassay.reference import Group, Member, Topic
from kassay.solver import (
    Capacity,
    Colocated,
    Forbidden,
    Imbalance,
    MaxMoves,
    MaxPartitions,
    Movement,
    Pinned,
    Separated,
    Tolerance,
    solve,
)
from kassay.solver.colocated_groups import merge_colocated
from kassay.solver.problem import build_problem
from tests.solver.adversarial_cases import (
    AdversarialCase,
    adversarial_case,
    adversarial_error,
)
from tests.solver.random_cases import random_constraint
from tests.tiers import short_and_long

LEVELS = (Imbalance("makespan"), Movement())
LOOSE = (Imbalance("makespan", Tolerance(relative=0.02)), Movement())
PAIRS = Colocated(("a", "b"))


def paired_group(
    rng: random.Random, partitions: int, members: int, *, is_split: bool = False
) -> Group:
    """Return a group of two topics; if not split, equal numbers have equal owners."""
    owned: list[list[tuple[str, int]]] = [[] for _ in range(members)]
    for number in range(partitions):
        owner = rng.randrange(members)
        for name in "ab":
            owned[rng.randrange(members) if is_split else owner].append((name, number))
    topics = (
        Topic(name, partitions, weights=tuple(rng.randint(1, 99) for _ in range(partitions)))
        for name in "ab"
    )
    crew = (Member(f"c{at}", ("a", "b"), owned=held, generation=1) for at, held in enumerate(owned))
    return Group(tuple(topics), tuple(crew))


@pytest.mark.parametrize("seed", short_and_long(*range(40)))
@pytest.mark.parametrize("kind", ["equal owners", "different owners", "any"])
def test_colocated_partitions_agree_with_brute_force(kind, seed):
    rng = random.Random(f"colocated/{kind}/{seed}")
    if kind == "any":
        case = adversarial_case(seed)
        names = [topic.name for topic in case.group.topics]
        rules = (Colocated(tuple(rng.sample(names, min(2, len(names))))), *case.constraints)
    else:
        group = paired_group(rng, 3, 3, is_split=kind == "different owners")
        rules = (PAIRS, *(random_constraint(rng, group) for _ in range(rng.randint(0, 2))))
        case = AdversarialCase(group, rng.choice((LEVELS, LOOSE)), ())
    case = AdversarialCase(case.group, case.levels, rules)
    assert adversarial_error(case, "cp-sat") is None


@pytest.mark.parametrize("levels", [LEVELS, LOOSE], ids=["exact", "tolerance"])
def test_pairs_of_partitions_need_two_moves_each(levels):
    group = paired_group(random.Random(1), 60, 5)
    first, second = group.topics
    sums = tuple(map(sum, zip(first.weights, second.weights, strict=True)))
    single = Group(
        (replace(first, weights=sums),),
        tuple(
            replace(member, subscription=("a",), owned=[tp for tp in member.owned if tp[0] == "a"])
            for member in group.members
        ),
    )
    limits = 60
    pairs = solve(group, levels=levels, constraints=[PAIRS], limits=limits)
    alone = solve(single, levels=levels, limits=limits)
    assert pairs.is_optimal
    assert alone.is_optimal
    assert pairs.levels[0].bound == alone.levels[0].bound
    assert pairs.levels[1].value == 2 * alone.levels[1].value


def test_constraints_of_a_merged_group_name_its_partitions():
    group = paired_group(random.Random(2), 4, 3)
    problem = build_problem(group)
    rules = (
        PAIRS,
        Pinned("b", 2, "c0"),
        Forbidden("c1", "a", 0),
        Separated((("a", 1), ("b", 3))),
        Capacity(300, "c2"),
        MaxPartitions(5),
        MaxMoves(3),
    )
    merged = merge_colocated(problem, rules)
    assert merged.problem.partition_count == 4
    assert merged.merged_into.tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
    assert merged.rules == (
        Pinned("0", 2, "c0"),
        Forbidden("c1", "0", 0),
        Separated((("0", 1), ("0", 3))),
        Capacity(300, "c2"),
        MaxPartitions(2),
        MaxMoves(1),
    )


def test_groups_are_not_merged_if_a_set_or_a_member_would_be_left_out():
    group = paired_group(random.Random(3), 4, 3)
    rules = (PAIRS, Separated((("a", 1), ("b", 1))))
    assert merge_colocated(build_problem(group), rules) is None
    assert solve(group, constraints=rules).status == "infeasible"
    first, *others = group.members
    only_a = Group(group.topics, (replace(first, subscription=("a",), owned=()), *others))
    assert merge_colocated(build_problem(only_a), (PAIRS,)) is None
    assert merge_colocated(build_problem(group), ()) is None

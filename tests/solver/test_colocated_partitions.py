"""Groups with colocated partitions, solved with one partition per set."""

import random
from dataclasses import replace
from itertools import product

import pytest

from kassay import loads, solve, violations
from kassay.reference.model.group import Client, Group, Member, Topic
from kassay.solver.certificate.check import certificate_errors
from kassay.solver.colocated_partitions import merge_colocated
from kassay.solver.constraints import (
    Capacity,
    Colocated,
    Forbidden,
    MaxMoves,
    MaxPartitions,
    Pinned,
    Separated,
)
from kassay.solver.counting_bounds import level_bound
from kassay.solver.evaluation import level_value, violated
from kassay.solver.incumbent_pool import IncumbentPool
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.objective import (
    HostImbalance,
    Imbalance,
    Level,
    MembersUsed,
    Movement,
    Tolerance,
)
from kassay.solver.problem import build_problem
from kassay.solver.search.overload_searches import repair_overloads
from tests.solver.adversarial_cases import AdversarialCase, adversarial_case, adversarial_error
from tests.solver.move_judges import greedy_sets
from tests.solver.random_cases import random_constraint
from tests.tiers import short_and_long

LEVELS = (Imbalance("makespan"), Movement())
LOOSE = (Imbalance("makespan", Tolerance(relative=0.02)), Movement())
PAIRS = Colocated(("a", "b"))


def paired_group(
    rng: random.Random,
    partitions: int,
    members: int,
    *,
    is_split: bool = False,
    single: int = 0,
    weight: int = 99,
) -> Group:
    """Return a group of two topics of equal size, and a topic of single partitions.

    If not split, equal numbers of the two topics have equal owners.
    """
    owned: list[list[tuple[str, int]]] = [[] for _ in range(members)]
    for number in range(partitions):
        owner = rng.randrange(members)
        for name in "ab":
            owned[rng.randrange(members) if is_split else owner].append((name, number))
    for number in range(single):
        rng.choice(owned).append(("c", number))
    topics = (
        Topic(name, size, weights=tuple(rng.randint(1, weight) for _ in range(size)))
        for name, size in (("a", partitions), ("b", partitions), ("c", single))
        if size
    )
    names = ("a", "b", "c") if single else ("a", "b")
    crew = (
        Member(f"c{at}", names, owned=held, generation=1, client=Client(host=f"h{at % 2}"))
        for at, held in enumerate(owned)
    )
    return Group(tuple(topics), tuple(crew))


def random_levels(rng: random.Random, group: Group) -> tuple[Level, ...]:
    """Return levels about loads, moves, hosts and members used, some with a tolerance."""
    tolerance = Tolerance(relative=rng.choice((0, 0.05, 0.5)))
    loads = Imbalance(rng.choice(("makespan", "sum_of_squares")), tolerance)
    costs = {(topic.name, 0): rng.randint(0, 5) for topic in group.topics}
    moves = Movement(rng.choice(("count", "weight", costs)))
    others = [HostImbalance("makespan"), MembersUsed(), Imbalance("leximax")]
    rng.shuffle(others)
    first = [loads, moves] if rng.random() < 0.7 else [moves, loads]
    return (*first, *others[: rng.randint(0, 2)])


@pytest.mark.parametrize("seed", short_and_long(*range(60)))
@pytest.mark.parametrize("kind", ["equal owners", "different owners", "any"])
def test_colocated_partitions_agree_with_brute_force(kind, seed):
    rng = random.Random(f"colocated/{kind}/{seed}")
    if kind == "any":
        case = adversarial_case(seed)
        names = [topic.name for topic in case.group.topics]
        added = Colocated(tuple(rng.sample(names, min(2, len(names)))))
        case = replace(case, constraints=(added, *case.constraints))
    else:
        group = paired_group(
            rng,
            rng.randint(1, 3),
            rng.randint(2, 3),
            is_split=kind == "different owners",
            single=rng.randint(0, 2),
            weight=rng.choice((9, 2**40, 2**62)),
        )
        rules = (random_constraint(rng, group) for _ in range(rng.choice((0, 0, 1, 2))))
        case = AdversarialCase(group, random_levels(rng, group), (PAIRS, *rules))
    assert adversarial_error(case, "cp-sat") is None


@pytest.mark.parametrize("is_split", [False, True])
@pytest.mark.parametrize("seed", short_and_long(0, 1, 2, 3))
def test_levels_after_moves_agree_with_equal_answers_without_merged_partitions(
    seed, is_split, monkeypatch
):
    levels = (Movement(), Imbalance("makespan"))
    group = paired_group(random.Random(seed), 6, 3, is_split=is_split, single=3)
    merged = solve(group, levels=levels, constraints=[PAIRS])
    monkeypatch.setattr("kassay.solver.search.initial_placements.merge_colocated", lambda *_: None)
    plain = solve(group, levels=levels, constraints=[PAIRS])
    assert merged.is_optimal
    assert plain.is_optimal
    assert [one.value for one in merged.levels] == [one.value for one in plain.levels]


@pytest.mark.parametrize("cost", ["count", "weight"])
@pytest.mark.parametrize("seed", short_and_long(2, 3, 14, 18))
def test_a_limit_on_moves_of_sets_of_different_sizes_agrees_with_brute_force(seed, cost):
    rng, pairs, members = random.Random(seed), 4, 3
    owner = [rng.randrange(members) for _ in range(9)]
    weights = [[rng.randint(1, 30) for _ in range(size)] for size in (9, pairs)]
    sums = [sum(column[at] for column in weights if at < len(column)) for at in range(9)]
    limit, levels = rng.randint(3, 6), (Imbalance("makespan"), Movement(cost))
    values = []
    for placement in product(range(members), repeat=9):
        moved = [at for at in range(9) if placement[at] != owner[at]]
        if len(moved) + sum(at < pairs for at in moved) <= limit:
            makespan = max(
                sum(sums[at] for at in range(9) if placement[at] == member)
                for member in range(members)
            )
            costs = sums if cost == "weight" else [1 + (at < pairs) for at in range(9)]
            values.append((makespan, sum(costs[at] for at in moved)))
    topics = tuple(
        Topic(name, len(column), weights=tuple(column))
        for name, column in zip("ab", weights, strict=True)
    )
    owned = [
        [("a", at) for at in range(9) if owner[at] == member]
        + [("b", at) for at in range(pairs) if owner[at] == member]
        for member in range(members)
    ]
    crew = (Member(f"c{at}", ("a", "b"), owned=held, generation=1) for at, held in enumerate(owned))
    group = Group(topics, tuple(crew))
    solution = solve(group, levels=levels, constraints=[PAIRS, MaxMoves(limit)], limits=20)
    assert tuple(level.value for level in solution.levels) == min(values)
    assert tuple(level.bound for level in solution.levels) <= min(values)


@pytest.mark.parametrize("seed", range(8))
def test_the_best_assignment_shows_the_limit_of_the_moves(seed):
    levels = (Imbalance("makespan", Tolerance(relative=0.05)), Movement())
    group = paired_group(random.Random(seed), 10, 3)
    solution = solve(group, levels=levels, constraints=[PAIRS])
    first, second = solution.certificate.claims
    value = first.value if first.best is None else max(loads(group, first.best).values())
    limit = levels[0].tolerance.limit(value)
    assert limit >= solution.levels[0].value
    within = (replace(levels[0], tolerance=Tolerance(up_to=limit)), Movement())
    again = solve(group, levels=within, constraints=[PAIRS])
    assert second.bound <= again.levels[1].bound


@pytest.mark.parametrize("single", [0, 20])
def test_moves_of_merged_partitions_are_proven(single):
    group = paired_group(random.Random(6), 60, 5, single=single)
    solution = solve(group, levels=LOOSE, constraints=[PAIRS])
    assert solution.is_optimal
    assert not list(violations(group, solution.assignment))
    assert not list(certificate_errors(group, solution.assignment, solution.certificate))


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


def test_groups_are_not_merged_if_separations_members_or_sums_prevent_it():
    group = paired_group(random.Random(3), 4, 3)
    rules = (PAIRS, Separated((("a", 1), ("b", 1))))
    assert merge_colocated(build_problem(group), rules) is None
    assert solve(group, constraints=rules).status == "infeasible"
    first, *others = group.members
    only_a = Group(group.topics, (replace(first, subscription=("a",), owned=()), *others))
    assert merge_colocated(build_problem(only_a), (PAIRS,)) is None
    assert merge_colocated(build_problem(group), ()) is None
    large = replace(first_topic := group.topics[0], weights=(2**62,) * first_topic.partitions)
    heavy = replace(group, topics=(large, replace(large, name="b")))
    assert merge_colocated(build_problem(heavy), (PAIRS,)) is None
    assert solve(heavy, constraints=[PAIRS]).assignment is not None


@pytest.mark.parametrize("measure", ["makespan", "sum_of_squares"])
@pytest.mark.parametrize("seed", short_and_long(*range(4)))
def test_loads_of_colocated_partitions_within_numbers_are_lower_than_by_a_greedy_rule(
    measure, seed
):
    group = paired_group(random.Random(seed), 40, 5, is_split=True, single=40, weight=9_999)
    speeds = (1, 2, 3, 2, 1) if seed % 2 else (1, 1, 1, 1, 1)
    crew = (replace(one, speed=speed) for one, speed in zip(group.members, speeds, strict=True))
    problem = build_problem(replace(group, members=tuple(crew)))
    index = problem.partition_index
    pairs = [[index["a", at], index["b", at]] for at in range(40)]
    sets = [*pairs, *([index["c", at]] for at in range(40))]
    rules, level = (PAIRS, MaxPartitions(36)), Imbalance(measure)
    greedy = greedy_sets(problem, sets, 36)
    assert not any(violated(problem, rules, greedy))
    pool, bound = IncumbentPool(problem, (level,), rules, [greedy]), level_bound(problem, level)
    repair_overloads(pool, level, bound, SearchBudget.start(SearchLimits(work=10)))
    assert pool.value(level) < level_value(problem, level, greedy)
    assert pool.value(level) <= 1.0001 * bound

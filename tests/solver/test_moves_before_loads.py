"""Fewest moves of weighted groups that are proven before the minimum of the loads."""

import random
from dataclasses import replace
from threading import Event

import pytest

from kassay import Capacity, Group, Pinned, Topic, solve
from kassay.reference.model.group import Client
from kassay.solver.certificate.certificate import LevelClaim, Origin
from kassay.solver.certificate.check import certificate_errors
from kassay.solver.constraints import Forbidden, MaxPartitions
from kassay.solver.counting_bounds import level_bound, makespan_bound
from kassay.solver.cpsat.level_search import MovedPartitionsModel
from kassay.solver.cpsat.model import SearchResult
from kassay.solver.engine import LevelTask
from kassay.solver.evaluation import movement_costs, violated
from kassay.solver.greedy_placements import longest_processing_time, place_within
from kassay.solver.incumbent_pool import IncumbentPool
from kassay.solver.limits import SearchBudget, SearchLimits, limited_steps
from kassay.solver.objective import (
    WEIGHTED_TOLERANCE,
    CrossRack,
    HostImbalance,
    Imbalance,
    Movement,
    Tolerance,
)
from kassay.solver.problem import build_problem
from kassay.solver.search.load_searches import max_loads
from kassay.solver.search.movement_bound import price_by_weight
from kassay.solver.search.movement_search import FewestMovesProof, FewestMovesProofs
from kassay.solver.search_interface import KnownLevels, LevelResult
from kassay.solver.solve import minimise_level
from tests import brute_force
from tests.notation import changed, even_group
from tests.solver.random_cases import (
    all_partitions,
    limited_problems,
    random_constraint,
    random_group,
)

_TOLERANCE = Tolerance(relative=0.05)
_GREEDY = (Capacity, MaxPartitions, Pinned, Forbidden)


def _weighted_group(rng: random.Random, partitions: int, members: int) -> Group:
    owners = [rng.randrange(members) for _ in range(partitions)]
    return even_group([rng.randint(1, 12) for _ in range(partitions)], members, owners)


@pytest.mark.parametrize("seed", range(12))
def test_the_moves_within_a_tolerance_agree_with_brute_force(seed):
    group = _weighted_group(random.Random(f"moves {seed}"), 13, 3)
    solution = solve(group, levels=[Imbalance("makespan", _TOLERANCE), Movement()], method="cp-sat")
    least, moves = brute_force.optimum(group, "makespan", slack=_TOLERANCE.limit)
    assert solution.is_optimal
    assert (solution.movement.value, solution.movement.bound) == (moves, moves)
    assert solution.imbalance.bound <= least
    assert solution.imbalance.value <= _TOLERANCE.limit(least)


@pytest.mark.parametrize("seed", range(4))
def test_the_moves_within_tolerances_of_hosts_and_members_agree_with_brute_force(seed):
    rng = random.Random(f"hosts {seed}")
    group = _weighted_group(rng, 12, 3)
    hosts = [replace(m, client=Client(host=f"h{at // 2}")) for at, m in enumerate(group.members)]
    group = replace(group, members=tuple(hosts))
    levels = [HostImbalance("makespan", _TOLERANCE), Imbalance("makespan", _TOLERANCE), Movement()]
    solution = solve(group, levels=levels, method="cp-sat")
    # A host with two members has twice the speed of a host with one.
    states = [(max(a + b, 2 * c), max(a, b, c), moves) for (a, b, c), moves in _states(group)]
    minimum = _minimum(states)
    assert solution.is_optimal
    assert solution.movement.bound == minimum[-1]
    assert all(
        level.value <= _TOLERANCE.limit(least)
        for level, least in zip(solution.levels[:2], minimum[:2], strict=True)
    )


@pytest.mark.parametrize("seed", range(6))
def test_capacities_bound_the_makespan_without_an_error(seed):
    rng = random.Random(f"capacities {seed}")
    group = _weighted_group(rng, 12, 3)
    mean = sum(group.topics[0].weights) // 3
    rules = (Capacity(mean * 7 // 10, "c0"), Capacity(mean * 9 // 10, "c1"))
    levels = [Imbalance("makespan"), Movement()]
    solution = solve(group, levels=levels, constraints=rules, method="cp-sat")
    states = [
        (max(loads), moves)
        for loads, moves in _states(group)
        if loads[0] <= rules[0].limit and loads[1] <= rules[1].limit
    ]
    assert [(level.value, level.bound) for level in solution.levels] == [
        (least, least) for least in min(states)
    ]


def test_the_greedy_rule_meets_pins_exclusions_capacities_and_counts():
    rng, placed = random.Random("greedy"), 0
    for _ in range(200):
        group = random_group(rng, weighted=True, timed=rng.random() < 0.5)
        if not all_partitions(group):
            continue
        rules = [random_constraint(rng, group) for _ in range(3)]
        problem = build_problem(group)
        # A pin of a partition without consumers cannot be met.
        consumed = {tp.topic for tp in problem.partition_index}
        rules = [
            rule
            for rule in rules
            if isinstance(rule, _GREEDY)
            and (not isinstance(rule, Pinned) or rule.topic in consumed)
        ]
        placement = place_within(problem, rules)
        if placement is not None:
            placed += 1
            assert not list(violated(problem, rules, placement))
    assert placed > 50


def test_prices_and_excluded_moves_give_the_fewest_moves():
    for _, problem, max_load, moves in limited_problems(random.Random("prices"), 30, slack=3):
        level, limits = Movement(), [(Imbalance("makespan"), max_load)]
        costs = movement_costs(problem, level)
        priced = price_by_weight(
            problem,
            [max_load] * problem.member_count,
            costs,
            incumbent=len(costs) + 1,
            may_continue=limited_steps(20),
        )
        assert priced.bound <= moves
        pool = IncumbentPool(problem, (level,), (), [])
        search = FewestMovesProof(pool, level, limits, priced=replace(priced, bound=0))
        search.run(SearchBudget.start(SearchLimits()))
        assert search.is_proven
        assert search.proven.value == moves


def test_prices_within_capacities_prove_no_more_than_the_fewest_moves():
    higher = 0
    for seed in range(3):
        group = _weighted_group(random.Random(f"prices {seed}"), 12, 3)
        problem, total = build_problem(group), sum(group.topics[0].weights)
        rules = (Capacity(total // 5, "c0"),)
        limit = (total - total // 5) * 6 // 11
        limits = [(Imbalance("makespan"), limit)]
        pool = IncumbentPool(problem, (Movement(),), rules, [])
        permitted = max_loads(pool, limits)
        assert permitted == [total // 5, limit, limit]
        fewest = min(
            moves
            for loads, moves in _states(group)
            if all(load <= most for load, most in zip(loads, permitted, strict=True))
        )
        bounds = [
            price_by_weight(
                problem,
                most,
                movement_costs(problem, Movement()),
                incumbent=13,
                may_continue=limited_steps(10),
            ).bound
            for most in (permitted, [limit] * 3)
        ]
        assert bounds[1] <= bounds[0] <= fewest
        higher += bounds[1] < bounds[0]
    assert higher


def test_a_level_starts_from_the_bounds_of_searches_within_higher_limits():
    problem = build_problem(_weighted_group(random.Random("earlier"), 60, 6))
    levels = (Imbalance("makespan"), Movement())
    even = longest_processing_time(problem)
    pool = IncumbentPool(problem, levels, (), [even])
    load, moves = (pool.value(level) for level in levels)
    earlier = FewestMovesProof(pool, levels[1], [(levels[0], load + 1)])
    earlier.raise_bound(moves, Origin.EXCHANGE)
    pool.reached.append(LevelResult(LevelClaim(levels[0], load, 0, Origin.CP_SAT), load, even))
    searches = FewestMovesProofs(pool, searches=[earlier])
    budget = SearchBudget.start(SearchLimits(time=0))
    minimise_level(LevelTask(pool, 1, KnownLevels(), searches, [], budget))
    assert pool.reached[-1].claim == LevelClaim(levels[1], moves, moves, Origin.EXCHANGE)


def test_moves_that_counting_proves_have_its_origin():
    counted = 0
    for _, problem, max_load, moves in limited_problems(random.Random("counted"), 20, slack=3):
        levels = (Imbalance("makespan"), Movement())
        limits = [(levels[0], max_load)]
        if level_bound(problem, levels[1], limits) < moves:
            continue
        pool = IncumbentPool(problem, levels, (), [])
        search = FewestMovesProof(pool, levels[1], limits)
        search.run(SearchBudget.start(SearchLimits()))
        claim = LevelClaim(levels[0], max_load, 0, Origin.CP_SAT)
        pool.reached.append(LevelResult(claim, max_load, pool.placements[-1]))
        searches = FewestMovesProofs(pool, search.proven)
        budget = SearchBudget.start(SearchLimits())
        minimise_level(LevelTask(pool, 1, KnownLevels(), searches, [], budget))
        assert pool.reached[-1].claim == LevelClaim(levels[1], moves, moves, Origin.COUNTING)
        counted += search.has_searched
    assert counted


def test_searches_at_the_bound_alternate_with_searches_among_all_moves(monkeypatch):
    search_by_model = MovedPartitionsModel.minimise

    def inconclusive_at_the_bound(model, level, limits, **options):
        if model.possible is not None:
            return SearchResult(None, options["bound"])
        return search_by_model(model, level, limits, **options)

    monkeypatch.setattr(MovedPartitionsModel, "minimise", inconclusive_at_the_bound)
    for _, problem, max_load, moves in limited_problems(random.Random("all"), 3, slack=3):
        limits = [(Imbalance("makespan"), max_load)]
        priced = price_by_weight(
            problem,
            [max_load] * problem.member_count,
            movement_costs(problem, Movement()),
            incumbent=99,
            may_continue=limited_steps(1),
        )
        pool = IncumbentPool(problem, (Movement(),), (), [])
        search = FewestMovesProof(pool, Movement(), limits, priced=priced)
        search.run(SearchBudget.start(SearchLimits(time=20)))
        assert (search.is_proven, search.bound) == (True, moves)


def test_searches_with_prices_end_at_a_deterministic_limit():
    problem = build_problem(_weighted_group(random.Random("limit"), 60, 6))
    limits = [(Imbalance("makespan"), makespan_bound(problem))]
    priced = price_by_weight(
        problem,
        [limits[0][1]] * 6,
        movement_costs(problem, Movement()),
        incumbent=60,
        may_continue=limited_steps(1),
    )
    search = FewestMovesProof(IncumbentPool(problem, (Movement(),), (), []), Movement(), limits)
    search.priced = priced
    search.run(SearchBudget.start(SearchLimits(work=1e-05)))
    assert not search.is_proven


def _states(group):
    return brute_force.reachable(group).items()


def _minimum(states):
    """Return the minimum of each value within the tolerances of the values before it."""
    minimum = []
    for index in range(len(states[0])):
        minimum.append(min(state[index] for state in states))
        states = [s for s in states if s[index] <= _TOLERANCE.limit(minimum[index])]
    return minimum


@pytest.mark.parametrize("seed", range(4))
def test_the_checker_accepts_moves_that_are_proven_by_counting(seed):
    group = _weighted_group(random.Random(f"counted {seed}"), 60, 6)
    levels = (Imbalance("makespan", _TOLERANCE), Movement())
    solution = solve(group, levels=levels)
    assert solution.is_optimal
    assert solution.method == "counting"
    assert [claim.origin for claim in solution.certificate.claims] == [Origin.COUNTING] * 2
    assert not list(certificate_errors(group, solution.assignment, solution.certificate))


@pytest.mark.parametrize("kind", ["hosts", "speeds", "subscriptions"])
def test_first_searches_of_mixed_groups_start_without_a_placement(kind, monkeypatch):
    group = _weighted_group(random.Random(3), 60, 4)
    change = {
        "hosts": lambda at: {"client": Client(host=f"h{at % 2}")},
        "speeds": lambda at: {"speed": 1 + at % 2},
        "subscriptions": lambda at: {"subscription": ("t", "u")[: 1 + at % 2]},
    }[kind]
    group = replace(
        group,
        topics=(*group.topics, Topic(name="u", partitions=2, weights=(3, 4))),
        members=tuple(
            replace(member, **{"subscription": ("t", "u"), **change(at)})
            for at, member in enumerate(group.members)
        ),
    )
    level, moves = (
        HostImbalance("makespan") if kind == "hosts" else Imbalance("makespan"),
        Movement(),
    )
    problem, stop, calls = build_problem(group), Event(), []
    best = longest_processing_time(problem)
    pool = IncumbentPool(problem, (level, moves), (), [best])
    value, cost = pool.value(level), pool.value(moves)

    def search_once(model, level, limits, *, budget, hint=None, bound=0):
        calls.append((model.possible is None, hint is None))
        stop.set()
        return SearchResult(best, cost)

    monkeypatch.setattr(MovedPartitionsModel, "minimise", search_once)
    search = FewestMovesProof(pool, moves, [(level, value)])
    for permitted in (value, value - 1):
        stop.clear()
        search = search.within([(level, permitted)])
        search.run(SearchBudget.start(SearchLimits(stop=stop)))
    assert calls == [(True, True)] * 2


def test_bound_of_a_level_after_the_moves_holds_within_the_tolerance_of_the_minimum():
    # Loads of 53, 50, 48 and 47 units of 1,000, and one partition of weight 1: the minimum is
    # 50,000, its bound 49,501. One move is enough within the tolerance of both, but only within
    # that of the minimum, 51,000, it need not go to the member in the other rack.
    units = [(3, 2) * 10 + (3,), (2,) * 25, (3,) * 16, (2,) * 23 + (1,)]
    weights = [1_000 * unit for owned in units for unit in owned] + [1]
    owners = [member for member, owned in enumerate(units) for _ in owned] + [1]
    group = even_group(weights, 4, owners)
    topic = replace(group.topics[0], racks=(("a",),) * len(weights))
    racks = {one.id: {"rack": rack} for one, rack in zip(group.members, "aaaz", strict=True)}
    group = changed(replace(group, topics=(topic,)), **racks)
    levels = (Imbalance("makespan", tolerance=WEIGHTED_TOLERANCE), Movement(), CrossRack())
    solution = solve(group, levels=levels, limits=SearchLimits(work=2))
    assert solution.level("makespan").bound < 50_000
    assert (solution.level("movement").value, solution.level("movement").bound) == (1, 1)
    assert solution.level("cross_rack").bound <= 24

"""Knapsack bounds and column generation: the bounds never exceed the minimum cost."""

import random
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kassay import Group, Movement
from kassay.reference.model.assignment import NO_OWNER, Assignment
from kassay.solver.counting_bounds import overload_moves_bound
from kassay.solver.problem import Problem, build_problem
from kassay.solver.search.movement_bound import INFEASIBLE, SCALE, ColumnGeneration, MemberExchange
from tests import brute_force
from tests.notation import even_group
from tests.solver.random_cases import weighted_problems
from tests.solver.test_few_moves import crowded
from tests.strategies import groups
from tests.tiers import short_and_long


def always() -> bool:
    return True


def cheapest(group: Group, problem: Problem, costs: list[int], ceiling: int) -> int | None:
    """Return the minimum cost of placements within a maximum load."""
    owner = brute_force.owners(group)
    cost = {tuple(tp): costs[partition] for tp, partition in problem.partition_index.items()}
    return min(
        (
            sum(cost[tp] for tp, member in placement.items() if owner.get(tp, member) != member)
            for placement in brute_force.every_placement(group)
            if max(brute_force.loads_of(group, placement), default=0) <= ceiling
        ),
        default=None,
    )


def cheapest_with_each_move(
    group: Group, problem: Problem, costs: list[int], ceiling: int
) -> Iterator[tuple[int, int, int]]:
    """Yield each move of a placement within a maximum load, with the cost of all its moves."""
    for placement in brute_force.every_placement(group):
        if max(brute_force.loads_of(group, placement), default=0) > ceiling:
            continue
        column = problem.to_placement(Assignment(brute_force.by_member(group, placement)))
        moved = np.flatnonzero(column != problem.owner).tolist()
        cost = sum(costs[at] for at in moved if problem.owner[at] != NO_OWNER)
        yield from ((at, int(column[at]), cost) for at in moved)


@given(
    group=groups(max_members=3, max_total=6, weighted=True),
    grid=st.integers(1, 40),
    ceiling=st.integers(0, 40),
    data=st.data(),
)
def test_no_prices_on_any_grid_exceed_the_minimum_cost(group, grid, ceiling, data):
    problem = build_problem(group)
    if not problem.partition_count:
        return
    some = st.integers(0, 4)
    costs = data.draw(
        st.lists(some, min_size=problem.partition_count, max_size=problem.partition_count)
    )
    price = data.draw(
        st.lists(some, min_size=problem.partition_count, max_size=problem.partition_count)
    )
    least = cheapest(group, problem, costs, ceiling)
    exchange = MemberExchange(problem, [ceiling] * problem.member_count, np.array(costs), grid)
    solved = exchange.solve(np.array(price) * SCALE)
    assert least is None or solved.bound <= least * SCALE
    bounds = exchange.bounds_of_moves(np.array(price) * SCALE, 100 * SCALE)
    for at, member, cost in cheapest_with_each_move(group, problem, costs, ceiling):
        assert bounds[at, member] <= cost * SCALE


@pytest.mark.parametrize(("number", "often"), short_and_long((10, 1), (60, 15)))
def test_prices_never_exceed_the_minimum_cost(number, often):
    rng = random.Random(12)
    proven = 0
    for group, problem in weighted_problems(rng, number):
        costs = [rng.randint(1, 4) for _ in range(problem.partition_count)]
        ceiling = brute_force.optimum(group, "makespan")[0] + rng.randint(0, 4)
        least = cheapest(group, problem, costs, ceiling)
        max_loads = [ceiling] * problem.member_count
        turns = iter(range(80))
        for grid in (3, 1000):
            exchange = MemberExchange(problem, max_loads, np.array(costs), grid)
            search = ColumnGeneration(exchange)
            search.raise_bound(least * SCALE, lambda turns=turns: next(turns, None) is not None)
            by_weight = search.bound
            assert by_weight <= least * SCALE
            search.price_partitions()
            search.raise_bound(least * SCALE, lambda turns=turns: next(turns, None) is not None)
            assert by_weight <= search.bound <= least * SCALE
        proven += search.bound > (least - 1) * SCALE >= 0
    assert proven > often


def small_exchange(grid: int) -> MemberExchange:
    problem = build_problem(crowded(1, 60, 6))
    ceiling = problem.total * 101 // 600
    return MemberExchange(
        problem, [ceiling] * 6, np.ones(problem.partition_count, dtype=np.int64), grid
    )


def test_the_cost_of_a_pattern_is_the_value_of_its_knapsack():
    exchange = small_exchange(50)
    rng = np.random.default_rng(5)
    price = rng.integers(0, 3 * SCALE, exchange.problem.partition_count)
    solved = exchange.solve(price)
    for amounts in (solved.net.argmin(axis=1), np.zeros(6, dtype=np.int64)):
        for member, amount in enumerate(amounts.tolist()):
            if solved.net[member, amount] >= INFEASIBLE:
                continue
            pattern = exchange.pattern(solved, member, amount)
            given, received = list(pattern.given), list(pattern.received)
            assert (
                price[given].sum() - (price[received] - SCALE).sum() == solved.net[member, amount]
            )
            more = exchange.receive_weight[received].sum() - exchange.give_weight[given].sum()
            assert more <= exchange.free_capacity[member]
            assert (exchange.problem.owner[given] == member).all()
            assert (exchange.problem.owner[received] != member).all()


def test_the_prices_of_column_generation_prove_its_bound():
    search = ColumnGeneration(small_exchange(50))
    search.raise_bound(10**9, always)
    assert search.exchange.solve(search.prices).bound == search.bound


def test_the_exchange_bound_is_at_least_the_counted_bound():
    search = ColumnGeneration(small_exchange(10**6))
    exchange = search.exchange
    counted = overload_moves_bound(exchange.problem, Movement(), exchange.max_loads)
    turns = iter([True])
    search.raise_bound(10**9, lambda: next(turns, False))
    assert search.bound >= counted * SCALE
    search.raise_bound(10**9, always)
    assert search.bound > counted * SCALE


def test_the_search_stops_when_the_target_is_met():
    search = ColumnGeneration(small_exchange(50))
    asked = []
    search.raise_bound(-1, lambda: not asked.append(None))
    assert len(asked) == 1
    assert search.bound == 0


def test_an_unowned_partition_that_fills_a_member_costs_a_move():
    """Two members own 3 each and may have 6: an unowned 6 fits only if a 3 moves."""
    problem = build_problem(even_group((3, 3, 6), 2, [0, 1]))
    search = ColumnGeneration(MemberExchange(problem, [6, 6], np.ones(3, dtype=np.int64), 6))
    search.raise_bound(10**9, always)
    assert SCALE * 99 // 100 <= search.bound <= SCALE


def test_unowned_partitions_alone_need_no_moves():
    problem = build_problem(even_group((3, 4, 5, 6), 2))
    search = ColumnGeneration(MemberExchange(problem, [9, 9], np.ones(4, dtype=np.int64), 9))
    search.raise_bound(10**9, always)
    assert search.bound == 0

"""Search for partition prices that prove that no assignment meets constraints and limits."""

from collections.abc import Iterator, Sequence

import numpy as np

from kassay.solver.certificate.refutation import PartitionPrices, relaxation_refuted
from kassay.solver.certificate.refutation_problem import Limit, Relaxation, build_relaxation
from kassay.solver.constraints import Constraint
from kassay.solver.evidence.dual_prices import DualPrices, solve_dual
from kassay.solver.problem import Problem

_MAX_CELLS = 300_000
# Dual values are rounded to multiples of 1 / denominator, for each of these denominators.
_DENOMINATORS = (1, 2, 3, 4, 6, 10, 12, 60, 840, 10_000)
_MAX_THRESHOLDS = 60


def find_prices(
    problem: Problem, rules: Sequence[Constraint], limits: Sequence[Limit]
) -> PartitionPrices | None:
    """Find partition prices that prove that no assignment meets constraints and limits.

    Return None if no such prices are found. The candidates are cuts, dual feasible functions of
    the weights, and duals of the linear relaxation. The checker of certificates decides whether
    they are sufficient.
    """
    if problem.partition_count * problem.member_count > _MAX_CELLS:
        return None
    relaxation = build_relaxation(problem, rules, limits)
    for prices in _candidates(problem, relaxation):
        if relaxation_refuted(problem, relaxation, prices):
            return prices
    return None


def _candidates(problem: Problem, relaxation: Relaxation) -> Iterator[PartitionPrices]:
    yield PartitionPrices()
    for block_prices in (*_cuts(relaxation), *_threshold_prices(relaxation)):
        yield _partition_prices(problem, relaxation, block_prices)
    dual = solve_dual(relaxation)
    if dual is not None:
        for denominator in _DENOMINATORS:
            yield _rounded(problem, relaxation, dual, denominator)


def _cuts(relaxation: Relaxation) -> Iterator[list[int]]:
    """Yield prices of the blocks that only a set of members may have, for several sets.

    The prices are the weights of these blocks, or their numbers of partitions. Other blocks have
    the price 0.
    """
    sets = dict.fromkeys(frozenset(np.flatnonzero(row).tolist()) for row in relaxation.allowed)
    sets[frozenset(range(relaxation.allowed.shape[1]))] = None
    for members in sets:
        outside = [member not in members for member in range(relaxation.allowed.shape[1])]
        inside = [not any(row) for row in relaxation.allowed[:, outside].tolist()]
        counts = [len(block) for block in relaxation.blocks]
        for sizes in (relaxation.weights, counts):
            yield [size if is_inside else 0 for size, is_inside in zip(sizes, inside, strict=True)]


def _threshold_prices(relaxation: Relaxation) -> Iterator[list[int]]:
    """Yield block prices that are dual feasible functions of the weights.

    The functions use the most common maximum load. With a threshold t, blocks heavier than the
    maximum load minus t have the price 2, other blocks of at least t the price 1 (Martello and
    Toth, 1990). With a divisor k, the price is the number of whole k-ths of the maximum load in
    the weight (Fekete and Schepers, 2001).
    """
    if not relaxation.max_loads:
        return
    loads, numbers = np.unique(np.array(relaxation.max_loads, dtype=object), return_counts=True)
    most = int(loads[int(np.argmax(numbers))])
    distinct = sorted({weight for weight in relaxation.weights if 2 * weight <= most})
    step = len(distinct) // _MAX_THRESHOLDS + 1
    for threshold in distinct[::step]:
        yield [
            2 if weight > most - threshold else int(weight >= threshold)
            for weight in relaxation.weights
        ]
    for divisor in range(2, 21):
        yield [weight * divisor // (most + 1) for weight in relaxation.weights]


def _rounded(
    problem: Problem, relaxation: Relaxation, dual: DualPrices, denominator: int
) -> PartitionPrices:
    """Round dual values to integer prices, in units of 1 / ``denominator``."""
    prices = [round(price * denominator) for price in dual.blocks]
    return _partition_prices(
        problem,
        relaxation,
        prices,
        max_moves=max(round(dual.max_moves * denominator), 0),
        levels=tuple(max(round(value * denominator), 0) for value in dual.levels),
    )


def _partition_prices(
    problem: Problem,
    relaxation: Relaxation,
    block_prices: Sequence[int],
    *,
    max_moves: int = 0,
    levels: tuple[int, ...] = (),
) -> PartitionPrices:
    """Give the price of each block to its first partition, and 0 to its other partitions."""
    price = [0] * problem.partition_count
    for block, value in zip(relaxation.blocks, block_prices, strict=True):
        price[block[0]] = int(value)
    table: dict[str, list[int]] = {}
    for at, topic in enumerate(problem.topic.tolist()):
        table.setdefault(problem.group.topics[topic].name, []).append(price[at])
    return PartitionPrices(
        {name: tuple(values) for name, values in table.items() if any(values)}, max_moves, levels
    )

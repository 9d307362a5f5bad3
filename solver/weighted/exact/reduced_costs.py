"""Reduced costs of subsets, which exclude most subsets from a set partitioning problem.

The cheapest set partitioning is an integer program with one column per subset. The dual
values of its linear relaxation price the items; the reduced cost of a subset is its cost
minus the prices of its items. A partitioning costs the bound plus its reduced costs, so
subsets beyond the remaining budget are excluded. Prices are rounded to integers, and all
integer prices give a valid bound.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from kassay.solver.enumeration.subset_enumeration import Subsets
from kassay.solver.problem import Ints

SCALE = 2**16
_EXACT_IN_FLOATS = 2**53
_FIRST_SETS = 30
_SETS_PER_ROUND = 40
_ROUNDS = 40


@dataclass(frozen=True, slots=True)
class ReducedCosts:
    """Lower bound on the cost of a set partitioning, and the reduced cost of each subset.

    Both are multiplied by `SCALE`.
    """

    bound: int
    reduced: tuple[Ints, ...]  # per member and subset; at least 0


def reduced_costs(
    columns: Sequence[Subsets], costs: Ints, may_continue: Callable[[], bool] = lambda: True
) -> ReducedCosts:
    """Compute the reduced costs of each member's subsets, and a lower bound on the cost.

    Every member has at least one subset; costs are at most 2**40. All prices are valid, so a
    reached limit only weakens them.
    """
    items = costs.shape[1]
    shared = {id(column): _bits(column, items) for column in columns}
    bits = [shared[id(column)] for column in columns]
    # Sums of integers below 2**53 are exact in floating point, and faster than in 64 bits.
    subset_costs = [bit @ cost.astype(np.float64) for bit, cost in zip(bits, costs, strict=True)]
    worth = np.rint(_item_prices(bits, subset_costs, may_continue) * SCALE)
    dtype = np.float64 if np.abs(worth).sum() < _EXACT_IN_FLOATS else np.int64
    reduced = [
        SCALE * cost.astype(np.int64) - (bit.astype(dtype) @ worth.astype(dtype)).astype(np.int64)
        for bit, cost in zip(bits, subset_costs, strict=True)
    ]
    least = [int(price.min()) for price in reduced]
    return ReducedCosts(
        bound=sum(int(price) for price in worth) + sum(least),
        reduced=tuple(price - low for price, low in zip(reduced, least, strict=True)),
    )


def _bits(columns: Subsets, items: int) -> NDArray[np.float64]:
    return ((columns.mask[:, None] >> np.arange(items)) & 1).astype(np.float64)


def _item_prices(
    bits: Sequence[NDArray[np.float64]],
    subset_costs: Sequence[NDArray[np.float64]],
    may_continue: Callable[[], bool],
) -> NDArray[np.float64]:
    """Solve the linear relaxation by column generation, and return the dual values of the items."""
    items, members = bits[0].shape[1], len(bits)
    chosen = [np.argsort(cost, kind="stable")[:_FIRST_SETS] for cost in subset_costs]
    penalty = max(float(cost.max()) for cost in subset_costs) + 1
    slack = np.concatenate([np.eye(items), -np.eye(items)], axis=1)
    slack = np.concatenate([slack, np.zeros((members, 2 * items))])
    worth = np.zeros(items)
    for _ in range(_ROUNDS):
        if not may_continue():
            break
        parts = [
            _columns_of(bits[at][partitions], at, members) for at, partitions in enumerate(chosen)
        ]
        result = linprog(
            np.concatenate(
                [
                    *(subset_costs[at][partitions] for at, partitions in enumerate(chosen)),
                    np.full(2 * items, penalty),
                ]
            ),
            A_eq=np.concatenate([*parts, slack], axis=1),
            b_eq=np.ones(items + members),
            method="highs",
        )
        if result.status != 0:
            break
        duals = np.asarray(result.eqlin.marginals)
        worth = np.clip(duals[:items], -penalty, penalty)
        more = [
            _improving(subset_costs[at] - bits[at] @ worth - duals[items + at], chosen[at])
            for at in range(members)
        ]
        if not any(len(partitions) for partitions in more):
            break
        chosen = [np.concatenate(pair) for pair in zip(chosen, more, strict=True)]
    return worth


def _columns_of(bits: NDArray[np.float64], member: int, members: int) -> NDArray[np.float64]:
    own_row = np.zeros((members, len(bits)))
    own_row[member] = 1
    return np.concatenate([bits.T, own_row])


def _improving(reduced: NDArray[np.float64], known: Ints) -> Ints:
    """Return the new subsets with the most negative reduced costs."""
    threshold = -1e-7 * max(1.0, float(np.abs(reduced).max()))
    most = min(_SETS_PER_ROUND, len(reduced))
    partitions = np.argpartition(reduced, most - 1)[:most]
    partitions = partitions[reduced[partitions] < threshold]
    return np.setdiff1d(partitions, known)

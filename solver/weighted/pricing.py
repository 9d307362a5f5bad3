"""Prices for items, by which few sets remain worth trying.

The cheapest cover by one set a member is an integer program with a column a set. Its
linear relaxation gives every item a price; a set's reduced price is what it costs more
than its items are worth. A cover costs the bound plus its sets' reduced prices, so sets
beyond the remaining budget drop out. Prices come from floating point and are rounded:
any integer prices give a valid bound, good ones a tight bound.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from kassay.solver.weighted.subset_enumeration import Ints, Subsets

SCALE = 2**16
_FIRST_SETS = 30
_SETS_A_ROUND = 40
_ROUNDS = 40


@dataclass(frozen=True, slots=True)
class ItemPrices:
    """A bound on all covers, and what each set costs beyond it; both times `SCALE`.

    Parameters
    ----------
    bound
        No cover costs less.
    reduced
        For each member the reduced price of each of its sets, 0 or more.
    """

    bound: int
    reduced: tuple[Ints, ...]


def price_sets(columns: Sequence[Subsets], costs: Ints) -> ItemPrices:
    """Price the sets of every member.

    Parameters
    ----------
    columns
        The sets of each member; every member has some.
    costs
        What each item costs with each member, shape (members, items); at most 2**40.
    """
    items = costs.shape[1]
    shared = {id(column): _bits(column, items) for column in columns}
    bits = [shared[id(column)] for column in columns]
    # Products of bits and integers below 2**53 are exact in floating point, and fast.
    own = [bit @ cost.astype(np.float64) for bit, cost in zip(bits, costs, strict=True)]
    worth = np.rint(_item_prices(bits, own) * SCALE)
    reduced = [
        SCALE * cost.astype(np.int64) - (bit @ worth).astype(np.int64)
        for bit, cost in zip(bits, own, strict=True)
    ]
    least = [int(price.min()) for price in reduced]
    return ItemPrices(
        bound=sum(int(price) for price in worth) + sum(least),
        reduced=tuple(price - low for price, low in zip(reduced, least, strict=True)),
    )


def _bits(columns: Subsets, items: int) -> NDArray[np.float64]:
    return ((columns.mask[:, None] >> np.arange(items)) & 1).astype(np.float64)


def _item_prices(
    bits: Sequence[NDArray[np.float64]], own: Sequence[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Solve the relaxation by column generation; return the dual values of the items."""
    items, members = bits[0].shape[1], len(bits)
    chosen = [np.argsort(cost, kind="stable")[:_FIRST_SETS] for cost in own]
    penalty = max(float(cost.max()) for cost in own) + 1
    slack = np.concatenate([np.eye(items), -np.eye(items)], axis=1)
    slack = np.concatenate([slack, np.zeros((members, 2 * items))])
    worth = np.zeros(items)
    for _ in range(_ROUNDS):
        parts = [_part(bits[at][rows], at, members) for at, rows in enumerate(chosen)]
        result = linprog(
            np.concatenate(
                [*(own[at][rows] for at, rows in enumerate(chosen)), np.full(2 * items, penalty)]
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
            _improving(own[at] - bits[at] @ worth - duals[items + at], chosen[at])
            for at in range(members)
        ]
        if not any(len(rows) for rows in more):
            break
        chosen = [np.concatenate(pair) for pair in zip(chosen, more, strict=True)]
    return worth


def _part(bits: NDArray[np.float64], member: int, members: int) -> NDArray[np.float64]:
    own_row = np.zeros((members, len(bits)))
    own_row[member] = 1
    return np.concatenate([bits.T, own_row])


def _improving(reduced: NDArray[np.float64], known: Ints) -> Ints:
    """Pick the sets that would improve the relaxation most."""
    threshold = -1e-7 * max(1.0, float(np.abs(reduced).max()))
    most = min(_SETS_A_ROUND, len(reduced))
    rows = np.argpartition(reduced, most - 1)[:most]
    rows = rows[reduced[rows] < threshold]
    return np.setdiff1d(rows, known)

"""Lower bound on the moves over all rebalances, from prices of partitions per member.

The prices relax the limits of the loads (Lagrangian relaxation). Each partition then follows its
own cheapest path over the rebalances, which one pass from the last to the first rebalance finds.
"""

from collections.abc import Sequence

import numpy as np

from kassay.reference.model.errors import InputError
from kassay.solver.certificate.trajectory.permitted_loads import LoadRange
from kassay.solver.certificate.trajectory.rebalance_sequence import Stream
from kassay.solver.number_ranges import UNREACHABLE, Arithmetic
from kassay.solver.problem import Ints

_NOT_PERMITTED = UNREACHABLE // 2


def greatest_price(stream: Stream) -> int:
    """Return the maximum of the scale and of the prices; sums of paths then fit into 64 bits."""
    return Arithmetic.INT64.value // (4 * len(stream.rebalances))


def price_bound(stream: Stream, prices: Ints, move_costs: Sequence[int], scale: int) -> int:
    """Return a lower bound on the total cost of the moves over all rebalances.

    Parameters
    ----------
    prices
        Price of one unit of load per rebalance and member of the stream, in units of
        ``1 / scale``. Any prices give a valid bound.
    move_costs
        Cost of a move per rebalance, in the same unit.

    Raises
    ------
    InputError
        If a price, a cost or the scale is out of range.
    """
    heaviest = max(int(stream.weight.max(initial=0)), 1)
    most = greatest_price(stream)
    prices_fit = heaviest * int(np.abs(prices).max(initial=0)) <= most
    if not prices_fit or not 1 <= scale <= most or not all(0 <= c <= most for c in move_costs):
        raise InputError(
            f"prices, costs and scale must be at most {most}, and the scale at least 1"
        )
    owned_cost, free_cost = _path_costs(stream, prices, move_costs)
    total = 0
    for row, count in enumerate(stream.count.tolist()):
        owned = stream.start[row]
        held = np.flatnonzero(owned)
        total += (count - int(owned.sum())) * int(free_cost[row])
        pairs = zip(owned[held].tolist(), owned_cost[row, held].tolist(), strict=True)
        total += sum(number * cost for number, cost in pairs)
    for price, rebalance in zip(prices, stream.rebalances, strict=True):
        total -= sum(_highest_value(one, price) for one in rebalance.ranges)
    return -(-total // scale)


def _path_costs(stream: Stream, prices: Ints, move_costs: Sequence[int]) -> tuple[Ints, Ints]:
    """Return the costs of cheapest paths over all rebalances.

    The first array has the cost by class and owner at the start, the second one the cost by class
    of a partition without an owner.
    """
    classes, members = stream.start.shape
    owned_cost = np.zeros((classes, members), dtype=np.int64)
    free_cost = np.zeros(classes, dtype=np.int64)
    for at in reversed(range(len(stream.rebalances))):
        priced = owned_cost + stream.weight[:, at, None] * prices[at]
        paths = np.where(stream.permitted(at), priced, _NOT_PERMITTED)
        cheapest = paths.min(axis=1, initial=_NOT_PERMITTED)
        free_cost = np.where(stream.assigned(at), cheapest, free_cost)
        moved = free_cost + np.where(stream.assigned(at), move_costs[at], 0)
        owned_cost = np.where(
            stream.subscribed(at), np.minimum(paths, moved[:, None]), free_cost[:, None]
        )
    return owned_cost, free_cost


def _highest_value(one: LoadRange, price: Ints) -> int:
    """Return the highest total price of loads within the limits and with the total."""
    prices = price[one.members].tolist()
    pairs = zip(prices, one.low.tolist(), one.high.tolist(), strict=True)
    value, rest = 0, one.total - int(one.low.sum())
    for own, low, high in sorted(pairs, reverse=True):
        more = min(high - low, rest)
        value, rest = value + own * (low + more), rest - more
    return value

"""Counts of one rebalance as a network flow from the classes of partitions to the members.

If the counts of the other rebalances are fixed, the moves before and after one rebalance are
convex functions of its counts, so a flow minimises them.
"""

from collections.abc import Sequence

import numpy as np
from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

from kassay.reference.model.errors import InternalError
from kassay.solver.certificate.rebalance_sequence import Stream
from kassay.solver.limits import SearchBudget
from kassay.solver.problem import Ints
from kassay.solver.trajectory.linear_program import Floats, total_moves

_SWEEPS = 40
_WORK_PER_REBALANCE = 0.002
_MOVE = 1_000  # cost of a move
# Cost of one partition of distance to the fractional counts, in the first sweep and in the last.
_FIRST_DISTANCE, _LAST_DISTANCE = 700, 30
_NOISE = 30


def cheapest_flow(
    ends: tuple[Ints, Ints], capacity: Ints, cost: Ints, *, supply: Ints, loads: tuple[Ints, Ints]
) -> Ints | None:
    """Return the cheapest counts per pair of a class and a member; None if there are none.

    Parameters
    ----------
    ends
        Class and member of each pair.
    capacity, cost
        Per segment of a convex cost and per pair, its length and its cost per partition.
    supply
        Partitions per class.
    loads
        Minimum and maximum load per member.
    """
    classes, members = ends
    low, high = loads
    heads, sink = len(supply) + np.arange(len(low)), len(supply) + len(low)
    flow = SimpleMinCostFlow()
    segment, pair = np.nonzero(capacity)
    arcs = flow.add_arcs_with_capacity_and_unit_cost(
        classes[pair], heads[members[pair]], capacity[segment, pair], cost[segment, pair]
    )
    flow.add_arcs_with_capacity_and_unit_cost(
        heads, np.full_like(heads, sink), high - low, np.zeros_like(heads)
    )
    flow.set_nodes_supplies(
        np.arange(sink + 1), np.concatenate([supply, -low, [low.sum() - supply.sum()]])
    )
    if flow.solve() != SimpleMinCostFlow.OPTIMAL:
        return None
    return np.bincount(pair, weights=flow.flows(arcs), minlength=len(classes)).astype(np.int64)


def counts_near(
    stream: Stream, fractions: Sequence[Floats], counts: Sequence[Ints], budget: SearchBudget
) -> list[Ints]:
    """Return counts with few moves near the fractional counts of a linear program.

    A sweep replaces the counts of one rebalance after the other by those with the lowest sum of
    moves and distances to the fractions. The cost of a distance falls from sweep to sweep.

    Parameters
    ----------
    counts
        Counts from which the sweeps start.
    """
    rng = np.random.default_rng(budget.seed)
    end, now = len(counts), [stream.start, *counts]
    best, value = list(counts), sum(total_moves(stream, counts))
    may_continue = budget.counted(_WORK_PER_REBALANCE)
    orders = (range(end), range(end - 1, -1, -1))
    for number, distance in enumerate(np.geomspace(_FIRST_DISTANCE, _LAST_DISTANCE, _SWEEPS)):
        for at in orders[number % 2]:
            if not may_continue():
                return best
            now[at + 1] = _cheapest_counts(
                stream, at, now, fractions[at], distance=distance, rng=rng
            )
        moves = sum(total_moves(stream, now[1:]))
        if moves < value:
            best, value = now[1:], moves
    return best


def _cheapest_counts(
    stream: Stream,
    at: int,
    counts: Sequence[Ints],
    fractions: Floats,
    *,
    distance: float,
    rng: np.random.Generator,
) -> Ints:
    """Return the counts of one rebalance with the lowest sum of moves and distances.

    Parameters
    ----------
    counts
        Counts at the start, and at each rebalance.
    distance
        Cost of one partition of distance to the fractions.
    """
    classes, members = np.nonzero(stream.permitted(at))
    pairs = classes, members
    count, target = stream.count[classes], fractions[pairs]
    is_last = at + 1 == len(stream.rebalances)
    leaves = stream.subscribed(at)[pairs]
    follows = np.zeros_like(leaves) if is_last else stream.subscribed(at + 1)[pairs]
    before = np.minimum(counts[at][pairs], count)
    after = before if is_last else np.minimum(counts[at + 2][pairs], count)
    floor = np.clip(np.floor(target), 0, count).astype(np.int64)
    ceiling = np.minimum(floor + 1, count)
    points = np.sort([np.zeros_like(count), before, after, floor, ceiling, count], axis=0)
    low, high = points[:-1], points[1:]
    slope = np.select([high <= floor, low >= ceiling], [-1.0, 1.0], 1 - 2 * (target - floor))
    cost = _MOVE * ((low >= after).astype(np.int64) * follows - (high <= before) * leaves)
    cost += np.rint(distance * slope).astype(np.int64) + rng.integers(_NOISE, size=len(count))
    one, result = stream.rebalances[at], np.zeros_like(stream.start)
    found = cheapest_flow(
        pairs,
        high - low,
        cost,
        supply=np.where(stream.assigned(at), stream.count, 0),
        loads=(one.least, one.most),
    )
    if found is None:
        raise InternalError("the loads of a rebalance permit no flow")
    result[pairs] = found
    return result

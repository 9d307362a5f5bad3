"""Lower loads by one move after the other, without search."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.problem import Placement, Problem

_STEP, _STEP_PER_CHOICE = 5e-5, 1e-8
"""Estimated work of one move, in general and per partition and member."""


def move_work(problem: Problem) -> float:
    """Return the work of one move."""
    return _STEP + problem.partition_count * problem.member_count * _STEP_PER_CHOICE


def single_moves(
    problem: Problem,
    start: Placement,
    most: int,
    may_continue: Callable[[], bool],
    *,
    by_squares: bool,
) -> Iterator[Placement]:
    """Yield the placement after each of at most ``most`` moves; no partition moves twice.

    With ``by_squares``, each move lowers the sum of load times relative load most, and the moves
    end if none lowers it. Otherwise, each move leaves the lowest maximum relative load; it takes a
    partition from the member with the maximum.
    """
    if problem.member_count < 2:
        return
    placement, weight = start.copy(), problem.weight.astype(np.float64)
    scale = 1 / np.array(problem.member_units.speeds, dtype=np.float64)
    loads = np.array(problem.loads(start), dtype=np.float64) * scale
    may_consume = problem.may_consume[problem.consumer_set]
    for _ in range(most):
        is_open = (placement == problem.owner) | (problem.owner == NO_OWNER)
        if not by_squares:
            is_open &= placement == loads.argmax()
        partitions = np.flatnonzero(is_open & (weight > 0))
        if not len(partitions) or not may_continue():
            return
        source, own = placement[partitions], weight[partitions][:, None]
        drop = 2 * (loads[source][:, None] - loads) - own * (scale[source][:, None] + scale)
        drop *= own
        drop[~may_consume[partitions]] = -np.inf
        drop[np.arange(len(partitions)), source] = -np.inf
        if not by_squares:
            highest = _highest_after(loads, own, scale)
            drop[highest > np.where(np.isfinite(drop), highest, np.inf).min()] = -np.inf
        row, target = divmod(int(drop.argmax()), problem.member_count)
        if drop[row, target] <= (0 if by_squares else -np.inf):
            return
        moved = int(partitions[row])
        loads[placement[moved]] -= weight[moved] * scale[placement[moved]]
        loads[target] += weight[moved] * scale[target]
        placement = placement.copy()
        placement[moved] = target
        yield placement


def _highest_after(
    loads: NDArray[np.float64], weight: NDArray[np.float64], scale: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the maximum load after moves from its member: per weight (row) and member."""
    source = int(loads.argmax())
    others = float(np.delete(loads, source).max())
    received = np.maximum(loads + weight * scale, others)
    highest: NDArray[np.float64] = np.maximum(received, loads[source] - weight * scale[source])
    return highest

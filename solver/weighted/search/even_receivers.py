"""Lower the sum of squared loads without more moves and without a higher maximum load."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.problem import Ints, Placement, Problem


def lower_squares_within(
    problem: Problem,
    placement: Placement,
    may_receive: NDArray[np.bool_],
    may_continue: Callable[[], bool],
) -> Placement:
    """Choose other receivers and other moves with a lower sum of squared loads.

    The result has at most as many moves, and at most the maximum load, of ``placement``.
    ``may_receive`` states whether a member may receive a partition, as in `MovesBeam`.
    """
    placement = placement.copy()
    loads = np.array(problem.loads(placement), dtype=np.int64)
    limit = int(loads.max(initial=0))
    has_changed = True
    while has_changed:
        has_changed = False
        for partition in np.flatnonzero(placement != problem.owner).tolist():
            if not may_continue():
                return placement
            change = _best_change(problem, placement, loads, partition, limit, may_receive)
            for moved, target in change:
                loads[placement[moved]] -= problem.weight[moved]
                loads[target] += problem.weight[moved]
                placement[moved] = target
                has_changed = True
    return placement


def _best_change(
    problem: Problem,
    placement: Placement,
    loads: Ints,
    partition: int,
    limit: int,
    may_receive: NDArray[np.bool_],
) -> list[tuple[int, int]]:
    """Return the changes of one moved partition that lower the sum of squares most.

    The partition gets another receiver, or stays with its owner while another one moves.
    """
    weight, member = problem.weight, int(placement[partition])
    own = int(weight[partition])
    base = loads.copy()
    base[member] -= own
    drop = own * (int(base[member]) - base).astype(np.float64)
    drop[~may_receive[partition] | (base + own > limit)] = -1
    target = int(drop.argmax())
    best, change = float(drop[target]), [(partition, target)]
    owner = int(problem.owner[partition])
    if owner != NO_OWNER:
        returned = own * float(base[member] - base[owner])
        base[owner] += own
        others, drops = _drops(problem, placement, base, limit, may_receive)
        if len(others):
            row, column = np.unravel_index(int(drops.argmax()), drops.shape)
            if returned + drops[row, column] > best and drops[row, column] > -np.inf:
                best = returned + float(drops[row, column])
                change = [(partition, owner), (int(others[row]), int(column))]
    return change if best > 0 else []


def _drops(
    problem: Problem,
    placement: Placement,
    loads: Ints,
    limit: int,
    may_receive: NDArray[np.bool_],
) -> tuple[Ints, NDArray[np.float64]]:
    """Return the partitions that have not moved, and half the drop of squares per receiver."""
    others = np.flatnonzero((placement == problem.owner) & (problem.weight > 0))
    weight = problem.weight[others]
    source = loads[placement[others]]
    over = np.flatnonzero(loads > limit)
    is_permitted = may_receive[others] & (loads[None, :] + weight[:, None] <= limit)
    if len(over):  # The returned partition overloads its owner: another partition must leave.
        is_permitted &= ((placement[others] == over[0]) & (source - weight <= limit))[:, None]
    change = ((source - weight)[:, None] - loads[None, :]).astype(np.float64)
    drops = np.where(is_permitted, weight[:, None] * change, -np.inf)
    drops[np.arange(len(others)), placement[others]] = -np.inf
    return others, drops

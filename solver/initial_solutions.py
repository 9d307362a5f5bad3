"""First placements, at once: what a search starts from and what a spent limit returns."""

import heapq

import numpy as np

from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.problem import Placement, Problem


def initial_placements(problem: Problem) -> list[Placement]:
    """Construct placements without search: ownership kept, and balance from nothing."""
    return [keep_owned(problem), longest_processing_time(problem)]


def keep_owned(problem: Problem) -> Placement:
    """Leave every row with its owner; place the others heaviest first on the least loaded."""
    return _fill(problem, problem.owner.copy())


def longest_processing_time(problem: Problem) -> Placement:
    """Place all rows heaviest first on the least loaded, its owner first among equals.

    Graham's longest-processing-time rule, within what members consume.
    """
    return _fill(problem, np.full(problem.size, NO_OWNER, dtype=np.int32))


def _fill(problem: Problem, placement: Placement) -> Placement:
    """Place the rows that are with nobody yet."""
    placed = placement != NO_OWNER
    loads: list[int] = [0] * problem.width
    for position, weight in zip(
        placement[placed].tolist(), problem.weight[placed].tolist(), strict=True
    ):
        loads[position] += weight
    # The fewer can take a row, the sooner it is placed, among equal weights.
    breadth = np.array([len(consumers) for consumers in problem.sets], dtype=np.int64)
    free = np.flatnonzero(~placed)
    ranks = problem.weight[free].argsort(kind="stable")[::-1]
    order = sorted(
        free[ranks].tolist(),
        key=lambda row: (-problem.weight[row], breadth[problem.set_of_row[row]], row),
    )
    takers = [_Takers(consumers.tolist(), loads) for consumers in problem.sets]
    sets = problem.set_of_row.tolist()
    owners = problem.owner.tolist()
    weights = problem.weight.tolist()
    for row in order:
        position = takers[sets[row]].least(loads, owners[row])
        placement[row] = position
        loads[position] += weights[row]
    return placement


class _Takers:
    """A heap of some positions by load, put right lazily as loads grow."""

    def __init__(self, positions: list[int], loads: list[int]) -> None:
        self.heap = [(loads[position], position) for position in positions]
        heapq.heapify(self.heap)

    def least(self, loads: list[int], preferred: int) -> int:
        """Return the least loaded position; ``preferred`` wins a tie if it is among them."""
        heap = self.heap
        while heap[0][0] != loads[heap[0][1]]:
            position = heap[0][1]
            heapq.heapreplace(heap, (loads[position], position))
        if preferred != NO_OWNER and loads[preferred] == heap[0][0]:
            return preferred
        return heap[0][1]

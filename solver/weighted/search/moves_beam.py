"""Lower the maximum load by one move after the other: a beam search of placements.

Each move takes a partition from the member with the maximum load.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.assignment import NO_OWNER
from kassay.solver.problem import Placement, Problem

Loads = NDArray[np.int64] | NDArray[np.float64]
"""Loads of the members divided by their speeds: integers if the speeds are equal."""

_STATE, _STATE_PER_PARTITION = 1.5e-4, 1e-7
"""Measured work per placement and move, in general and per partition."""


@dataclass(frozen=True, slots=True)
class _State:
    """Placement after some moves, with its loads."""

    placement: Placement
    loads: Loads


@dataclass(frozen=True)
class MovesBeam:
    """Beam search within the subscriptions of a problem.

    Parameters
    ----------
    width
        Number of placements that are kept per number of moves.
    heaviest
        Weight above which partitions stay with their members; None for no limit.
    """

    problem: Problem
    width: int
    heaviest: int | None = None

    def search(
        self, start: Placement, most: int, may_continue: Callable[[], bool]
    ) -> Iterator[Placement]:
        """Yield the best placement after each move, for at most ``most`` moves."""
        loads = np.array(self.problem.loads(start), dtype=np.int64) * self._scale
        states = [_State(start, loads)] if len(loads) > 1 else []
        for _ in range(most):
            if not states or not may_continue():
                return
            ranked = [change for state in states for change in self._changes(state)]
            ranked.sort(key=lambda change: change[:2])
            following: dict[bytes, _State] = {}
            for *_, state, partition, member in ranked:
                changed = self._changed(state, partition, member)
                following.setdefault(changed.loads.tobytes(), changed)
                if len(following) == self.width:
                    break
            states = list(following.values())
            yield from (state.placement for state in states[:1])

    @property
    def step(self) -> float:
        """Work of one more move."""
        return self.width * (_STATE + self.problem.partition_count * _STATE_PER_PARTITION)

    @cached_property
    def _scale(self) -> Loads:
        return relative_scale(self.problem)

    @cached_property
    def _movable(self) -> NDArray[np.bool_]:
        weight = self.problem.weight
        return (weight > 0) & (True if self.heaviest is None else weight <= self.heaviest)

    def _changes(self, state: _State) -> list[tuple[float, float, _State, int, int]]:
        """Return the best moves: maximum load, sum of squares, state, partition and new member."""
        problem, loads, scale = self.problem, state.loads, self._scale
        source = int(loads.argmax())
        is_unmoved = (problem.owner == source) | (problem.owner == NO_OWNER)
        own = np.flatnonzero((state.placement == source) & is_unmoved & self._movable)
        allowed = problem.may_consume[problem.consumer_set[own]].copy()
        allowed[:, source] = False
        rows, targets = np.nonzero(allowed)
        weight = problem.weight[own[rows]]
        others = loads.copy()
        others[source] = -1
        highest = np.maximum(loads[targets] + weight * scale[targets], others.max())
        highest = np.maximum(highest, loads[source] - weight * scale[source])
        # The sum of squares changes by twice this product.
        mean = (scale[targets] + scale[source]) / 2
        squares = weight * (weight * mean + loads[targets] - loads[source])
        total = float((np.square(loads, dtype=np.float64) / scale).sum())
        return [
            (
                highest[at],
                total + 2 * float(squares[at]),
                state,
                int(own[rows[at]]),
                int(targets[at]),
            )
            for at in np.lexsort((squares, highest))[: self.width].tolist()
        ]

    def _changed(self, state: _State, partition: int, member: int) -> _State:
        placement, loads = state.placement.copy(), state.loads.copy()
        weight = self.problem.weight[partition]
        loads[placement[partition]] -= weight * self._scale[placement[partition]]
        loads[member] += weight * self._scale[member]
        placement[partition] = member
        return _State(placement, loads)


def relative_scale(problem: Problem) -> Loads:
    """Return the load of a partition of weight 1 on each member, divided by its speed."""
    units = problem.member_units
    if units.has_equal_speeds:
        return np.ones(problem.member_count, dtype=np.int64)
    return 1 / np.array(units.speeds, dtype=np.float64)

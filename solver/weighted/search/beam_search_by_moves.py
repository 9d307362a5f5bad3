"""Find low maximum loads for each number of moves: greedy moves and a beam search.

All searches start from the current owners and add one move, or one exchange, at a time. They
yield placements; the caller counts the moves and keeps the best placement per number of moves.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.problem import Ints, Placement, Problem

Loads = NDArray[np.int64] | NDArray[np.float64]
"""Loads of the members divided by their speeds: integers if the speeds are equal."""

_NEIGHBOURS = 12
"""Number of placements with one more move than a given one."""
_RECEIVERS = 8
"""Number of the least loaded members with which the most loaded member exchanges partitions."""
_SORTED = 256
"""Number of changes from which only those with the lowest maximum loads are sorted."""


@dataclass(frozen=True, slots=True)
class _State:
    """Placement after some moves, with its loads."""

    placement: Placement
    loads: Loads

    squares: float


class _Changes(NamedTuple):
    """Changes of one state, best first: their ranks, and one or two moves per change."""

    state: _State
    highest: Loads  # maximum load after each change, the first rank
    squares: NDArray[np.float64]  # sum of squared loads after each change, the second rank
    partitions: Ints  # shape: (changes, moves)
    targets: Ints  # shape: (changes, moves)

    def moves(self, at: int) -> list[tuple[int, int]]:
        """Return the partitions of one change with their new members."""
        return list(zip(self.partitions[at].tolist(), self.targets[at].tolist(), strict=True))


@dataclass(frozen=True)
class BeamSearchByMoves:
    """Searches for low loads with few moves, from the owners of a problem.

    Loads are divided by the speeds of the members, as floating-point numbers if these differ.

    Parameters
    ----------
    start
        Placement with the current owners.
    may_receive
        Whether a member may receive a partition; the shape is (partitions, members).
    """

    problem: Problem
    start: Placement
    may_receive: NDArray[np.bool_]

    @cached_property
    def scale(self) -> Loads:
        """Load of a partition of weight 1 per member."""
        return relative_scale(self.problem)

    @cached_property
    def movable(self) -> NDArray[np.bool_]:
        """Whether each partition has another possible member, and a weight."""
        has_choice: NDArray[np.bool_] = self.may_receive.sum(axis=1) > 1
        return has_choice & (self.problem.weight > 0)

    def lower_squares(self, most: int, may_continue: Callable[[], bool]) -> Iterator[Placement]:
        """Yield the placements after each move with the largest drop of the sum of squares."""
        state, weight = self._state(self.start), self.problem.weight.astype(np.float64)
        scale, may_receive = self.scale, self.may_receive
        movable = self.movable.copy()
        numbers: dict[bytes, int] = {}
        set_of = np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in may_receive])
        sets = may_receive[np.unique(set_of, return_index=True)[1]]
        for _ in range(most):
            if not may_continue():
                return
            loads, owner = state.loads.astype(np.float64), state.placement
            if self.problem.group.has_equal_speeds:
                target = np.where(sets, loads, np.inf).argmin(axis=1)[set_of]
            else:
                after = loads[None, :] + weight[:, None] * scale[None, :] / 2
                target = np.where(self.may_receive, after, np.inf).argmin(axis=1)
            mean = (scale[owner] + scale[target]) / 2
            drop = weight * (loads[owner] - weight * mean - loads[target])
            drop[~movable] = -1
            partition = int(drop.argmax())
            if drop[partition] <= 0:
                return
            movable[partition] = False
            state = self._changed(state, [(partition, int(target[partition]))])
            yield state.placement

    def search(
        self,
        most: int,
        width: int,
        may_continue: Callable[[], bool],
        *,
        heaviest: int | None,
        exchanging: int = 4,
    ) -> Iterator[Placement]:
        """Yield placements of a beam search that lowers the maximum load.

        Parameters
        ----------
        most
            Maximum number of moves.
        width
            Number of states that are kept per number of moves.
        heaviest
            Weight above which partitions stay with their owners.
        exchanging
            Number of the best states that also exchange partitions.
        """
        movable = self.movable & (True if heaviest is None else self.problem.weight <= heaviest)
        states: list[_State] = [self._state(self.start)]
        following: list[list[_Changes]] = [[], []]
        for _ in range(most):
            if not may_continue():
                return
            for number, state in enumerate(states):
                following[0].append(self._moves(state, movable, width))
                if number < exchanging:
                    following[1].append(self._exchanges(state, movable, width))
            states = self._best(following[0], width)
            following = [following[1], []]
            yield from (state.placement for state in states[:1])
            if not states and not following[0]:
                return

    def with_one_more_move(self, placement: Placement) -> Iterator[Placement]:
        """Yield the best placements with one more move."""
        state = self._state(placement)
        changes = self._moves(state, self.movable, _NEIGHBOURS)
        for at in range(len(changes.highest)):
            yield self._changed(state, changes.moves(at)).placement

    def without_one_move(self, placement: Placement) -> Iterator[Placement]:
        """Yield the placements in which one moved partition stays with its owner."""
        owner = self.problem.owner
        for partition in np.flatnonzero((placement != owner) & (owner != NO_OWNER)).tolist():
            returned = placement.copy()
            returned[partition] = owner[partition]
            yield returned

    def _best(self, changes: Sequence[_Changes], width: int) -> list[_State]:
        """Return the best states in order, one per set of loads."""
        if not changes:
            return []
        highest = np.concatenate([one.highest for one in changes])
        squares = np.concatenate([one.squares for one in changes])
        rows = [(one, row) for one in changes for row in range(len(one.highest))]
        best: dict[bytes, _State] = {}
        for at in np.lexsort((squares, highest)).tolist():
            one, row = rows[at]
            state = self._changed(one.state, one.moves(row))
            best.setdefault(state.loads.tobytes(), state)
            if len(best) == width:
                break
        return list(best.values())

    def _moves(self, state: _State, movable: NDArray[np.bool_], most: int) -> _Changes:
        """Return the best changes by one more move from the member with the maximum load."""
        source = int(state.loads.argmax())
        partitions = self._unmoved(state, movable, source)
        weights, loads, scale = self.problem.weight[partitions], state.loads, self.scale
        after = loads[None, :] + weights[:, None] * scale[None, :]
        highest = np.maximum(after, (loads[source] - weights * scale[source])[:, None])
        highest = np.maximum(highest, _highest_others(loads, source)[None, :])
        # The sum of squares changes by twice this product.
        mean = (scale + scale[source]) / 2
        change = weights[:, None] * (weights[:, None] * mean + loads - loads[source])
        allowed = self.may_receive[partitions].copy()
        allowed[:, source] = False
        rows, targets = np.nonzero(allowed)
        ranks = highest[rows, targets], state.squares + 2 * change[rows, targets]
        best = _lowest(*ranks, most)
        return _Changes(
            state,
            ranks[0][best],
            ranks[1][best],
            partitions[rows[best], None],
            targets[best, None],
        )

    def _exchanges(self, state: _State, movable: NDArray[np.bool_], most: int) -> _Changes:
        """Return the best changes by an exchange with the member with the maximum load."""
        source = int(state.loads.argmax())
        given = self._unmoved(state, movable, source)
        weight, loads = self.problem.weight, state.loads
        lightest = np.argsort(loads, kind="stable")[:_RECEIVERS]
        received = np.flatnonzero(
            movable
            & (state.placement == self.problem.owner)
            & np.isin(state.placement, lightest[lightest != source])
            & self.may_receive[:, source]
        )
        others = state.placement[received]
        change = weight[given][:, None] - weight[received][None, :]
        scale = self.scale[others]
        highest = np.maximum(
            loads[others][None, :] + change * scale, loads[source] - change * self.scale[source]
        )
        highest = np.maximum(highest, _highest_others(loads, source)[others][None, :])
        allowed = (change > 0) & self.may_receive[given][:, others]
        rows, columns = np.nonzero(allowed)
        product = change[rows, columns].astype(np.float64)
        product *= (
            loads[others[columns]]
            - loads[source]
            + product * (scale[columns] + self.scale[source]) / 2
        )
        ranks = highest[rows, columns], state.squares + 2 * product
        best = _lowest(*ranks, most)
        rows, columns = rows[best], columns[best]
        return _Changes(
            state,
            ranks[0][best],
            ranks[1][best],
            np.stack((given[rows], received[columns]), axis=1),
            np.stack((others[columns], np.full(len(rows), source)), axis=1),
        )

    def _unmoved(self, state: _State, movable: NDArray[np.bool_], member: int) -> Ints:
        """Return the partitions of a member that have not moved yet."""
        owner = self.problem.owner
        is_unmoved = (state.placement == member) & ((owner == member) | (owner == NO_OWNER))
        return np.flatnonzero(is_unmoved & movable)

    def _state(self, placement: Placement) -> _State:
        loads = np.array(self.problem.loads(placement), dtype=np.int64) * self.scale
        return _State(placement, loads, self._squares(loads))

    def _changed(self, state: _State, moves: Iterable[tuple[int, int]]) -> _State:
        placement, loads = state.placement.copy(), state.loads.copy()
        for partition, target in moves:
            member, weight = placement[partition], self.problem.weight[partition]
            loads[member] -= weight * self.scale[member]
            loads[target] += weight * self.scale[target]
            placement[partition] = target
        return _State(placement, loads, self._squares(loads))

    def _squares(self, loads: Loads) -> float:
        return float((np.square(loads, dtype=np.float64) / self.scale).sum())


def relative_scale(problem: Problem) -> Loads:
    """Return the load of a partition of weight 1 on each member, divided by its speed."""
    units = problem.member_units
    if units.has_equal_speeds:
        return np.ones(problem.member_count, dtype=np.int64)
    return 1 / np.array(units.speeds, dtype=np.float64)


def _lowest(highest: Loads, squares: NDArray[np.float64], most: int) -> Ints:
    """Return the positions with the lowest maximum load, then the lowest squares."""
    near = np.arange(len(highest))
    if len(highest) > _SORTED:
        near = np.flatnonzero(highest <= np.partition(highest, _SORTED)[_SORTED])
    order = np.lexsort((near, squares[near], highest[near]))[:most]
    return near[order]


def _highest_others(loads: Loads, source: int) -> Loads:
    """Return, per target, the maximum load of the members other than source and target."""
    others = loads.copy()
    others[source] = -1
    first = int(others.argmax())
    highest = np.full(len(loads), others[first])
    others[first] = -1
    highest[first] = others.max()
    return highest

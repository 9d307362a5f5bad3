"""Find assignments within maximum loads in every window, with few moves or low sums of squares.

Simulated annealing moves single partitions, or exchanges two. It minimises overloads plus the cost
of moves. Many proposals of one step are computed as arrays.
"""

from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.assignment import NO_OWNER
from kassay.solver.problem import Ints, Placement, Problem, Weights
from kassay.solver.search.overload_repair import LoadLimit, OverloadRepair

Floats = NDArray[np.float64]

_PROPOSALS_PER_PARTITION, _MIN_PROPOSALS, _MAX_PROPOSALS = 5, 256, 4_096
"""Number of proposed changes of one step."""
_FEW_WINDOWS = 24  # windows of greatest total load, which refuse most proposals
_FIRST_RUN, _LONGEST_RUN, _LONGER = 400, 3_000, 1.5
"""Minimum number of steps of the first run, maximum number of others, and their ratio."""
_HOT, _COLD, _HEATED = 0.5, 0.05, 96
"""First and last temperature of a run, in units of the mean positive load of a partition, and the
number of partitions above which they are lower in proportion."""
_FIRST_PRICE, _PRICE_FACTOR = 0.3, 1.3
"""First price of a move in this unit, and its change from run to run."""
_HOME_SHARE = 0.3  # share of the proposed transfers that return a partition to its owner
_NONE = -1  # partition in exchange for a transferred one
_LEAST_REDUCTION = 1e-9
"""Least reduction of a sum of squares, as a share of the squared weights, that is no rounding."""


@dataclass
class WindowRepair(OverloadRepair):
    """Local search for a placement with few moves within load limits in all windows.

    Loads are floating-point numbers, with a column per window. The caller checks the placements in
    exact integers.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self.limits = [*map(_with_sorted_windows, self.limits)]
        self.unit = max(float(self.weight.sum()), 1) / max(int(np.count_nonzero(self.weight)), 1)

    def _weights(self) -> Floats:
        return self.problem.load_table.astype(np.float64)

    def _factors(self) -> Floats:
        return np.array(self.problem.member_units.factors, dtype=np.float64)

    @staticmethod
    def _total(overloads: Weights) -> Weights:
        return np.asarray(overloads.sum(axis=-1))

    def run(
        self,
        start: Placement,
        costs: Ints,
        *,
        rounds: int,
        may_continue: Callable[[], bool],
        enough: int = 0,
    ) -> Placement | None:
        """Return a placement within the limits with few moves, or None if none is found.

        In the first run, changes only lower the overloads, or the cost without overloads. The price
        of moves rises after runs that end within the limits, and falls after others.
        """
        self._set_costs(costs)
        best, fewest, length = None, np.inf, float(max(_FIRST_RUN, len(start)))
        price, hot = _FIRST_PRICE / max(float(self.costs.mean()), 1), 0.0
        self._reset(start)
        for _ in range(rounds):
            for step in range(int(length)):
                if self.overloads.max() <= 0 and self._cost() < fewest:
                    best, fewest = self.placement.astype(np.int32), self._cost()
                if fewest <= enough or not may_continue():
                    return best
                own = price if hot or self.overloads.max() <= 0 else 0.0
                self._make_change(own, hot * (_COLD / _HOT) ** (step / length))
            price *= _PRICE_FACTOR if self.overloads.max() <= 0 else 1 / _PRICE_FACTOR
            length = min(length * _LONGER, max(length, _LONGEST_RUN))
            hot = _HOT * min(1, _HEATED / len(start))
            if best is not None:
                self._reset(best)
        return best

    def _reset(self, placement: Placement) -> None:
        super()._reset(placement)
        self._sum_overloads()

    def _move(self, partition: int, taker: int) -> None:
        super()._move(partition, taker)
        self._sum_overloads()

    def _sum_overloads(self) -> None:
        """Set the overload per member, which is that of its units, from the loads."""
        self.overloads = np.zeros(self.problem.member_count)
        for limit, loads in zip(self.limits, self.loads, strict=True):
            self.overloads += np.maximum(loads - limit.max_loads, 0).sum(axis=1)[limit.unit_of]

    def _make_change(self, price: float, heat: float) -> None:
        """Make the best one of random changes that the temperature permits, if there is one.

        The first half are transfers. The others are exchanges. Every second one is of a member
        with an overload, if there is one.
        """
        rng, owner, count = self.rng, self.problem.owner, proposals(self.problem)
        half = count // 2
        ones, others = rng.integers(len(owner), size=(2, count))
        given = np.flatnonzero(self.overloads[self.placement] > 0)
        if len(given):
            ones[::2] = given[ones[::2] % len(given)]
        others[:half] = _NONE
        givers, takers = self.placement[ones], self.placement[others]
        is_home = (rng.random(half) < _HOME_SHARE) & (owner[ones[:half]] != NO_OWNER)
        random_takers = rng.integers(self.problem.member_count, size=half)
        takers[:half] = np.where(is_home, owner[ones[:half]], random_takers)
        cost = self.cost_with[ones, takers] - self.cost_with[ones, givers]
        back = self.cost_with[others, givers] - self.cost_with[others, takers]
        cost += np.where(others == _NONE, 0, back)
        most = self.unit * (heat * rng.exponential(size=count) - price * cost)
        most += self.overloads[givers] + self.overloads[takers]
        changes = np.stack([ones, others, givers, takers])
        is_possible = self.allowed[ones, takers] & (givers != takers)
        is_possible &= self.allowed[others, givers] | (others == _NONE)
        chosen = np.flatnonzero(is_possible & (self._after(changes, _FEW_WINDOWS) <= most))
        if not len(chosen):
            return
        excess = self._after(changes[:, chosen]) - most[chosen]
        if not heat:
            excess /= 1 + np.maximum(cost[chosen], 0)
        if excess.min() <= 0:
            one, other, giver, taker = changes[:, chosen[excess.argmin()]].tolist()
            self._move(one, taker)
            if other != _NONE:
                self._move(other, giver)

    def _after(self, changes: Ints, windows: int | None = None) -> Floats:
        """Return the overloads of both members after each change, or, in some windows, a bound."""
        ones, others = changes[:2]
        total = np.zeros(len(ones))
        for limit, loads in zip(self.limits, self.loads, strict=True):
            weight, (giver, taker) = limit.weight[:, :windows], limit.unit_of[changes[2:]]
            free = limit.max_loads[:, :windows] - loads[:, :windows]
            moved = weight[ones] - weight[others] * (others != _NONE)[:, None]
            moved *= (giver != taker)[:, None]
            total += np.maximum(-free[giver] - moved, 0).sum(axis=1)
            total += np.maximum(moved - free[taker], 0).sum(axis=1)
        return total

    def lower_squares(
        self, start: Placement, costs: Ints, max_cost: int | None, may_continue: Callable[[], bool]
    ) -> Placement:
        """Return a placement with a lower sum of squares over windows within the limits.

        Each step makes the best transfer of one partition. ``max_cost`` is the maximum cost of the
        moves; None means no maximum.
        """
        self._reset(start)
        self._set_costs(costs)
        most, at = np.inf if max_cost is None else max_cost, np.arange(len(start))
        table, factors = self.weight, self._factors()
        norms = (table**2).sum(axis=1)
        loads = np.zeros((len(factors), table.shape[1]))
        np.add.at(loads, start, table)
        refused = np.zeros(self.allowed.shape, dtype=np.bool_)
        while may_continue():
            products, own = table @ loads.T, self.placement
            given = factors[own] * (norms - 2 * products[at, own])
            change = given[:, None] + factors * (2 * products + norms[:, None])
            is_possible = self.allowed & (self._cost_changes(at) <= most - self._cost()) & ~refused
            is_possible[at, own] = False
            change = np.where(is_possible, change, 0)
            row, taker = divmod(int(change.argmin()), len(factors))
            if change[row, taker] >= _LEAST_REDUCTION * -norms.sum():
                break
            giver = int(own[row])
            if self._change(np.array(giver), np.array(taker), itemgetter(row)) > 0:
                refused[row, taker] = True
                continue
            refused[:] = False
            self._move(row, taker)
            loads[giver] -= table[row]
            loads[taker] += table[row]
        return self.placement.astype(np.int32)

    def _set_costs(self, costs: Ints) -> None:
        super()._set_costs(costs)
        is_away = self.problem.owner[:, None] != np.arange(self.problem.member_count)
        self.cost_with = self.costs[:, None].astype(np.float64) * is_away

    def _cost_changes(self, partitions: Ints) -> Floats:
        """Return the change of the cost by moves of partitions (rows) to members."""
        rows = self.cost_with[partitions]
        return np.asarray(rows - rows[np.arange(len(rows)), self.placement[partitions], None])


def proposals(problem: Problem) -> int:
    """Return the number of proposed changes of one step."""
    count = _PROPOSALS_PER_PARTITION * problem.partition_count
    return min(max(count, _MIN_PROPOSALS), _MAX_PROPOSALS)


def _with_sorted_windows(limit: LoadLimit) -> LoadLimit:
    """Return a limit with a column per window, in descending order of total load."""
    weight, most = (
        np.asarray(each.reshape(len(each), -1), dtype=np.float64)
        for each in (limit.weight, limit.max_loads)
    )
    order = np.argsort(-weight.sum(axis=0), kind="stable")
    most = np.broadcast_to(most, (len(most), weight.shape[1]))
    return LoadLimit(limit.unit_of, most[:, order], weight[:, order])

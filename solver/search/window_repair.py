"""Find assignments within maximum loads in every window, with few moves or low sums of squares.

The search moves one partition, or exchanges two, of the unit with the largest overload. It makes
the best change even if overloads grow, and moved partitions then stay for some steps (tabu search).
Changes of all partitions and windows are computed as arrays.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from kassay.solver.problem import Ints, Placement, Weights
from kassay.solver.search.overload_repair import LoadLimit, OverloadRepair

Floats = NDArray[np.float64]

_MAX_GIVEN, _MAX_TAKEN = 60, 400
"""Maximum numbers of partitions of an overloaded unit, and of others, that one step considers."""
_SCREENED_WINDOWS, _SCREENED_PAIRS = 6, 200
"""Numbers of windows that select exchanges, and of exchanges that are computed in all windows."""
_LEAST_STAY, _MOST_STAY = 3, 10
"""Minimum and maximum number of steps for which a moved partition stays."""
_MAX_FAILURES = 400
"""Maximum number of steps of one repair without a lower overload than before."""
_MOST_RETURNED = 0.6
"""Maximum share of the moved partitions that are returned before another repair."""
_LEAST_REDUCTION = 1e-9
"""Least reduction of a sum of squares, as a share of the squared weights, that is no rounding."""
_FORBIDDEN = np.inf


@dataclass
class WindowRepair(OverloadRepair):
    """Local search for a placement with few moves within load limits in all windows.

    Loads are floating-point numbers, with a column per window. The caller checks the placements in
    exact integers.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self.limits = [
            LoadLimit(limit.unit_of, _columns(limit.max_loads), _columns(limit.weight))
            for limit in self.limits
        ]

    def _weights(self) -> Floats:
        return self.problem.load_table.astype(np.float64)

    def _factors(self) -> Floats:
        return np.array(self.problem.member_units.factors, dtype=np.float64)

    def _returned_share(self) -> float:
        return float(self.rng.uniform(0, _MOST_RETURNED))

    @staticmethod
    def _total(overloads: Weights) -> Weights:
        return np.asarray(overloads.sum(axis=-1))

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

    def _overloads(self) -> tuple[list[Floats], float]:
        """Return the overload of each unit, per limit, and the sum of all overloads."""
        overloads = [
            np.maximum(loads - limit.max_loads, 0).sum(axis=1)
            for limit, loads in zip(self.limits, self.loads, strict=True)
        ]
        return overloads, sum(float(each.sum()) for each in overloads)

    def _repair(self, may_continue: Callable[[], bool]) -> bool:
        """Change the placement until no overload is left. Return False after too many failures."""
        stays = np.zeros(self.problem.partition_count, dtype=np.int64)
        least, failures, step = np.inf, 0, 0
        while may_continue():
            overloads, total = self._overloads()
            if total <= 0:
                return True
            failures = 0 if total < least else failures + 1
            if failures > _MAX_FAILURES:
                return False
            least, step = min(least, total), step + 1
            given, left = self._given(overloads), self.max_cost - self._cost()
            free = stays < step
            changed = self._best_change(given[free[given]], free, left)
            for partition, member in changed:
                self._move(partition, member)
                stays[partition] = step + int(self.rng.integers(_LEAST_STAY, _MOST_STAY + 1))
            if not changed and len(given) and left > 0:
                stays[:] = 0
                partition = int(self.rng.choice(given))
                self._move(partition, int(self.rng.choice(np.flatnonzero(self.allowed[partition]))))
        return False

    def _given(self, overloads: Sequence[Floats]) -> Ints:
        """Return the partitions of the unit with the largest overload."""
        index = max(range(len(overloads)), key=lambda at: float(overloads[at].max()))
        unit, limit = int(overloads[index].argmax()), self.limits[index]
        over = self.loads[index][unit] > limit.max_loads[unit]
        given = np.flatnonzero(limit.unit_of[self.placement] == unit)
        return self._sample(given[limit.weight[given][:, over].any(axis=1)], _MAX_GIVEN)

    def _best_change(
        self, given: Ints, free: NDArray[np.bool_], left: float
    ) -> list[tuple[int, int]]:
        """Return the transfer or exchange with the lowest overloads, as partitions and members."""
        if not len(given):
            return []
        members = np.arange(self.problem.member_count)
        givers, cost = self.placement[given], self._cost_changes(given)
        change = self._change(
            givers[:, None], members[None, :], lambda weight: weight[given][:, None]
        )
        is_possible = self.allowed[given] & (cost <= left) & (givers[:, None] != members)
        score = np.where(is_possible, _score(change, cost), _FORBIDDEN)
        row, column = divmod(int(score.argmin()), len(members))
        best, changed = score[row, column], [(int(given[row]), int(column))]
        exchange = self._best_exchange(given, free, left)
        if exchange is not None and exchange[0] < best:
            best, one, other = exchange
            changed = [(one, int(self.placement[other])), (other, int(self.placement[one]))]
        return changed if best < _FORBIDDEN else []

    def _best_exchange(
        self, given: Ints, free: NDArray[np.bool_], left: float
    ) -> tuple[float, int, int] | None:
        """Return the score of the best exchange, and its partitions.

        The windows in which the first giver or another member is fullest select some exchanges.
        Only these are computed in all windows.
        """
        giver = self.placement[given[0]]
        taken = self._sample(np.flatnonzero(free & (self.placement != giver)), _MAX_TAKEN)
        holders, givers = self.placement[taken], self.placement[given]
        cost = self._cost_changes(given)[:, holders] + self._cost_changes(taken)[:, givers].T
        is_possible = self.allowed[given][:, holders] & self.allowed[taken][:, givers].T
        is_possible &= (cost <= left) & (givers[:, None] != holders)
        rows, columns = np.nonzero(is_possible)
        if not len(rows):
            return None
        if len(rows) > _SCREENED_PAIRS:
            change = self._exchanged(given[:, None], taken[None, :], self._fullest_windows(giver))
            grid = np.where(is_possible, _score(change, cost), _FORBIDDEN)
            chosen = np.argpartition(grid, _SCREENED_PAIRS, axis=None)[:_SCREENED_PAIRS]
            rows, columns = np.unravel_index(chosen, grid.shape)
        score = _score(self._exchanged(given[rows], taken[columns]), cost[rows, columns])
        at = int(score.argmin())
        return float(score[at]), int(given[rows[at]]), int(taken[columns[at]])

    def _exchanged(
        self, ones: Ints, others: Ints, loads_of: Sequence[tuple[LoadLimit, Floats]] | None = None
    ) -> Floats:
        """Return the change of the overloads by the exchange of each pair of partitions."""
        return self._change(
            self.placement[ones],
            self.placement[others],
            lambda weight: weight[ones] - weight[others],
            loads_of,
        )

    def _fullest_windows(self, giver: int) -> list[tuple[LoadLimit, Floats]]:
        """Return limits and loads in the windows in which a member, or any one, is fullest."""
        found = []
        for limit, loads in zip(self.limits, self.loads, strict=True):
            free = limit.max_loads - loads
            windows = np.arange(free.shape[1])
            if len(windows) > _SCREENED_WINDOWS:
                both = np.stack([free[limit.unit_of[giver]], free.min(axis=0)])
                fullest = np.argpartition(both, _SCREENED_WINDOWS, axis=1)
                windows = np.unique(fullest[:, :_SCREENED_WINDOWS])
            part = LoadLimit(limit.unit_of, free[:, windows], limit.weight[:, windows])
            found.append((part, np.zeros_like(part.max_loads)))
        return found

    def _return_partitions(self) -> None:
        """Return moved partitions to their owners while no overload results."""
        moved = np.flatnonzero(self._is_moved(self.placement) & (self.costs > 0))
        for partition in moved[np.argsort(-self.costs[moved], kind="stable")].tolist():
            owner, here = int(self.problem.owner[partition]), int(self.placement[partition])
            if not self.allowed[partition, owner]:
                continue
            if self._change(np.array(here), np.array(owner), itemgetter(partition)) <= 0:
                self._move(partition, owner)
                continue
            # A partition that its owner received from other members may go in exchange.
            others = moved[self.placement[moved] == owner]
            others = others[self.allowed[others, here]]
            if len(others):
                change = self._exchanged(np.repeat(partition, len(others)), others)
                at = int(change.argmin())
                if change[at] <= 0:
                    self._move(partition, owner)
                    self._move(int(others[at]), here)


def _columns(values: Weights) -> Floats:
    return np.asarray(values.reshape(len(values), -1), dtype=np.float64)


def _score(change: Floats, cost: Floats) -> Floats:
    """Return the change of the overloads per additional move; lower scores are better."""
    cost = np.maximum(cost, 0)
    return np.asarray(np.where(change < 0, change / (1 + cost), change + cost * 1e-6))

"""Find assignments within maximum loads in every window, with few moves or low sums of squares.

Simulated annealing moves single partitions, or exchanges two. It minimises overloads plus the cost
of moves. Many proposals of one step are computed as arrays. It alternates with a tabu search in
groups that are small enough.
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
"""Number of proposed changes of one step: per partition, minimum and maximum."""
_FEW_WINDOWS = 24  # windows of greatest total load, which refuse most proposals
_FIRST_RUN, _LONGEST_RUN, _LONGER = 400, 3_000, 1.5
"""Minimum number of steps of the first run, maximum number of a run, and factor between runs."""
_HOT, _COLD, _HEATED = 0.5, 0.05, 96
"""First and last temperature of a run, in units of the mean positive load of a partition, and the
number of partitions above which they are lower in proportion."""
_FIRST_PRICE, _PRICE_FACTOR = 0.3, 1.3
"""First price of a move, in units of the mean positive load, and its factor from run to run."""
_HOME_SHARE = 0.3  # share of the proposed transfers that return a partition to its owner
_TENURES = (4, 8, 16, 40)
"""Numbers of steps in which runs of the tabu search do not return a partition to a member."""
_TABU_STEPS, _PRICED_STEPS = 500, 25  # without a better placement, and with one price
_LEAST_PRICE, _LEAST_TENURE = 0.03, 0.3  # price of a move, and random share of these numbers
_MAX_PARTITIONS, _MAX_UPDATES = 250, 200_000
"""Limits of the tabu search: partitions, and squared partitions times windows per member."""
_MORE_WINDOWS = 4  # windows with an overload that the search adds at once
_NONE = -1  # partition in exchange for a transferred one
_LEAST_REDUCTION = 1e-9
"""Least reduction of a sum of squares, per squared weights, that is not a rounding error."""


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
        tabu = _TabuSearch(self) if self.costs.any() and self._has_small_tables else None
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
            hot = _HOT * min(1, _HEATED / len(start))
            if best is not None:
                self._reset(best)
            if tabu is None:
                length = min(length * _LONGER, max(length, _LONGEST_RUN))
                continue
            for tenure in _TENURES:
                found = tabu.run(tenure, fewest, enough, may_continue)
                best = best if found is None else found
                self._reset(self.placement.astype(np.int32) if best is None else best)
                fewest = fewest if found is None else self._cost()
        return best

    @property
    def _has_small_tables(self) -> bool:
        """Return whether steps of the tabu search are short, and all limits are per member."""
        members, size = self.problem.member_count, self.problem.partition_count
        windows = sum(limit.weight.shape[1] for limit in self.limits)
        return (
            size <= _MAX_PARTITIONS and size * size * windows <= _MAX_UPDATES * members
        ) and all(np.array_equal(limit.unit_of, np.arange(members)) for limit in self.limits)

    def _reset(self, placement: Placement) -> None:
        super()._reset(placement)
        self._sum_overloads()

    def _move(self, partition: int, taker: int) -> None:
        super()._move(partition, taker)
        self._sum_overloads()

    def _sum_overloads(self) -> None:
        """Set the overload per member: the sum of the overloads of its units."""
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
        """Return the overload after each change. With ``windows``, it is a lower bound."""
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
            cost = self.cost_with - self.cost_with[at, own, None]  # change by each transfer
            is_possible = self.allowed & (cost <= most - self._cost()) & ~refused
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


class _TabuSearch:
    """Tabu search from the placement of a search with limits per member.

    Each step makes the best transfer or exchange, also if it is worse. The tables have the
    overloads in some windows after each change: ``gained`` by partition and taker, ``exchanged`` by
    partition and the one that its member gets instead.
    """

    def __init__(self, search: WindowRepair) -> None:
        self.search, self.at = search, np.arange(len(search.costs))
        self.unit = search.unit / max(float(search.costs.mean()), 1)
        self.prices = dict.fromkeys(_TENURES, _FIRST_PRICE)
        self.weights = np.hstack([limit.weight for limit in search.limits])
        self.max_loads = np.hstack([limit.max_loads for limit in search.limits])
        first = [np.arange(limit.weight.shape[1]) < _FEW_WINDOWS for limit in search.limits]
        self.windows: list[int] = np.flatnonzero(np.concatenate(first)).tolist()

    def _build(self) -> None:
        self.weight = self.weights[:, self.windows]
        self.excess = -self.max_loads[:, self.windows]
        np.add.at(self.excess, self.search.placement, self.weight)
        self.gained = np.empty((len(self.at), len(self.excess)))
        self.exchanged = np.empty((len(self.at), len(self.at)))
        self._update(np.arange(len(self.excess)))

    def _update(self, members: Ints) -> None:
        """Compute the parts of the tables that depend on the loads of some members."""
        own = self.search.placement
        self.gained[:, members] = _overload(self.weight[:, None] + self.excess[members])
        given = np.flatnonzero(np.isin(own, members))
        rest = self.excess[own[given]] - self.weight[given]
        self.exchanged[given] = _overload(rest[:, None] + self.weight)

    def run(
        self, tenure: int, fewest: float, enough: int, may_continue: Callable[[], bool]
    ) -> Placement | None:
        """Return a placement with a lower cost than ``fewest``, or None if none is found soon.

        The price of moves rises while there are no overloads, and falls while there are some.
        """
        self._build()
        found, end, step, within = None, _TABU_STEPS, 0, 0
        free_from = np.where(self.search.allowed, 0.0, np.inf)
        while step < end and fewest > enough and may_continue():
            step += 1
            placement = self.search.placement
            cost = float(self.search.cost_with[self.at, placement].sum())
            is_within = not self.excess.max() > 0
            within += is_within
            if is_within and cost < fewest and not self._adds_windows():
                found, fewest, end = placement.astype(np.int32), cost, step + _TABU_STEPS
            if step % _PRICED_STEPS == 0:
                factor = _PRICE_FACTOR if 2 * within > _PRICED_STEPS else 1.0
                factor = factor if within else 1 / _PRICE_FACTOR
                self.prices[tenure], within = max(self.prices[tenure] * factor, _LEAST_PRICE), 0
            self._change(free_from, step, tenure)
        return found

    def _adds_windows(self) -> bool:
        """Add windows with an overload to the tables; return whether there are some."""
        loads = -self.max_loads
        np.add.at(loads, self.search.placement, self.weights)
        peaks = loads.max(axis=0)
        missing = np.argsort(-peaks, kind="stable")[:_MORE_WINDOWS]
        missing = missing[peaks[missing] > 0]
        if len(missing):
            self.windows += missing.tolist()
            self._build()
        return len(missing) > 0

    def _change(self, free_from: Floats, step: int, tenure: int) -> None:
        """Make the best change that does not return a partition too soon, if there is one."""
        own, costs = self.search.placement, self.search.cost_with
        overload, rest = _overload(self.excess), self.excess[own] - self.weight
        moved = self.prices[tenure] * self.unit * (costs - costs[self.at, own, None])
        moved -= overload[own, None]
        transfers = moved + self.gained - overload + _overload(rest)[:, None]
        exchanges = moved[:, own] + self.exchanged
        exchanges += exchanges.T
        is_tabu = free_from > step
        is_tabu[self.at, own] = True
        transfers[is_tabu] = np.inf
        exchanges[is_tabu[:, own] | is_tabu[:, own].T] = np.inf
        one, taker = divmod(int(transfers.argmin()), len(overload))
        first, second = divmod(int(exchanges.argmin()), len(own))
        changes = [(one, taker)]
        if exchanges[first, second] < transfers[one, taker]:
            changes = [(first, int(own[second])), (second, int(own[first]))]
        elif transfers[one, taker] == np.inf:
            return
        members = np.array([own[changes[0][0]], changes[0][1]])
        for partition, member in changes:
            steps = tenure * self.search.rng.uniform(_LEAST_TENURE, 1)
            free_from[partition, own[partition]] = step + 1 + steps
            self.excess[own[partition]] -= self.weight[partition]
            self.excess[member] += self.weight[partition]
            own[partition] = member
        self._update(members)


def _overload(excess: Floats) -> Floats:
    """Return the total overload over windows, the last axis."""
    return np.maximum(excess, 0) @ np.ones(excess.shape[-1])


def proposals(problem: Problem) -> int:
    """Return the number of proposed changes of one step."""
    count = _PROPOSALS_PER_PARTITION * problem.partition_count
    return min(max(count, _MIN_PROPOSALS), _MAX_PROPOSALS)


def _with_sorted_windows(limit: LoadLimit) -> LoadLimit:
    """Return a limit with its windows as columns, in descending order of total weight."""
    weight, most = (
        np.asarray(each.reshape(len(each), -1), dtype=np.float64)
        for each in (limit.weight, limit.max_loads)
    )
    order = np.argsort(-weight.sum(axis=0), kind="stable")
    most = np.broadcast_to(most, (len(most), weight.shape[1]))
    return LoadLimit(limit.unit_of, most[:, order], weight[:, order])

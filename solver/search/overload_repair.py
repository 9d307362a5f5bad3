"""Find assignments with few moves within maximum loads of members and hosts.

The search starts from the owned partitions, and repairs overloads by the best transfer of one
partition or the best exchange of two. Then it returns some moved partitions and repairs again.
The same transfers and exchanges lower the sum of squares of a placement within the limits.

Within maximum loads in every window, simulated annealing moves single partitions, or exchanges two.
It minimises overloads plus the cost of moves. Many proposals of one step are computed as arrays. It
alternates with a tabu search in groups that are small enough.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.assignment import NO_OWNER
from kassay.solver.problem import Ints, Placement, Problem, Weights

Floats = NDArray[np.float64]

_MAX_CANDIDATES = 60
"""Maximum number of partitions of an overloaded unit that one step considers."""
_MAX_EXCHANGED = 15_000
"""Maximum number of partitions that one step considers to exchange for such partitions."""
_MAX_FAILURES = 150
"""Maximum number of random transfers in one repair."""
_KEPT = 12
"""Number of the last ejected partitions, which must stay at their members."""
_RETURNED = 0.25
"""Share of the moved partitions that are returned before another repair."""
_LEAST_REDUCTION = 1e-12
"""Least reduction of a sum of squares, as a share of it, that is not a rounding error."""


@dataclass(frozen=True, slots=True)
class LoadLimit:
    """Maximum load of each member or of each host.

    Equal weights limit the number of partitions. Weights of 0 exclude partitions from the limit.
    """

    unit_of: Ints  # per member
    max_loads: Weights  # per unit; with several windows, per unit and window
    weight: Weights  # per partition; with several windows, per partition and window


@dataclass
class OverloadRepair:
    """Local search for a placement with few moves within load limits."""

    problem: Problem
    limits: Sequence[LoadLimit]
    rng: np.random.Generator
    placement: Ints = field(init=False)
    loads: list[Weights] = field(init=False)
    kept: deque[int] = field(default_factory=partial(deque, maxlen=_KEPT))
    costs: Ints = field(init=False)
    max_cost: float = inf
    """Maximum cost of the moves, for searches that limit it."""

    def __post_init__(self) -> None:
        self.weight = self._weights()
        self.allowed = self.problem.may_consume[self.problem.consumer_set]

    def _weights(self) -> Weights:
        return self.problem.weight.astype(np.int64)

    def _set_costs(self, costs: Ints) -> None:
        """Set the cost of each move; partitions without an owner cost nothing."""
        self.costs = np.where(self.problem.owner == NO_OWNER, 0, costs)

    def run(
        self,
        start: Placement,
        costs: Ints,
        *,
        rounds: int,
        may_continue: Callable[[], bool],
        enough: int = 0,
    ) -> Placement | None:
        """Find a placement with few moves within the limits; return None if none is found.

        The search ends at a placement whose moves cost at most ``enough``.
        """
        self._set_costs(costs)
        best, fewest, current = None, 0, start
        for _ in range(rounds):
            if not may_continue():
                break
            self._reset(current)
            self.max_cost = inf if best is None else fewest - 1
            if self._repair(may_continue):
                self._return_partitions()
                cost = self._cost()
                if best is None or cost < fewest:
                    best, fewest = self.placement.astype(np.int32), cost
            if best is None:
                current = start
                continue
            if fewest <= enough:
                break
            current = best.copy()
            moved = np.flatnonzero(self._is_moved(best))
            count = max(1, int(len(moved) * _RETURNED))
            returned = self.rng.choice(moved, size=count, replace=False)
            current[returned] = self.problem.owner[returned]
        return best

    def place_heaviest_first(self, noise: float) -> Placement | None:
        """Assign partitions, heaviest first, to the members with the lowest new loads.

        Weights change randomly by up to a share ``noise``. Return None if a partition has no room.
        """
        self._reset(np.zeros(self.problem.partition_count, dtype=np.int32))
        for loads in self.loads:
            loads[:] = 0
        total, factors = np.zeros(self.problem.member_count), self._factors()
        weight = self.weight * self.rng.uniform(1 - noise, 1 + noise, len(self.weight))
        for partition in np.argsort(-weight, kind="stable").tolist():
            fits = self.allowed[partition].copy()
            for limit, loads in zip(self.limits, self.loads, strict=True):
                fits &= (loads + limit.weight[partition] <= limit.max_loads)[limit.unit_of]
            if not fits.any():
                return None
            new = np.where(fits, (total + self.weight[partition]) * factors, np.inf)
            member = int(new.argmin())
            self.placement[partition] = member
            total[member] += self.weight[partition]
            for limit, loads in zip(self.limits, self.loads, strict=True):
                loads[limit.unit_of[member]] += limit.weight[partition]
        return self.placement.astype(np.int32)

    def _factors(self) -> NDArray[np.float64]:
        members = (self.problem.group.members[index] for index in self.problem.members)
        return np.array([1 / member.speed for member in members])

    def lower_squares(
        self, start: Placement, costs: Ints, max_cost: int | None, may_continue: Callable[[], bool]
    ) -> Placement:
        """Return a placement with a lower sum of squares within the limits.

        With different speeds, the sum adds the products of load and relative load.

        Parameters
        ----------
        start
            Placement within the limits.
        max_cost
            Maximum cost of the moves; None for no maximum.
        """
        self._reset(start)
        self._set_costs(costs)
        factors, is_lower = self._factors(), True
        while is_lower:
            loads = np.bincount(self.placement, self.weight, len(factors)).astype(float)
            is_lower = any(
                may_continue() and self._lower_squares_of(giver, loads, factors, max_cost)
                for giver in np.argsort(-loads * factors, kind="stable").tolist()
            )
        return self.placement.astype(np.int32)

    def _lower_squares_of(
        self,
        giver: int,
        loads: NDArray[np.float64],
        factors: NDArray[np.float64],
        max_cost: int | None,
    ) -> bool:
        """Make the transfer or exchange of a member that lowers the sum of squares most.

        Return False if none lowers it. The columns of each table are the members that may receive
        a partition, then the partitions of other members that may be exchanged for it.
        """
        given = self._sample(np.flatnonzero(self.placement == giver), _MAX_CANDIDATES)
        if not len(given):
            return False
        returned = self._sample(np.flatnonzero(self.placement != giver), _MAX_EXCHANGED)
        holders, width = self.placement[returned], self.problem.member_count
        takers = np.concatenate([np.arange(width), holders])

        def difference(values: Ints) -> Ints:
            columns = np.concatenate([np.zeros(width, dtype=values.dtype), values[returned]])
            return np.asarray(values[given][:, None] - columns[None, :])

        moved = difference(self.weight)
        before = loads[giver] ** 2 * factors[giver] + loads[takers] ** 2 * factors[takers]
        after = (loads[giver] - moved) ** 2 * factors[giver]
        change = after + (loads[takers] + moved) ** 2 * factors[takers] - before
        permitted = self.allowed[given][:, takers]
        permitted[:, width:] &= self.allowed[returned, giver]
        permitted &= takers != giver
        givers = np.full((len(given), 1), giver)
        permitted &= self._change(givers, takers[None, :], difference) <= 0
        if max_cost is not None:
            owner, cost = self.problem.owner, self.costs
            cost_change = cost[given][:, None] * (
                (owner[given][:, None] != takers).astype(np.int64)
                - (owner[given] != giver)[:, None]
            )
            cost_change[:, width:] += cost[returned] * (
                (owner[returned] != giver).astype(np.int64) - (owner[returned] != holders)
            )
            permitted &= cost_change <= max_cost - self._cost()
        change = np.where(permitted, change, 0)
        row, column = divmod(int(np.argmin(change)), len(takers))
        if change[row, column] >= -_LEAST_REDUCTION * before[column]:
            return False
        self._move(int(given[row]), int(takers[column]))
        if column >= width:
            self._move(int(returned[column - width]), giver)
        return True

    def _reset(self, placement: Placement) -> None:
        self.placement = placement.copy().astype(np.int64)
        self.kept.clear()
        self.loads = []
        for limit in self.limits:
            shape = (len(limit.max_loads), *limit.weight.shape[1:])
            loads = np.zeros(shape, dtype=limit.weight.dtype)
            np.add.at(loads, limit.unit_of[placement], limit.weight)
            self.loads.append(loads)

    def _is_moved(self, placement: Placement | Ints) -> NDArray[np.bool_]:
        owner = self.problem.owner
        return np.asarray((owner != NO_OWNER) & (owner != placement), dtype=np.bool_)

    def _cost(self) -> int:
        return int(self.costs[self._is_moved(self.placement)].sum())

    def _repair(self, may_continue: Callable[[], bool]) -> bool:
        """Lower overloads until none is left. Return False after too many failures."""
        failures = 0
        while may_continue():
            candidates = self._partitions_of_overloaded_unit()
            if candidates is None:
                return True
            if self._transfer(candidates) or self._exchange(candidates):
                continue
            failures += 1
            if failures > _MAX_FAILURES:
                return False
            self._eject(candidates)
        return False

    def _eject(self, candidates: Ints) -> None:
        """Move a heavy partition to a random member, and keep the partition there for a while.

        The following steps then move other partitions away from this member.
        """
        weight = self.weight[candidates].astype(np.float64) + 1
        partition = int(self.rng.choice(candidates, p=weight / weight.sum()))
        fits = self.allowed[partition].copy()
        for limit in self.limits:
            fits &= limit.max_loads[limit.unit_of] >= limit.weight[partition]
        fits[self.placement[partition]] = False
        takers = np.flatnonzero(fits)
        if len(takers):
            self._move(partition, int(self.rng.choice(takers)))
            self.kept.append(partition)

    def _partitions_of_overloaded_unit(self) -> Ints | None:
        """Return partitions of the most overloaded member or host, or None without overload."""
        largest, chosen = 0, None
        for limit, loads in zip(self.limits, self.loads, strict=True):
            overload = loads - limit.max_loads
            unit = int(overload.argmax())
            if overload[unit] > largest:
                largest, chosen = int(overload[unit]), (limit, unit)
        if chosen is None:
            return None
        limit, unit = chosen
        found: Ints = np.flatnonzero((limit.unit_of[self.placement] == unit) & (limit.weight > 0))
        free = found[~np.isin(found, self.kept)]
        return self._sample(free if len(free) else found, _MAX_CANDIDATES)

    def _sample(self, partitions: Ints, most: int) -> Ints:
        if len(partitions) <= most:
            return partitions
        return self.rng.choice(partitions, size=most, replace=False)

    def _transfer(self, candidates: Ints) -> bool:
        """Make the transfer that reduces overload most; return False without such a transfer."""
        givers, takers = self.placement[candidates], np.arange(self.problem.member_count)
        change = self._change(
            givers[:, None], takers[None, :], lambda weight: weight[candidates][:, None]
        )
        change = np.where(self.allowed[candidates], change, 0)
        # Among equal changes, a partition returns to its owner or has not moved away from it.
        owner = self.problem.owner[candidates]
        away = 2 * (owner[:, None] != takers[None, :]) + (owner == givers)[:, None]
        at = int(np.argmin(change * 4 + np.where(change < 0, away, 0)))
        row, taker = divmod(at, self.problem.member_count)
        if change[row, taker] >= 0:
            return False
        self._move(int(candidates[row]), taker)
        return True

    def _exchange(self, candidates: Ints) -> bool:
        """Make the exchange that reduces overload most; return False without such an exchange."""
        givers, takers = self.placement[candidates], self.placement

        def difference(weight: Ints) -> Ints:
            return weight[candidates][:, None] - weight[None, :]

        change = self._change(givers[:, None], takers[None, :], difference)
        permitted = self.allowed[candidates][:, takers] & self.allowed[:, givers].T
        permitted[:, self.kept] = False
        change = np.where(permitted & (difference(self.weight) > 0), change, 0)
        row, other = divmod(int(np.argmin(change)), len(takers))
        if change[row, other] >= 0:
            return False
        partition, giver = int(candidates[row]), int(givers[row])
        self._move(partition, int(takers[other]))
        self._move(other, giver)
        return True

    def _change(
        self,
        givers: Ints,
        takers: Ints,
        moved_weight: Callable[[Weights], Weights],
        loads_of: Iterable[tuple[LoadLimit, Weights]] | None = None,
    ) -> Weights:
        """Return the change of the total overload if weight moves between members.

        ``moved_weight`` returns the weights that move, from the weights of the partitions.
        """
        total = np.zeros(np.broadcast_shapes(givers.shape, takers.shape), dtype=np.int64)
        for limit, loads in loads_of or zip(self.limits, self.loads, strict=True):
            weight = moved_weight(limit.weight)
            giver, taker = limit.unit_of[givers], limit.unit_of[takers]
            free = limit.max_loads - loads
            given = np.maximum(-free[giver] - weight, 0) - np.maximum(-free[giver], 0)
            taken = np.maximum(weight - free[taker], 0) - np.maximum(-free[taker], 0)
            both = self._total(given) + self._total(taken)
            total = total + np.where(giver == taker, 0, both)
        return total

    @staticmethod
    def _total(overloads: Weights) -> Weights:
        return overloads

    def _move(self, partition: int, taker: int) -> None:
        giver = int(self.placement[partition])
        for limit, loads in zip(self.limits, self.loads, strict=True):
            loads[limit.unit_of[giver]] -= limit.weight[partition]
            loads[limit.unit_of[taker]] += limit.weight[partition]
        self.placement[partition] = taker

    def _return_partitions(self) -> None:
        moved = np.flatnonzero(self._is_moved(self.placement))
        for partition in self.rng.permutation(moved).tolist():
            owner, giver = int(self.problem.owner[partition]), int(self.placement[partition])
            if all(
                limit.unit_of[owner] == limit.unit_of[giver]
                or loads[limit.unit_of[owner]] + limit.weight[partition]
                <= limit.max_loads[limit.unit_of[owner]]
                for limit, loads in zip(self.limits, self.loads, strict=True)
            ):
                self._move(partition, owner)


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
_LEAST_CHANGE = 1e-9
"""Least reduction of a sum of squares, per squared weights, that is not a rounding error."""


@dataclass
class WindowRepair(OverloadRepair):
    """Local search for a placement with few moves within load limits in all weight windows.

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
        """Find a placement with few moves within the limits; return None if none is found.

        In the first run, changes lower the overloads or, if there are none, the cost. The price
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
        """Return whether the tabu search supports the size and the limits of the group."""
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
        self.overloads = np.zeros(self.problem.member_count)
        for limit, loads in zip(self.limits, self.loads, strict=True):
            self.overloads += np.maximum(loads - limit.max_loads, 0).sum(axis=1)[limit.unit_of]

    def _make_change(self, price: float, heat: float) -> None:
        """Make the best of several random changes, if the temperature permits the change."""
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
        """Compute the overload after each change, in all or in the first weight windows."""
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
        """Return a placement with a lower sum of squares over weight windows within the limits."""
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
            if change[row, taker] >= _LEAST_CHANGE * -norms.sum():
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
    """Tabu search for a placement with fewer moves within load limits per member.

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
        own = self.search.placement
        self.gained[:, members] = _overload(self.weight[:, None] + self.excess[members])
        given = np.flatnonzero(np.isin(own, members))
        rest = self.excess[own[given]] - self.weight[given]
        self.exchanged[given] = _overload(rest[:, None] + self.weight)

    def run(
        self, tenure: int, fewest: float, enough: int, may_continue: Callable[[], bool]
    ) -> Placement | None:
        """Find a placement that costs less than ``fewest``; return None if none is found.

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
        """Add weight windows with an overload to the tables; return whether any are added."""
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
    return np.maximum(excess, 0) @ np.ones(excess.shape[-1])


def proposals(problem: Problem) -> int:
    """Return the number of random changes that one step of the search proposes."""
    count = _PROPOSALS_PER_PARTITION * problem.partition_count
    return min(max(count, _MIN_PROPOSALS), _MAX_PROPOSALS)


def _with_sorted_windows(limit: LoadLimit) -> LoadLimit:
    weight, most = (
        np.asarray(each.reshape(len(each), -1), dtype=np.float64)
        for each in (limit.weight, limit.max_loads)
    )
    order = np.argsort(-weight.sum(axis=0), kind="stable")
    most = np.broadcast_to(most, (len(most), weight.shape[1]))
    return LoadLimit(limit.unit_of, most[:, order], weight[:, order])

"""Find assignments with few moves within maximum loads of members and hosts.

The search starts from the owned partitions, and repairs overloads by the best transfer of one
partition or the best exchange of two. Then it returns some moved partitions and repairs again.
The same transfers and exchanges lower the sum of squares of a placement within the limits.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.assignment import NO_OWNER
from kassay.solver.problem import Ints, Placement, Problem, Weights

_MAX_CELLS = 1_000_000
"""Maximum number of partitions times members."""
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
    """Maximum load of each unit: of each member, or of each host.

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
        """Set the costs of moves. Partitions without owners are placed, not moved."""
        self.costs = np.where(self.problem.owner == NO_OWNER, 0, costs)

    @staticmethod
    def is_applicable(problem: Problem) -> bool:
        """Return whether a problem has few enough partitions and members, and small weights."""
        return (
            problem.weight.dtype != object
            and 0 < problem.partition_count * problem.member_count <= _MAX_CELLS
        )

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
        """Place all partitions on the permitted members with the lowest new relative loads.

        The heaviest ones come first, after a random change of weights by up to a share ``noise``.
        Return None if a partition finds no room.
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
        """Move a heavy candidate to a member that can hold it alone. Keep it there for some steps.

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
        """Return the partitions of the unit with the largest overload, or None without overload."""
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
        """Make the transfer of one candidate that lowers the overload most; False if none does."""
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
        """Make the exchange with a candidate that lowers the overload most; False if none does."""
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
        """Return the change of the total overload if weight moves from givers to takers.

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

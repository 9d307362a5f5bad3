"""Minimise the overload of members by simulated annealing, within a permitted cost of moves.

Placements may exceed the maximum load; their total excess is minimised. A placement without
excess is a solution with at most the permitted cost (Kirkpatrick, Gelatt and Vecchi, 1983).
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from kassay.reference.model.ownership import NO_OWNER
from kassay.solver.problem import Ints, Placement, Problem

_SLICE = 60_000  # proposals per call
_PROPOSALS_PER_CHECK = 2_000  # between two checks of the time
_FIRST_SLICES = 30
_SAVING_DIVISOR = 3  # of the difference of cost and bound: the maximum saving
_HOT, _COLD = 0.4, 0.013  # temperatures, as shares of the mean weight


_Proposal = tuple[tuple[int, int], ...]  # partitions and their new members


@dataclass
class OverloadAnnealing:
    """Simulated annealing in slices, with a lower permitted cost in each run.

    The saving is the cost of the incumbent minus the permitted cost. After a successful run, the
    saving doubles. After a failed run, the saving halves or, if it is 1, the number of slices
    doubles.
    """

    problem: Problem
    costs: Ints
    max_load: int
    seed: int
    budget: int = field(init=False, default=-1)  # permitted cost
    saving: int = field(init=False, default=0)  # of this run
    slices: int = field(init=False, default=_FIRST_SLICES)  # per run
    finished: int = field(init=False, default=0)  # slices of this run
    member: list[int] = field(init=False)
    loads: list[int] = field(init=False)
    cost: int = field(init=False, default=0)
    away: list[int] = field(init=False)  # partitions that are not at their owner
    position: dict[int, int] = field(init=False)  # in `away`

    def __post_init__(self) -> None:
        """Convert arrays to lists, which are faster for single elements."""
        self._rng = random.Random(self.seed)  # noqa: S311
        problem = self.problem
        self._weight: list[int] = problem.weight.tolist()
        self._owner: list[int] = problem.owner.tolist()
        self._cost: list[int] = np.where(problem.owner == NO_OWNER, 0, self.costs).tolist()
        self._consumers: list[list[int]] = [
            consumers.tolist() for consumers in problem.consumer_sets
        ]
        self._allowed = [set(consumers) for consumers in self._consumers]
        self._set: list[int] = problem.consumer_set.tolist()
        self._owned: list[list[int]] = [[] for _ in range(problem.member_count)]
        for partition, owner in enumerate(self._owner):
            if owner != NO_OWNER:
                self._owned[owner].append(partition)
        self._mean = max(float(problem.weight.mean()), 1.0)

    def run(
        self,
        incumbent: Placement,
        cost: int,
        bound: int = 0,
        has_time: Callable[[], bool] = lambda: True,
    ) -> Placement | None:
        """Run one slice of the annealing; return a placement without overload, or None.

        The placement costs less than the incumbent. ``bound`` is a lower bound on the cost. The
        slice is shorter if no time is left.
        """
        if not 0 <= self.budget < cost:
            self.saving = min(2 * self.saving or cost, (cost - bound) // _SAVING_DIVISOR)
            self._restart(incumbent, cost)
        elif self.finished >= self.slices:
            if self.saving > 1:
                self.saving //= 2
            else:
                self.slices *= 2
            self._restart(incumbent, cost)
        share = self.finished / self.slices
        self.finished += 1
        temperature = self._mean * _HOT * (_COLD / _HOT) ** share
        is_within = any(
            self._anneal(temperature) for _ in range(_SLICE // _PROPOSALS_PER_CHECK) if has_time()
        )
        return np.array(self.member, dtype=np.int32) if is_within else None

    def _restart(self, incumbent: Placement, cost: int) -> None:
        """Start from the incumbent, and undo expensive moves until the cost is permitted."""
        self.saving = max(self.saving, 1)
        self.budget, self.finished = cost - self.saving, 0
        self.member = incumbent.tolist()
        self.loads = self.problem.loads(incumbent)
        self.away = [at for at, owner in enumerate(self._owner) if owner != self.member[at]]
        self.position = {partition: at for at, partition in enumerate(self.away)}
        self.cost = sum(self._cost[partition] for partition in self.away)
        for partition in sorted(self.away, key=lambda at: (-self._cost[at], self._weight[at])):
            if self.cost > self.budget:
                self._relocate(partition, self._owner[partition])

    def _anneal(self, temperature: float) -> bool:
        """Try some random relocations; return whether no member is overloaded then."""
        loads, limit = self.loads, self.max_load
        draw, log = self._rng.random, math.log
        for _ in range(_PROPOSALS_PER_CHECK):
            proposal = self._proposal(draw)
            if not proposal:
                continue
            excess = self._more_excess(proposal)
            if excess > 0 and excess > -temperature * log(1.0 - draw()):
                continue
            for partition, target in proposal:
                self._relocate(partition, target)
            if excess < 0 and max(loads) <= limit:
                return True
        return max(loads, default=0) <= limit

    def _more_excess(self, proposal: _Proposal) -> int:
        """Return the increase of the total overload that a proposal causes."""
        loads, limit, member = self.loads, self.max_load, self.member
        first, target = proposal[0]
        weight: list[int] = self._weight
        source: int = member[first]
        size: int = weight[first]
        if len(proposal) == 2:
            second, other_target = proposal[1]
            if member[second] != target or other_target != source:
                return self._more_excess_of_cycle(proposal)
            size -= weight[second]
        before: int = loads[source] - limit
        other: int = loads[target] - limit
        after, more = before - size, other + size
        return (max(0, after)) - (max(0, before)) + (max(0, more)) - (max(0, other))

    def _more_excess_of_cycle(self, proposal: _Proposal) -> int:
        change: dict[int, int] = {}
        for partition, target in proposal:
            source, size = self.member[partition], self._weight[partition]
            change[source] = change.get(source, 0) - size
            change[target] = change.get(target, 0) + size
        before = [self.loads[at] - self.max_load for at in change]
        return sum(
            max(excess + more, 0) - max(excess, 0)
            for excess, more in zip(before, change.values(), strict=True)
        )

    def _proposal(self, draw: Callable[[], float]) -> _Proposal:
        """Draw one or two random relocations; return () if they exceed the permitted cost."""
        kind, away = draw(), self.away
        if not away or kind > 0.95:
            partition = int(draw() * len(self._owner))
            return self._permitted(((partition, self._any_consumer(partition, draw)),))
        first = away[int(draw() * len(away))]
        if kind < 0.3:
            return self._permitted(((first, self._any_consumer(first, draw)),))
        owner, holder = self._owner[first], self.member[first]
        if kind < 0.6:
            second = away[int(draw() * len(away))]
            return self._permitted(((first, self.member[second]), (second, holder)))
        if owner == NO_OWNER:
            return ()
        mates = self._owned[owner] if kind < 0.9 else range(len(self._owner))
        second = mates[int(draw() * len(mates))]
        if second in self.position:
            return ()
        return self._permitted(((first, owner), (second, holder)))

    def _any_consumer(self, partition: int, draw: Callable[[], float]) -> int:
        consumers = self._consumers[self._set[partition]]
        return consumers[int(draw() * len(consumers))]

    def _permitted(self, proposal: _Proposal) -> _Proposal:
        """Return the proposal if it is valid within the permitted cost of moves, otherwise ()."""
        cost = self.cost
        for partition, target in proposal:
            current, owner = self.member[partition], self._owner[partition]
            if target == current or target not in self._allowed[self._set[partition]]:
                return ()
            if current == owner:
                cost += self._cost[partition]
            elif target == owner:
                cost -= self._cost[partition]
        return proposal if cost <= self.budget else ()

    def _relocate(self, partition: int, target: int) -> None:
        source, owner, size = (
            self.member[partition],
            self._owner[partition],
            self._weight[partition],
        )
        self.loads[source] -= size
        self.loads[target] += size
        self.member[partition] = target
        if source == owner:
            self.cost += self._cost[partition]
            self.position[partition] = len(self.away)
            self.away.append(partition)
        elif target == owner:
            self.cost -= self._cost[partition]
            at, last = self.position.pop(partition), self.away.pop()
            if last != partition:
                self.away[at] = last
                self.position[last] = at

"""Minimum maximum load of identical members: bounds, heuristics and exact packing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from kassay.solver.identical_members.load_patterns import WeightClasses
from kassay.solver.identical_members.lower_bounds import makespan_lower_bound, next_reachable_load
from kassay.solver.identical_members.packing_heuristics import (
    Packing,
    grouped_first,
    longest_first,
    makespan_of,
    multifit,
    split_evenly,
)
from kassay.solver.identical_members.pattern_packing import Answer, PatternPacking
from kassay.solver.identical_members.repacking import Repacking

_MAX_PATTERNS = 60_000
_MAX_PAIR_FAILURES = 200
_PAIR_SHARE = 0.2  # of the time left
_FIRST_SHARE = 0.25
_PACKING_SHARE = 0.7


@dataclass
class MakespanSearch:
    """Search for the minimum maximum load; the bound and the packing improve step by step."""

    weights: Sequence[int]  # descending
    members: int
    seconds: Callable[[], float]  # seconds left
    rng: np.random.Generator
    packing: Packing = field(init=False)
    bound: int = field(init=False)

    def __post_init__(self) -> None:
        """Compute the bound and the first packing without search."""
        self.bound = makespan_lower_bound(self.weights, self.members)
        self.packing = longest_first(self.weights, self.members)
        if self.members > 1:
            self.offer(grouped_first(self.weights, self.members))

    @property
    def makespan(self) -> int:
        """Return the maximum load of the best packing."""
        return makespan_of(self.packing)

    @property
    def is_proven(self) -> bool:
        """Return whether the packing reaches the bound."""
        return self.makespan <= self.bound

    def run(self) -> None:
        """Improve bound and packing until they meet or the time is up."""
        if self.is_proven:
            return
        better = multifit(self.weights, self.members, self.bound, self.makespan, self._has_time)
        self.offer(better)
        steps = (
            self._improve_pairs,
            lambda: self._improve(_FIRST_SHARE),
            self._raise_bound,
            self._pack_at_bound,
            lambda: self._improve(1.0),
        )
        for step in steps:
            if self.is_proven or not self._has_time():
                return
            step()

    def offer(self, packing: Packing | None) -> None:
        """Keep a packing if it is better than the current one."""
        if packing is not None and makespan_of(packing) < self.makespan:
            self.packing = packing

    def _has_time(self) -> bool:
        return self.seconds() > 0

    def _improve_pairs(self) -> None:
        """Split the weights of the most loaded member and of another one evenly, repeatedly."""
        packing = [list(weights) for weights in self.packing]
        loads = np.array([sum(weights) for weights in packing])
        end = self.seconds() * (1 - _PAIR_SHARE)
        failures = 0
        while failures < _MAX_PAIR_FAILURES and self.seconds() > end:
            one = int(loads.argmax())
            lighter = np.flatnonzero(loads < loads[one] - 1)
            if loads[one] <= self.bound or not len(lighter):
                break
            other = int(self.rng.choice(lighter))
            both = split_evenly(packing[one], packing[other], self.rng)
            heavier = max(map(sum, both))
            failures = 0 if heavier < loads[one] else failures + 1
            if heavier < loads[one]:
                packing[one], packing[other] = both
                loads[one], loads[other] = map(sum, both)
        self.offer(packing)

    def _raise_bound(self) -> None:
        """Raise the bound to the least capacity at which the linear relaxation is feasible."""
        classes = WeightClasses.of(self.weights)
        step = 1
        infeasible, feasible = self.bound - 1, self.makespan
        while infeasible + 1 < feasible and self._has_time():
            middle = min(infeasible + step, (infeasible + feasible) // 2)
            packing = self._patterns(classes, self.members, middle, _MAX_PATTERNS)
            if packing is None and middle == self.bound:
                return
            if packing is None or packing.relaxation(self.seconds() / 4) is not Answer.NO:
                feasible, step = middle, 1
            else:
                infeasible, step = middle, 2 * step
        self.bound = min(next_reachable_load(self.weights, infeasible + 1), self.makespan)

    def _pack_at_bound(self) -> None:
        """Pack within the bound exactly; raise the bound by one if that is impossible."""
        classes = WeightClasses.of(self.weights)
        end = self.seconds() * (1 - _PACKING_SHARE)
        while not self.is_proven and self.seconds() > end:
            packing = self._patterns(classes, self.members, self.bound, _MAX_PATTERNS)
            if packing is None:
                return
            answer, packed = packing.pack(self.seconds() - end)
            if answer is Answer.UNKNOWN:
                return
            if answer is Answer.YES:
                self.offer(self._with_zeros(packed))
                return
            self.bound = min(next_reachable_load(self.weights, self.bound + 1), self.makespan)

    def _improve(self, time_share: float) -> None:
        """Repack a few members at a time until no load exceeds a target."""
        end = self.seconds() * (1 - time_share)
        share = 2
        while not self.is_proven and self.seconds() > end:
            gap = self.makespan - self.bound
            target = self.makespan - max(gap // share, 1)
            search = Repacking(self.packing, target, lambda: self.seconds() - end, self.rng)
            search.run()
            if makespan_of(search.packing) < self.makespan:
                self.packing = search.packing
                share = max(share // 2, 1)
            else:
                share = 1 if target == self.makespan - 1 else 2 * share

    def _patterns(
        self, classes: WeightClasses, members: int, capacity: int, limit: int
    ) -> PatternPacking | None:
        return PatternPacking.within(
            classes, members, capacity, limit=limit, may_continue=self._has_time
        )

    def _with_zeros(self, packed: Packing) -> Packing:
        zeros = [weight for weight in self.weights if not weight]
        full = [*packed, *([] for _ in range(self.members - len(packed)))]
        full[0].extend(zeros)
        return full

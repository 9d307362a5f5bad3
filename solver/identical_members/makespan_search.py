"""Minimise the maximum load of identical members: bounds, heuristics and exact packing."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

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
from kassay.solver.identical_members.subset_filling import Refilling, fill, may_fill
from kassay.solver.limits import SearchBudget
from kassay.solver.number_ranges import exact_integers

_MAX_PATTERNS = 400_000
_KEPT_PATTERNS = 2  # capacities
_FIRST_REPACKED = 5  # members that are repacked together at first
_MAX_PAIR_FAILURES = 200
_SHORT_REFILL = 1_000  # refills without success
_LONG_REFILL = 20_000
_MANY_REFILLED = 8  # members that are filled together, at least, in a long search
# Shares of the time left.
_FILL_SHARE = 0.3
_PAIR_SHARE = 0.2
_BOUND_SHARE = 0.4
_REFILL_SHARE = 0.3
_DIVE_SHARE = 0.4
_WORK_PER_SPLIT = 1e-3
_DIVES = 3  # per capacity
_MAX_NOISE = 0.1  # of a dive
_PACKING_SHARE = 0.7


@dataclass
class MakespanSearch:
    """Search for the minimum makespan; it improves a bound and a packing step by step."""

    weights: Sequence[int]  # descending
    members: int
    rng: np.random.Generator
    packing: Packing = field(init=False)
    bound: int = field(init=False)
    is_bound_by_highs: bool = field(init=False, default=False)
    repacked: int = field(init=False, default=_FIRST_REPACKED)
    patterns: dict[int, PatternPacking] = field(init=False, default_factory=dict)  # by capacity
    has_listed_patterns: bool = field(init=False, default=True)  # within the bound

    def __post_init__(self) -> None:
        self.classes = WeightClasses.of(self.weights)
        self.bound = makespan_lower_bound(self.weights, self.members)
        self.packing = longest_first(self.weights, self.members)
        if self.members > 1:
            self.offer(grouped_first(self.weights, self.members))

    @property
    def makespan(self) -> int:
        """Return the maximum load of the best packing."""
        return makespan_of(self.packing)

    def run(self, budget: SearchBudget) -> None:
        """Improve the bound and the packing until they are equal or the time is up."""
        if not self._may_continue(budget):
            return
        self.offer(multifit(self.weights, self.members, self.bound, self.makespan, budget))
        steps = (
            (self._fill_to_bound, _FILL_SHARE),
            (self._improve_pairs, _PAIR_SHARE),
            (self._raise_bound, _BOUND_SHARE),
            (self._dive, _DIVE_SHARE),
            (self._refill_to_bound, _REFILL_SHARE),
            (self._pack_at_bound, _PACKING_SHARE),
            (self._repack, 1.0),
        )
        for step, share in steps:
            if self._may_continue(budget):
                step(budget.part(share))

    def _may_continue(self, budget: SearchBudget) -> bool:
        return self.makespan > self.bound and budget.has_work

    def offer(self, packing: Packing | None) -> None:
        """Keep a packing if it is better than the current packing."""
        if packing is not None and makespan_of(packing) < self.makespan:
            self.packing = packing

    def _fill_to_bound(self, budget: SearchBudget) -> None:
        """Fill all members up to the bound, then some of them repeatedly."""
        if may_fill(self.weights, self.bound):
            packing = fill(self.weights, self.members, self.bound, budget)
            self.offer(packing)
            self._refill(packing or self.packing, self.bound, budget, _SHORT_REFILL)

    def _refill_to_bound(self, budget: SearchBudget) -> None:
        """Fill many members repeatedly up to the bound, which the search may have raised."""
        self._refill(self.packing, self.bound, budget, _LONG_REFILL, smallest=_MANY_REFILLED)

    def _refill(
        self,
        packing: Packing,
        capacity: int,
        budget: SearchBudget,
        max_failures: int,
        *,
        smallest: int = 2,
    ) -> Packing:
        """Lower the overload of a packing; return the result, and keep it if it is better."""
        if not may_fill(self.weights, capacity):
            return packing
        rng = Random(int(self.rng.integers(2**62)))  # noqa: S311
        search = Refilling(packing, capacity, rng, smallest)
        search.run(budget, max_failures)
        self.offer(search.packing)
        return search.packing

    def _improve_pairs(self, budget: SearchBudget) -> None:
        """Repeatedly balance the weights of the most loaded member and of another member."""
        packing = [list(weights) for weights in self.packing]
        loads = exact_integers([sum(weights) for weights in packing])
        failures = 0
        while failures < _MAX_PAIR_FAILURES and budget.has_work:
            one = int(loads.argmax())
            lighter = np.flatnonzero(loads < loads[one] - 1)
            if loads[one] <= self.bound or not len(lighter):
                break
            other = int(self.rng.choice(lighter))
            budget.spend(_WORK_PER_SPLIT)
            both = split_evenly(packing[one], packing[other], self.rng)
            heavier = max(map(sum, both))
            failures = 0 if heavier < loads[one] else failures + 1
            if heavier < loads[one]:
                packing[one], packing[other] = both
                loads[one], loads[other] = map(sum, both)
        self.offer(packing)

    def _raise_bound(self, budget: SearchBudget) -> None:
        """Raise the bound while dual prices prove that a capacity is infeasible."""
        step = 1
        infeasible, feasible = self.bound - 1, self.makespan
        while infeasible + 1 < feasible and budget.has_work:
            middle = min(infeasible + step, (infeasible + feasible) // 2)
            packing = self._patterns_within(middle, budget)
            if packing is None and middle == self.bound:
                self.has_listed_patterns = False
                return
            if packing is None or packing.relaxation(budget) is not Answer.NO:
                feasible, step = middle, 1
            else:
                infeasible, step = middle, 2 * step
        if infeasible >= self.bound:
            self.bound = next_reachable_load(self.weights, infeasible + 1)
            self.is_bound_by_highs = False

    def _dive(self, budget: SearchBudget) -> None:
        """Search for a lower makespan by dives, with capacities from the lower bound upwards."""
        failed, step = self.bound - 1, 1
        while self.has_listed_patterns and failed + 1 < self.makespan and budget.has_work:
            capacity = min(failed + step, (failed + self.makespan) // 2)
            packing = self._patterns_within(capacity, budget)
            if packing is None:
                return
            packed = None
            for attempt in range(_DIVES):
                packed = packed or packing.dive(
                    capacity, budget, self.rng, _MAX_NOISE * attempt / _DIVES
                )
            if packed is None:
                failed, step = capacity, 2 * step
            else:
                self.offer(self._with_zeros(packed))
                step = 1

    def _pack_at_bound(self, budget: SearchBudget) -> None:
        """Decide with HiGHS whether all weights fit a capacity, from the bound upwards."""
        step = 1
        while self.has_listed_patterns and self._may_continue(budget):
            capacity = min(self.bound + step - 1, (self.bound + self.makespan - 1) // 2)
            packing = self._patterns_within(capacity, budget)
            if packing is None:
                return
            answer, packed = packing.pack(budget)
            if answer is Answer.YES:
                self.offer(self._with_zeros(packed))
            elif answer is Answer.NO:
                self.bound = next_reachable_load(self.weights, capacity + 1)
                self.is_bound_by_highs = True
                step *= 2
            else:
                return

    def _repack(self, budget: SearchBudget) -> None:
        """Lower the makespan by repacking the weights of a few members at a time."""
        share = 2
        while self._may_continue(budget):
            budget.spend(_WORK_PER_SPLIT)
            gap = self.makespan - self.bound
            target = self.makespan - max(gap // share, 1)
            before = self.makespan
            start = self._refill(self.packing, target, budget.part(_REFILL_SHARE), _SHORT_REFILL)
            if self.makespan > target:
                search = Repacking(start, target, budget, self.rng, self.repacked)
                search.run()
                self.repacked = search.size
                self.offer(search.packing)
            if self.makespan < before:
                share = max(share // 2, 1)
            else:
                share = 1 if target == self.makespan - 1 else 2 * share

    def _patterns_within(self, capacity: int, budget: SearchBudget) -> PatternPacking | None:
        """Return the search by patterns; the last ones are kept, because listing takes time."""
        if capacity not in self.patterns:
            found = PatternPacking.within(
                self.classes, self.members, capacity, _MAX_PATTERNS, budget
            )
            if found is None:
                return None
            self.patterns[capacity] = found
            if len(self.patterns) > _KEPT_PATTERNS:
                del self.patterns[next(iter(self.patterns))]
        return self.patterns[capacity]

    def _with_zeros(self, packed: Packing) -> Packing:
        full = [*packed, *([] for _ in range(self.members - len(packed)))]
        full[0].extend(weight for weight in self.weights if not weight)
        return full

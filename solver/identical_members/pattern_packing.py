"""Decide whether identical members can receive all weights within a capacity, by patterns.

The set covering formulation of Gilmore and Gomory, with all maximal patterns. A pattern can be
left out if its free capacity exceeds the free capacity of all members together.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property, partial
from itertools import chain

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_matrix, vstack

from kassay.solver.identical_members.fractional_cover import (
    FractionalCover,
    PatternDive,
    cover_fractionally,
)
from kassay.solver.identical_members.load_patterns import Pattern, PatternSearch, WeightClasses
from kassay.solver.identical_members.packing_heuristics import Packing
from kassay.solver.limits import SearchBudget, call_until_stopped
from kassay.solver.number_ranges import Arithmetic

_NODES, _WORK_PER_PATTERN = 300, 2e-4  # of an integer program


class Answer(Enum):
    """Answer to the question whether all weights fit: yes, no or unknown."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass
class PatternPacking:
    """Search for a cover of all weights by patterns, one pattern per member."""

    classes: WeightClasses
    members: int
    patterns: Sequence[Pattern]
    cover: FractionalCover | None = field(init=False, default=None)

    @classmethod
    def within(
        cls, classes: WeightClasses, members: int, capacity: int, limit: int, budget: SearchBudget
    ) -> "PatternPacking | None":
        """Create the search for a cover by patterns within a capacity.

        Return None if there are too many patterns or the time is up.
        """
        least = max(capacity - (members * capacity - classes.total), 0)
        if least > capacity:
            return cls(classes, members, ())
        search = PatternSearch(classes, least, capacity, limit, budget)
        patterns = search.list_patterns()
        return None if patterns is None else cls(classes, members, patterns)

    def relaxation(self, budget: SearchBudget) -> Answer:
        """Return NO if integer prices prove that a cover is impossible, otherwise UNKNOWN.

        The prices are the dual values of the linear relaxation, rounded to integers. No cover
        exists if all weights together cost more than the most expensive pattern per member.
        """
        if not self.classes.sizes:
            return Answer.UNKNOWN
        if not self.patterns or not self.held.getnnz(axis=0).all():
            return Answer.NO
        counts = np.array(self.classes.counts)
        none = np.zeros(0, dtype=np.int64)
        self.cover = cover_fractionally(self.held, counts, none, self.members, budget)
        is_proven = self.cover is not None and self.cover.needs_more_than(self.members)
        return Answer.NO if is_proven else Answer.UNKNOWN

    def dive(
        self, capacity: int, budget: SearchBudget, rng: np.random.Generator, noise: float
    ) -> Packing | None:
        """Search for a cover by rounding fractional covers; return the weights per member."""
        if not self.patterns or not Arithmetic.INT64.represents(self.members * capacity):
            return None
        sizes, counts = np.array(self.classes.sizes), np.array(self.classes.counts)
        return PatternDive(self.held, sizes, counts, self.members, capacity, rng).run(budget, noise)

    def pack(self, budget: SearchBudget) -> tuple[Answer, Packing]:
        """Search for a cover with HiGHS; return the answer and, if found, the weights per member.

        The answer NO depends on the floating-point arithmetic of HiGHS.
        """
        if not self.classes.sizes:
            return Answer.YES, []
        if not self.patterns:
            return Answer.NO, []
        if self.cover is None:
            self.relaxation(budget.part(0.5))
        useful = np.arange(len(self.patterns))
        if self.cover is not None:
            useful = np.flatnonzero(self.cover.useful(self.members))
        if not len(useful):
            return Answer.NO, []
        matrix = vstack([self.held[useful].T, csr_matrix(-np.ones((1, len(useful))))])
        search = partial(
            milp,
            np.zeros(len(useful)),
            constraints=LinearConstraint(matrix, lb=[*self.classes.counts, -self.members]),
            integrality=np.ones(len(useful)),
            bounds=Bounds(0, self.members),
            options=_search_options(budget),
        )
        result = call_until_stopped(search, budget.limits.stop)
        budget.spend(_WORK_PER_PATTERN * len(useful))
        if result is not None and result.status == 2:
            return Answer.NO, []
        if result is None or result.x is None:
            return Answer.UNKNOWN, []
        packed = self._weights_of(useful.tolist(), np.rint(result.x).astype(int).tolist())
        return (Answer.UNKNOWN, []) if packed is None else (Answer.YES, packed)

    @cached_property
    def held(self) -> csr_matrix:
        """Return the number of weights per pattern (row) and weight class (column)."""
        lengths = np.fromiter(map(len, self.patterns), np.int64, len(self.patterns))
        starts = np.concatenate([[0], np.cumsum(lengths)])
        columns = np.fromiter(chain.from_iterable(self.patterns), np.int64, int(starts[-1]))
        shape = (len(self.patterns), len(self.classes.sizes))
        held = csr_matrix((np.ones(len(columns), dtype=np.int64), columns, starts), shape=shape)
        held.sum_duplicates()
        return held

    def _weights_of(self, patterns: Sequence[int], uses: Sequence[int]) -> Packing | None:
        """Convert the number of uses of each pattern to weights per member.

        Each weight is used once. Return None if a weight is missing.
        """
        left = list(self.classes.counts)
        packed: Packing = []
        for pattern, count in zip(patterns, uses, strict=True):
            for _ in range(count):
                weights = []
                for at in self.patterns[pattern]:
                    if left[at]:
                        left[at] -= 1
                        weights.append(self.classes.sizes[at])
                packed.append(weights)
        return None if any(left) or len(packed) > self.members else packed


def _search_options(budget: SearchBudget) -> dict[str, float | bool | int]:
    # The time limit does not hold in presolve, which takes long on many patterns.
    return {"presolve": False, "time_limit": max(budget.seconds, 0.01), "node_limit": _NODES}

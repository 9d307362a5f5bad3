"""Decide whether identical members can receive all weights within a capacity, by patterns.

The set covering formulation of Gilmore and Gomory, with all maximal patterns. A pattern can be
left out if its free capacity exceeds the free capacity of all members together.
"""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csr_matrix, vstack

from kassay.solver.identical_members.load_patterns import Pattern, PatternSearch, WeightClasses
from kassay.solver.identical_members.packing_heuristics import Packing
from kassay.solver.identical_members.search_clock import SearchClock
from kassay.solver.limits import call_until_stopped

# The price of a pattern must fit 64 bits.
_MAX_PRICE = 2**40
_MAX_PATTERN_PRICE = 2**62


class Answer(Enum):
    """Answer to the question whether all weights fit: yes, no or unknown."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class PatternPacking:
    """Search for a cover of all weights by patterns, one pattern per member."""

    classes: WeightClasses
    members: int
    patterns: Sequence[Pattern]

    @classmethod
    def within(
        cls,
        classes: WeightClasses,
        members: int,
        capacity: int,
        limit: int,
        clock: SearchClock,
    ) -> "PatternPacking | None":
        """Create the search for a cover by patterns within a capacity.

        Return None if there are too many patterns or the time is up.
        """
        least = max(capacity - (members * capacity - classes.total), 0)
        if least > capacity:
            return cls(classes, members, ())
        search = PatternSearch(classes, least, capacity, limit, clock)
        patterns = search.list_patterns()
        return None if patterns is None else cls(classes, members, patterns)

    def relaxation(self, clock: SearchClock) -> Answer:
        """Return NO if integer prices prove that a cover is impossible, otherwise UNKNOWN.

        The prices are the dual values of the linear relaxation, rounded to integers. No cover
        exists if all weights together cost more than the most expensive pattern per member.
        """
        if not self.classes.sizes:
            return Answer.UNKNOWN
        cover = self._cover()
        if not self.patterns or not cover.getnnz(axis=1).all():
            return Answer.NO
        search = partial(
            linprog,
            np.ones(len(self.patterns)),
            A_ub=-cover,
            b_ub=-np.array(self.classes.counts, dtype=float),
            method="highs",
            options={"time_limit": max(clock.seconds, 0.01)},
        )
        result = call_until_stopped(search, clock.stop)
        if result is None or result.status != 0:
            return Answer.UNKNOWN
        scale = min(_MAX_PRICE, _MAX_PATTERN_PRICE // max(map(len, self.patterns)))
        duals = np.clip(-result.ineqlin.marginals, 0, 1)
        prices = np.rint(duals * scale).astype(np.int64)
        most = int((cover.T @ prices).max())
        total = sum(map(operator.mul, prices.tolist(), self.classes.counts))
        return Answer.NO if total > self.members * most else Answer.UNKNOWN

    def pack(self, clock: SearchClock) -> tuple[Answer, Packing]:
        """Search for a cover with HiGHS; return the answer and, if found, the weights per member.

        The answer NO depends on the floating-point arithmetic of HiGHS.
        """
        if not self.classes.sizes:
            return Answer.YES, []
        if not self.patterns:
            return Answer.NO, []
        count = len(self.patterns)
        matrix = vstack([self._cover(), csr_matrix(-np.ones((1, count)))])
        search = partial(
            milp,
            np.zeros(count),
            constraints=LinearConstraint(matrix, lb=[*self.classes.counts, -self.members]),
            integrality=np.ones(count),
            bounds=Bounds(0, self.members),
            options=_search_options(clock),
        )
        result = call_until_stopped(search, clock.stop)
        if result is not None and result.status == 2:
            return Answer.NO, []
        if result is None or result.x is None:
            return Answer.UNKNOWN, []
        packed = self._weights_of(np.rint(result.x).astype(int).tolist())
        return (Answer.UNKNOWN, []) if packed is None else (Answer.YES, packed)

    def _cover(self) -> csr_matrix:
        """Return the matrix of the number of weights per class (row) and pattern (column)."""
        rows = [at for pattern in self.patterns for at in pattern]
        columns = [index for index, pattern in enumerate(self.patterns) for _ in pattern]
        shape = (len(self.classes.sizes), len(self.patterns))
        return csr_matrix((np.ones(len(rows), dtype=np.int64), (rows, columns)), shape=shape)

    def _weights_of(self, uses: Sequence[int]) -> Packing | None:
        """Convert the number of uses of each pattern to weights per member.

        Each weight is used once. Return None if a weight is missing.
        """
        left = list(self.classes.counts)
        packed: Packing = []
        for pattern, count in zip(self.patterns, uses, strict=True):
            for _ in range(count):
                weights = []
                for at in pattern:
                    if left[at]:
                        left[at] -= 1
                        weights.append(self.classes.sizes[at])
                packed.append(weights)
        return None if any(left) or len(packed) > self.members else packed


def _search_options(clock: SearchClock) -> dict[str, float | bool | int]:
    # The time limit does not hold in presolve, which takes long on many patterns.
    options: dict[str, float | bool | int] = {"presolve": False}
    if clock.nodes is None:
        options["time_limit"] = max(clock.seconds, 0.01)
    else:
        options["node_limit"] = clock.nodes
    return options

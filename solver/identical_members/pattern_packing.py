"""Decide whether identical members can carry all weights within a capacity, by patterns.

The set covering formulation of Gilmore and Gomory, with all maximal patterns. A pattern can be
left out if its free capacity exceeds the free capacity of all members together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csr_matrix, vstack

from kassay.solver.identical_members.load_patterns import Pattern, PatternSearch, WeightClasses
from kassay.solver.identical_members.packing_heuristics import Packing
from kassay.solver.identical_members.search_clock import SearchClock


class Answer(Enum):
    """Answer of a decision."""

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
        """List the patterns for a capacity; None if there are too many or the time is up."""
        least = max(capacity - (members * capacity - classes.total), 0)
        if least > capacity:
            return cls(classes, members, ())
        search = PatternSearch(classes, least, capacity, limit, clock)
        patterns = search.list_patterns()
        return None if patterns is None else cls(classes, members, patterns)

    def relaxation(self, clock: SearchClock) -> Answer:
        """Solve the linear relaxation: NO if it is infeasible, otherwise UNKNOWN."""
        if not self.classes.sizes:
            return Answer.UNKNOWN
        if not self.patterns:
            return Answer.NO
        matrix, bounds = self._rows()
        result = linprog(
            np.zeros(len(self.patterns)),
            A_ub=-matrix,
            b_ub=-bounds,
            method="highs",
            options={"time_limit": max(clock.seconds, 0.01)},
        )
        return Answer.NO if result.status == 2 else Answer.UNKNOWN

    def pack(self, clock: SearchClock) -> tuple[Answer, Packing]:
        """Search a cover; if there is one, return the weights of each member."""
        if not self.classes.sizes:
            return Answer.YES, []
        if not self.patterns:
            return Answer.NO, []
        matrix, bounds = self._rows()
        result = milp(
            np.zeros(len(self.patterns)),
            constraints=LinearConstraint(matrix, lb=bounds),
            integrality=np.ones(len(self.patterns)),
            bounds=Bounds(0, self.members),
            options=_search_options(clock),
        )
        if result.status == 2:
            return Answer.NO, []
        if result.x is None:
            return Answer.UNKNOWN, []
        packed = self._weights_of(np.rint(result.x).astype(int).tolist())
        return (Answer.UNKNOWN, []) if packed is None else (Answer.YES, packed)

    def _rows(self) -> tuple[csr_matrix, NDArray[np.float64]]:
        rows = [at for pattern in self.patterns for at in pattern]
        columns = [index for index, pattern in enumerate(self.patterns) for _ in pattern]
        shape = (len(self.classes.sizes), len(self.patterns))
        cover = csr_matrix((np.ones(len(rows)), (rows, columns)), shape=shape)
        matrix = vstack([cover, csr_matrix(-np.ones((1, len(self.patterns))))]).tocsr()
        return matrix, np.array([*self.classes.counts, -self.members], dtype=float)

    def _weights_of(self, uses: Sequence[int]) -> Packing | None:
        """Return the weights per member without repetition; None if a weight is missing."""
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

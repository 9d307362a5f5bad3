"""Dive: repeatedly solve the fractional cover, and fix the pattern that is used most.

Diving heuristics: Joncour et al., "Column generation based primal heuristics", 2010.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import csr_matrix

from kassay.solver.identical_members.fractional_cover import FractionalCover, cover_fractionally
from kassay.solver.identical_members.packing_heuristics import Packing
from kassay.solver.identical_members.search_clock import SearchClock
from kassay.solver.problem import Ints

_NOISE = 0.1  # greatest addition to the use of a pattern
_INTEGRAL = 1 - 1e-6


@dataclass
class PatternDive:
    """Search for a cover of all weights, one pattern per member, without backtracking."""

    held: csr_matrix  # number of weights per pattern (row) and weight class (column)
    sizes: Ints  # weight per class
    left: Ints  # number of weights per class that no member has yet
    members: int  # members without a pattern
    capacity: int
    rng: np.random.Generator
    free: int = field(init=False)  # capacity that may remain free
    active: Ints = field(init=False)
    packing: Packing = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        """Compute the free capacity."""
        self.free = self.members * self.capacity - int(self.left @ self.sizes)
        self.active = np.zeros(0, dtype=np.int64)

    def run(self, clock: SearchClock, noise: float = _NOISE) -> Packing | None:
        """Return the weights per member, or None if the dive fails or the time is up."""
        while self.left.any():
            self._remove_useless_patterns()
            if not clock.has_time or not self.held[:, self.left > 0].getnnz(axis=0).all():
                return None
            cover = cover_fractionally(self.held, self.left, self.active, self.members, clock)
            if cover is None or cover.needs_more_than(self.members):
                return None
            self.active = cover.active
            self._fix(cover, noise)
        return self.packing

    def _remove_useless_patterns(self) -> None:
        """Limit patterns to the weights that are left, and remove those with too much space."""
        held = self.held
        data = np.minimum(held.data, self.left[held.indices])
        held = csr_matrix((data, held.indices, held.indptr), shape=held.shape)
        load = held @ self.sizes
        useful = (load >= self.capacity - self.free) & (load > 0)
        self.held = held[useful]
        self.held.eliminate_zeros()
        number = np.cumsum(useful) - 1
        self.active = number[self.active[useful[self.active]]]

    def _fix(self, cover: FractionalCover, noise: float) -> None:
        """Give patterns that are used at least once, or the one used most, to members."""
        whole = np.flatnonzero(cover.uses >= _INTEGRAL)
        if not len(whole):
            chance = self.rng.random(len(cover.uses)) * noise
            whole = np.array([int((cover.uses + chance * (cover.uses > 0)).argmax())])
        for at in whole.tolist():
            for _ in range(max(1, int(cover.uses[at] + 1 - _INTEGRAL))):
                self._take(int(cover.active[at]))

    def _take(self, pattern: int) -> None:
        """Give the weights of a pattern that are left to a member, if enough capacity remains."""
        row = self.held[pattern]
        taken = np.minimum(row.data, self.left[row.indices])
        load = int(taken @ self.sizes[row.indices])
        if load and self.members and self.capacity - load <= self.free:
            self.left[row.indices] -= taken
            self.free -= self.capacity - load
            self.members -= 1
            self.packing.append(np.repeat(self.sizes[row.indices], taken).tolist())

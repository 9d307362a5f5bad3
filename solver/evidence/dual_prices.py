"""Dual values of the linear relaxation of an assignment problem, computed by HiGHS."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kassay.solver.certificate.relaxed_problem import CostRow, Relaxation

_TANGENTS = 60
# Floats represent loads exactly below this number.
_MAX_LOAD = 2**50


@dataclass(frozen=True, slots=True)
class DualPrices:
    """Dual values of the blocks of partitions, of the limit on moves and of the level limits."""

    blocks: tuple[float, ...]
    max_moves: float
    levels: tuple[float, ...]


@dataclass
class _Rows:
    """Rows of a sparse constraint matrix: entries (row, column, value) and right-hand sides."""

    entries: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]] = field(
        default_factory=list
    )
    sides: list[float] = field(default_factory=list)

    def add(self, columns: Sequence[int], values: Sequence[float], side: float) -> int:
        """Append a row to the matrix, and return its row number."""
        row = len(self.sides)
        place = np.asarray(columns, dtype=np.int64)
        self.entries.append((np.full(len(place), row), place, np.asarray(values, dtype=np.float64)))
        self.sides.append(side)
        return row


class _Program:
    """Linear program that assigns blocks, which are sets of partitions, to members.

    It minimises the last level or, if no level is minimised, the excess over the limits.
    """

    def __init__(self, relaxation: Relaxation) -> None:
        self.relaxation = relaxation
        self.block, self.member = np.nonzero(relaxation.allowed)
        self.weight = np.array(relaxation.weights, dtype=np.float64)[self.block]
        self.count = np.array([len(block) for block in relaxation.blocks])[self.block]
        members = relaxation.allowed.shape[1]
        self.square = len(self.block) + np.arange(members)  # squared load per member
        self.excess = len(self.block) + members
        self.rows = _Rows()
        self.cost = np.zeros(self.excess + 1)
        last = len(relaxation.levels) - 1
        self.target = last if last >= 0 and self._is_linear(last) else None
        self._set_cost()

    def _is_linear(self, level: int) -> bool:
        relaxation = self.relaxation
        return relaxation.levels[level] is not None or relaxation.max_squares[level] is not None

    def _set_cost(self) -> None:
        if self.target is None:
            self.cost[self.excess] = 1
        elif (row := self.relaxation.levels[self.target]) is not None:
            self.cost[: len(self.block)] = self._costs(row)
        else:
            self.cost[self.square] = 1

    def _costs(self, row: CostRow) -> NDArray[np.float64]:
        return row.costs[self.block, self.member].astype(np.float64)

    def _limit(self, columns: Sequence[int], values: Sequence[float], side: float) -> int:
        """Add a row that limits a weighted sum of columns, and return the number of the row."""
        if self.target is None:
            return self.rows.add([*columns, self.excess], [*values, -1.0], side)
        return self.rows.add(columns, values, side)

    def _limit_members(self) -> None:
        relaxation = self.relaxation
        for member in range(relaxation.allowed.shape[1]):
            columns = np.flatnonzero(self.member == member)
            for sizes, most in (
                (self.weight, relaxation.max_loads[member]),
                (self.count, relaxation.max_counts[member]),
            ):
                if float(sizes[columns].sum()) > most:
                    self._limit(columns.tolist(), sizes[columns].tolist(), most)

    def _add_tangents(self) -> None:
        """Add rows that bound squared loads from below by tangents around the mean load.

        The tangents are at integer loads.
        """
        relaxation = self.relaxation
        members = relaxation.allowed.shape[1]
        mean = int(sum(relaxation.weights)) // max(members, 1)
        first = max(mean - _TANGENTS // 2, 0)
        for member in range(members):
            columns = np.flatnonzero(self.member == member).tolist()
            for load in range(first, first + _TANGENTS):
                slopes = ((2 * load + 1) * self.weight[columns]).tolist()
                self.rows.add([*columns, self.square[member]], [*slopes, -1.0], load * (load + 1))

    def solve(self) -> DualPrices | None:
        """Solve the linear program. Return None if HiGHS finds no optimum."""
        from scipy import sparse  # noqa: PLC0415
        from scipy.optimize import linprog  # noqa: PLC0415

        relaxation = self.relaxation
        self._limit_members()
        if any(most is not None for most in relaxation.max_squares):
            self._add_tangents()
        variables = range(len(self.block))
        moves = None
        if (row := relaxation.max_moves) is not None:
            moves = self._limit(variables, self._costs(row).tolist(), row.limit)
        levels: dict[int, int] = {}
        for index, (linear, most) in enumerate(
            zip(relaxation.levels, relaxation.max_squares, strict=True)
        ):
            if index == self.target:
                continue
            if linear is not None:
                levels[index] = self._limit(variables, self._costs(linear).tolist(), linear.limit)
            elif most is not None:
                levels[index] = self._limit(self.square.tolist(), [1.0] * len(self.square), most)
        width = self.excess + 1
        equal = sparse.csr_matrix(
            (np.ones(len(self.block)), (self.block, np.arange(len(self.block)))),
            (len(relaxation.blocks), width),
        )
        rows, columns, values = (
            (np.concatenate(parts) for parts in zip(*self.rows.entries, strict=True))
            if self.rows.entries
            else (np.zeros(0, int), np.zeros(0, int), np.zeros(0))
        )
        result = linprog(
            self.cost,
            A_ub=sparse.csr_matrix((values, (rows, columns)), (len(self.rows.sides), width)),
            b_ub=self.rows.sides,
            A_eq=equal,
            b_eq=np.ones(len(relaxation.blocks)),
            method="highs",
        )
        if result.status != 0:
            return None
        slopes = -np.asarray(result.ineqlin.marginals)
        of_level = {index: float(slopes[row]) for index, row in levels.items()}
        if self.target is not None:
            of_level[self.target] = 1.0
        return DualPrices(
            blocks=tuple(np.asarray(result.eqlin.marginals).tolist()),
            max_moves=0.0 if moves is None else float(slopes[moves]),
            levels=tuple(of_level.get(index, 0.0) for index in range(len(relaxation.levels))),
        )


def solve_dual(relaxation: Relaxation) -> DualPrices | None:
    """Return dual values of the linear relaxation, or None if HiGHS cannot compute them.

    The last level is minimised within the other limits if it is linear or a sum of squares;
    otherwise the greatest excess over a limit.
    """
    if not relaxation.blocks or sum(relaxation.weights) >= _MAX_LOAD:
        return None
    return _Program(relaxation).solve()

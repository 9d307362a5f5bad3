"""Dual values of the linear relaxation of an assignment problem, computed by HiGHS."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kassay.solver.certificate.refutation_problem import CostRow, Relaxation
from kassay.solver.number_ranges import Arithmetic

_TANGENTS = 60


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

    def matrix(self, width: int) -> object:
        """Return all rows as a sparse matrix with a number of columns."""
        from scipy import sparse  # noqa: PLC0415

        empty = (np.zeros(0, int), np.zeros(0, int), np.zeros(0))
        parts = zip(empty, *self.entries, strict=True)
        rows, columns, values = (np.concatenate(part) for part in parts)
        return sparse.csr_matrix((values, (rows, columns)), (len(self.sides), width))


class _Program:
    """Linear program that assigns blocks, which are sets of partitions, to members.

    It minimises the last level or, if no level is minimised, the excess over the limits. The
    columns are the shares of the blocks, one per block and member that may have it, then the
    squared load of each member, then the excess.
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
        # The minimised level; None if the excess is minimised.
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
        relaxation = self.relaxation
        self._limit_members()
        if any(most is not None for most in relaxation.max_squares):
            self._add_tangents()
        moves = relaxation.max_moves
        moves_row = None if moves is None else self._limit_costs(moves)
        level_rows = self._limit_levels()
        duals = self._duals()
        if duals is None:
            return None
        of_blocks, of_rows = duals
        of_levels = {level: float(of_rows[row]) for level, row in level_rows.items()}
        if self.target is not None:
            of_levels[self.target] = 1.0  # the level is the objective itself
        return DualPrices(
            blocks=tuple(of_blocks.tolist()),
            max_moves=0.0 if moves_row is None else float(of_rows[moves_row]),
            levels=tuple(of_levels.get(level, 0.0) for level in range(len(relaxation.levels))),
        )

    def _limit_costs(self, row: CostRow) -> int:
        """Add a row that limits the cost of the placed blocks, and return its number."""
        return self._limit(range(len(self.block)), self._costs(row).tolist(), row.limit)

    def _limit_levels(self) -> dict[int, int]:
        """Add a row per level with a limit, except the minimised one; return rows by level."""
        rows = {}
        limits = zip(self.relaxation.levels, self.relaxation.max_squares, strict=True)
        for level, (linear, most) in enumerate(limits):
            if level == self.target:
                continue
            if linear is not None:
                rows[level] = self._limit_costs(linear)
            elif most is not None:
                rows[level] = self._limit(self.square.tolist(), [1.0] * len(self.square), most)
        return rows

    def _duals(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Return the dual values of the blocks and of the rows, or None without an optimum.

        Each block is placed exactly once. HiGHS returns by how much the minimum grows if a right
        side grows by 1. That is at most 0 for the rows, so their prices have the other sign.
        """
        from scipy import sparse  # noqa: PLC0415
        from scipy.optimize import linprog  # noqa: PLC0415

        width = self.excess + 1
        columns = np.arange(len(self.block))
        places = (np.ones(len(self.block)), (self.block, columns))
        result = linprog(
            self.cost,
            A_ub=self.rows.matrix(width),
            b_ub=self.rows.sides,
            A_eq=sparse.csr_matrix(places, (len(self.relaxation.blocks), width)),
            b_eq=np.ones(len(self.relaxation.blocks)),
            method="highs",
        )
        if result.status != 0:
            return None
        return np.asarray(result.eqlin.marginals), -np.asarray(result.ineqlin.marginals)


def solve_dual(relaxation: Relaxation) -> DualPrices | None:
    """Return dual values of the linear relaxation, or None if HiGHS cannot compute them.

    The last level is minimised within the other limits if it is linear or a sum of squares;
    otherwise the greatest excess over a limit.
    """
    if not relaxation.blocks or not Arithmetic.FLOAT_SOLVER.represents(sum(relaxation.weights)):
        return None
    return _Program(relaxation).solve()

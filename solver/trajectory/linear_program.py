"""Linear program of the moves in a window of rebalances. All coefficients are integers.

A variable per class of partitions, rebalance and permitted member counts the partitions that the
member receives. A second variable counts the partitions that leave the member before the next
rebalance, although it may keep them. The loads of the members connect the classes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from kassay.solver.certificate.rebalance_sequence import Stream
from kassay.solver.certificate.trajectory_certificate import TrajectoryObjective
from kassay.solver.problem import Ints

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Window:
    """Consecutive rebalances, with the counts before them and after them.

    Parameters
    ----------
    before
        Partitions per class and member, directly before the first rebalance.
    after
        The same at the rebalance ``end``; None if the partitions may be anywhere.
    """

    first: int
    end: int
    before: Ints
    after: Ints | None = None


@dataclass(frozen=True, slots=True)
class LinearProgram:
    """Minimise ``cost @ x`` for ``lower <= x <= upper`` and rows with limits.

    Parameters
    ----------
    equations
        Number of rows that are equations; they come first. The others have an upper limit.
    nodes
        Per rebalance, a table of classes and members with the variable of the count, or -1.
    load_rows
        Per rebalance, the row of the load of each member, or -1.
    move_rows
        Per rebalance, the row that limits its moves by the largest number of moves.
    constant
        Total of moves that each solution has, which the costs do not contain.
    """

    cost: Floats
    lower: Floats
    upper: Floats
    matrix: sparse.csr_matrix
    limit: Floats
    equations: int
    nodes: tuple[Ints, ...]
    load_rows: tuple[Ints, ...]
    move_rows: Ints
    constant: int

    @property
    def counts(self) -> int:
        """Number of variables that count partitions; they come first."""
        return sum(int((table >= 0).sum()) for table in self.nodes)

    def read(self, values: Floats) -> list[Ints]:
        """Return the counts per class and member of each rebalance, from the variables."""
        return [
            np.where(table >= 0, np.rint(values[table]), 0).astype(np.int64) for table in self.nodes
        ]

    def fractions(self, values: Floats) -> list[Floats]:
        """Return the counts per class and member of each rebalance, without rounding."""
        return [np.where(table >= 0, values[table], 0) for table in self.nodes]


class _Builder:
    """Entries of a linear program under construction."""

    def __init__(self) -> None:
        self.lower: list[Floats] = []
        self.upper: list[Floats] = []
        self.variables = 0
        # Rows, columns and values of equations and of inequalities, and their right-hand sides.
        self.entries: tuple[list[tuple[Ints, Ints, Floats]], ...] = ([], [])
        self.limits: tuple[list[Floats], ...] = ([], [])
        self.rows = [0, 0]
        self.moves: list[tuple[int, Ints, int]] = []  # rebalance, variables and constant

    def add_variables(self, lower: Floats, upper: Floats) -> Ints:
        self.lower.append(lower)
        self.upper.append(upper)
        first, self.variables = self.variables, self.variables + len(lower)
        return np.arange(first, self.variables)

    def add_rows(self, kind: int, limits: Floats) -> Ints:
        self.limits[kind].append(limits)
        first, self.rows[kind] = self.rows[kind], self.rows[kind] + len(limits)
        return np.arange(first, self.rows[kind])

    def add_entries(self, kind: int, rows: Ints, columns: Ints, value: float | Ints) -> None:
        values = np.broadcast_to(np.asarray(value, dtype=np.float64), len(rows))
        self.entries[kind].append((rows, columns, values))

    def add_moves(self, rebalance: int, columns: Ints, constant: int = 0) -> None:
        """Count the sum of variables and a constant as moves of a rebalance."""
        self.moves.append((rebalance, columns, constant))

    def add_objective(self, objective: TrajectoryObjective) -> tuple[Floats, Ints]:
        """Return the costs of the variables, and the rows that limit the moves per rebalance."""
        columns = np.concatenate([np.zeros(0, dtype=np.int64), *(one[1] for one in self.moves)])
        if objective is TrajectoryObjective.TOTAL:
            return np.bincount(columns, minlength=self.variables).astype(np.float64), columns[:0]
        rebalances = sorted({at for at, _, _ in self.moves})
        constants = [-sum(more for one, _, more in self.moves if one == at) for at in rebalances]
        rows = self.add_rows(1, np.array(constants, dtype=np.float64))
        for at, variables, _ in self.moves:
            self.add_entries(1, np.full(len(variables), rows[rebalances.index(at)]), variables, 1.0)
        largest = self.add_variables(np.zeros(1), np.full(1, np.inf))
        self.add_entries(1, rows, np.repeat(largest, len(rows)), -1.0)
        return (np.arange(self.variables) == largest).astype(np.float64), rows


def build_program(
    stream: Stream, window: Window, objective: TrajectoryObjective = TrajectoryObjective.TOTAL
) -> LinearProgram:
    """Build the linear program of a window."""
    builder = _Builder()
    rebalances = range(window.first, window.end)
    nodes = tuple(_add_counts(builder, stream, at) for at in rebalances)
    before: Ints | None = None
    for table, at in zip(nodes, rebalances, strict=True):
        if before is None:
            _add_departures_from(builder, stream, at, counts=window.before, table=table)
        else:
            _add_departures(builder, stream, at, before, table)
        before = table
    load_rows = tuple(
        _add_loads(builder, stream, at, table) for table, at in zip(nodes, rebalances, strict=True)
    )
    last = nodes[-1]
    if window.after is not None:
        _add_departures_to(builder, stream, window.end, last, window.after)
    cost, move_rows = builder.add_objective(objective)
    parts = [part for entries in builder.entries for part in entries]
    shift = [0] * len(builder.entries[0]) + [builder.rows[0]] * len(builder.entries[1])
    rows = [part[0] + more for part, more in zip(parts, shift, strict=True)]
    columns, values = ([part[index] for part in parts] for index in (1, 2))
    matrix = sparse.csr_matrix(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))),
        shape=(sum(builder.rows), builder.variables),
    )
    return LinearProgram(
        cost=cost,
        lower=np.concatenate(builder.lower),
        upper=np.concatenate(builder.upper),
        matrix=matrix,
        limit=np.concatenate([np.zeros(0), *builder.limits[0], *builder.limits[1]]),
        equations=builder.rows[0],
        nodes=nodes,
        load_rows=load_rows,
        move_rows=move_rows + builder.rows[0],
        constant=0 if len(move_rows) else sum(more for _, _, more in builder.moves),
    )


def _add_counts(builder: _Builder, stream: Stream, at: int) -> Ints:
    """Add the counts of one rebalance, which add up to the partitions of each class."""
    permitted = stream.permitted(at)
    classes, _ = np.nonzero(permitted)
    upper = stream.count[classes].astype(np.float64)
    table = np.full(permitted.shape, -1, dtype=np.int64)
    table[permitted] = builder.add_variables(np.zeros(len(classes)), upper)
    used = np.unique(classes)
    row_of_class = np.zeros(len(permitted), dtype=np.int64)
    row_of_class[used] = builder.add_rows(0, stream.count[used].astype(np.float64))
    builder.add_entries(0, row_of_class[classes], table[permitted], 1.0)
    return table


def _add_loads(builder: _Builder, stream: Stream, at: int, table: Ints) -> Ints:
    """Add the limits of the loads of one rebalance."""
    row_of_member = np.full(table.shape[1], -1, dtype=np.int64)
    for one in stream.rebalances[at].ranges:
        rows = builder.add_rows(0, np.zeros(len(one.members)))
        loads = builder.add_variables(one.low.astype(np.float64), one.high.astype(np.float64))
        builder.add_entries(0, rows, loads, -1.0)
        row_of_member[one.members] = rows
    classes, members = np.nonzero(table >= 0)
    weights = stream.weight[classes, at]
    builder.add_entries(0, row_of_member[members], table[table >= 0], weights)
    return row_of_member


def _add_departures(builder: _Builder, stream: Stream, at: int, before: Ints, table: Ints) -> None:
    """Count the partitions that leave members which still subscribe, before a rebalance."""
    stays = (before >= 0) & stream.subscribed(at)
    both = stays & (table >= 0)
    number = int(both.sum())
    departures = builder.add_variables(np.zeros(number), np.full(number, np.inf))
    builder.add_moves(at, np.concatenate([before[stays & (table < 0)], departures]))
    rows = builder.add_rows(1, np.zeros(number))
    for columns, value in ((before[both], 1.0), (table[both], -1.0), (departures, -1.0)):
        builder.add_entries(1, rows, columns, value)


def _add_departures_from(
    builder: _Builder, stream: Stream, at: int, *, counts: Ints, table: Ints
) -> None:
    """Count the partitions that leave their owners at the first rebalance of a window."""
    leaves = counts * (stream.subscribed(at) & (table < 0))
    owned = (counts > 0) & stream.subscribed(at) & (table >= 0)
    number = int(owned.sum())
    departures = builder.add_variables(np.zeros(number), np.full(number, np.inf))
    builder.add_moves(at, departures, int(leaves.sum()))
    rows = builder.add_rows(1, -counts[owned].astype(np.float64))
    builder.add_entries(1, rows, table[owned], -1.0)
    builder.add_entries(1, rows, departures, -1.0)


def _add_departures_to(builder: _Builder, stream: Stream, at: int, last: Ints, after: Ints) -> None:
    """Count the partitions that leave their owners after the last rebalance of a window."""
    stays = (last >= 0) & stream.subscribed(at)
    some = stays & (after > 0)
    number = int(some.sum())
    departures = builder.add_variables(np.zeros(number), np.full(number, np.inf))
    builder.add_moves(at, np.concatenate([last[stays & (after == 0)], departures]))
    rows = builder.add_rows(1, after[some].astype(np.float64))
    builder.add_entries(1, rows, last[some], 1.0)
    builder.add_entries(1, rows, departures, -1.0)


def total_moves(stream: Stream, counts: Sequence[Ints]) -> list[int]:
    """Return the moves of each rebalance for given counts per class and member."""
    before, moves = stream.start, []
    for at, table in enumerate(counts):
        left = np.maximum(before - table, 0)
        moves.append(int(left[stream.subscribed(at)].sum()))
        before = table
    return moves

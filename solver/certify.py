"""Create certificates of solutions and assignments."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.group_remarks import require_group
from kassay.solver.bounds.counting import level_bound
from kassay.solver.certificate.certificate import (
    Certificate,
    Conflict,
    LevelClaim,
    Origin,
    improves,
    level_limits,
    value_of,
)
from kassay.solver.certificate.refutation import (
    CostRow,
    Limit,
    PartitionPrices,
    Relaxation,
    build_relaxation,
    cases_refute,
    relaxation_refuted,
)
from kassay.solver.constraints import Constraint, check_constraints, group_constraints
from kassay.solver.evaluation import check_levels, violated
from kassay.solver.network.improving_chains import improving_chain
from kassay.solver.network.level_network import check_arc_costs, placement_prices, priced_levels
from kassay.solver.number_ranges import Arithmetic
from kassay.solver.objective import Level, requested_levels
from kassay.solver.problem import Placement, Problem, build_problem
from kassay.solver.solution import Solution


def certify(
    group: Group,
    answer: Solution | Assignment,
    *,
    levels: Iterable[Level | str] | str | None = None,
    constraints: Iterable[Constraint] = (),
) -> Certificate:
    """Return a certificate of a solution or an assignment, for checking without a solver.

    For equal weights, prices prove an optimal assignment, and a chain improves any other.
    Otherwise the bounds are those of the solution, with partition prices as evidence where
    they are found, or bounds that need no search.

    Parameters
    ----------
    levels, constraints
        Levels on which an assignment is certified, or their names, by default `default_levels`, and
        constraints besides the capacities of the group. A solution has its own.

    Raises
    ------
    UsageError
        If there is neither an assignment nor a conflict, or the assignment is not valid or
        violates a constraint.
    InputError
        If a constraint refers to a member, topic or partition that the group does not have.

    Examples
    --------
    >>> from kassay.reference.model.group import Member, Topic
    >>> from kassay.solver.certificate.check import certificate_errors
    >>> group = Group(
    ...     topics=(Topic(name="t", partitions=2),),
    ...     members=(Member(id="a", subscription=("t",)), Member(id="b", subscription=("t",))),
    ... )
    >>> even = Assignment({"a": [("t", 0)], "b": [("t", 1)]})
    >>> certificate = certify(group, even)
    >>> certificate.node_prices, list(certificate_errors(group, even, certificate))
    ((15, 15, 15, 0), [])
    >>> uneven = certify(group, Assignment({"a": [("t", 0), ("t", 1)]}))
    >>> uneven.is_optimal, [str(transfer) for transfer in uneven.chain]
    (False, ['a gives t-0 to b'])
    """
    require_group(group)
    solution = answer if isinstance(answer, Solution) else None
    stated = solution.certificate if solution else None
    if stated is not None and stated.conflict is not None:
        return _proven_conflict(group, stated, stated.conflict)
    assignment = solution.assignment if solution else answer
    if not isinstance(assignment, Assignment):
        raise UsageError("the solution has no assignment and no conflict to certify")
    problem = build_problem(group)
    placement = problem.valid_placement(assignment)
    stated = stated or _counted_certificate(group, assignment, levels, tuple(constraints))
    rules = (*group_constraints(group), *stated.constraints)
    for rule in violated(problem, rules, placement):
        raise UsageError(f"the assignment violates a constraint: {rule}")
    return _with_proof(problem, assignment, placement, stated)


def _with_proof(
    problem: Problem, assignment: Assignment, placement: Placement, stated: Certificate
) -> Certificate:
    """Add evidence to a certificate: node prices, an improving chain or partition prices."""
    group = problem.group
    if stated.node_prices:
        return stated
    levels = [claim.level for claim in stated.claims]
    if priced_levels(group, levels) is None:
        return _with_evidence(group, assignment, stated)
    prices = placement_prices(problem, levels, placement)
    if prices is None and group.has_copies:
        return _with_evidence(group, assignment, stated)
    if prices is None:
        chain = improving_chain(group, assignment)
        improved = chain if improves(group, assignment, stated, chain) else ()
        return replace(_with_evidence(group, assignment, stated), chain=improved)
    claims = tuple(
        replace(claim, bound=claim.value, origin=Origin.NODE_PRICES) for claim in stated.claims
    )
    return replace(stated, claims=claims, node_prices=prices)


def _counted_certificate(
    group: Group,
    assignment: Assignment,
    levels: Iterable[Level | str] | str | None,
    constraints: tuple[Constraint, ...],
) -> Certificate:
    """Return a certificate of an assignment with bounds that need no search."""
    check_constraints(group, constraints)
    levels = requested_levels(group, levels)
    check_levels(group, levels)
    check_arc_costs(group, levels, (*group_constraints(group), *constraints))
    problem = build_problem(group)
    claims: list[LevelClaim] = []
    for level in levels:
        value = value_of(group, assignment, level)
        bound = level_bound(problem, level, level_limits(group, assignment, claims))
        claims.append(LevelClaim(level, value, min(bound, value), Origin.COUNTING))
    return Certificate(tuple(claims), constraints=constraints)


def _with_evidence(group: Group, assignment: Assignment, stated: Certificate) -> Certificate:
    """Search for evidence for the unchecked bounds of a certificate; add it if found."""
    if not stated.trusted:
        return stated
    problem = build_problem(group)
    rules = (*group_constraints(group), *stated.constraints)
    limits = level_limits(group, assignment, stated.claims)
    claims = []
    for index, claim in enumerate(stated.claims):
        if claim.origin.is_checked:
            claims.append(claim)
        elif level_bound(problem, claim.level, limits[:index]) >= claim.bound:
            claims.append(replace(claim, origin=Origin.COUNTING))
        else:
            below = (*limits[:index], (claim.level, claim.bound - 1))
            found = _evidence(problem, rules, below)
            origin, prices = found or (claim.origin, None)
            claims.append(replace(claim, origin=origin, prices=prices))
    return replace(stated, claims=tuple(claims))


def _proven_conflict(group: Group, stated: Certificate, conflict: Conflict) -> Certificate:
    """Search for evidence for a conflict of constraints; add it to the certificate if found."""
    if conflict.origin.is_checked:
        return stated
    found = _evidence(build_problem(group), conflict.constraints, ())
    origin, prices = found or (conflict.origin, None)
    return replace(stated, conflict=replace(conflict, origin=origin, prices=prices))


def _evidence(
    problem: Problem, rules: Sequence[Constraint], limits: Sequence[tuple[Level, int]]
) -> tuple[Origin, PartitionPrices | None] | None:
    """Search for a proof that no assignment meets constraints and limits.

    Return the origin of the proof and its partition prices, or None if no proof is found.
    """
    prices = find_prices(problem, rules, limits)
    if prices is not None:
        return Origin.PARTITION_PRICES, prices
    return (Origin.CASES, None) if cases_refute(problem, rules, limits) else None


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


_MAX_CELLS = 300_000
# Dual values are rounded to multiples of 1 / denominator, for each of these denominators.
_DENOMINATORS = (1, 2, 3, 4, 6, 10, 12, 60, 840, 10_000)
_MAX_THRESHOLDS = 60


def find_prices(
    problem: Problem, rules: Sequence[Constraint], limits: Sequence[Limit]
) -> PartitionPrices | None:
    """Find partition prices that prove that no assignment meets constraints and limits.

    Return None if no such prices are found. The candidates are cuts, dual feasible functions of
    the weights, and duals of the linear relaxation. The checker of certificates decides whether
    they are sufficient.
    """
    if problem.partition_count * problem.member_count > _MAX_CELLS:
        return None
    relaxation = build_relaxation(problem, rules, limits)
    for prices in _candidates(problem, relaxation):
        if relaxation_refuted(problem, relaxation, prices):
            return prices
    return None


def _candidates(problem: Problem, relaxation: Relaxation) -> Iterator[PartitionPrices]:
    yield PartitionPrices()
    for block_prices in (*_cuts(relaxation), *_threshold_prices(relaxation)):
        yield _partition_prices(problem, relaxation, block_prices)
    dual = solve_dual(relaxation)
    if dual is not None:
        for denominator in _DENOMINATORS:
            yield _rounded(problem, relaxation, dual, denominator)


def _cuts(relaxation: Relaxation) -> Iterator[list[int]]:
    """Yield prices of the blocks that only a set of members may have, for several sets.

    The prices are the weights of these blocks, or their numbers of partitions. Other blocks have
    the price 0.
    """
    sets = dict.fromkeys(frozenset(np.flatnonzero(row).tolist()) for row in relaxation.allowed)
    sets[frozenset(range(relaxation.allowed.shape[1]))] = None
    for members in sets:
        outside = [member not in members for member in range(relaxation.allowed.shape[1])]
        inside = [not any(row) for row in relaxation.allowed[:, outside].tolist()]
        counts = [len(block) for block in relaxation.blocks]
        for sizes in (relaxation.weights, counts):
            yield [size if is_inside else 0 for size, is_inside in zip(sizes, inside, strict=True)]


def _threshold_prices(relaxation: Relaxation) -> Iterator[list[int]]:
    """Yield block prices that are dual feasible functions of the weights.

    The functions use the most common maximum load. With a threshold t, blocks heavier than the
    maximum load minus t have the price 2, other blocks of at least t the price 1 (Martello and
    Toth, 1990). With a divisor k, the price is the number of whole k-ths of the maximum load in
    the weight (Fekete and Schepers, 2001).
    """
    if not relaxation.max_loads:
        return
    loads, numbers = np.unique(np.array(relaxation.max_loads, dtype=object), return_counts=True)
    most = int(loads[int(np.argmax(numbers))])
    distinct = sorted({weight for weight in relaxation.weights if 2 * weight <= most})
    step = len(distinct) // _MAX_THRESHOLDS + 1
    for threshold in distinct[::step]:
        yield [
            2 if weight > most - threshold else int(weight >= threshold)
            for weight in relaxation.weights
        ]
    for divisor in range(2, 21):
        yield [weight * divisor // (most + 1) for weight in relaxation.weights]


def _rounded(
    problem: Problem, relaxation: Relaxation, dual: DualPrices, denominator: int
) -> PartitionPrices:
    """Round dual values to integer prices, in units of 1 / ``denominator``."""
    prices = [round(price * denominator) for price in dual.blocks]
    return _partition_prices(
        problem,
        relaxation,
        prices,
        max_moves=max(round(dual.max_moves * denominator), 0),
        levels=tuple(max(round(value * denominator), 0) for value in dual.levels),
    )


def _partition_prices(
    problem: Problem,
    relaxation: Relaxation,
    block_prices: Sequence[int],
    *,
    max_moves: int = 0,
    levels: tuple[int, ...] = (),
) -> PartitionPrices:
    """Give the price of each block to its first partition, and 0 to its other partitions."""
    price = [0] * problem.partition_count
    for block, value in zip(relaxation.blocks, block_prices, strict=True):
        price[block[0]] = int(value)
    table: dict[str, list[int]] = {}
    for at, topic in enumerate(problem.topic.tolist()):
        table.setdefault(problem.group.topics[topic].name, []).append(price[at])
    return PartitionPrices(
        {name: tuple(values) for name, values in table.items() if any(values)}, max_moves, levels
    )

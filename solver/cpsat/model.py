"""CP-SAT model that counts the partitions per symmetry class and member.

The ranges of its numbers are computed from the coefficients before the model is built.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import chain
from math import isqrt
from typing import assert_never

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from kassay.reference.model.assignment import NO_OWNER
from kassay.reference.model.errors import InternalError
from kassay.reference.model.load_metrics import LoadUnits, Measure
from kassay.reference.model.topic_partitions import Column
from kassay.solver import constraints, evaluation, objective
from kassay.solver.limits import SearchBudget, call_until_stopped
from kassay.solver.objective import HostImbalance, Imbalance, Level, TopicSpread
from kassay.solver.problem import (
    Arithmetic,
    Ints,
    Placement,
    Problem,
    Weights,
    WeightScale,
    scale_to_fit,
)

MAX_CHORDS = 48
"""Range up to which a square is bounded by chords, which strengthen the linear relaxation.

Beyond it, the square is bounded by CP-SAT's product constraint.
"""
_FACTOR_BITS = 20
"""Minimum precision of the factors from loads to relative loads in a model of the makespan."""
_WITH_DIFFERENCES = (Measure.LEXIMAX, Measure.DEVIATION, Measure.BALANCE_SCORE, Measure.SPREAD)
"""Measures whose models have variables for differences of loads."""


@dataclass(frozen=True, slots=True)
class SquarePart:
    """Term of a sum of squares: ``factor * (load - centre)**2 + slope * load``."""

    factor: int
    centre: int
    slope: int
    lowest: int  # of load - centre
    highest: int


@dataclass(frozen=True, slots=True)
class SquareRange:
    """Sum of squared loads: one `SquarePart` per member or host, plus ``offset``."""

    parts: tuple[SquarePart, ...]
    offset: int


def square_range(units: LoadUnits, total: int, worst: int) -> SquareRange:
    """Split the sum of squared loads into terms with small coefficients.

    The centres are the shares of the total load in proportion to the speeds.
    """
    speed = sum(units.speeds)
    centres = [total * own // speed for own in units.speeds]
    pairs = list(zip(units.factors, centres, strict=True))
    offset = -sum(factor * centre**2 for factor, centre in pairs)
    slopes = [2 * factor * centre for factor, centre in pairs]
    # No loads have less than the sum of squares of loads in proportion to the speeds.
    least, rounding = units.factors[0] * units.speeds[0] * total**2 // speed, 2
    if units.has_equal_speeds:
        # All units have one centre: the linear part is constant.
        offset += slopes[0] * total
        slopes, least, rounding = [0] * len(pairs), offset, 0
    allowed = max(worst - least, 0)
    parts = []
    for (factor, centre), slope in zip(pairs, slopes, strict=True):
        reach = isqrt(allowed // factor + rounding) + rounding
        lowest, highest = max(-reach, -centre), min(reach, total - centre)
        parts.append(SquarePart(factor, centre, slope, lowest, highest))
    return SquareRange(tuple(parts), offset)


@dataclass(frozen=True, slots=True)
class RelativeFactors:
    """Factors that convert loads to relative loads, rounded down if they are too large.

    Many different speeds have a large common multiple.
    """

    factors: tuple[int, ...]
    unit: int

    @classmethod
    def of(cls, units: LoadUnits, total: int | None) -> "RelativeFactors":
        """Create factors that convert loads of members or hosts to relative loads."""
        if total is None:
            return cls(units.factors, 1)
        bits = max(_FACTOR_BITS, Arithmetic.CP_SAT.value.bit_length() - total.bit_length() - 3)
        unit = 2 ** max(max(units.factors).bit_length() - bits, 0)
        return cls(tuple(factor // unit for factor in units.factors), unit)


def load_scale(problem: Problem, levels: Iterable[tuple[Level, int]] = ()) -> WeightScale:
    """Return the scale with which CP-SAT can represent all loads."""
    measured = [
        (level, evaluation.load_units(problem, level), worst)
        for level, worst in levels
        if isinstance(level, Imbalance | HostImbalance)
    ]
    members = problem.member_count
    windows = problem.window_count

    def fits(unit: int) -> bool:
        total = problem.greatest_total // unit
        # The loads of members and hosts, and their sum.
        activity, domains = (members + 1) * total, (2 * members + 1) * total * windows
        difference = 0
        for level, units, worst in measured:
            if units.names:
                numbers = _magnitudes(level.measure, units, total, worst // unit**2)
                activity, domains = max(activity, numbers[0]), domains + numbers[1]
                if level.measure in _WITH_DIFFERENCES:
                    difference = max(difference, numbers[0])
        return (
            Arithmetic.CP_SAT.represents(activity)
            and Arithmetic.CP_SAT_DIFFERENCE.represents(difference)
            and Arithmetic.CP_SAT_DOMAINS.represents(domains)
        )

    return scale_to_fit(problem.load_table.reshape(-1).tolist(), fits)


def cost_scale(costs: Weights) -> WeightScale:
    """Return the scale with which CP-SAT can represent the total cost of all moves."""
    values = costs.tolist()
    return scale_to_fit(values, lambda unit: Arithmetic.CP_SAT.represents(2 * sum(values) // unit))


def _magnitudes(
    measure: Measure, units: LoadUnits, total: int, worst_squares: int
) -> tuple[int, int]:
    """Return upper bounds on the numbers in the CP-SAT constraints of a measure."""
    count, most = len(units.names), total * max(units.factors)
    match measure:
        case Measure.MAKESPAN:
            most = total * max(RelativeFactors.of(units, total).factors)
            return 2 * most, most
        case Measure.SPREAD:
            return 2 * most, 2 * most
        case Measure.BALANCE_SCORE:
            pairs = count * (count - 1) // 2
            return max(pairs, 3) * most, pairs * most
        case Measure.DEVIATION:
            distance = total * sum(units.speeds)
            return max(count, 3) * distance, count * distance
        case Measure.LEXIMAX:
            return 2 * count * most, count * (count + 1) * most
        case Measure.SUM_OF_SQUARES:
            return _square_magnitudes(square_range(units, total, worst_squares).parts, total)
        case _:
            assert_never(measure)


def _square_magnitudes(parts: Sequence[SquarePart], total: int) -> tuple[int, int]:
    squares = [max(part.lowest**2, part.highest**2) for part in parts]
    reaches = [max(-part.lowest, part.highest) for part in parts]
    terms = sum(
        part.factor * square + part.slope * total
        for part, square in zip(parts, squares, strict=True)
    )
    chords = [
        (2 * reach + 1) * (2 * total + reach)
        for part, reach in zip(parts, reaches, strict=True)
        if part.highest - part.lowest <= MAX_CHORDS
    ]
    return max(terms, *chords, 0), sum(squares) + sum(reaches)


@dataclass(frozen=True, slots=True)
class SymmetryClasses:
    """Classes of partitions that levels and constraints do not distinguish."""

    class_of: Ints  # per partition
    partitions: tuple[Column, ...]  # per class, ascending

    def counts(self, placement: Placement, members: int) -> Ints:
        """Return the number of partitions per class and member in a placement, as a matrix."""
        keys = self.class_of * members + placement
        return np.bincount(keys, minlength=len(self.partitions) * members).reshape(-1, members)

    def to_placement(self, problem: Problem, counts: Ints) -> Placement:
        """Convert numbers of partitions per class and member to a placement."""
        placement = np.full(problem.partition_count, NO_OWNER, dtype=np.int32)
        members = np.arange(problem.member_count, dtype=np.int32)
        for index, partitions in enumerate(self.partitions):
            left = counts[index].copy()
            free = []
            for partition in partitions.tolist():
                owner = problem.owner[partition]
                if owner != NO_OWNER and left[owner] > 0:
                    placement[partition] = owner
                    left[owner] -= 1
                else:
                    free.append(partition)
            placement[free] = np.repeat(members, left)
        return placement


def symmetry_classes(
    problem: Problem, levels: Sequence[objective.Level], rules: Sequence[constraints.Constraint]
) -> SymmetryClasses:
    """Group partitions that are equal in every attribute that levels and constraints use."""
    if not problem.partition_count:
        return SymmetryClasses(np.zeros(0, dtype=np.int64), ())
    columns = [problem.consumer_set, problem.weight_codes]
    if any(
        isinstance(each, objective.Movement | constraints.MaxMoves) for each in (*levels, *rules)
    ):
        columns.append(problem.owner)
    columns += chain.from_iterable(_attributes(problem, level) for level in levels)
    if any(isinstance(constraint, constraints.Forbidden) for constraint in rules):
        columns.append(problem.topic)
    named = chain.from_iterable(_named(problem, constraint) for constraint in rules)
    columns.append(_codes_of_partitions(problem, named))
    columns += [
        _codes_of_partitions(
            problem, chain.from_iterable(evaluation.colocation_blocks(problem, level))
        )
        for level in levels
        if isinstance(level, objective.Colocation)
    ]
    table = np.stack([np.asarray(column).reshape(-1) for column in columns], axis=1)
    class_of = np.unique(table, axis=0, return_inverse=True)[1].reshape(-1)
    order = np.argsort(class_of, kind="stable").astype(np.int32)
    starts = np.flatnonzero(np.diff(class_of[order])) + 1
    return SymmetryClasses(class_of, tuple(np.split(order, starts)))


def _attributes(problem: Problem, level: objective.Level) -> list[NDArray[np.integer]]:
    """Return the attributes of partitions that a level uses, besides owners and colocations."""
    match level:
        case objective.Movement():
            if isinstance(level.cost, objective.MovementCost):
                return []
            costs = evaluation.movement_costs(problem, level)
            return [np.unique(costs, return_inverse=True)[1].reshape(-1)]
        case objective.CrossRack():
            racks = evaluation.RackTable(problem).has_replica
            return [np.unique(racks, axis=0, return_inverse=True)[1]]
        case objective.TopicSpread():
            return [problem.topic]
        case (
            objective.Imbalance()
            | objective.HostImbalance()
            | objective.MembersUsed()
            | objective.Colocation()
        ):
            return []
        case objective.FlowLevel():
            raise objective.only_by_flows(level)
        case _:
            assert_never(level)


def _named(problem: Problem, constraint: constraints.Constraint) -> Sequence[int]:
    match constraint:
        case constraints.Pinned() | constraints.Forbidden():
            if constraint.partition is None:
                return []
            return [*evaluation.topic_partitions(problem, constraint.topic, constraint.partition)]
        case constraints.Colocated():
            return [*chain.from_iterable(evaluation.colocated_partitions(problem, constraint))]
        case constraints.Separated():
            return evaluation.separated_partitions(problem, constraint)
        case constraints.Capacity() | constraints.MaxPartitions() | constraints.MaxMoves():
            return []
        case _:
            assert_never(constraint)


def _codes_of_partitions(problem: Problem, partitions: Iterable[int]) -> Ints:
    codes = np.zeros(problem.partition_count, dtype=np.int64)
    named = list(partitions)
    codes[named] = np.array(named, dtype=np.int64) + 1
    return codes


Expression = cp_model.LinearExpr | int

_MAX_COUNTS = 400_000
"""Maximum number of variables per model. It takes too long to build larger models."""
_WORK_PER_COUNT, _WORK_PER_TERM = 2e-5, 8e-6
"""Work to build and read a model, per variable and per constraint of a level."""
WORK_PER_DETERMINISTIC_TIME = 2.0
"""Work per unit of CP-SAT's deterministic time: its seconds in the models of this solver."""
_WORK_PER_SEARCH = 0.01
"""Work to start CP-SAT. It ends a loop of searches that spend no other work."""
_LARGE_COEFFICIENT = 2**24
"""Coefficient from which the presolve is restricted, far below the coefficients of known errors."""


@dataclass
class AssignmentModel:
    """CP-SAT model of all valid assignments of a problem.

    Weights and loads are in the unit of ``scale``, and rounded down unless ``rounds_up``. The
    model contains all windows, or only ``windows``.
    """

    problem: Problem
    classes: SymmetryClasses
    scale: WeightScale
    rounds_up: bool = False
    windows: Sequence[int] = ()
    cp: cp_model.CpModel = field(default_factory=cp_model.CpModel)
    count: list[dict[int, Expression]] = field(init=False)
    _unit_loads: dict[tuple[str, ...], list[Expression]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        problem = self.problem
        self.windows = self.windows or range(problem.window_count)
        self.count = []
        for index, partitions in enumerate(self.classes.partitions):
            consumers = problem.consumer_sets[problem.consumer_set[partitions[0]]].tolist()
            self.count.append(
                {consumers[0]: len(partitions)}
                if len(consumers) == 1
                else self.new_counts(index, consumers)
            )

    def new_counts(self, index: int, consumers: Sequence[int]) -> dict[int, Expression]:
        """Create the variables of one symmetry class with several consumers."""
        size = len(self.classes.partitions[index])
        counts = [self.cp.new_int_var(0, size, f"n{index}_{at}") for at in consumers]
        if size == 1:
            self.cp.add_exactly_one(counts)
        else:
            self.cp.add(cp_model.LinearExpr.sum(counts) == size)
        return dict(zip(consumers, counts, strict=True))

    @cached_property
    def weight(self) -> list[int]:
        """Return the weight of each partition, divided by the unit of ``scale``."""
        weights = self.problem.weight.tolist()
        return [self.scale.quotient(weight, rounds_up=self.rounds_up) for weight in weights]

    @cached_property
    def total(self) -> int:
        """Return the total load, divided by the unit of ``scale``."""
        return sum(self.weight)

    @cached_property
    def highest(self) -> int:
        """Return the maximum load in a weight window, divided by the unit of ``scale``."""
        if self.problem.profiles is None:
            return self.total
        # Each load of a partition may be rounded up.
        return self.problem.greatest_total // self.scale.unit + self.problem.partition_count

    @cached_property
    def load(self) -> Sequence[Expression]:
        """Create one load variable per member."""
        loads = []
        for member, expression in enumerate(self.load_sums()):
            load = self.cp.new_int_var(0, self.total, f"load{member}")
            self.cp.add(load == expression)
            loads.append(load)
        if loads:
            self.cp.add(cp_model.LinearExpr.sum(loads) == self.total)
        return loads

    def unit_loads(self, units: LoadUnits) -> list[Expression]:
        """Return one load variable per member or host."""
        if len(units.names) == len(self.load):
            return [self.load[units.unit_of.index(unit)] for unit in range(len(units.names))]
        if units.names not in self._unit_loads:
            loads: list[Expression] = []
            self._unit_loads[units.names] = loads
            for unit, name in enumerate(units.names):
                members = [self.load[at] for at, own in enumerate(units.unit_of) if own == unit]
                load = self.cp.new_int_var(0, self.total, f"load of {name}")
                self.cp.add(load == weighted_sum([(member, 1) for member in members]) + self.zero)
                loads.append(load)
        return self._unit_loads[units.names]

    def window_loads(self, units: LoadUnits) -> list[list[Expression]]:
        """Return the load of each member or host in each weight window."""
        if self.problem.profiles is None:
            return [self.unit_loads(units)]
        for window in self.windows:
            key = (str(window), *units.names)
            if key not in self._unit_loads:
                column = self.problem.load_table[:, window].tolist()
                weight = [self.scale.quotient(load, rounds_up=self.rounds_up) for load in column]
                parts: list[list[tuple[Expression, int]]] = [[] for _ in units.names]
                for unit, load in zip(units.unit_of, self._sums(weight.__getitem__), strict=True):
                    parts[unit].append((load, 1))
                self._unit_loads[key] = [weighted_sum(part) + self.zero for part in parts]
        return [self._unit_loads[(str(window), *units.names)] for window in self.windows]

    @cached_property
    def zero(self) -> cp_model.IntVar:
        """Return the constant 0 as a CP-SAT expression."""
        return self.cp.new_constant(0)

    @cached_property
    def partitions(self) -> list[Expression]:
        """Return one CP-SAT expression per member that counts its partitions."""
        return self._sums(lambda _: 1)

    def load_sums(self) -> list[Expression]:
        """Return one CP-SAT expression per member that computes its load."""
        return self._sums(lambda partition: self.weight[partition])

    def _sums(self, weight: Callable[[int], int]) -> list[Expression]:
        """Return one expression per member that adds up the weights of its partitions."""
        terms: list[list[tuple[Expression, int]]] = [[] for _ in range(self.problem.member_count)]
        for partitions, counts in zip(self.classes.partitions, self.count, strict=True):
            factor = weight(partitions[0])
            for member, count in counts.items():
                if factor:
                    terms[member].append((count, factor))
        return [weighted_sum(parts) for parts in terms]

    def moves(self, costs: Ints) -> Expression:
        """Return a CP-SAT expression for the total cost of the moves."""
        terms: list[tuple[Expression, int]] = []
        for partitions, counts in zip(self.classes.partitions, self.count, strict=True):
            owner, cost = int(self.problem.owner[partitions[0]]), int(costs[partitions[0]])
            if owner != NO_OWNER and cost:
                terms.extend((count, cost) for member, count in counts.items() if member != owner)
        return weighted_sum(terms)

    def hint(self, placement: Placement) -> None:
        """Give a placement to CP-SAT as a warm start."""
        self.cp.clear_hints()
        values = self.classes.counts(placement, self.problem.member_count)
        for index, counts in enumerate(self.count):
            for member, count in counts.items():
                if isinstance(count, cp_model.IntVar):
                    self.cp.add_hint(count, int(values[index, member]))
        if "load" in self.__dict__:
            loads = np.zeros(self.problem.member_count, dtype=np.int64)
            np.add.at(loads, placement, np.array(self.weight, dtype=np.int64))
            # An expression for no load can be the constant 0, the same variable for all members.
            for load, value in zip(self.load, loads.tolist(), strict=True):
                if isinstance(load, cp_model.IntVar) and load.index != self.zero.index:
                    self.cp.add_hint(load, value)

    def read(self, solver: cp_model.CpSolver) -> Placement:
        """Convert a solution of the CP-SAT search to a placement."""
        values = np.zeros((len(self.count), self.problem.member_count), dtype=np.int64)
        for index, counts in enumerate(self.count):
            for member, count in counts.items():
                values[index, member] = solver.value(count)
        return self.classes.to_placement(self.problem, values)

    def add_limit(self, expression: Expression, most: int) -> None:
        """Limit an expression to a maximum, unless CP-SAT cannot represent the maximum."""
        if most < 0:
            self.cp.add_bool_or([])
        elif Arithmetic.CP_SAT.represents(most):
            self.cp.add(expression + self.zero <= most)


def is_small_enough(
    problem: Problem, classes: SymmetryClasses, levels: Iterable[Level], budget: SearchBudget
) -> bool:
    """Return whether the budget permits building a model, and if so, spend the work."""
    sizes = [len(consumers) for consumers in problem.consumer_sets]
    counts: int = sum(
        sizes[problem.consumer_set[partitions[0]]] for partitions in classes.partitions
    )
    expected = counts * _WORK_PER_COUNT
    expected += sum(_term_count(problem, level) for level in levels) * _WORK_PER_TERM
    if counts > _MAX_COUNTS or min(budget.left, budget.seconds) <= expected:
        return False
    budget.spend(expected)
    return True


def _term_count(problem: Problem, level: Level) -> int:
    """Estimate the number of constraints that a level adds to a model."""
    match level:
        case TopicSpread():
            sizes = np.bincount(problem.topic) if problem.partition_count else np.zeros(1, int)
            return int(sizes.clip(max=MAX_CHORDS).sum()) * problem.member_count
        case Imbalance(measure=Measure.LEXIMAX) | HostImbalance(measure=Measure.LEXIMAX):
            return problem.member_count**2
        case _:
            return 0


def weighted_sum(parts: Sequence[tuple[Expression, int]]) -> Expression:
    """Return the sum of expressions multiplied by their coefficients."""
    constant = sum(part * weight for part, weight in parts if isinstance(part, int))
    variables = [(part, weight) for part, weight in parts if not isinstance(part, int)]
    if not variables:
        return constant
    total: cp_model.LinearExpr = cp_model.LinearExpr.weighted_sum(
        [part for part, _ in variables], [weight for _, weight in variables]
    )
    return total + constant if constant else total


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Result of one CP-SAT search."""

    placement: Placement | None  # the best one found
    bound: int | None  # None if no search ran
    infeasible: bool = False  # proven infeasible


def minimise(
    model: AssignmentModel,
    expression: Expression,
    budget: SearchBudget,
    bound: int,
    *,
    interleaves: bool = False,
    is_direct: bool = False,
) -> SearchResult:
    """Minimise an expression with one CP-SAT search.

    With ``is_direct``, the expression is the objective itself, without the known bound. It must
    have no constant. This proves sums of squares in less time.

    The expression must be at least 0: CP-SAT reports a bound of 0 if it had no time to find
    one.
    """
    if not budget.has_work:
        return SearchResult(None, None)
    if not is_direct:
        # A variable as objective has no offset, which CP-SAT would store as a float.
        most = Arithmetic.CP_SAT.value
        objective = model.cp.new_int_var(min(bound, most), most, "objective")
        model.cp.add(objective == expression + model.zero)
        expression = objective
    model.cp.minimize(expression)
    result = search(model, budget, interleaves=interleaves)
    model.cp.clear_objective()
    return result


def search(
    model: AssignmentModel, budget: SearchBudget, *, interleaves: bool = False
) -> SearchResult:
    """Run CP-SAT once, and convert the solution to a placement."""
    solver, status = run_cpsat(model.cp, budget, interleaves=interleaves)
    feasible = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return SearchResult(
        placement=model.read(solver) if feasible else None,
        # The integer bound; the reported one is a float, inexact beyond 2**53.
        bound=int(solver.response_proto.inner_objective_lower_bound),
        infeasible=status == cp_model.INFEASIBLE,
    )


def new_solver(model: cp_model.CpModel) -> cp_model.CpSolver:
    """Create a CP-SAT solver without the presolve steps that have known errors.

    With coefficients of 2**30 and more, three parts of the presolve of OR-Tools 9.15 have removed
    optimal solutions: the substitution of variables, the search for included constraints, and
    reductions that keep only one of several solutions. The last two are useful for smaller
    coefficients.
    """
    solver = cp_model.CpSolver()
    solver.parameters.presolve_substitution_level = 0
    if _greatest_coefficient(model) >= _LARGE_COEFFICIENT:
        solver.parameters.presolve_inclusion_work_limit = 0
        solver.parameters.keep_all_feasible_solutions_in_presolve = True
    return solver


def _greatest_coefficient(model: cp_model.CpModel) -> int:
    return max(
        (
            abs(coefficient)
            for constraint in model.proto.constraints
            if constraint.has_linear()
            for coefficient in constraint.linear.coeffs
        ),
        default=0,
    )


def run_cpsat(
    model: cp_model.CpModel, budget: SearchBudget, *, interleaves: bool = False
) -> tuple[cp_model.CpSolver, cp_model.CpSolverStatus]:
    """Run CP-SAT once within the limits of a search."""
    solver = new_solver(model)
    solver.parameters.max_time_in_seconds = budget.seconds
    solver.parameters.num_workers = budget.limits.workers
    solver.parameters.interleave_search = interleaves and budget.limits.workers == 1
    solver.parameters.random_seed = budget.seed % 2**31
    solver.parameters.max_deterministic_time = budget.left / WORK_PER_DETERMINISTIC_TIME
    stop = budget.limits.stop
    # CP-SAT would replace the signal handler that sets the event.
    solver.parameters.catch_sigint_signal = stop is None
    status = call_until_stopped(partial(solver.solve, model), stop, cancel=solver.stop_search)
    work = solver.response_proto.deterministic_time * WORK_PER_DETERMINISTIC_TIME
    budget.spend(_WORK_PER_SEARCH + work)
    if status is None or status == cp_model.MODEL_INVALID:
        raise InternalError(
            f"internal error: the CP-SAT model is invalid: {model.validate()}; report this message"
        )
    return solver, status

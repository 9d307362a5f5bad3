"""CP-SAT model: number of partitions per symmetry class and member, the loads, and one search."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
from ortools.sat.python import cp_model

from kassay.reference.model.assignment import NO_OWNER
from kassay.reference.model.errors import InternalError
from kassay.reference.model.metrics import LoadUnits, Measure
from kassay.solver.cpsat.model_ranges import MAX_CHORDS
from kassay.solver.cpsat.partition_classes import SymmetryClasses
from kassay.solver.limits import SearchBudget, call_until_stopped
from kassay.solver.number_ranges import Arithmetic, Scale
from kassay.solver.objective import HostImbalance, Imbalance, Level, TopicSpread
from kassay.solver.problem import Ints, Placement, Problem

Expression = cp_model.LinearExpr | int

_MAX_COUNTS = 400_000
"""Maximum number of variables per model. It takes too long to build larger models."""
_WORK_PER_COUNT, _WORK_PER_TERM = 2e-5, 8e-6
"""Work to build and read a model, per variable and per constraint of a level."""
WORK_PER_DETERMINISTIC_TIME = 2.0
"""Work per unit of CP-SAT's deterministic time: its seconds in the models of this solver."""
_WORK_PER_SEARCH = 0.01
"""Work to start CP-SAT, so that searches of any number end."""
_LARGE_COEFFICIENT = 2**24
"""Coefficient from which the presolve is restricted, far below the coefficients of known errors."""


@dataclass
class AssignmentModel:
    """CP-SAT model of all valid assignments of a problem.

    Weights and loads are in the unit of ``scale``, and rounded down unless ``rounds_up``.
    """

    problem: Problem
    classes: SymmetryClasses
    scale: Scale
    rounds_up: bool = False
    cp: cp_model.CpModel = field(default_factory=cp_model.CpModel)
    count: list[dict[int, Expression]] = field(init=False)
    _unit_loads: dict[tuple[str, ...], list[Expression]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Create the variables: number of partitions per symmetry class and member."""
        problem = self.problem
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
        """Weight per partition, in units."""
        weights = self.problem.weight.tolist()
        return [self.scale.quotient(weight, rounds_up=self.rounds_up) for weight in weights]

    @cached_property
    def total(self) -> int:
        """Total load, in units."""
        return sum(self.weight)

    @cached_property
    def load(self) -> Sequence[Expression]:
        """Return one load variable per member, in units."""
        loads = []
        for member, expression in enumerate(self.load_sums()):
            load = self.cp.new_int_var(0, self.total, f"load{member}")
            self.cp.add(load == expression)
            loads.append(load)
        if loads:
            self.cp.add(cp_model.LinearExpr.sum(loads) == self.total)
        return loads

    def unit_loads(self, units: LoadUnits) -> list[Expression]:
        """Return one load variable per member or host, in units."""
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

    @cached_property
    def zero(self) -> cp_model.IntVar:
        """Return the constant 0 as an expression, to convert integers to expressions."""
        return self.cp.new_constant(0)

    @cached_property
    def partitions(self) -> list[Expression]:
        """Return the number of partitions of every member, as expressions."""
        return self._sums(lambda _: 1)

    def load_sums(self) -> list[Expression]:
        """Return the load of each member as a sum over its partition counts."""
        return self._sums(lambda partition: self.weight[partition])

    def _sums(self, weight: Callable[[int], int]) -> list[Expression]:
        """Return, per member, the sum of its partition counts times the weight per class."""
        terms: list[list[tuple[Expression, int]]] = [[] for _ in range(self.problem.member_count)]
        for partitions, counts in zip(self.classes.partitions, self.count, strict=True):
            factor = weight(partitions[0])
            for member, count in counts.items():
                if factor:
                    terms[member].append((count, factor))
        return [weighted_sum(parts) for parts in terms]

    def moves(self, costs: Ints) -> Expression:
        """Return the total cost of the moves as an expression.

        Partitions of one class must have equal cost.
        """
        terms: list[tuple[Expression, int]] = []
        for partitions, counts in zip(self.classes.partitions, self.count, strict=True):
            owner, cost = int(self.problem.owner[partitions[0]]), int(costs[partitions[0]])
            if owner != NO_OWNER and cost:
                terms.extend((count, cost) for member, count in counts.items() if member != owner)
        return weighted_sum(terms)

    def hint(self, placement: Placement) -> None:
        """Give a placement to CP-SAT as warm start."""
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
        """Limit an expression, which is in the range of CP-SAT, to a maximum of any size."""
        if most < 0:
            self.cp.add_bool_or([])
        elif Arithmetic.CP_SAT.represents(most):
            self.cp.add(expression + self.zero <= most)


def is_small_enough(
    problem: Problem, classes: SymmetryClasses, levels: Iterable[Level], budget: SearchBudget
) -> bool:
    """Return whether a model with some levels is small enough; count the work to build it."""
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
    """Estimate the number of constraints that a level adds, if they can be many."""
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
    """Result of one CP-SAT search: placement, lower bound, and proven infeasibility."""

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
    """Minimise an expression with a known lower bound, by one CP-SAT search.

    With ``is_direct``, the expression is the objective itself, without the known bound. It must
    have no constant. This proves sums of squares in less time.

    The expression must be at least 0: CP-SAT reports a bound of 0 if it had no time to find
    one.
    """
    if not budget.has_work:
        return SearchResult(None, None)
    if is_direct:
        model.cp.minimize(expression)
        result = search(model, budget, interleaves=interleaves)
        model.cp.clear_objective()
        return result
    # A variable as objective has no offset, which CP-SAT would store as a float.
    most = Arithmetic.CP_SAT.value
    objective = model.cp.new_int_var(min(bound, most), most, "objective")
    model.cp.add(objective == expression + model.zero)
    model.cp.minimize(objective)
    result = search(model, budget, interleaves=interleaves)
    model.cp.clear_objective()
    return result


def search(
    model: AssignmentModel, budget: SearchBudget, *, interleaves: bool = False
) -> SearchResult:
    """Run CP-SAT once: minimise the objective of the model, or find any placement without one."""
    solver, status = run_cpsat(model.cp, budget, interleaves=interleaves)
    feasible = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return SearchResult(
        placement=model.read(solver) if feasible else None,
        # The integer bound; the reported one is a float, inexact beyond 2**53.
        bound=int(solver.response_proto.inner_objective_lower_bound),
        infeasible=status == cp_model.INFEASIBLE,
    )


def new_solver(model: cp_model.CpModel) -> cp_model.CpSolver:
    """Return a solver without the parts of the presolve that are wrong for a model.

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
    """Return the greatest absolute coefficient of the linear constraints."""
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
    """Run CP-SAT once within a budget; return the solver and the status.

    With ``interleaves``, one worker runs several strategies in turn.
    """
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
        raise InternalError(f"CP-SAT rejects the model: {model.validate()}")
    return solver, status

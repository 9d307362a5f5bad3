"""Find the optimum of a group, and compare assignors with it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from kassay.experiments.comparison.comparison_result import ComparedValue, Comparison, FrontDistance
from kassay.experiments.implementations.assignor_names import shown_name
from kassay.experiments.implementations.run_assignor import Ending, StableResult, run_until_stable
from kassay.reference.model import load_metrics as metrics
from kassay.reference.model.assignment import Assignment, movement, ownership, violations
from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group, cached
from kassay.reference.model.group_remarks import condition, require_group
from kassay.solver import objective
from kassay.solver.constraints import Constraint
from kassay.solver.evaluation import level_value, violated
from kassay.solver.greedy_placements import keep_owned, longest_processing_time
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.problem import build_problem
from kassay.solver.solution import Solution, level_keys
from kassay.solver.solve import solve


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseLimits(SearchLimits):
    """Limits of each search of the solver, and of the evaluation of a group in a study.

    Parameters
    ----------
    within_partitions
        Maximum number of partitions of a group for which ``movement_within`` is searched.
    group
        Wall-clock seconds per group in a study, after which its process is killed.
    memory
        Address space in MiB that the evaluation of a group in a study may allocate. None means
        the memory of a Spark executor divided by its number of cores.
    """

    within_partitions: int = 5_000
    group: float = 900.0
    memory: int | None = None


LIMITS = CaseLimits()


def solve_optimum(
    group: Group,
    *,
    levels: Sequence[objective.Level] | None = None,
    constraints: Sequence[Constraint] = (),
    limits: SearchLimits = LIMITS,
) -> Solution:
    """Find the assignment with minimum imbalance and, among those, the fewest moves.

    Capacities of members are ignored, and no level has a tolerance. ``levels`` replaces both.
    """
    unlimited = without_capacities(group)
    if levels is None:
        levels = objective.default_levels(group, tolerance=objective.EXACT)[:2]
    return solve(unlimited, levels=levels, constraints=constraints, limits=limits)


@cached
def keep_owners(group: Group) -> Assignment:
    """Build an assignment in which each owned partition keeps its owner.

    Each other partition goes to the least loaded member that subscribes to its topic.
    """
    problem = build_problem(group)
    return problem.to_assignment(keep_owned(problem))


def fewest_moves_within(
    group: Group,
    imbalance: int,
    off_rack_reads: int | None = None,
    *,
    optimum: Solution,
    limits: CaseLimits = LIMITS,
    start: Assignment | None = None,
) -> int | None:
    """Return the minimum number of moves to an assignment within an imbalance limit.

    ``off_rack_reads`` is a second limit, or None. ``optimum`` is the result of `solve_optimum`;
    ``start`` is a known assignment within all limits. Return None if no minimum is proven.
    """
    measure = metrics.Measure(optimum.imbalance.name)
    if off_rack_reads is None:
        if imbalance <= optimum.imbalance.value or optimum.movement.value == 0:
            return optimum.movement.value if optimum.movement.gap == 0 else None
        if metrics.measures(group, keep_owners(group))[measure] <= imbalance:
            return 0
    if group.partition_count > limits.within_partitions:
        return None
    levels: list[objective.Level] = [
        objective.Imbalance(measure, objective.Tolerance(up_to=imbalance))
    ]
    if off_rack_reads is not None:
        levels.append(objective.CrossRack(objective.Tolerance(up_to=off_rack_reads)))
    solution = solve(
        without_capacities(group),
        levels=(*levels, objective.Movement()),
        initial_assignment=start or optimum.assignment,
        limits=limits,
    )
    reached = zip(solution.levels, (imbalance, off_rack_reads), strict=False)
    is_within = all(limit is None or level.value <= limit for level, limit in reached)
    return solution.movement.value if is_within and solution.movement.gap == 0 else None


def without_capacities(group: Group) -> Group:
    """Copy a group, without the capacities of its members."""
    if all(member.capacity is None for member in group.members):
        return group
    members = tuple(replace(member, capacity=None) for member in group.members)
    return replace(group, members=members)


def without_racks(group: Group) -> Group:
    """Copy a group, without the racks of its members and replicas."""
    topics = tuple(replace(topic, racks=None) for topic in group.topics)
    members = tuple(replace(member, rack=None) for member in group.members)
    return replace(group, topics=topics, members=members)


def front_distance(
    group: Group,
    assignment: Assignment,
    *,
    optimum: Solution,
    limits: SearchLimits,
    min_moves: int = 0,
) -> FrontDistance:
    """Measure the distance of an assignment to the front of imbalance, off-rack reads and moves.

    Parameters
    ----------
    optimum
        The group's optimum of imbalance, then moves. It defines the measure of imbalance.
    limits
        Limits of the search per value. When a limit is reached, the distance has value and bound.
    min_moves
        Known lower bound on the moves to any assignment with equal or lower imbalance.
    """
    unlimited = without_capacities(group)
    measure = metrics.Measure(optimum.imbalance.name)
    balance = metrics.measures(group, assignment)[measure]
    reads, moves = metrics.off_rack(group, assignment), movement(group, assignment)
    even = objective.Imbalance(measure, objective.Tolerance(up_to=balance))
    local, still = (
        objective.CrossRack(objective.Tolerance(up_to=reads)),
        objective.Movement(tolerance=objective.Tolerance(up_to=moves)),
    )

    def minimise(*levels: objective.Level, value: int, bound: int) -> ComparedValue:
        """Minimise the last level, with the other levels as limits."""
        if value <= bound:
            return ComparedValue.with_optimum(value, value)
        solution = solve(unlimited, levels=levels, initial_assignment=assignment, limits=limits)
        found = solution.levels[-1]
        return ComparedValue(value, found.value, max(found.bound, min(bound, found.value)))

    return FrontDistance(
        imbalance=minimise(
            local, still, objective.Imbalance(measure), value=balance, bound=optimum.imbalance.bound
        ),
        off_rack=minimise(even, still, objective.CrossRack(), value=reads, bound=0),
        moves=minimise(even, local, objective.Movement(), value=moves, bound=min_moves),
    )


_Criteria = tuple[int, int, int]  # imbalance, off-rack reads, moves


AssignorFunction = Callable[[Group], Mapping[str, Iterable[tuple[str, int]]]]
"""Function that returns the partitions of each member of a group."""


def compare(
    group: Group,
    assignor: str | AssignorFunction,
    *,
    levels: Iterable[objective.Level | str] | str | None = None,
    optimum: Solution | None = None,
    result: StableResult | None = None,
    limits: SearchLimits | float = LIMITS,
    needs_proof: bool = True,
) -> Comparison:
    """Compare an assignor with the optimum of one group.

    Capacities of members are ignored, because Kafka's assignors do not know them.

    Parameters
    ----------
    assignor
        Name of a port, of an assignor of an installed library or of a custom assignor; or a
        function, which runs once.
    levels
        Levels of the optimum, or their names. `Comparison.levels` then has their values. By default
        all measures of imbalance and the moves are compared.
    optimum, result
        Results of `solve_optimum` with these levels, and of `run_until_stable` for the assignor, if
        they are known.
    needs_proof
        As in `Comparer`.

    Examples
    --------
    >>> from kassay.experiments.study.families.finite_families import NAMED_GROUPS
    >>> result = compare(NAMED_GROUPS["C"].group, "sticky")
    >>> result.least_imbalance, result.movement.value, result.movement.optimum
    (True, 2, 1)
    """
    require_group(group)
    if not (isinstance(assignor, str) or callable(assignor)):
        raise UsageError(f"assignor must be a name or a function, got {assignor!r}")
    limits = CaseLimits.of(limits)
    chosen = None if levels is None else objective.requested_levels(group, levels)
    optimum = optimum or solve_optimum(group, levels=chosen, limits=limits)
    if not isinstance(assignor, str):
        result = _result_of(assignor, group)
        assignor = getattr(assignor, "__name__", "function")
    result = result or run_until_stable(group, assignor)
    if chosen is not None:
        found = compare_levels(group, assignor, levels=chosen, optimum=optimum, result=result)
    else:
        comparer = Comparer(
            group, optimum, limits=limits, start=result.assignment, needs_proof=needs_proof
        )
        found = comparer.compare(shown_name(assignor), result)
    return replace(found, condition=condition(group, with_racks=True))


def _result_of(function: AssignorFunction, group: Group) -> StableResult:
    """Run a function as an assignor, and return its result or its failure."""
    try:
        assignment = Assignment(function(group))
        ending, detail = Ending.OK, next(violations(group, assignment), None)
    except Exception as error:  # noqa: BLE001 - the function is not part of kassay
        ending, detail = Ending.FAILED, f"{type(error).__name__}: {error}"
        assignment = None
    if assignment is not None and detail is not None:
        ending, assignment = Ending.INVALID, None
    return StableResult(ending=ending, assignment=assignment, rounds=1, detail=detail)


@dataclass(slots=True)
class Comparer:
    """Comparison of several results of assignors for one group with the optimum.

    Parameters
    ----------
    start
        Assignment from which the searches for fewer moves start. It must be None for several
        results, so that no value depends on the order of the comparisons.
    needs_proof
        Whether the fewest moves within the imbalance of a result are searched only after a proof of
        the optimum's imbalance and moves.
    """

    group: Group
    optimum: Solution
    limits: CaseLimits = LIMITS
    start: Assignment | None = None
    needs_proof: bool = True
    _moves: dict[tuple[int, int | None], int | None] = field(default_factory=dict)
    _fronts: dict[_Criteria, FrontDistance] = field(default_factory=dict)

    def compare(
        self,
        assignor: str,
        result: StableResult,
        *,
        with_moves: bool = True,
        with_front: bool = False,
    ) -> Comparison:
        """Compare the result of an assignor with the optimum.

        ``with_moves`` searches for the fewest moves to equal or lower imbalance.
        ``with_front`` computes the front, if the group has racks and owned partitions.
        """
        group, optimum = self.group, self.optimum
        assignment = result.assignment if result.ending is Ending.OK else None
        has_front = with_front and assignment is not None and metrics.has_racks(group)
        front = None
        if has_front and assignment is not None and ownership(group).owned_count:
            front = self._front(assignor, assignment)
        values = {} if assignment is None else metrics.measures(group, assignment)
        optima = self._proven_optima()
        within = None
        if with_moves and assignment is not None:
            within = self._fewest_moves_of(assignment, front)
        return replace(
            comparison_without_values(group, assignor, result),
            measure=self._measure,
            proven=self._is_proven,
            imbalance={
                name: ComparedValue.with_optimum(values.get(name), optima.get(name))
                for name in metrics.MEASURES
            },
            movement=ComparedValue.with_optimum(
                None if assignment is None else movement(group, assignment),
                optimum.movement.value if self._is_proven else None,
            ),
            movement_within=within,
            front=front,
        )

    @property
    def _measure(self) -> metrics.Measure:
        return metrics.Measure(self.optimum.imbalance.name)

    @property
    def _is_proven(self) -> bool:
        return self.optimum.imbalance.gap == 0 and self.optimum.movement.gap == 0

    def _proven_optima(self) -> Mapping[metrics.Measure, int]:
        if self.optimum.assignment is None or self.optimum.imbalance.gap != 0:
            return {}
        values = metrics.measures(self.group, self.optimum.assignment)
        measure = self._measure
        return values if measure is metrics.Measure.SUM_OF_SQUARES else {measure: values[measure]}

    def _imbalance(self, group: Group, assignment: Assignment) -> int:
        return metrics.measures(group, assignment)[self._measure]

    def _fewest_moves(self, imbalance: int, off_rack_reads: int | None = None) -> int | None:
        key = (imbalance, off_rack_reads)
        if key not in self._moves and (self._is_proven or not self.needs_proof):
            self._moves[key] = fewest_moves_within(
                self.group, *key, optimum=self.optimum, limits=self.limits, start=self.start
            )
        return self._moves.get(key)

    def _fewest_moves_of(self, assignment: Assignment, front: FrontDistance | None) -> int | None:
        """Return the fewest moves with imbalance and off-rack reads at most those of a result."""
        imbalance = self._imbalance(self.group, assignment)
        fewest = self._fewest_moves(imbalance)
        # A limit on off-rack reads changes nothing if the result itself has the fewest moves.
        is_reached = fewest is None or fewest == movement(self.group, assignment)
        if is_reached or not metrics.has_racks(self.group):
            return fewest
        if front is not None:
            return front.moves.optimum
        return self._fewest_moves(imbalance, metrics.off_rack(self.group, assignment))

    def _front(self, assignor: str, assignment: Assignment) -> FrontDistance:
        group = self.group
        imbalance, moves = self._imbalance(group, assignment), movement(group, assignment)
        key = (imbalance, metrics.off_rack(group, assignment), moves)
        fewest = self._fewest_moves(imbalance)
        if key not in self._fronts:
            self._fronts[key] = front_distance(
                group, assignment, optimum=self.optimum, limits=self.limits, min_moves=fewest or 0
            )
        plain = without_racks(group)
        other = run_until_stable(plain, assignor).assignment
        without = ComparedValue()
        if other is not None:
            without = ComparedValue.with_optimum(
                movement(plain, other), self._fewest_moves(self._imbalance(plain, other))
            )
        return replace(
            self._fronts[key],
            moves_any_racks=ComparedValue.with_optimum(moves, fewest),
            moves_without_racks=without,
        )


def compare_levels(
    group: Group,
    assignor: str,
    *,
    levels: Sequence[objective.Level],
    optimum: Solution,
    constraints: Sequence[Constraint] = (),
    result: StableResult | None = None,
) -> Comparison:
    """Compare an assignor with the optimum on each level of the objective.

    ``optimum`` is the result of `solve_optimum` with the same levels and constraints, ``result``
    that of `run_until_stable` for the assignor, if it is known.
    """
    result = result or run_until_stable(group, assignor)
    proven = [level.value if level.is_proven else None for level in optimum.levels]
    keys = level_keys(level.name for level in levels)
    values: Sequence[int | None] = [None] * len(levels)
    broken: tuple[str, ...] = ()
    if result.ending is Ending.OK and result.assignment is not None:
        problem = build_problem(group)
        placement = problem.valid_placement(result.assignment)
        values = [level_value(problem, level, placement) for level in levels]
        broken = tuple(map(str, violated(problem, constraints, placement)))
    return replace(
        comparison_without_values(group, assignor, result),
        levels={
            key: ComparedValue.with_optimum(value, best)
            for key, value, best in zip_longest(keys, values, proven)
        },
        violated=broken,
    )


def comparison_without_values(group: Group, assignor: str, result: StableResult) -> Comparison:
    """Create a comparison that has the ending of a result, but no values."""
    return Comparison(
        case=group.id or "",
        assignor=shown_name(assignor),
        ending=str(result.ending),
        detail=result.detail,
        rounds=result.rounds,
    )


_OPTIMUM_SHARE = 0.5
"""Share of the time limit for the optimum. The searches for unnecessary moves get the rest."""
_SHARE_IF_MISSED = 1 / 15
"""Share of the time limit for the optimum if all assignors miss the minimum makespan."""


def compare_assignors(
    group: Group,
    names: Sequence[str],
    limits: CaseLimits,
    *,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, object]:
    """Compare several assignors with the optimum of a group, and return JSON.

    If ``limits`` stop the search, assignors that have not run yet are missing.
    """
    budget = SearchBudget.start(limits)
    results: dict[str, StableResult] = {}
    for name in names:
        if limits.is_stopped:
            break
        progress(shown_name(name))
        results[name] = run_until_stable(group, name)
    progress("optimum")
    share = 1 if not names else _OPTIMUM_SHARE
    if group.is_weighted and not _may_be_optimal(group, results.values()):
        share = _SHARE_IF_MISSED
    optimum = solve_optimum(group, limits=budget.part(share).rest())
    vector = () if optimum.assignment is None else metrics.loads(group, optimum.assignment).values()
    comparisons = []
    for index, (name, result) in enumerate(results.items()):
        if limits.is_stopped:
            break
        progress(f"unnecessary moves of {shown_name(name)}")
        within = CaseLimits.of(budget.part(1 / (len(results) - index)).rest())
        comparisons.append(
            compare(group, name, optimum=optimum, result=result, limits=within, needs_proof=False)
        )
    return {
        "id": group.id,
        "optimum": {
            "status": str(optimum.status),
            "measure": optimum.imbalance.name,
            "imbalance": metrics.shown(optimum.imbalance.name, optimum.imbalance.value, group),
            "imbalance_bound": metrics.shown(
                optimum.imbalance.name, optimum.imbalance.bound, group
            ),
            "movement": optimum.movement.value,
            "loads": list(metrics.leximax(vector)) if vector else [],
        },
        "comparisons": [_entry(comparison, group) for comparison in comparisons],
        "proof": optimum.proof_by_level(),
    }


def _may_be_optimal(group: Group, results: Iterable[StableResult]) -> bool:
    """Return whether the maximum load of a result is at most that of a greedy assignment."""
    problem = build_problem(without_capacities(group))
    placement = longest_processing_time(problem)
    greedy = metrics.measures(group, problem.to_assignment(placement))[metrics.Measure.MAKESPAN]
    assignments = [one.assignment for one in results if one.assignment is not None]
    return any(
        metrics.measures(group, one)[metrics.Measure.MAKESPAN] <= greedy for one in assignments
    )


def compared(name: str, value: ComparedValue, group: Group) -> dict[str, object]:
    """Convert a value, its optimum and their gap to JSON, in the unit of the group's loads."""
    numbers = {"value": value.value, "optimum": value.optimum, "gap": value.gap}
    return {
        key: None if number is None else metrics.shown(name, number, group)
        for key, number in numbers.items()
    }


def _entry(comparison: Comparison, group: Group) -> dict[str, object]:
    """Convert a comparison to JSON, without missing values."""
    names = ("assignor", "ending", "detail", "rounds", "measure", "proven")
    results = ("least_imbalance", "movement_within", "unnecessary_moves")
    entry = {name: getattr(comparison, name) for name in (*names, *results)}
    for measure, values in comparison.imbalance.items():
        if values.value is not None:
            entry[measure] = compared(measure, values, group)
    moves = comparison.movement
    if moves.value is not None:
        entry["movement"] = {
            "value": moves.value,
            "optimum": moves.optimum,
            "gap": comparison.movement_gap,
        }
    return {key: value for key, value in entry.items() if value is not None}

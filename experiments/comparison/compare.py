"""Compare assignors with the optimum of a group, with the front, and level by level."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from kassay.experiments.comparison.comparison_result import ComparedValue, Comparison, FrontDistance
from kassay.experiments.comparison.optimum import (
    LIMITS,
    CaseLimits,
    fewest_moves_within,
    solve_optimum,
    without_capacities,
    without_racks,
)
from kassay.experiments.implementations.runner import Ending, StableResult, run_until_stable
from kassay.reference.model.assignment import Assignment, movement, ownership
from kassay.reference.model.group import Group
from kassay.reference.model.group_remarks import condition, require_group
from kassay.reference.model.metrics import MEASURES, Measure, has_racks, measures, off_rack
from kassay.solver.constraints import Constraint
from kassay.solver.evaluation import level_value, violated
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import CrossRack, Imbalance, Level, Movement, Tolerance
from kassay.solver.problem import build_problem
from kassay.solver.solution import Solution, level_keys
from kassay.solver.solve import solve


def front_distance(
    group: Group,
    assignment: Assignment,
    *,
    optimum: Solution,
    limits: SearchLimits,
    min_moves: int = 0,
) -> FrontDistance:
    """Minimise each criterion, with both others at most those of a valid assignment.

    Parameters
    ----------
    optimum
        The group's optimum of imbalance, then moves. Its measure of imbalance is the criterion.
    limits
        Limits per criterion. When one is reached, the distance has a value and a bound.
    min_moves
        Known lower bound on the moves to an assignment with at most this imbalance.

    Examples
    --------
    >>> from kassay.experiments.comparison.optimum import solve_optimum
    >>> from kassay.reference import Member, Topic
    >>> topic = Topic(name="t", partitions=2, racks=(("x",), ("y",)))
    >>> members = (
    ...     Member(id="a", subscription=("t",), rack="x", owned=[("t", 0)]),
    ...     Member(id="b", subscription=("t",), rack="y", owned=[("t", 1)]),
    ... )
    >>> group = Group(topics=(topic,), members=members)
    >>> swapped = Assignment({"a": (("t", 1),), "b": (("t", 0),)})
    >>> found = front_distance(group, swapped, optimum=solve_optimum(group), limits=SearchLimits())
    >>> found.moves, found.is_on_front
    (ComparedValue(value=2, best=0, bound=0), False)
    """
    unlimited = without_capacities(group)
    measure = Measure(optimum.imbalance.name)
    balance = measures(group, assignment)[measure]
    reads, moves = off_rack(group, assignment), movement(group, assignment)
    even = Imbalance(measure, Tolerance(up_to=balance))
    local, still = CrossRack(Tolerance(up_to=reads)), Movement(tolerance=Tolerance(up_to=moves))

    def minimise(*levels: Level, value: int, bound: int) -> ComparedValue:
        """Minimise the last level within the limits of the others, unless the bound is reached."""
        if value <= bound:
            return ComparedValue.with_optimum(value, value)
        solution = solve(unlimited, levels=levels, initial_assignment=assignment, limits=limits)
        found = solution.levels[-1]
        return ComparedValue(value, found.value, max(found.bound, min(bound, found.value)))

    return FrontDistance(
        imbalance=minimise(
            local, still, Imbalance(measure), value=balance, bound=optimum.imbalance.bound
        ),
        off_rack=minimise(even, still, CrossRack(), value=reads, bound=0),
        moves=minimise(even, local, Movement(), value=moves, bound=min_moves),
    )


_Criteria = tuple[int, int, int]  # imbalance, off-rack reads, moves


def compare(
    group: Group,
    assignor: str,
    *,
    optimum: Solution | None = None,
    result: StableResult | None = None,
    limits: SearchLimits | float = LIMITS,
    needs_proof: bool = True,
) -> Comparison:
    """Compare an assignor with the optimum on one group.

    Capacities of members are ignored, because Kafka's assignors do not know them.

    Parameters
    ----------
    assignor
        One of `kassay.reference.assignors.ASSIGNORS`, or a custom assignor.
    optimum, result
        The group's `solve_optimum` and the assignor's `run_until_stable`, if they are known.
    needs_proof
        As in `Comparer`.

    Examples
    --------
    >>> from kassay.experiments.study.families.fixed_groups import NAMED_GROUPS
    >>> result = compare(NAMED_GROUPS["C"].group, "sticky")
    >>> result.least_imbalance, result.movement.value, result.movement.optimum
    (True, 2, 1)
    """
    require_group(group)
    limits = CaseLimits.of(limits)
    optimum = optimum or solve_optimum(group, limits=limits)
    result = result or run_until_stable(group, assignor)
    comparer = Comparer(
        group, optimum, limits=limits, start=result.assignment, needs_proof=needs_proof
    )
    return replace(comparer.compare(assignor, result), condition=condition(group, with_racks=True))


@dataclass(slots=True)
class Comparer:
    """Comparison of several results with the optimum of a group. Equal results share searches.

    Parameters
    ----------
    start
        Assignment that the searches for fewer moves start from; None if there are several
        results, because a value should not depend on the order of their comparisons.
    needs_proof
        Whether the fewest moves within the imbalance of a result are searched only if both levels
        of the optimum are proven.
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

        ``with_moves`` searches the fewest moves within the imbalance of the result.
        ``with_front`` computes the front, if the group has racks and owned partitions.
        """
        group, optimum = self.group, self.optimum
        assignment = result.assignment if result.ending is Ending.OK else None
        has_front = with_front and assignment is not None and has_racks(group)
        front = None
        if has_front and assignment is not None and ownership(group).owned_count:
            front = self._front(assignor, assignment)
        values = {} if assignment is None else measures(group, assignment)
        optima = self._proven_optima()
        within = None
        if with_moves and assignment is not None:
            within = self._fewest_moves_of(assignment, front)
        return replace(
            _without_values(group, assignor, result),
            measure=self._measure,
            proven=self._is_proven,
            imbalance={
                name: ComparedValue.with_optimum(values.get(name), optima.get(name))
                for name in MEASURES
            },
            movement=ComparedValue.with_optimum(
                None if assignment is None else movement(group, assignment),
                optimum.movement.value if self._is_proven else None,
            ),
            movement_within=within,
            front=front,
        )

    @property
    def _measure(self) -> Measure:
        return Measure(self.optimum.imbalance.name)

    @property
    def _is_proven(self) -> bool:
        return self.optimum.imbalance.gap == 0 and self.optimum.movement.gap == 0

    def _proven_optima(self) -> Mapping[Measure, int]:
        """Return the proven minimum per imbalance measure. Measures without proof are missing."""
        if self.optimum.assignment is None or self.optimum.imbalance.gap != 0:
            return {}
        values = measures(self.group, self.optimum.assignment)
        measure = self._measure
        return values if measure is Measure.SUM_OF_SQUARES else {measure: values[measure]}

    def _imbalance(self, group: Group, assignment: Assignment) -> int:
        return measures(group, assignment)[self._measure]

    def _fewest_moves(self, imbalance: int, off_rack_reads: int | None = None) -> int | None:
        """Return the `fewest_moves_within` both limits, or None if the optimum lacks a proof."""
        key = (imbalance, off_rack_reads)
        if key not in self._moves and (self._is_proven or not self.needs_proof):
            self._moves[key] = fewest_moves_within(
                self.group, *key, optimum=self.optimum, limits=self.limits, start=self.start
            )
        return self._moves.get(key)

    def _fewest_moves_of(self, assignment: Assignment, front: FrontDistance | None) -> int | None:
        """Return the fewest moves with at most the imbalance and off-rack reads of a result."""
        imbalance = self._imbalance(self.group, assignment)
        fewest = self._fewest_moves(imbalance)
        # A limit on off-rack reads changes nothing if the result itself has the fewest moves.
        is_reached = fewest is None or fewest == movement(self.group, assignment)
        if is_reached or not has_racks(self.group):
            return fewest
        if front is not None:
            return front.moves.optimum
        return self._fewest_moves(imbalance, off_rack(self.group, assignment))

    def _front(self, assignor: str, assignment: Assignment) -> FrontDistance:
        """Return the distance of a result to the front, and the moves if racks are removed."""
        group = self.group
        imbalance, moves = self._imbalance(group, assignment), movement(group, assignment)
        key = (imbalance, off_rack(group, assignment), moves)
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
    levels: Sequence[Level],
    optimum: Solution,
    constraints: Sequence[Constraint] = (),
) -> Comparison:
    """Compare an assignor with the optimum of levels and constraints, level by level.

    ``optimum`` is the `solve_optimum` of the same levels and constraints.
    """
    result = run_until_stable(group, assignor)
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
        _without_values(group, assignor, result),
        levels={
            key: ComparedValue.with_optimum(value, best)
            for key, value, best in zip_longest(keys, values, proven)
        },
        violated=broken,
    )


def _without_values(group: Group, assignor: str, result: StableResult) -> Comparison:
    return Comparison(
        case=group.id or "",
        assignor=assignor,
        ending=str(result.ending),
        detail=result.detail,
        rounds=result.rounds,
    )

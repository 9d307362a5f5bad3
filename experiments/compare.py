"""Compare an assignor with the optimum on one group.

A *heuristic gap* is the value of the assignor minus the optimum. It is None unless the optimum is
proven. An *optimality gap* is the solver's value minus its bound; heuristic gaps do not include it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from kassay.experiments.implementations.convergence import Ending, StableResult, run_until_stable
from kassay.reference.model import notebook_tables
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.derived_values_cache import cached
from kassay.reference.model.external_metrics import has_racks, off_rack
from kassay.reference.model.group import Group, require_group
from kassay.reference.model.metrics import MEASURES, Measure, measures, movement
from kassay.solver.constraints import Constraint
from kassay.solver.flow.convex_frontier import fewest_moves
from kassay.solver.initial_solutions import keep_owned
from kassay.solver.limits import SearchLimits
from kassay.solver.objective import CrossRack, Imbalance, Level, Movement, Tolerance
from kassay.solver.problem import build_problem
from kassay.solver.solution import Solution
from kassay.solver.solve import solve

MovesWithin = Callable[[int, int | None], int | None]
"""Function from limits on imbalance and off-rack reads to the minimum number of moves.

The second limit is None for no limit; the result is None if it is unknown.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseLimits(SearchLimits):
    """Limits of each solver search and, in a study, of the whole evaluation of a group.

    Parameters
    ----------
    within_partitions
        Maximum number of partitions of groups for which ``movement_within`` is searched.
    group
        Wall-clock seconds per group in a study, after which its process is killed.
    memory
        Address space in MiB that the evaluation of a group in a study may allocate; None for
        the memory of a Spark executor divided by its number of cores.
    """

    within_partitions: int = 5_000
    group: float = 900.0
    memory: int | None = None


LIMITS = CaseLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class HeuristicGap:
    """Heuristic gap: value of an assignor and proven optimal value. None means unknown."""

    greedy: int | None = None
    optimum: int | None = None

    @property
    def gap(self) -> int | None:
        """Return the assignor's value minus the optimum, or None if either value is unknown."""
        if self.greedy is None or self.optimum is None:
            return None
        return self.greedy - self.optimum


UNKNOWN_GAP = HeuristicGap()


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Comparison of an assignor's result on one group with the optimum.

    Parameters
    ----------
    ending
        How the assignor ended, see `Ending`. Greedy values are None unless it is ``ok``.
    rounds
        Rebalances until nothing was withheld; more than 1 only for ``cooperative-sticky``,
        which is measured by its stable assignment.
    measure
        Measure that the optimum minimises: ``sum_of_squares`` for equal weights, and this optimum
        minimises every measure; otherwise ``makespan``, and the optima of the other
        measures are None.
    proven
        Whether both levels of the optimum are proven.
    movement
        Partitions that the assignor moves, and the fewest moves to any assignment with minimum
        imbalance.
    movement_within
        Fewest moves to any assignment whose imbalance and off-rack reads are at most those of the
        assignor. Off-rack reads are partitions without a replica in the rack of their member.
    """

    case: str
    assignor: str
    ending: str
    detail: str | None = None
    rounds: int
    measure: Measure | None = None
    proven: bool | None = None
    imbalance: Mapping[Measure, HeuristicGap] = field(default_factory=dict)
    movement: HeuristicGap = UNKNOWN_GAP
    movement_within: int | None = None

    @property
    def imbalance_gap(self) -> int | None:
        """Return the assignor's imbalance, in terms of ``measure``, minus the minimum imbalance."""
        return None if self.measure is None else self.imbalance[self.measure].gap

    @property
    def least_imbalance(self) -> bool | None:
        """Return whether the assignor reaches the minimum imbalance, or None if unknown."""
        return None if self.imbalance_gap is None else self.imbalance_gap == 0

    @property
    def movement_gap(self) -> int | None:
        """Return the assignor's number of moves minus the optimum's number of moves.

        Return None if the assignor misses the minimum imbalance.
        """
        return self.movement.gap if self.least_imbalance else None

    @property
    def unnecessary_moves(self) -> int | None:
        """Return the number of unnecessary moves of the assignor, or None if unknown."""
        return HeuristicGap(greedy=self.movement.greedy, optimum=self.movement_within).gap

    def _repr_html_(self) -> str:
        """Return an HTML table of all imbalance measures and the moves, for notebooks."""
        caption = f"{self.assignor} on {self.case}: {self.ending}"
        rows = [(name, it.greedy, it.optimum, it.gap) for name, it in self.imbalance.items()]
        moves = ("movement", self.movement.greedy, self.movement.optimum, self.movement_gap)
        cells = [["–" if value is None else value for value in row] for row in (*rows, moves)]
        return notebook_tables.table(caption, ("measure", "greedy", "optimum", "gap"), cells)


def compare(
    group: Group,
    assignor: str,
    *,
    optimum: Solution | None = None,
    result: StableResult | None = None,
    moves_within: MovesWithin | None = None,
    limits: CaseLimits = LIMITS,
) -> Comparison:
    """Compare an assignor with the optimum on one group.

    Capacities of members are ignored, because Kafka's assignors do not know them.

    Parameters
    ----------
    assignor
        One of `kassay.reference.assignors.ASSIGNORS`, or a custom assignor.
    optimum, result
        The group's `solve_optimum` and the assignor's `run_until_stable`, if they are known.
    moves_within
        Function to use instead of `fewest_moves_within`, for example with a cache.

    Examples
    --------
    >>> from kassay.experiments.study.families.hand_written_groups import NAMED_GROUPS
    >>> result = compare(NAMED_GROUPS["C"].group, "sticky")
    >>> result.least_imbalance, result.movement.greedy, result.movement.optimum
    (True, 2, 1)
    """
    require_group(group)
    optimum = optimum or solve_optimum(group, limits=limits)
    result = result or run_until_stable(group, assignor)
    assignment = result.assignment if result.ending is Ending.OK else None
    measure = Measure(optimum.imbalance.name)
    greedy = {} if assignment is None else measures(group, assignment)
    optima = _proven_optima(group, optimum, measure)
    proven = optimum.imbalance.gap == 0 and optimum.movement.gap == 0
    moves = None if assignment is None else movement(group, assignment)
    within = None
    if proven and assignment is not None:
        find = moves_within or partial(
            fewest_moves_within, group, optimum=optimum, limits=limits, start=assignment
        )
        within = find(greedy[measure], None)
        if has_racks(group) and within is not None and within != moves:
            within = find(greedy[measure], off_rack(group, assignment))
    return Comparison(
        case=group.id or "",
        assignor=assignor,
        ending=str(result.ending),
        detail=result.detail,
        rounds=result.rounds,
        measure=measure,
        proven=proven,
        imbalance={
            name: HeuristicGap(greedy=greedy.get(name), optimum=optima.get(name))
            for name in MEASURES
        },
        movement=HeuristicGap(greedy=moves, optimum=optimum.movement.value if proven else None),
        movement_within=within,
    )


def solve_optimum(
    group: Group,
    *,
    levels: Sequence[Level] | None = None,
    constraints: Sequence[Constraint] = (),
    limits: SearchLimits = LIMITS,
) -> Solution:
    """Find the optimum; by default, minimum imbalance and then the fewest moves.

    Capacities of members are ignored.
    """
    unlimited = without_capacities(group)
    return solve(unlimited, levels=levels, constraints=constraints, limits=limits)


@cached
def keep_owners(group: Group) -> Assignment:
    """Build an assignment without moves: keep owned partitions, and assign unowned partitions.

    Each unowned partition goes to the least loaded member that subscribes to its topic.
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
    """Return the minimum number of moves to an assignment of at most the given imbalance.

    The assignment also has at most the given off-rack reads; None means any number. ``optimum``
    is the group's `solve_optimum`, with both levels proven; ``start`` is an assignment within
    both limits, if one is known. The result is None if a limit was reached before the proof.
    """
    measure = Measure(optimum.imbalance.name)
    if off_rack_reads is None:
        if imbalance <= optimum.imbalance.value or optimum.movement.value == 0:
            return optimum.movement.value
        if measures(group, keep_owners(group))[measure] <= imbalance:
            return 0
    if group.partition_count > limits.within_partitions:
        return None
    if off_rack_reads is None and measure is Measure.SUM_OF_SQUARES:
        bounded = fewest_moves(group, imbalance)
        if bounded is not None and bounded.is_proven:
            return bounded.value
    levels: list[Level] = [Imbalance(measure, Tolerance(up_to=imbalance))]
    if off_rack_reads is not None:
        levels.append(CrossRack(Tolerance(up_to=off_rack_reads)))
    solution = solve(
        without_capacities(group),
        levels=(*levels, Movement()),
        initial_assignment=start or optimum.assignment,
        limits=limits,
    )
    reached = zip(solution.levels, (imbalance, off_rack_reads), strict=False)
    is_within = all(limit is None or level.value <= limit for level, limit in reached)
    return solution.movement.value if is_within and solution.movement.gap == 0 else None


def _proven_optima(group: Group, optimum: Solution, measure: Measure) -> Mapping[Measure, int]:
    """Return the proven minimum per imbalance measure. Measures without proof are missing."""
    if optimum.assignment is None or optimum.imbalance.gap != 0:
        return {}
    values = measures(group, optimum.assignment)
    return values if measure is Measure.SUM_OF_SQUARES else {measure: values[measure]}


def without_capacities(group: Group) -> Group:
    """Return a copy of a group without capacities. Kafka's assignors do not know them."""
    if all(member.capacity is None for member in group.members):
        return group
    members = tuple(replace(member, capacity=None) for member in group.members)
    return replace(group, members=members)

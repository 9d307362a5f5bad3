"""Find the frontier of a group: the best imbalance for each number of moves."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kassay.reference.model.errors import InternalError, UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.group_remarks import require_group, require_single_copies
from kassay.reference.model.metrics import Measure
from kassay.solver.constraints import Constraint, MaxMoves, check_constraints, group_constraints
from kassay.solver.frontier.epsilon_constraint import EpsilonConstraint
from kassay.solver.frontier.frontier_points import Frontier, frontier_point
from kassay.solver.frontier.moves_frontier import moves_frontier
from kassay.solver.lexicographic.moves_table import MovesTable, Report
from kassay.solver.limits import SearchBudget, SearchLimits
from kassay.solver.number_ranges import Arithmetic
from kassay.solver.objective import Imbalance, Movement, default_levels, default_measure
from kassay.solver.problem import Problem, build_problem
from kassay.solver.solution import Solution

if TYPE_CHECKING:
    from kassay.solver.flow.convex_hull import ConvexHull


def frontier(
    group: Group,
    *,
    measure: Measure | str | None = None,
    constraints: Iterable[Constraint] = (),
    max_points: int | None = None,
    optimum: Solution | None = None,
    known: Sequence[Solution] = (),
    limits: SearchLimits | float = SearchLimits(),
    seed: int = 0,
) -> Frontier:
    """Find non-dominated pairs of moves and imbalance, each with bounds.

    Points at geometric numbers of moves come first (1, 2, 3, 5, 7, 10, 15, 20, ...), then the
    points between them as long as time is left.

    Parameters
    ----------
    measure
        Measure of imbalance; by default as in `default_levels`.
    max_points
        Maximum number of points, geometric in the number of moves; at least 2.
    optimum
        Solution of the same measure and constraints, then movement, if it is known.
    known
        Further solutions that meet the constraints; each one gives a point.
    limits
        Time for all points together; the other limits apply per search.

    Raises
    ------
    UsageError
        If ``max_points`` is below 2, or ``group`` is not a group.
    InputError
        If a constraint refers to a member, topic or partition that the group does not have.

    Examples
    --------
    >>> from kassay.reference.model.group import Member, Topic
    >>> members = (
    ...     Member(id="a", subscription=("t",), owned=[("t", p) for p in range(4)]),
    ...     Member(id="b", subscription=("t",)),
    ... )
    >>> group = Group(topics=(Topic(name="t", partitions=4),), members=members)
    >>> [(point.movement.value, point.imbalance.value) for point in frontier(group).points]
    [(0, 16), (1, 10), (2, 8)]
    """
    require_group(group)
    require_single_copies(group)
    if max_points is not None and max_points < 2:
        raise UsageError(f"max_points must be at least 2, got {max_points!r}")
    constraints, limits = tuple(constraints), SearchLimits.of(limits)
    budget = SearchBudget.start(limits, seed)
    table = moves_table(group, measure=measure, constraints=constraints)
    if table is not None:
        return moves_frontier(
            table,
            constraints,
            max_points=max_points,
            optimum=optimum,
            known=known,
            budget=budget,
        )
    search = _epsilon_constraint(group, measure, constraints, budget)
    return search.run(max_points, optimum, [frontier_point(one) for one in known])


def moves_table(
    group: Group,
    *,
    measure: Measure | str | None = None,
    constraints: Iterable[Constraint] = (),
    report: Report | None = None,
) -> MovesTable | None:
    """Return an empty table of the lowest imbalance per number of moves.

    Return None if the table does not apply: to equal weights and speeds, to the measure leximax,
    to a limit on moves, and if the current owners violate a constraint.
    """
    constraints = tuple(constraints)
    check_constraints(group, constraints)
    measure = default_measure(group) if measure is None else Measure(measure)
    problem, rules = build_problem(group), (*group_constraints(group), *constraints)
    if any(isinstance(rule, MaxMoves) for rule in rules) or not MovesTable.is_applicable(
        problem, measure, rules
    ):
        return None
    return MovesTable(problem, rules, Imbalance(measure), report=report)


def _epsilon_constraint(
    group: Group,
    measure: Measure | str | None,
    constraints: tuple[Constraint, ...],
    budget: SearchBudget,
) -> EpsilonConstraint:
    """Check the constraints and create the search."""
    first, second = default_levels(group, measure=measure)
    if not isinstance(first, Imbalance) or not isinstance(second, Movement):
        raise InternalError("the default levels must be imbalance, then movement")
    problem = build_problem(group)
    check_constraints(group, constraints)
    rules = (*group_constraints(group), *constraints)
    return EpsilonConstraint(
        group=group,
        levels=(first, second),
        problem=problem,
        constraints=constraints,
        step=_min_step(problem, first.measure),
        hull=_hull(problem, first.measure, rules, budget),
        budget=budget,
    )


def _min_step(problem: Problem, measure: Measure) -> int:
    """Return the minimum difference between two different imbalance values of a group."""
    has_parity = measure is Measure.SUM_OF_SQUARES and problem.group.has_equal_speeds
    if not has_parity or not problem.partition_count:
        return 1
    # The sum of squares has the parity of the sum of loads, which is fixed.
    return 2 * max(1, problem.group.common_weight or 0) ** 2


def _hull(
    problem: Problem, measure: Measure, rules: Sequence[Constraint], budget: SearchBudget
) -> "ConvexHull | None":
    """Find the convex hull of the frontier by network flows, if all weights are equal."""
    if rules or measure is not Measure.SUM_OF_SQUARES or not budget.has_work:
        return None
    squares, weight = problem.total**2, problem.group.uniform_weight
    if not problem.partition_count or not weight or not Arithmetic.INT64.represents(squares):
        return None
    # Imported here: only equal weights need OR-Tools' flows.
    from kassay.solver.flow.convex_hull import convex_hull  # noqa: PLC0415

    return convex_hull(problem, lambda: not budget.limits.is_stopped)

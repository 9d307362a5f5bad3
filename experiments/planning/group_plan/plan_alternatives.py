"""Options of a plan: alternative assignments with more or fewer moves."""

from dataclasses import dataclass, field, replace

from kassay.experiments.planning.group_plan.assignor_outcomes import (
    AssignmentMetrics,
    assignment_metrics,
)
from kassay.experiments.planning.moves.move_schedule import MoveBatch, schedule_moves
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import Measure
from kassay.solver.frontier.frontier_points import Frontier, FrontierPoint
from kassay.solver.solution import LevelValue, Solution, value_and_bound

FEW_MOVES = 10
"""Maximum number of moves of the option `FEWER_MOVES`."""
RECOMMENDED, FEWER_MOVES = "plan", "at most ten moves"
BALANCED, ALMOST_BALANCED = "minimum imbalance", "lowest imbalance found"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOption:
    """Option of a plan: an assignment with its imbalance, moves and their lower bounds.

    The bound on imbalance holds for the option's number of moves or fewer; the bound on moves
    for the option's imbalance or less.
    """

    name: str
    assignment: Assignment = field(repr=False)
    metrics: AssignmentMetrics
    imbalance: LevelValue
    movement: LevelValue
    batches: tuple[MoveBatch, ...] = field(repr=False)

    def record(self) -> dict[str, object]:
        """Return the option as a JSON object."""
        return {
            "option": self.name,
            "makespan": self.metrics.makespan,
            "imbalance": value_and_bound(self.imbalance),
            "movement": value_and_bound(self.movement),
            "batches": [batch.record() for batch in self.batches],
        }


def plan_options(
    group: Group, solution: Solution, optimum: Solution, frontier: Frontier
) -> tuple[PlanOption, ...]:
    """List the planned assignment and alternatives, in ascending order of moves."""
    measure = scheduled_measure(Measure(solution.imbalance.name))
    values = (solution.movement.value, solution.imbalance.value)
    chosen = next(
        (one for one in frontier.points if (one.movement.value, one.imbalance.value) == values),
        solution,
    )
    found: list[tuple[str, Solution | FrontierPoint]] = [(RECOMMENDED, chosen)]
    few = [point for point in frontier.points if point.movement.value <= FEW_MOVES]
    top = optimum.movement.value
    if few and top > FEW_MOVES and few[-1].movement.value != solution.movement.value:
        found.append((FEWER_MOVES, _within_few_moves(frontier, len(few))))
    planned = (solution.imbalance.value, solution.movement.value)
    if planned != (optimum.imbalance.value, top):
        is_proven = optimum.imbalance.gap == 0
        found.append((BALANCED if is_proven else ALMOST_BALANCED, optimum))
    return tuple(
        PlanOption(
            name=name,
            assignment=one.assignment,
            metrics=assignment_metrics(group, one.assignment),
            imbalance=one.imbalance,
            movement=one.movement,
            batches=schedule_moves(group, one.assignment, measure=measure),
        )
        for name, one in found
        if one.assignment is not None
    )


def _within_few_moves(frontier: Frontier, count: int) -> FrontierPoint:
    """Return the last of the first points, with a bound for `FEW_MOVES` moves.

    The bound of the next point holds for more moves than these.
    """
    point = frontier.points[count - 1]
    if frontier.complete or point.movement.value == FEW_MOVES:
        return point
    bound = min((one.imbalance.bound for one in frontier.points[count : count + 1]), default=0)
    return replace(point, imbalance=replace(point.imbalance, bound=bound))


def scheduled_measure(measure: Measure) -> Measure:
    """Return the measure that the schedule shows: for leximax, the sum of squares."""
    return Measure.SUM_OF_SQUARES if measure is Measure.LEXIMAX else measure

"""Frontier of a group with different weights or speeds, from the table of lowest imbalances."""

from collections.abc import Iterable, Sequence

from kassay.reference.model.assignment import Assignment
from kassay.solver.constraints import Constraint
from kassay.solver.evaluation import level_value
from kassay.solver.frontier.frontier_points import (
    Frontier,
    FrontierPoint,
    frontier_point,
    geometric_moves,
    non_dominated,
)
from kassay.solver.lexicographic.level_solver import has_few_choices
from kassay.solver.lexicographic.moves_table import MovesTable
from kassay.solver.lexicographic.moves_table_search import prove_moves, search_moves
from kassay.solver.limits import SearchBudget
from kassay.solver.objective import Movement
from kassay.solver.solution import LevelValue, Solution
from kassay.solver.solve import solve

_MIN_WORK, _FIRST_WORK = 0.7, 2.0
"""Minimum and maximum time of the searches without integer programs."""
_SEARCH_SHARE, _FEW_MOVES_SHARE, _OPTIMUM_SHARE, _PROOF_SHARE = 0.3, 0.2, 0.4, 0.95
_FEW_MOVES = 5
"""Number of moves up to which entries are proven before the search for the lowest imbalance."""


def moves_frontier(
    table: MovesTable,
    constraints: Sequence[Constraint],
    *,
    max_points: int | None,
    optimum: Solution | None,
    known: Sequence[Solution],
    budget: SearchBudget,
) -> Frontier:
    """Fill, improve and prove the table, and return its non-dominated points.

    ``optimum``, ``known`` and ``max_points`` are as in `frontier`.
    """
    if table.top == 0:
        fill_quickly(table, budget)
    search_further(table, budget)
    if has_few_choices(table.problem):
        few = range(min(table.top, _FEW_MOVES) + 1)
        prove_moves(table, few, budget.part(_FEW_MOVES_SHARE))
    lowest = [] if optimum is None else [optimum]
    if optimum is None and table.values[-1] > table.lowest and budget.has_work:
        limits = budget.part(_OPTIMUM_SHARE).rest()
        lowest = [
            solve(
                table.problem.group,
                levels=(table.level, Movement()),
                constraints=constraints,
                initial_assignment=table.problem.to_assignment(table.placements[-1]),
                limits=limits,
                seed=budget.seed,
            )
        ]
    for solution in lowest:
        add_solution(table, solution)
    # The bound of a known solution can be valid only within a limit on moves.
    for assignment in (one.assignment for one in known):
        if assignment is not None:
            add_assignment(table, assignment)
    counts = shown_moves(table, max_points, [one.movement.value for one in known])
    prove_points(table, counts, budget)
    return table_frontier(table, counts, [one for one in lowest if one.assignment is not None])


def fill_quickly(table: MovesTable, budget: SearchBudget) -> None:
    """Fill the table by the searches that need no integer program."""
    if not budget.limits.is_stopped:
        search_moves(table, budget.for_first_result(_MIN_WORK).until(_FIRST_WORK))


def search_further(table: MovesTable, budget: SearchBudget) -> None:
    """Continue the searches that need no integer program, if they did not end."""
    if budget.has_work:
        search_moves(table, budget.part(_SEARCH_SHARE))


def add_solution(table: MovesTable, solution: Solution) -> None:
    """Add the assignment of a solution to the table, and its bound on the imbalance."""
    if solution.assignment is None:
        return
    add_assignment(table, solution.assignment)
    first = solution.levels[0]
    if first.name == table.level.name:
        table.lowest = max(table.lowest, min(first.bound, table.values[-1]))
        table.raise_bound(table.top, table.lowest)


def add_assignment(table: MovesTable, assignment: Assignment) -> None:
    """Add an assignment with any number of moves to the table."""
    placement = table.problem.to_placement(assignment)
    if placement is not None:
        table.most = max(table.most, level_value(table.problem, Movement(), placement))
        table.add(placement)


def table_frontier(
    table: MovesTable, counts: Sequence[int], others: Sequence[Solution] = ()
) -> Frontier:
    """Return the non-dominated points of a table at given numbers of moves."""
    points = [_point(table, count) for count in counts]
    further = [frontier_point(one) for one in others]
    kept = non_dominated([*points, *further])
    complete = (
        len(counts) == table.top + 1
        and table.values[-1] == table.lowest
        and all(table.is_proven(count) for count in counts)
    )
    return Frontier(table.level.measure, kept, complete=complete)


def _point(table: MovesTable, count: int) -> FrontierPoint:
    """Return the point of the fewest moves with the value of an entry."""
    value = table.values[count]
    moves, bound = table.fewest_moves(value) or (count, 0)
    return FrontierPoint(
        LevelValue(Movement.name, moves, min(bound, moves)),
        LevelValue(table.level.name, value, table.bounds[moves]),
        table.problem.to_assignment(table.placements[moves]),
    )


def shown_moves(table: MovesTable, max_points: int | None, further: Iterable[int]) -> list[int]:
    """Return the numbers of moves of the points, at most ``max_points``, and further ones."""
    counts = range(table.top + 1)
    if max_points is None or table.top < max_points:
        return list(counts)
    shown = {0, *geometric_moves(table.top, max_points), table.top, *further}
    return [count for count in counts if count in shown]


def prove_points(table: MovesTable, counts: Sequence[int], budget: SearchBudget) -> None:
    """Improve and prove entries of a table, those at geometric numbers of moves first."""
    first = {0, *geometric_moves(counts[-1]), counts[-1]}
    order = sorted(counts, key=lambda count: (count not in first, count))
    prove_moves(table, order, budget.part(_PROOF_SHARE))
    table.even_out(counts, budget)

"""Search for integer counts of partitions per member with few moves, window by window."""

from collections.abc import Iterator, Sequence

import numpy as np

from kassay.solver.certificate.rebalance_sequence import Stream
from kassay.solver.certificate.trajectory_certificate import TrajectoryObjective
from kassay.solver.limits import SearchBudget
from kassay.solver.problem import Ints
from kassay.solver.trajectory.linear_program import (
    LinearProgram,
    Window,
    build_program,
    total_moves,
)
from kassay.solver.trajectory.program_solvers import (
    INTEGRALITY,
    IntegerPrograms,
    exact_duals,
    is_integral,
)

# Variables of the first windows, and seconds per linear program and per integer program.
_WINDOW_SIZE = 1_500
_LINEAR_WORK, _INTEGER_WORK = 30.0, 3.0
# Maximum number of variables of an integer program. HiGHS ran for minutes beyond its limit of three
# seconds with 14,000 variables.
_MAX_BRANCHING = 8_000


def improved_counts(
    stream: Stream,
    counts: Sequence[Ints],
    objective: TrajectoryObjective,
    *,
    bound: int,
    budget: SearchBudget,
    integer_programs: IntegerPrograms,
) -> list[Ints]:
    """Optimise overlapping windows of the counts, and then windows of twice the length.

    The search ends if a window contains all rebalances, or the bound or the time limit is reached.
    """
    best, moves, size = list(counts), total_moves(stream, counts), _WINDOW_SIZE
    while objective.of(moves) > bound:
        windows = list(_windows(stream, size))
        for first, end in windows:
            if objective.of(moves) <= bound or not budget.has_work:
                return best
            value = objective.of(moves[first : end + 1])
            if objective.of(moves) > value and objective is TrajectoryObjective.LARGEST:
                continue
            window = Window(
                first,
                end,
                before=best[first - 1] if first else stream.start,
                after=best[end] if end < len(best) else None,
            )
            program = build_program(stream, window, objective)
            found = _optimal_counts(program, value, budget, integer_programs)
            if found and not is_permitted(stream, first, found):
                found = None
            changed = [*best[:first], *(found or best[first:end]), *best[end:]]
            if _rank(stream, changed, objective) <= _rank(stream, best, objective):
                best, moves = changed, total_moves(stream, changed)
        if len(windows) == 1:
            return best
        size *= 2
    return best


def is_permitted(stream: Stream, first: int, counts: Sequence[Ints]) -> bool:
    """Return whether counts keep the limits of the loads, from a rebalance on."""
    return all(
        one.contains(stream.loads(at, table))
        for at, table in enumerate(counts, start=first)
        for one in stream.rebalances[at].ranges
    )


def _rank(
    stream: Stream, counts: Sequence[Ints], objective: TrajectoryObjective
) -> tuple[int, int]:
    moves = total_moves(stream, counts)
    return objective.of(moves), sum(moves)


def _optimal_counts(
    program: LinearProgram, value: int, budget: SearchBudget, integer_programs: IntegerPrograms
) -> list[Ints] | None:
    """Return counts of a program with a value of at most ``value``; None if none are found.

    The solution of the linear program is often integer. Otherwise, branch and bound is used if the
    value can fall and the program is small.
    """
    solved = exact_duals(program, budget.until(_LINEAR_WORK))
    if solved is None:
        return None
    if is_integral(solved[0][: program.counts]):
        return program.read(solved[0])
    can_fall = program.cost @ solved[0] + program.constant <= value - 1 + INTEGRALITY
    if not can_fall or len(program.cost) > _MAX_BRANCHING:
        return None
    return integer_programs.counts(program, budget.until(_INTEGER_WORK))[0]


def _windows(stream: Stream, size: int) -> Iterator[tuple[int, int]]:
    """Yield windows of a number of variables that overlap by half of their rebalances."""
    first, end = 0, len(stream.rebalances)
    while first < end:
        last = _window_end(stream, first, size)
        yield first, last
        if last == end:
            return
        first += max(1, (last - first) // 2)


def _window_end(stream: Stream, first: int, size: int) -> int:
    """Return the end of the longest window with few variables that starts at a rebalance."""
    variables, last, end = 0, first, len(stream.rebalances)
    while last < end and (variables <= size or last < first + 2):
        variables += 2 * int(np.count_nonzero(stream.permitted(last)))
        last += 1
    return last

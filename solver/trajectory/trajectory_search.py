"""Search for the fewest moves of a sequence of rebalances, with a bound that prices prove."""

from collections.abc import Iterator, Sequence

import numpy as np

from kassay.solver.certificate.trajectory_evidence import Stream
from kassay.solver.limits import SearchBudget
from kassay.solver.problem import Ints
from kassay.solver.trajectory.linear_program import (
    INTEGRALITY,
    Floats,
    LinearProgram,
    Prices,
    RoundedProgram,
    approximate_duals,
    build_program,
    exact_duals,
    integer_counts,
    is_integral,
    total_moves,
)

# Numbers of variables up to which the whole program is solved by the simplex method first, and up
# to which it is solved by branch and bound.
_MAX_SIMPLEX = 12_000
_MAX_BRANCHING = 40_000
_PRECISION = 1e-5  # of an approximate solution, relative
# Variables of the first windows, and seconds per linear program and per integer program.
_WINDOW_SIZE = 1_500
_LINEAR_WORK, _INTEGER_WORK = 30.0, 3.0
# Maximum number of variables of an integer program. HiGHS ran for minutes beyond its limit of three
# seconds with 14,000 variables.
_MAX_WINDOW = 8_000


class TrajectorySearch:
    """Search for the fewest moves over a sequence of rebalances."""

    def __init__(self, stream: Stream, budget: SearchBudget, counts: Sequence[Ints]) -> None:
        self.stream, self.budget = stream, budget
        self.counts = list(counts)
        self.value = sum(total_moves(stream, counts))
        self.prices = Prices.zero(stream)
        self.certified = 0  # bound that the prices prove
        self.bound = 0

    def run(self) -> None:
        """Search until the moves are proven to be the fewest, or no work is left."""
        if self._is_over():
            return
        program = build_program(self.stream, 0, len(self.counts), before=self.stream.start)
        size = len(program.cost)
        has_flows = not self.stream.is_weighted
        if has_flows and size <= _MAX_SIMPLEX:
            self._by_rounding(program)
        elif size <= _MAX_SIMPLEX:
            self._by_simplex(program)
        if not self.certified and not self._is_over():
            part = self.budget.part(0.4)
            self._prove(program, approximate_duals(program, part, precision=_PRECISION))
        if not self._is_over():
            part = self.budget.part(0.6 if size <= _MAX_BRANCHING else 1.0)
            self._offer(_improved_counts(self.stream, self.counts, bound=self.bound, budget=part))
        if has_flows and _MAX_SIMPLEX < size <= _MAX_BRANCHING and not self._is_over():
            self._by_rounding(program)
        if not self._is_over() and size <= _MAX_BRANCHING:
            found, bound = integer_counts(program, self.budget, is_exact=self.stream.is_weighted)
            self._offer(found)
            self.bound = max(self.bound, min(bound, self.value))

    def _by_rounding(self, program: LinearProgram) -> None:
        rounded = RoundedProgram(program, self.budget.seed)
        if rounded.solve(self.budget.part(0.5)):
            self._prove(program, rounded.duals())
            self._offer(rounded.round(self.budget.part(0.5)))

    def _is_over(self) -> bool:
        return self.value <= self.bound or not self.budget.has_work

    def _offer(self, counts: Sequence[Ints] | None) -> None:
        if counts is None or not _is_permitted(self.stream, 0, counts):
            return
        value = sum(total_moves(self.stream, counts))
        if value < self.value:
            self.counts, self.value = list(counts), value

    def _by_simplex(self, program: LinearProgram) -> None:
        solved = exact_duals(program, self.budget)
        if solved is None:
            return
        values, duals = solved
        if is_integral(values[: program.counts]):
            self._offer(program.read(values))
        self._prove(program, duals)

    def _prove(self, program: LinearProgram, duals: Floats) -> None:
        prices = Prices.of(self.stream, program, duals)
        bound = prices.bound(self.stream)
        if bound > self.certified:
            self.prices, self.certified = prices, bound
            self.bound = max(self.bound, bound)


def _improved_counts(
    stream: Stream, counts: Sequence[Ints], *, bound: int, budget: SearchBudget
) -> list[Ints]:
    """Optimise overlapping windows of rebalances until a bound or limit is reached."""
    best, moves, size = list(counts), total_moves(stream, counts), _WINDOW_SIZE
    while sum(moves) > bound:
        windows = list(_windows(stream, size))
        for first, end in windows:
            if sum(moves) <= bound or not budget.has_work:
                return best
            value = sum(moves[first : end + 1])
            before = best[first - 1] if first else stream.start
            after = best[end] if end < len(best) else None
            program = build_program(stream, first, end, before=before, after=after)
            found = _optimal_counts(program, value, budget, is_exact=stream.is_weighted)
            if found and _is_permitted(stream, first, found):
                changed = [*best[:first], *found, *best[end:]]
                if sum(new := total_moves(stream, changed)) <= sum(moves):
                    best, moves = changed, new
        if len(windows) == 1:
            return best
        size *= 2
    return best


def _is_permitted(stream: Stream, first: int, counts: Sequence[Ints]) -> bool:
    return all(
        stream.rebalances[at].permits(stream.loads(at, table))
        for at, table in enumerate(counts, start=first)
    )


def _optimal_counts(
    program: LinearProgram, value: int, budget: SearchBudget, *, is_exact: bool
) -> list[Ints] | None:
    """Find integer counts with at most ``value`` moves; return None if none are found.

    The solution of the linear program is often integer. Otherwise, branch and bound is used if the
    value can fall and the program is small.
    """
    solved = exact_duals(program, budget.until(_LINEAR_WORK))
    if solved is None:
        return None
    if is_integral(solved[0][: program.counts]):
        return program.read(solved[0])
    can_fall = program.cost @ solved[0] <= value - 1 + INTEGRALITY
    if not can_fall or len(program.cost) > _MAX_WINDOW:
        return None
    return integer_counts(program, budget.until(_INTEGER_WORK), is_exact=is_exact)[0]


def _windows(stream: Stream, size: int) -> Iterator[tuple[int, int]]:
    """Yield windows of rebalances that overlap by half and have about ``size`` variables."""
    first, end = 0, len(stream.rebalances)
    while first < end:
        last = _window_end(stream, first, size)
        yield first, last
        if last == end:
            return
        first += max(1, (last - first) // 2)


def _window_end(stream: Stream, first: int, size: int) -> int:
    variables, last, end = 0, first, len(stream.rebalances)
    while last < end and (variables <= size or last < first + 2):
        variables += 2 * int(np.count_nonzero(stream.permitted(last)))
        last += 1
    return last

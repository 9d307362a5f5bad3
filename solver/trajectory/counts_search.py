"""Search for integer counts with few moves over all rebalances, window by window."""

from collections.abc import Iterator, Sequence

import numpy as np

from kassay.solver.certificate.trajectory.rebalance_sequence import Stream
from kassay.solver.limits import SearchBudget
from kassay.solver.problem import Ints
from kassay.solver.trajectory.linear_program import Window, build_program, total_moves
from kassay.solver.trajectory.program_solvers import Prices, optimal_counts

# Variables of the first windows, and seconds per window.
_WINDOW_SIZE = 3_000
_WINDOW_SECONDS = 10.0
# Windows become longer if a pass over all of them saves less than one move in this number of moves.
_FEW_SAVED = 100


def counts_by_prices(stream: Stream, prices: Prices, budget: SearchBudget) -> list[Ints] | None:
    """Choose counts from the first to the last rebalance; prices estimate the later moves.

    The result is None if there is too little time.
    """
    later = prices.costs_to_go(stream)
    end, before = len(stream.rebalances), stream.start
    counts: list[Ints] = []
    while len(counts) < end:
        first = len(counts)
        last = _window_end(stream, first, _WINDOW_SIZE)
        window = Window(first, last, before, end_cost=later[last] if last < end else None)
        found = optimal_counts(
            build_program(stream, window),
            budget.until(_WINDOW_SECONDS),
            is_exact=stream.is_weighted,
        )
        if found is None:
            return None
        # The first half of a window is final: its later half knows the future from prices only.
        kept = found if last == end else found[: max(1, (last - first) // 2)]
        counts += kept
        before = counts[-1]
    return counts


def improved_counts(
    stream: Stream, counts: Sequence[Ints], bound: int, budget: SearchBudget
) -> list[Ints]:
    """Optimise overlapping windows of the counts, and then longer ones if few moves were saved.

    The search ends if a window contains all rebalances, or the bound or the time limit is reached.
    """
    best, value, size = list(counts), sum(total_moves(stream, counts)), _WINDOW_SIZE
    while value > bound:
        before = value
        windows = list(_windows(stream, size))
        for window in windows:
            if value <= bound or not budget.has_time:
                return best
            changed = _optimised(stream, best, window, budget.until(_WINDOW_SECONDS))
            moves = sum(total_moves(stream, changed))
            if moves < value:
                best, value = changed, moves
        if len(windows) == 1:
            return best
        if (before - value) * _FEW_SAVED < before:
            size *= 2
    return best


def _optimised(
    stream: Stream, counts: Sequence[Ints], window: tuple[int, int], budget: SearchBudget
) -> list[Ints]:
    first, last = window
    program = build_program(
        stream,
        Window(
            first,
            last,
            before=counts[first - 1] if first else stream.start,
            after=counts[last] if last < len(counts) else None,
        ),
    )
    found = optimal_counts(program, budget, is_exact=stream.is_weighted)
    return [*counts[:first], *(found or counts[first:last]), *counts[last:]]


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

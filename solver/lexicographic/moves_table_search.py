"""Searches that fill, improve and prove a table of lowest imbalances per number of moves.

All assignments of a small group are compared. In other groups, greedy moves, a beam search and
exchanges fill the table within seconds. Integer programs with variables for moved partitions only,
and column generation, then improve and prove its entries.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kassay.reference.model.metrics import Measure
from kassay.solver.bounds.counting import makespan_bound
from kassay.solver.enumeration.complete_search import lowest_per_moves
from kassay.solver.lexicographic.moves_table import MovesTable
from kassay.solver.limits import SearchBudget
from kassay.solver.objective import Movement
from kassay.solver.problem import Problem

if TYPE_CHECKING:
    from kassay.solver.weighted.search.beam_search_by_moves import BeamSearchByMoves

_MIN_WORK = 0.4
"""Minimum work for the greedy moves, and for one entry of the table."""
_FEW_MOVES = 40
"""Number of moves for which each beam searches, also if the greedy moves end earlier."""
_BEAM_STEP = 1e-3
"""Work of one step of a beam search."""
_CPSAT_SHARE = 0.6
"""Share of the time of one entry for the integer program."""


def search_moves(table: MovesTable, budget: SearchBudget) -> None:
    """Fill a table by greedy moves and beam searches, until a bound is reached.

    A further call continues with the beam searches that did not end within the budget.
    """
    search_greedily(table, budget)
    if not table.waiting:
        return
    _search_beams(table, budget)
    if table.values[-1] > table.lowest and table.has_load_limits:
        # Imported here: numpy.random and SciPy take longer to load than the greedy moves.
        from kassay.solver.weighted.search.limited_moves import scan_load_limits  # noqa: PLC0415

        for placement in scan_load_limits(table.problem, budget):
            table.add(placement)
    if table.level.measure is Measure.SUM_OF_SQUARES:
        for placement in list(table.placements):
            table.add(table.evened_out(placement, budget, is_limited=False))
    table.truncate()


def search_greedily(table: MovesTable, budget: SearchBudget) -> None:
    """Compare all assignments of a small group, or run the greedy searches, at the first call.

    The greedy searches lower the sum of squares most, or the maximum load most. They have at least
    `_MIN_WORK`.
    """
    if table.has_greedy_entries:
        return
    table.has_greedy_entries = True
    complete = lowest_per_moves(table.problem, table.level, table.rules, most=table.most)
    if complete is not None:
        table.fill(complete)
        return
    beam = _beam_search(table)
    first = budget.for_first_result(_MIN_WORK)
    may_continue = first.counted(_BEAM_STEP)
    table.add_until_lowest(beam.lower_squares(table.most, may_continue))
    for heaviest in _heaviest_weights(table.problem):
        most = _useful_moves(table, table.most)
        found = beam.search(most, 1, may_continue, heaviest=heaviest, exchanging=0)
        table.add_until_lowest(found)


def _search_beams(table: MovesTable, budget: SearchBudget) -> None:
    """Run the beam searches that have not ended."""
    beam = _beam_search(table)
    may_continue = budget.counted(_BEAM_STEP)
    while table.waiting and not all(map(table.is_proven, range(table.top + 1))):
        width, limit, exchanging = table.waiting[0]
        for heaviest in _heaviest_weights(table.problem):
            most = _useful_moves(table, limit)
            found = beam.search(most, width, may_continue, heaviest=heaviest, exchanging=exchanging)
            table.add_until_lowest(found)
        if not may_continue():
            return
        del table.waiting[0]


def _beam_search(table: MovesTable) -> "BeamSearchByMoves":
    # Imported here: the module adds to the start-up time of every command.
    from kassay.solver.weighted.search.beam_search_by_moves import BeamSearchByMoves  # noqa: PLC0415

    return BeamSearchByMoves(table.problem, table.placements[0], table.may_receive)


def _heaviest_weights(problem: Problem) -> tuple[int | None, ...]:
    """Return the limits on the weights of moved partitions: none, and half of the lowest load."""
    fastest = min(problem.member_units.factors, default=1)
    return None, makespan_bound(problem) // (2 * fastest)


def _useful_moves(table: MovesTable, limit: int) -> int:
    """Return the maximum number of moves of a beam: at least `_FEW_MOVES` unless these are useless.

    More moves than in the table are useless if its last entry has the lowest possible imbalance.
    """
    is_lowest = table.values[-1] <= table.lowest
    return min(limit, table.most, table.top if is_lowest else max(table.top + 1, _FEW_MOVES))


def prove_moves(table: MovesTable, counts: Sequence[int], budget: SearchBudget) -> None:
    """Improve and prove the entries of a table with given numbers of moves, in this order."""
    counts = [count for count in counts if count <= table.top]
    for number, count in enumerate(counts):
        if not budget.has_work:
            return
        table.raise_bound(count, table.counted_bound(count))
        _add_neighbours(table, count)
        if not table.is_proven(count):
            share = 1 / (1 + sum(not table.is_proven(one) for one in counts[number:]) / 2)
            _prove(table, count, _part(budget, min(1.0, share)))
            if table.report is not None:
                table.report(count, table.values[count], table.bounds[count])


def _add_neighbours(table: MovesTable, moves: int) -> None:
    """Add placements that differ by one move from those with one move more or less."""
    beam = _beam_search(table)
    if moves and not table.is_proven(moves):
        table.add_until_lowest(beam.with_one_more_move(table.placements[moves - 1]))
    if moves < table.top and not table.is_proven(moves):
        table.add_until_lowest(beam.without_one_move(table.placements[moves + 1]))


def _part(budget: SearchBudget, share: float) -> SearchBudget:
    return budget.part(share) if budget.left * share > _MIN_WORK else budget


def _prove(table: MovesTable, moves: int, budget: SearchBudget) -> None:
    """Improve and prove one entry by integer programs, then by column generation."""
    # Imported here: loading OR-Tools takes longer than the search in a small group.
    from kassay.solver.cpsat.moved_partitions import MovedPartitionsModel  # noqa: PLC0415
    from kassay.solver.weighted.search.limited_moves import LimitedMovesSearch  # noqa: PLC0415

    found = MovedPartitionsModel(table.problem, table.rules).minimise(
        table.level,
        [(Movement(), moves)],
        budget=_part(budget, _CPSAT_SHARE),
        hint=table.placements[moves],
        bound=table.bounds[moves],
    )
    if found.placement is not None:
        table.add(found.placement)
    if found.bound is not None:
        table.raise_bound(moves, found.bound)
    is_searched = table.is_proven(moves) or not budget.has_work
    if table.rules or is_searched or not table.has_load_limits:
        return
    rng = np.random.default_rng(budget.seed)
    search = LimitedMovesSearch(table.problem, moves, table.placements[moves], rng)
    search.run(budget)
    table.add(search.placement)
    table.raise_bound(moves, search.bound)

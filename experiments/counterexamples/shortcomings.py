"""Kinds of shortcomings of assignors, and the measurement of their severity on a group."""

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from kassay.experiments.comparison.compare import Comparer
from kassay.experiments.comparison.comparison_result import Comparison
from kassay.experiments.comparison.optimum import LIMITS, CaseLimits, solve_optimum
from kassay.experiments.implementations.convergence import Ending, StableResult, run_until_stable
from kassay.experiments.implementations.library_catalogue import repetitions_of
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import Measure
from kassay.solver.solution import Solution

MAX_ATTEMPTS = 4_000


class Shortcoming(StrEnum):
    """Kind of shortcoming of an assignor, such as imbalance or unnecessary moves."""

    IMBALANCE = "imbalance"
    MOVES = "moves"
    RATIO = "ratio"
    LIVELOCK = "livelock"
    FAILURE = "failure"


NEEDS_OPTIMUM = frozenset({Shortcoming.IMBALANCE, Shortcoming.MOVES, Shortcoming.RATIO})
LARGEST_FIRST = frozenset({Shortcoming.MOVES, Shortcoming.RATIO})
"""Shortcomings for which a search prefers the largest severity to the smallest group."""
_ENDINGS = {
    Shortcoming.LIVELOCK: frozenset({Ending.NONTERMINATING}),
    Shortcoming.FAILURE: frozenset({Ending.FAILED, Ending.INVALID}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterexampleOptions:
    """Options of a search for counterexamples."""

    assignor: str
    shortcoming: Shortcoming
    limits: CaseLimits = LIMITS
    attempts: int = MAX_ATTEMPTS  # groups to try while one group is shrunk


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfall:
    """Severity of a shortcoming of an assignor on one group.

    ``severity`` is 0 if there is no shortcoming, or none is proven. ``imbalance``: imbalance
    above the minimum. ``moves``: unnecessary moves per partition. ``ratio``: maximum load divided
    by the minimum possible maximum load, minus 1. ``livelock`` and ``failure``: 1.
    """

    severity: Fraction
    proven: bool
    result: StableResult


def measure_shortfall(
    group: Group, options: CounterexampleOptions, *, optimum: Solution | None = None
) -> Shortfall:
    """Measure the severity of an assignor's shortcoming on a group.

    An assignor of a library with results that vary between runs runs several times; the largest
    severity counts.

    Examples
    --------
    >>> from kassay.experiments.study.families.hand_written_groups import NAMED_GROUPS
    >>> options = CounterexampleOptions(assignor="sticky", shortcoming=Shortcoming.RATIO)
    >>> measure_shortfall(NAMED_GROUPS["A"].group, options).severity
    Fraction(1, 1)
    """
    repetitions = repetitions_of(options.assignor)
    if repetitions > 1 and optimum is None and options.shortcoming in NEEDS_OPTIMUM:
        optimum = solve_optimum(group, limits=options.limits)
    runs = (_measure_run(group, options, optimum) for _ in range(repetitions))
    return max(runs, key=lambda run: (run.severity, not run.proven))


def _measure_run(
    group: Group, options: CounterexampleOptions, optimum: Solution | None
) -> Shortfall:
    shortcoming = options.shortcoming
    result = run_until_stable(group, options.assignor)
    severity: Fraction | None = Fraction(0)
    if shortcoming in _ENDINGS:
        severity = Fraction(result.ending in _ENDINGS[shortcoming])
    elif result.ending is Ending.OK:
        comparer = Comparer(
            group,
            optimum or solve_optimum(group, limits=options.limits),
            limits=options.limits,
            start=result.assignment,
        )
        comparison = comparer.compare(
            options.assignor, result, with_moves=shortcoming is Shortcoming.MOVES
        )
        severity = _severity(group, comparison, shortcoming)
    return Shortfall(severity=severity or Fraction(0), proven=severity is not None, result=result)


def _severity(group: Group, comparison: Comparison, shortcoming: Shortcoming) -> Fraction | None:
    match shortcoming:
        case Shortcoming.IMBALANCE:
            gap = comparison.imbalance_gap
            return None if gap is None else Fraction(gap)
        case Shortcoming.MOVES:
            moves = comparison.unnecessary_moves
            return None if moves is None else Fraction(moves, max(1, group.partition_count))
        case _:
            makespan = comparison.imbalance[Measure.MAKESPAN]
            if makespan.value is None or makespan.optimum is None:
                return None
            return Fraction(makespan.value, makespan.optimum or 1) - 1

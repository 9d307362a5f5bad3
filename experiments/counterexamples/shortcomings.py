"""What it means to fall short, and by how much."""

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from kassay.experiments.compare import LIMITS, CaseLimits, Comparison, compare, solve_optimum
from kassay.experiments.implementations.convergence import Ending, StableResult, run_until_stable
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import Measure
from kassay.solver.solution import Solution


class Shortcoming(StrEnum):
    """A way for an assignor to fall short of the optimum."""

    IMBALANCE = "imbalance"
    MOVES = "moves"
    RATIO = "ratio"
    LIVELOCK = "livelock"
    FAILURE = "failure"


NEEDS_OPTIMUM = frozenset({Shortcoming.IMBALANCE, Shortcoming.MOVES, Shortcoming.RATIO})
BY_DEGREE = frozenset({Shortcoming.MOVES, Shortcoming.RATIO})
"""Those hunted for how bad they are; the others for how small a group has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfall:
    """How far an assignor falls short on one group.

    Parameters
    ----------
    severity
        0 where it does not, or where that is not proven. Else, for ``imbalance``, the
        imbalance above the least; for ``moves``, unnecessary moves per partition; for
        ``ratio``, the greatest load over the least possible greatest load, less 1; for
        ``livelock`` and ``failure``, 1.
    proven
        Whether everything that the severity hangs on is proven.
    settled
        How the assignor ended.
    comparison
        Its figures against the optimum, where the shortcoming needs them.
    """

    severity: Fraction
    proven: bool
    settled: StableResult
    comparison: Comparison | None = None


def shortfall(
    group: Group,
    assignor: str,
    *,
    shortcoming: Shortcoming,
    optimum: Solution | None = None,
    limits: CaseLimits = LIMITS,
) -> Shortfall:
    """Measure how far an assignor falls short on a group.

    Parameters
    ----------
    group
        The rebalance.
    assignor
        Name of Kafka's assignor, or of a custom one.
    shortcoming
        In what way.
    optimum
        The group's `solve_optimum`, where it is known already.
    limits
        What each search may use up.

    Examples
    --------
    >>> from kassay.experiments.study.families.named_groups import NAMED_GROUPS
    >>> group = NAMED_GROUPS["A"].group
    >>> shortfall(group, "sticky", shortcoming=Shortcoming.RATIO).severity
    Fraction(1, 1)
    >>> shortfall(group, "sticky", shortcoming=Shortcoming.MOVES).severity
    Fraction(0, 1)
    """
    settled = run_until_stable(group, assignor)
    if shortcoming not in NEEDS_OPTIMUM:
        wanted = (
            {Ending.NONTERMINATING}
            if shortcoming is Shortcoming.LIVELOCK
            else {Ending.FAILED, Ending.INVALID}
        )
        return Shortfall(severity=Fraction(settled.ending in wanted), proven=True, settled=settled)
    if settled.ending is not Ending.OK:
        return Shortfall(severity=Fraction(0), proven=True, settled=settled)
    comparison = compare(
        group,
        assignor,
        optimum=optimum or solve_optimum(group, limits=limits),
        result=settled,
        # Only moves need that search.
        moves_within=None if shortcoming is Shortcoming.MOVES else _unknown,
        limits=limits,
    )
    severity = _severity(group, comparison, shortcoming)
    return Shortfall(
        severity=severity or Fraction(0),
        proven=severity is not None,
        settled=settled,
        comparison=comparison,
    )


def _severity(group: Group, comparison: Comparison, shortcoming: Shortcoming) -> Fraction | None:
    match shortcoming:
        case Shortcoming.IMBALANCE:
            gap = comparison.imbalance_gap
            return None if gap is None else Fraction(gap)
        case Shortcoming.MOVES:
            wasted = comparison.unnecessary_moves
            return None if wasted is None else Fraction(wasted, max(1, group.partition_count))
        case _:
            makespan = comparison.imbalance[Measure.MAKESPAN]
            greedy, least = makespan.greedy, makespan.optimum
            return None if greedy is None or least is None else Fraction(greedy, least or 1) - 1


def _unknown(imbalance: int) -> int | None:  # noqa: ARG001
    return None

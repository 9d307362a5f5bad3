"""Measures of an answer of an assignor, with the minimum of each."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.solver.certificate.certificate import value_of
from kassay.solver.objective import requested_levels
from kassay.solver.solution import Solution


@dataclass(frozen=True, slots=True)
class KindMeasure:
    """Value of an answer on one measure, with the minimum of the measure.

    Parameters
    ----------
    minimum, bound
        Best known value and proven lower bound, under the condition of the measure in
        docs/kinds.md; None if the answer does not meet the condition.
    optimum
        Value in the optimum of all levels in their order; None if it is not computed.
    """

    name: str
    value: int
    minimum: int | None
    bound: int | None
    optimum: int | None = None


@dataclass(frozen=True, slots=True)
class UnneededMove:
    """Unneeded move: a move of an answer that an optimum with fewer moves does not make."""

    partition: tuple[str, int]
    owners: tuple[str, ...]
    member: str


@dataclass(frozen=True, slots=True)
class KindComparison:
    """Measures of one answer or one stable state, and the unneeded moves."""

    measures: tuple[KindMeasure, ...]
    unneeded: tuple[UnneededMove, ...] = ()
    step: int | None = None
    invalid: tuple[str, ...] = ()


def measure_level(
    group: Group,
    answer: Assignment,
    solution: Solution,
    name: str,
    chosen: Mapping[str, int],
    *,
    shown: str | None = None,
) -> KindMeasure:
    """Return a measure of an answer, and its value and bound in a solution.

    ``chosen`` contains the values in the optimum of all levels. ``shown`` is the name of the
    measure, by default that of the level.
    """
    level = solution.level(name)
    value = value_of(group, answer, requested_levels(group, name)[0])
    shown = shown or name
    return KindMeasure(shown, value, level.value, level.bound, chosen.get(shown))


def unneeded_moves(
    group: Group, answer: Assignment, solution: Solution
) -> tuple[UnneededMove, ...]:
    """Return the moves of an answer that a solution with fewer moves does not make."""
    optimum, levels = solution.assignment, requested_levels(group, "movement")
    if optimum is None or value_of(group, answer, levels[0]) <= solution.movement.value:
        return ()
    holders: dict[tuple[str, int], list[str]] = {}
    for member in group.members:
        for tp in (*member.owned, *member.holds):
            if tp.topic in member.subscription:
                holders.setdefault(tp, []).append(member.id)
    return tuple(
        UnneededMove((tp.topic, tp.partition), tuple(holders[tp]), member)
        for member, partitions in answer.items()
        for tp in partitions
        if tp in holders and member not in holders[tp] and tp not in set(optimum[member])
    )


def balance_measures(
    group: Group, answer: Assignment, solution: Solution, chosen: Mapping[str, int]
) -> list[KindMeasure]:
    """Return the measures of loads and moves.

    The fewest moves belong to the minimum imbalance, so they are unknown for another imbalance.
    """
    loads = measure_level(group, answer, solution, "sum_of_squares", chosen)
    moves = measure_level(group, answer, solution, "movement", chosen)
    if loads.value > solution.imbalance.bound:
        moves = replace(moves, minimum=None, bound=None)
    return [loads, moves]


def unneeded_if_balanced(
    group: Group, answer: Assignment, solution: Solution
) -> tuple[UnneededMove, ...]:
    """Return the moves that the optimum does not make, if the loads of the answer are minimum."""
    loads = value_of(group, answer, requested_levels(group, "sum_of_squares")[0])
    return unneeded_moves(group, answer, solution) if loads <= solution.imbalance.bound else ()

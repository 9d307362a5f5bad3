"""Compare an assignor with the optimum on each level of an objective."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from kassay.experiments.compare import HeuristicGap
from kassay.experiments.implementations.convergence import Ending, run_until_stable
from kassay.reference.model.group import Group
from kassay.solver.constraints import Constraint
from kassay.solver.evaluation import level_value, valid_placement, violated
from kassay.solver.objective import Level
from kassay.solver.problem import build_problem
from kassay.solver.solution import Solution, level_keys


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelComparison:
    """Comparison of an assignor's result with the optimum of the given levels and constraints.

    Parameters
    ----------
    ending, detail, rounds
        As in `Comparison`.
    levels
        Value of the assignor's result and proven optimum, by JSON key of the level.
    violated
        Constraints that the assignor's result violates, as text.
    """

    assignor: str
    ending: str
    detail: str | None = None
    rounds: int
    levels: Mapping[str, HeuristicGap] = field(default_factory=dict)
    violated: tuple[str, ...] = ()


def compare_levels(
    group: Group,
    assignor: str,
    *,
    levels: Sequence[Level],
    optimum: Solution,
    constraints: Sequence[Constraint] = (),
) -> LevelComparison:
    """Compare an assignor with the optimum of levels and constraints, level by level.

    ``optimum`` is the `solve_optimum` of the same levels and constraints.
    """
    result = run_until_stable(group, assignor)
    assignment = result.assignment if result.ending is Ending.OK else None
    proven = [level.value if level.is_proven else None for level in optimum.levels]
    keys = level_keys(level.name for level in levels)
    problem = build_problem(group)
    broken: tuple[str, ...] = ()
    if assignment is not None:
        placement = valid_placement(problem, assignment)
        broken = tuple(map(str, violated(problem, constraints, placement)))
    return LevelComparison(
        assignor=assignor,
        ending=str(result.ending),
        detail=result.detail,
        rounds=result.rounds,
        levels={
            key: HeuristicGap(
                greedy=None if assignment is None else level_value(problem, level, placement),
                optimum=value,
            )
            for key, level, value in zip_longest(keys, levels, proven)
        },
        violated=broken,
    )

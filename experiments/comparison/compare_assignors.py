"""Compare several assignors with the optimum of one group."""

from collections.abc import Callable, Iterable, Sequence

from kassay.experiments.comparison.compare import compare
from kassay.experiments.comparison.comparison_result import ComparedValue, Comparison
from kassay.experiments.comparison.optimum import CaseLimits, solve_optimum, without_capacities
from kassay.experiments.implementations.runner import StableResult, run_until_stable
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import Measure, leximax, loads, measures, shown
from kassay.solver.incumbent_pool import longest_processing_time
from kassay.solver.limits import SearchBudget
from kassay.solver.problem import build_problem

_OPTIMUM_SHARE = 0.5
"""Share of the time limit for the optimum, before the searches for unnecessary moves."""
_SHARE_IF_MISSED = 1 / 15
"""Share of the time limit for the optimum if a greedy assignment is better than all assignors."""


def compare_assignors(
    group: Group,
    names: Sequence[str],
    limits: CaseLimits,
    *,
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, object]:
    """Compare assignors with the optimum of a group within common limits, as JSON.

    If the limits stop the search, the further assignors have no result.
    """
    budget = SearchBudget.start(limits)
    results: dict[str, StableResult] = {}
    for name in names:
        if limits.is_stopped:
            break
        progress(name)
        results[name] = run_until_stable(group, name)
    progress("optimum")
    share = 1 if not names else _OPTIMUM_SHARE
    if group.is_weighted and not _may_be_optimal(group, results.values()):
        share = _SHARE_IF_MISSED
    optimum = solve_optimum(group, limits=budget.part(share).rest())
    vector = () if optimum.assignment is None else loads(group, optimum.assignment).values()
    comparisons = []
    for index, (name, result) in enumerate(results.items()):
        if limits.is_stopped:
            break
        progress(f"unnecessary moves of {name}")
        within = CaseLimits.of(budget.part(1 / (len(results) - index)).rest())
        comparisons.append(
            compare(group, name, optimum=optimum, result=result, limits=within, needs_proof=False)
        )
    return {
        "id": group.id,
        "optimum": {
            "status": str(optimum.status),
            "measure": optimum.imbalance.name,
            "imbalance": shown(optimum.imbalance.name, optimum.imbalance.value, group),
            "imbalance_bound": shown(optimum.imbalance.name, optimum.imbalance.bound, group),
            "movement": optimum.movement.value,
            "loads": list(leximax(vector)) if vector else [],
        },
        "comparisons": [_entry(comparison, group) for comparison in comparisons],
        "proof": optimum.proof_by_level(),
    }


def _may_be_optimal(group: Group, results: Iterable[StableResult]) -> bool:
    """Return whether a result may have the minimum makespan.

    It does not if a greedy assignment has a lower makespan.
    """
    problem = build_problem(without_capacities(group))
    placement = longest_processing_time(problem)
    greedy = measures(group, problem.to_assignment(placement))[Measure.MAKESPAN]
    assignments = [one.assignment for one in results if one.assignment is not None]
    return any(measures(group, one)[Measure.MAKESPAN] <= greedy for one in assignments)


def compared(name: str, value: ComparedValue, group: Group) -> dict[str, object]:
    """Convert a value of a level to JSON, in the unit of the loads of the group."""
    numbers = {"value": value.value, "optimum": value.optimum, "gap": value.gap}
    return {
        key: None if number is None else shown(name, number, group)
        for key, number in numbers.items()
    }


def _entry(comparison: Comparison, group: Group) -> dict[str, object]:
    """Convert a comparison to JSON, with one object per measure and no null values."""
    names = ("assignor", "ending", "detail", "rounds", "measure", "proven")
    results = ("least_imbalance", "movement_within", "unnecessary_moves")
    entry = {name: getattr(comparison, name) for name in (*names, *results)}
    for measure, values in comparison.imbalance.items():
        if values.value is not None:
            entry[measure] = compared(measure, values, group)
    moves = comparison.movement
    if moves.value is not None:
        entry["movement"] = {
            "value": moves.value,
            "optimum": moves.optimum,
            "gap": comparison.movement_gap,
        }
    return {key: value for key, value in entry.items() if value is not None}

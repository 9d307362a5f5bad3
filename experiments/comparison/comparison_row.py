"""Table row of a comparison. docs/formats.md documents each column."""

from dataclasses import dataclass
from typing import Any

from kassay.experiments.comparison.comparison_result import UNKNOWN, Comparison
from kassay.reference.model.metrics import MEASURES


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRow:
    """Row of the table ``comparisons``, one per group and assignor. See `Comparison`."""

    case: str
    assignor: str
    ending: str
    detail: str | None
    rounds: int
    measure: str | None
    proven: bool | None
    sum_of_squares_greedy: int | None
    sum_of_squares_optimum: int | None
    sum_of_squares_gap: int | None
    makespan_greedy: int | None
    makespan_optimum: int | None
    makespan_gap: int | None
    spread_greedy: int | None
    spread_optimum: int | None
    spread_gap: int | None
    deviation_greedy: int | None
    deviation_optimum: int | None
    deviation_gap: int | None
    balance_score_greedy: int | None
    balance_score_optimum: int | None
    balance_score_gap: int | None
    least_imbalance: bool | None
    movement_greedy: int | None
    movement_optimum: int | None
    movement_gap: int | None
    movement_within: int | None
    unnecessary_moves: int | None


def comparison_row(comparison: Comparison) -> ComparisonRow:
    """Convert a `Comparison` to a table row, with three columns per measure."""
    by_measure: dict[str, Any] = {}
    for measure in MEASURES:
        values = comparison.imbalance.get(measure, UNKNOWN)
        by_measure[f"{measure}_greedy"] = values.value
        by_measure[f"{measure}_optimum"] = values.optimum
        by_measure[f"{measure}_gap"] = values.gap
    return ComparisonRow(
        case=comparison.case,
        assignor=comparison.assignor,
        ending=comparison.ending,
        detail=comparison.detail,
        rounds=comparison.rounds,
        measure=None if comparison.measure is None else str(comparison.measure),
        proven=comparison.proven,
        **by_measure,
        least_imbalance=comparison.least_imbalance,
        movement_greedy=comparison.movement.value,
        movement_optimum=comparison.movement.optimum,
        movement_gap=comparison.movement_gap,
        movement_within=comparison.movement_within,
        unnecessary_moves=comparison.unnecessary_moves,
    )

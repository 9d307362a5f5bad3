"""Rows of a study's tables: a field is a column.

docs/formats.md documents all columns. Wall-clock times are in a table of their own,
``timings``; every other table is the same in every run.
"""

from dataclasses import dataclass
from typing import Any

from kassay.experiments.compare import UNKNOWN_GAP, Comparison
from kassay.reference.model.metrics import MEASURES


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """A row of the table ``groups``, one per group.

    Parameters
    ----------
    case
        Name of the case, the key of all tables.
    seed
        Seed within the family; for an imported group its position in the file.
    start
        Assignor whose results the members own, in families with such a history.
    error
        Why the group could not be built; all later columns are then None.
    participants
        Members that subscribe to a topic with partitions.
    partitions, consumed, subscriptions
        Partitions, topics and subscriptions, of topics with partitions and subscribers.
    owned
        Partitions that have an owner before the rebalance.
    stale, contested
        Invalid claims.
    mixed
        Whether participants differ in their subscriptions to topics with partitions.
    document
        The group document, if the group is small enough to be drawn.
    """

    case: str
    family: str
    seed: int
    start: str | None
    group_id: str | None = None
    error: str | None = None
    members: int | None = None
    topics: int | None = None
    participants: int | None = None
    partitions: int | None = None
    consumed: int | None = None
    subscriptions: int | None = None
    owned: int | None = None
    stale: int | None = None
    contested: int | None = None
    mixed: bool | None = None
    weighted: bool | None = None
    document: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentRow:
    """A row of the table ``assignments``, one per group and assignor.

    Parameters
    ----------
    ending
        How the assignor ended, see `Ending`; ``terminated`` is False for a livelock only.
    rounds
        Rebalances until nothing was withheld.
    kept, moved, placed
        Partitions that stay with their owner, leave it, or had none.
    kafka_balance_score, kafka_is_balanced, per_topic_spread, standard_deviation, range_spread, \
balancedness, off_rack
        Metrics of other tools, see `kassay.reference.model.external_metrics`.
    loads
        Loads in descending order, joined by slashes, for small groups.
    assignment
        The assignment as JSON, if the group is small enough to be drawn.
    """

    case: str
    assignor: str
    ending: str
    terminated: bool
    detail: str | None
    rounds: int
    sum_of_squares: int | None = None
    makespan: int | None = None
    spread: int | None = None
    deviation: int | None = None
    balance_score: int | None = None
    kept: int | None = None
    moved: int | None = None
    placed: int | None = None
    kafka_balance_score: int | None = None
    kafka_is_balanced: bool | None = None
    per_topic_spread: int | None = None
    standard_deviation: float | None = None
    range_spread: float | None = None
    balancedness: float | None = None
    off_rack: int | None = None
    loads: str | None = None
    assignment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimumRow:
    """A row of the table ``optima``, one per group.

    Parameters
    ----------
    status
        ``optimal`` if both levels are proven, ``feasible`` if not, ``error`` if the solver
        failed.
    imbalance_value, imbalance_bound, movement_value, movement_bound
        Value and proven lower bound of both levels.
    loads, assignment
        As in `AssignmentRow`.
    """

    case: str
    status: str
    method: str | None = None
    measure: str | None = None
    imbalance_value: int | None = None
    imbalance_bound: int | None = None
    movement_value: int | None = None
    movement_bound: int | None = None
    detail: str | None = None
    loads: str | None = None
    assignment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRow:
    """A row of the table ``comparisons``, one per group and assignor; see `Comparison`."""

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
    """Return a comparison as a row, with three columns per measure.

    Examples
    --------
    >>> from kassay.experiments.compare import compare
    >>> from kassay.experiments.study.families.named_groups import NAMED_GROUPS
    >>> row = comparison_row(compare(NAMED_GROUPS["A"].group, "sticky"))
    >>> row.makespan_greedy, row.makespan_optimum, row.makespan_gap
    (2, 1, 1)
    """
    by_measure: dict[str, Any] = {}
    for measure in MEASURES:
        values = comparison.imbalance.get(measure, UNKNOWN_GAP)
        by_measure[f"{measure}_greedy"] = values.greedy
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
        movement_greedy=comparison.movement.greedy,
        movement_optimum=comparison.movement.optimum,
        movement_gap=comparison.movement_gap,
        movement_within=comparison.movement_within,
        unnecessary_moves=comparison.unnecessary_moves,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingRow:
    """A row of the table ``timings``: the only values that differ between runs.

    Parameters
    ----------
    contestant
        An assignor, all its rounds together; or ``optimum``.
    seconds
        Wall-clock seconds.
    """

    case: str
    contestant: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRecord:
    """All rows of one case."""

    group: GroupRow
    optimum: OptimumRow | None = None
    assignments: tuple[AssignmentRow, ...] = ()
    comparisons: tuple[ComparisonRow, ...] = ()
    timings: tuple[TimingRow, ...] = ()

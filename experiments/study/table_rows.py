"""Row types of a study's tables. docs/formats.md documents each column."""

from dataclasses import dataclass
from typing import Any, Self

from kassay.experiments.comparison.comparison_result import (
    ComparedValue,
    FrontDistance,
)
from kassay.experiments.comparison.comparison_row import ComparisonRow
from kassay.experiments.implementations.runner import Ending


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """Row of the table ``groups``, one per case of a study.

    Fields after ``error`` are None if ``error`` is set.
    """

    case: str
    family: str
    seed: int
    start: str | None
    group_id: str | None = None
    error: str | None = None
    members: int | None = None
    topics: int | None = None
    participants: int | None = None  # members that subscribe to a topic with partitions
    partitions: int | None = None
    consumed: int | None = None
    subscriptions: int | None = None
    owned: int | None = None
    stale: int | None = None  # invalid claims, see `ownership`
    contested: int | None = None  # claims of several members
    mixed: bool | None = None
    weighted: bool | None = None
    racks: bool | None = None  # whether a member and a replica have a rack
    forced: bool | None = None  # whether each partition has one subscriber only
    renaming_hash: int | None = None  # equal for groups that differ only in names and order
    document: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentRow:
    """Row of the table ``assignments``, one per group and assignor."""

    case: str
    assignor: str
    ending: str
    terminated: bool  # False for a livelock only
    detail: str | None
    rounds: int
    sum_of_squares: int | None = None
    makespan: int | None = None
    spread: int | None = None
    deviation: int | None = None
    balance_score: int | None = None
    kept: int | None = None
    moved: int | None = None
    placed: int | None = None  # partitions without an owner
    kafka_balance_score: int | None = None
    kafka_is_balanced: bool | None = None
    per_topic_spread: int | None = None
    standard_deviation: float | None = None
    range_spread: float | None = None
    balancedness: float | None = None
    off_rack: int | None = None
    loads: str | None = None
    assignment: str | None = None

    @classmethod
    def of(cls, case: str, assignor: str, ending: Ending, **columns: Any) -> Self:
        """Create the row of a result from its ending and further columns."""
        terminated = ending is not Ending.NONTERMINATING
        columns |= {"ending": str(ending), "terminated": terminated}
        return cls(case=case, assignor=assignor, **columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimumRow:
    """Row of the table ``optima``, one per group."""

    case: str
    status: str
    method: str | None = None
    measure: str | None = None
    imbalance_value: int | None = None
    imbalance_bound: int | None = None
    movement_value: int | None = None
    movement_bound: int | None = None
    proof: str | None = None
    detail: str | None = None
    loads: str | None = None
    assignment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontDistanceRow:
    """Row of the table ``front_distances``: an assignment and the front of three criteria.

    There is one row per assignment of a group with racks and owned partitions. The criteria are
    imbalance, off-rack reads and moves. See `FrontDistance`.
    """

    assignor: str
    on_front: bool | None  # None: not proven
    imbalance: int
    imbalance_within: int  # best value if both other criteria do not get worse
    imbalance_bound: int  # proven lower bound on it
    off_rack: int
    off_rack_within: int
    off_rack_bound: int
    moves: int
    moves_within: int
    moves_bound: int
    fewest_moves: int | None  # with at most this imbalance and any number of off-rack reads
    moves_without_racks: int | None  # of the assignor on the same group without racks
    fewest_moves_without_racks: int | None  # with at most the imbalance of this assignment


def front_distance_row(assignor: str, front: FrontDistance) -> FrontDistanceRow:
    """Convert a `FrontDistance` to a table row, with three columns per criterion."""
    by_criterion: dict[str, Any] = {}
    for name in ("imbalance", "off_rack", "moves"):
        found: ComparedValue = getattr(front, name)
        by_criterion[name] = found.value
        by_criterion[f"{name}_within"] = found.best
        by_criterion[f"{name}_bound"] = found.bound
    return FrontDistanceRow(
        assignor=assignor,
        on_front=front.is_on_front,
        **by_criterion,
        fewest_moves=front.moves_any_racks.optimum,
        moves_without_racks=front.moves_without_racks.value,
        fewest_moves_without_racks=front.moves_without_racks.optimum,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingRow:
    """Row of the table ``timings``: the run time of an assignor or the solver on a group."""

    case: str
    contestant: str  # an assignor, all its rounds together; or `optimum`
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceRow:
    """Row of the table ``rebalances``: one assignor at one rebalance of an event stream."""

    rebalance: int  # 0 for the first assignment
    event: str
    assignor: str
    ending: str
    rounds: int
    members: int  # that subscribe to a topic with partitions
    partitions: int
    mixed: bool
    owned: int
    least_sum_of_squares: int
    least_makespan: int
    sum_of_squares: int | None = None
    makespan: int | None = None
    moves: int | None = None
    fewest_moves: int | None = None  # to minimum imbalance
    fewest_moves_within: int | None = None  # to at most the imbalance of the assignor


@dataclass(frozen=True, slots=True)
class MeasureRow:
    """Row of the table ``measures``: a measure of an answer, and the minimum of the measure.

    Only share groups, Streams applications and Connect clusters have rows.
    """

    assignor: str
    measure: str
    value: int
    minimum: int | None  # best known value; None if the answer does not meet the condition
    bound: int | None  # proven lower bound of the minimum


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRecord:
    """Result of one case of a study: its rows of all tables."""

    group: GroupRow
    optimum: OptimumRow | None = None
    assignments: tuple[AssignmentRow, ...] = ()
    comparisons: tuple[ComparisonRow, ...] = ()
    timings: tuple[TimingRow, ...] = ()
    rebalances: tuple[RebalanceRow, ...] = ()
    front_distances: tuple[FrontDistanceRow, ...] = ()
    measures: tuple[MeasureRow, ...] = ()

"""The rows of a study's tables: flat values, so that a field is a column.

The table ``comparisons`` has `kassay.experiments.compare.Comparison` for a row. Wall-clock times
are rows of their own, ``timings``: everything else is the same in every run.
"""

from dataclasses import dataclass

from kassay.experiments.compare import Comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """A row of the table ``groups``: one a group.

    Parameters
    ----------
    case
        Name of the case, the key of all tables.
    family
        Family that the group belongs to.
    seed
        Seed within the family; for an imported group its position in the file.
    start
        Assignor whose own results the members own, in families with such a history.
    group_id
        Id in the group's document.
    error
        Why the group could not be built; the other columns are then None.
    members, topics
        How many.
    participants
        Members that subscribe to some topic with partitions.
    partitions
        Partitions that somebody subscribes to.
    consumed
        Topics with partitions that somebody subscribes to.
    subscriptions
        Subscriptions to these, over all members.
    owned
        Partitions that have an owner before the rebalance.
    stale, contested
        Claims that do not hold.
    mixed
        Whether participants differ in the topics they subscribe to.
    weighted
        Whether partitions differ in weight.
    document
        The group document, where the group is small enough to be drawn.
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
    """A row of the table ``assignments``: one a group and assignor.

    Parameters
    ----------
    case, assignor
        The key.
    ending
        How the assignor ended, see `Ending`.
    terminated
        Whether it came to an end, be it an exception.
    detail
        What went wrong, in words.
    rounds
        Rebalances until nothing was withheld.
    sum_of_squares, makespan, spread, deviation, balance_score
        The measures of imbalance.
    kept, moved, placed
        Partitions that stayed, left their owner, or had none.
    kafka_balance_score, kafka_is_balanced, per_topic_spread, standard_deviation, range_spread, \
balancedness, off_rack
        What other tools measure, see `kassay.reference.model.external_metrics`.
    loads
        Loads in descending order, joined by slashes, of groups that are small.
    assignment
        The assignment as JSON, where the group is small enough to be drawn.
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
    """A row of the table ``optima``: one a group.

    Parameters
    ----------
    case
        The key.
    status
        ``optimal`` where both levels are proven, ``feasible`` where not, ``error`` where
        the solver failed.
    method
        How it was found.
    measure
        The imbalance minimised.
    imbalance_value, imbalance_bound
        What was found and what is proven to be the least.
    movement_value, movement_bound
        Likewise for the moves, among assignments of that imbalance.
    detail
        What went wrong, in words.
    loads
        Loads in descending order, joined by slashes, of groups that are small.
    assignment
        The assignment as JSON, where the group is small enough to be drawn.
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
class TimingRow:
    """A row of the table ``timings``: the only figures that no two runs share.

    Parameters
    ----------
    case
        The key.
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
    comparisons: tuple[Comparison, ...] = ()
    timings: tuple[TimingRow, ...] = ()

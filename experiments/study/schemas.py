"""Tables of studies: types of rows, Arrow schemas, digests and scopes.

Digests of results and of groups are equal on all machines.

docs/formats.md documents each column.
"""

import hashlib
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any
from zlib import crc32

import pyarrow as pa

from kassay.experiments.comparison import comparison_result
from kassay.experiments.implementations.client_libraries import is_library_assignor
from kassay.experiments.study.families.all_families import USUAL
from kassay.reference.assignors import ASSIGNORS, KIND_PORTS, Goal, Release
from kassay.reference.model.group import Group, Topic

OPTIMUM = "optimum"
"""Name of the results with minimum imbalance and the fewest moves at each rebalance."""
HINDSIGHT = "hindsight"
"""Name of the results with minimum imbalance and the fewest moves over the whole stream."""


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

    assignor: str
    ending: str
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
    off_rack: int | None = None
    loads: str | None = None
    assignment: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimumRow:
    """Row of the table ``optima``, one per group."""

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
class TimingRow:
    """Row of the table ``timings``: the run time of an assignor or the solver on a group."""

    contestant: str  # an assignor, all its rounds together; or `optimum`
    seconds: float
    is_first: bool = False  # the first run in its process, which includes the start of programs


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
    """Row of the table ``measures``: the value of one measure, and its minimum.

    There are rows for share groups, Streams and Connect, and for consumer groups with prices of
    goals (see `GroupPrices`). Rows with the assignor ``optimum`` are prices for every assignor.
    """

    assignor: str
    measure: str
    value: int
    minimum: int | None  # best known value; None if the answer does not meet the condition
    bound: int | None  # proven lower bound of the minimum


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRecord:
    """Result of one case of a study: its rows of all tables.

    A comparison is a row of the table ``comparisons`` and, with a front, of ``front_distances``.
    """

    group: GroupRow
    optimum: OptimumRow | None = None
    assignments: tuple[AssignmentRow, ...] = ()
    comparisons: tuple[comparison_result.Comparison, ...] = ()
    timings: tuple[TimingRow, ...] = ()
    rebalances: tuple[RebalanceRow, ...] = ()
    measures: tuple[MeasureRow, ...] = ()


_ARROW = {int: pa.int64(), float: pa.float64(), bool: pa.bool_(), str: pa.string()}
_INT64 = range(-(2**63), 2**63)


def schema_of(row: type) -> pa.Schema:
    """Derive an Arrow schema from the fields of a dataclass."""
    hints = typing.get_type_hints(row)
    return pa.schema([_field(field.name, hints[field.name]) for field in fields(row)])


def _field(name: str, hint: object) -> pa.Field:
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    nullable = type(None) in options
    (kind,) = (option for option in options if option is not type(None))
    if kind not in _ARROW:
        raise TypeError(f"column {name!r}: Arrow has no type for {hint!r}; use int, float or str")
    return pa.field(name, _ARROW[kind], nullable=nullable)


def _nullable(columns: Mapping[str, type]) -> pa.Schema:
    return pa.schema([_field(name, kind | None) for name, kind in columns.items()])


COMPARISONS = _nullable(comparison_result.COMPARISON_COLUMNS)
TABLES: Mapping[str, pa.Schema] = {
    "groups": schema_of(GroupRow),
    "assignments": schema_of(AssignmentRow),
    "optima": schema_of(OptimumRow),
    "comparisons": COMPARISONS.remove(COMPARISONS.get_field_index("case")),
    "timings": schema_of(TimingRow),
    "rebalances": schema_of(RebalanceRow),
    "front_distances": _nullable(comparison_result.FRONT_COLUMNS),
    "measures": schema_of(MeasureRow),
}
"""Columns of the tables. Tables other than ``groups`` start with the column `KEY`."""

LISTS = ("assignments", "comparisons", "timings", "rebalances", "front_distances", "measures")
"""Tables with any number of rows per case."""

KEY = "case"
POSITION, STUDY = "position", "study"


def _nested(name: str) -> pa.Field:
    # A nullable struct, such as an optimum, must have nullable fields.
    struct = pa.struct([field.with_nullable(True) for field in TABLES[name]])
    return pa.field(name, pa.list_(struct) if name in LISTS else struct)


CASES = pa.schema(
    [
        pa.field(POSITION, pa.int64(), nullable=False),
        pa.field(STUDY, pa.string(), nullable=False),
        *map(_nested, TABLES),
    ]
)
"""Columns of the case table: position, digest of the study, and the rows of all tables."""


def case_row(record: CaseRecord, *, position: int, study: str) -> dict[str, Any]:
    """Convert the record of an evaluated case to a row of the case table."""
    fronts = [(one.assignor, one.front) for one in record.comparisons if one.front is not None]
    rows: dict[str, Iterable[Mapping[str, object]]] = {
        name: map(asdict, getattr(record, name))
        for name in ("assignments", "timings", "rebalances", "measures")
    }
    rows["comparisons"] = map(comparison_result.comparison_columns, record.comparisons)
    rows["front_distances"] = (comparison_result.front_columns(*one) for one in fronts)
    return {
        POSITION: position,
        STUDY: study,
        "groups": _storable(asdict(record.group)),
        "optima": record.optimum and _storable(asdict(record.optimum)),
        **{name: [*map(_storable, rows[name])] for name in LISTS},
    }


def _storable(row: Mapping[str, object]) -> dict[str, object]:
    return {
        name: None if type(value) is int and value not in _INT64 else value
        for name, value in row.items()
    }


_Place = tuple[str, int]  # topic and number of a partition
_LARGEST = 100_000  # subscriptions, claims and partitions; larger groups have no hash


def renaming_hash(
    group: Group, *, colours: Sequence[int] | None = None, rounds: int = 3
) -> int | None:
    """Return a hash of a group that ignores names and order, or None for a large group.

    It ignores names and order of members, topics and partitions. Members and topics get colours,
    which are refined by the colours of related members, topics and partitions. Groups with
    different hashes differ; groups with equal hashes are nearly always equal. ``colours``
    replaces the first colours of the members: generation, speed and rack.
    """
    claims = sum(len(member.subscription) + len(member.owned) for member in group.members)
    if sum(topic.partitions for topic in group.topics) + claims > _LARGEST:
        return None
    consumers: dict[str, list[int]] = {topic.name: [] for topic in group.topics}
    claimants: dict[_Place, list[int]] = {}
    for index, member in enumerate(group.members):
        for name in member.subscription:
            consumers.setdefault(name, []).append(index)
        for name, number in member.owned:
            claimants.setdefault((name, number), []).append(index)
    fixed = {
        (topic.name, number): _fixed_colour(topic, number)
        for topic in group.topics
        for number in range(topic.partitions)
    }
    places = fixed.keys() | claimants.keys()
    of_member = colours or [
        hash((member.generation + 2, member.speed, _rack_colour(member.rack)))
        for member in group.members
    ]
    of_topic: dict[str, int] = {}
    for _ in range(rounds):
        of_partition = {
            place: hash((fixed.get(place, 0), *_sorted(of_member, claimants.get(place, ()))))
            for place in places
        }
        parts: dict[str, list[int]] = {name: [] for name in consumers}
        for (name, _), colour in of_partition.items():
            parts.setdefault(name, []).append(colour)
        of_topic = {
            name: hash((tuple(sorted(own)), _sorted(of_member, consumers.get(name, ()))))
            for name, own in parts.items()
        }
        of_member = [
            hash(
                (
                    colour,
                    _sorted(of_topic, member.subscription),
                    _sorted(of_partition, member.owned),
                )
            )
            for colour, member in zip(of_member, group.members, strict=True)
        ]
    return hash((tuple(sorted(of_member)), tuple(sorted(of_topic.values()))))


def _fixed_colour(topic: Topic, number: int) -> int:
    racks = () if topic.racks is None else topic.racks[number]
    return hash((topic.weight(number), *sorted(map(_rack_colour, racks))))


def _rack_colour(rack: str | None) -> int:
    return crc32((rack or "").encode())


def _sorted(colours: Any, keys: Iterable[Any]) -> tuple[int, ...]:
    return tuple(sorted(colours[key] for key in keys))


GROUP_FIELDS = ("family", "seed", "start", "renaming_hash")
RESULT_FIELDS = {
    table: tuple(name for name in TABLES[table].names if name != "detail")
    for table in ("comparisons", "rebalances", "front_distances", "measures")
}
"""Fields of results that a digest includes, by table."""


def sha256_of_lines(lines: Iterable[str]) -> str:
    """Return the SHA-256 of lines that are joined by line breaks."""
    digest, separator = hashlib.sha256(), ""
    for line in lines:
        digest.update(f"{separator}{line}".encode())
        separator = "\n"
    return digest.hexdigest()


COMPARED_ASSIGNORS = tuple(
    name
    for name, port in ASSIGNORS.items()
    if port.goal is Goal.BALANCE_AND_FEW_MOVES and port.release is Release.NEWEST
)
"""Assignors of the newest Kafka release with the goal of balance and few moves."""
_FEW = 4
_PREVIEWS = [name for name, port in ASSIGNORS.items() if port.release is Release.PREVIEW]
NAMED_FAMILY = "named"
"""Name of the family of hand-written groups, which no statistics include."""
GENERATED = "generated"
"""Scope of the random groups with equal weights and without racks. Totals use this scope."""
APART = {
    "weights": "weights",
    "racks": "racks",
    "imported": "imported",
    "finite": "finite families",
    "named": "hand-written",
}
"""Scopes of the other groups. Reports show the results of each scope separately."""
WORST_CANDIDATES = 16
"""Number of worst groups that a summary stores per assignor and kind of shortcoming."""
_ASSIGNOR_ORDER = tuple(
    sorted(
        ASSIGNORS,
        key=lambda name: (
            ASSIGNORS[name].release is Release.ZOOKEEPER_CONSUMER,
            ASSIGNORS[name].goal,
        ),
    )
)


def is_own(name: str) -> bool:
    """Return whether a name is that of a custom assignor."""
    known = (*ASSIGNORS, *KIND_PORTS, OPTIMUM, HINDSIGHT)
    return name not in known and not is_library_assignor(name)


def assignors_of(names: Iterable[str]) -> tuple[str, ...]:
    """Sort the distinct names of assignors for tables, with custom assignors first."""
    return tuple(sorted(_ordered(names, _ASSIGNOR_ORDER), key=lambda name: not is_own(name)))


def compared_assignors(names: Iterable[str], chosen: Sequence[str] = ()) -> tuple[str, ...]:
    """Select the assignors that a report compares in pairs.

    ``chosen`` are the user's. By default, all are compared if there are few, else selected ones.
    """
    ordered = assignors_of(names)
    if chosen:
        return tuple(name for name in chosen if name in ordered)
    if len(ordered) <= _FEW:
        return ordered
    own = tuple(name for name in ordered if is_own(name) or name in _PREVIEWS)
    return (*own, *(name for name in COMPARED_ASSIGNORS if name in ordered)) or ordered[:3]


def families_of(names: Iterable[str]) -> tuple[str, ...]:
    """Sort the distinct names of families for tables: ``equal-*`` before ``mixed-*``."""
    return _ordered(names, [name for name in USUAL if name != NAMED_FAMILY])


def _ordered(names: Iterable[str], order: Sequence[str]) -> tuple[str, ...]:
    rank = {name: position for position, name in enumerate(order)}
    return tuple(sorted(set(names), key=lambda name: (rank.get(name, len(rank)), name)))

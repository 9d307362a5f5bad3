"""What partitions weigh: their lag, a rate, their size, or numbers of a file."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from kassay.experiments.sources.errors import SourceError
from kassay.experiments.sources.merge_captures import ObservedGroup, PartitionKey
from kassay.reference.documents.document_fields import as_array, as_integer, as_object
from kassay.reference.documents.json_text import parse_json
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group

if TYPE_CHECKING:
    from kassay.experiments.sources.group_documents import ImportOptions

Table = Mapping[str, Sequence[int]]


class WeightOptions(StrEnum):
    """What a partition weighs."""

    NONE = "none"
    LAG = "lag"
    RATE = "rate"
    SIZE = "size"


def load_table(path: Path) -> dict[str, tuple[int, ...]]:
    """Read ``{"topic": [weight of partition 0, ...]}``.

    Raises
    ------
    SourceError
        If the file has another form.
    """
    where = str(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"{where}: {error}") from None
    table: dict[str, tuple[int, ...]] = {}
    for topic, numbers in as_object(parse_json(text, where=where), where).items():
        place = f"{where}: {topic}"
        table[topic] = tuple(
            as_integer(number, f"{place}[{index}]")
            for index, number in enumerate(as_array(numbers, place))
        )
        if min(table[topic], default=0) < 0:
            raise SourceError(f"{place}: weights must be 0 or more, got {min(table[topic])}")
    return table


def weigh(
    seen: ObservedGroup, topic: str, count: int, joining: "ImportOptions", notes: list[str]
) -> tuple[int, ...] | None:
    """Return what the partitions of a topic weigh, None for all the same.

    Raises
    ------
    SourceError
        If the weight of a partition is not known.
    """
    where = f"group {seen.id!r}"
    if joining.table is not None:
        return _from_table(joining.table, topic, count, where)
    match joining.weights:
        case WeightOptions.NONE:
            return None
        case WeightOptions.RATE:
            return tuple(_rate(seen, (topic, number), notes) for number in range(count))
        case WeightOptions.SIZE:
            notes.append("weights are bytes on disk, of the largest replica")
            return _from_sizes(joining.sizes or {}, topic, count, where)
        case WeightOptions.LAG:
            return tuple(_lag(seen, (topic, n), joining, notes) for n in range(count))


def weigh_group(group: Group, joining: "ImportOptions") -> Group:
    """Weigh a group whose document is known; one that has weights keeps them by default.

    Raises
    ------
    SourceError
        If the weight of a partition is not known.
    """
    where = f"group {group.id!r}"
    if joining.table is None and joining.weights is WeightOptions.NONE:
        return group
    if joining.table is None and joining.weights is not WeightOptions.SIZE:
        raise SourceError(
            f"{where}: a group document shows no {joining.weights}; "
            f"weigh it where it comes from: kassay import --weights {joining.weights}"
        )
    return replace(
        group,
        topics=tuple(
            replace(
                topic,
                weights=_from_sizes(joining.sizes or {}, topic.name, topic.partitions, where)
                if joining.table is None
                else _from_table(joining.table, topic.name, topic.partitions, where),
            )
            for topic in group.topics
        ),
    )


def _from_table(table: Table, topic: str, count: int, where: str) -> tuple[int, ...]:
    if topic not in table:
        raise SourceError(f"{where}: no weights are given for topic {topic!r}")
    if len(table[topic]) != count:
        raise InputError(
            f"{where}: topic {topic!r} has {count} partitions, weights are given for "
            f"{len(table[topic])}"
        )
    return tuple(table[topic])


def _from_sizes(
    sizes: Mapping[PartitionKey, int], topic: str, count: int, where: str
) -> tuple[int, ...]:
    missing = next((n for n in range(count) if (topic, n) not in sizes), None)
    if missing is not None:
        raise SourceError(
            f"{where}: no size is shown for {topic}-{missing}; give --sizes FILE, what "
            "kafka-log-dirs.sh --describe prints of all brokers"
        )
    return tuple(sizes[topic, number] for number in range(count))


def _lag(
    seen: ObservedGroup, place: PartitionKey, joining: "ImportOptions", notes: list[str]
) -> int:
    lag = seen.lag.get(place)
    if lag is None:
        if joining.missing_lag is None:
            raise SourceError(
                f"group {seen.id!r}: no lag is shown for {place[0]}-{place[1]}; "
                "give --missing-lag to say what it weighs"
            )
        notes.append(f"lags that are not shown are taken as {joining.missing_lag}")
        return joining.missing_lag
    if lag < 0:
        notes.append("negative lags are taken as 0")
    return max(lag, 0)


def _rate(seen: ObservedGroup, place: PartitionKey, notes: list[str]) -> int:
    appended = seen.appended.get(place)
    if appended is None:
        raise SourceError(
            f"group {seen.id!r}: no rate is shown for {place[0]}-{place[1]}: that takes two "
            "samples of a live cluster, with a leader of the partition in both"
        )
    if appended < 0:
        notes.append("partitions that lost messages between the samples weigh 0")
    return max(appended, 0)

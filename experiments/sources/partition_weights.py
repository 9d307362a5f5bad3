"""Partition weights from the lag, the append rate, the size on disk or a weights file."""

from collections.abc import Mapping
from dataclasses import replace

from kassay.experiments.sources.import_options import ImportOptions
from kassay.experiments.sources.merge_captures import ObservedGroup, PartitionKey
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group
from kassay.reference.model.group_annotations import WeightSource


def topic_weights(
    observed: ObservedGroup, topic: str, count: int, options: ImportOptions, notes: list[str]
) -> tuple[int, ...] | None:
    """Return the weights of a topic's partitions, or None for equal weights."""
    match options.weight_source:
        case None:
            return None
        case WeightSource.RATE:
            return tuple(_rate(observed, (topic, number), notes) for number in range(count))
        case WeightSource.LAG:
            return tuple(_lag(observed, (topic, n), options, notes) for n in range(count))
        case WeightSource.FILE | WeightSource.SIZE:
            return _given_weights(options, topic, count, f"group {observed.id!r}")


def available_weights(observed: ObservedGroup, options: ImportOptions) -> tuple[WeightSource, ...]:
    """Return the weight sources that can be used with the captures of a group."""
    sizes = options.sizes or {}
    shown = {
        WeightSource.LAG: bool(observed.lag),
        WeightSource.RATE: bool(observed.appended),
        WeightSource.SIZE: bool(sizes) and sizes.keys() >= observed.partitions.keys(),
    }
    return tuple(source for source, is_shown in shown.items() if is_shown)


def with_weights(group: Group, options: ImportOptions) -> Group:
    """Set the partition weights of a group to those of the import options."""
    where, source = f"group {group.id!r}", options.weight_source
    if source in (WeightSource.LAG, WeightSource.RATE):
        raise InputError(
            f"{where}: a group document shows no {source}; "
            f"set weights when the group is imported: kassay import --weights {source}"
        )

    topics = tuple(
        replace(topic, weights=_given_weights(options, topic.name, topic.partitions, where))
        for topic in group.topics
    )
    return replace(group, topics=topics, weight_source=source)


def _given_weights(options: ImportOptions, topic: str, count: int, where: str) -> tuple[int, ...]:
    """Return the weights of a topic's partitions from the file of sizes or of weights."""
    table = options.weight_table
    if table is None:
        return _from_sizes(options.sizes or {}, topic, count, where)
    if topic not in table:
        raise InputError(f"{where}: no weights are given for topic {topic!r}")
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
        raise InputError(
            f"{where}: no size is known for {topic}-{missing}; give --sizes FILE with the "
            "output of kafka-log-dirs.sh --describe for all brokers"
        )
    return tuple(sizes[topic, number] for number in range(count))


def _lag(
    observed: ObservedGroup, partition: PartitionKey, options: ImportOptions, notes: list[str]
) -> int:
    lag = observed.lag.get(partition)
    if lag is None:
        if options.missing_lag is None:
            raise InputError(
                f"group {observed.id!r}: no lag is shown for {partition[0]}-{partition[1]}; "
                "give --missing-lag to set its weight"
            )
        notes.append(f"partitions without a lag have weight {options.missing_lag}")
        return options.missing_lag
    if lag < 0:
        notes.append("negative lags are replaced by 0")
    return max(lag, 0)


def _rate(observed: ObservedGroup, partition: PartitionKey, notes: list[str]) -> int:
    appended = observed.appended.get(partition)
    if appended is None:
        raise InputError(
            f"group {observed.id!r}: no rate is known for {partition[0]}-{partition[1]}: a rate "
            "needs two samples of a live cluster, and a leader of the partition in both; use "
            "kassay import --bootstrap-server --weights rate"
        )
    if appended < 0:
        notes.append("partitions that lost messages between the samples have weight 0")
    return max(appended, 0)

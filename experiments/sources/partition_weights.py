"""Weights of partitions: their lag, append rate, size on disk, or numbers from a file."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kassay.experiments.sources import weight_notes
from kassay.experiments.sources.import_options import ImportOptions, WeightSource
from kassay.experiments.sources.merge_captures import ObservedGroup, PartitionKey
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group, Topic


def topic_weights(
    observed: ObservedGroup, topic: str, count: int, options: ImportOptions, notes: list[str]
) -> tuple[int, ...] | None:
    """Return the weights of a topic's partitions, or None for equal weights."""
    where = f"group {observed.id!r}"
    if options.weight_table is not None:
        notes.append(weight_notes.TABLE)
        return _from_table(options.weight_table, topic, count, where)
    match options.weights:
        case WeightSource.NONE:
            return None
        case WeightSource.RATE:
            return tuple(_rate(observed, (topic, number), notes) for number in range(count))
        case WeightSource.SIZE:
            notes.append(weight_notes.SIZE)
            return _from_sizes(options.sizes or {}, topic, count, where)
        case WeightSource.LAG:
            notes.append(weight_notes.LAG)
            return tuple(_lag(observed, (topic, n), options, notes) for n in range(count))


def apply_weights(group: Group, options: ImportOptions) -> Group:
    """Set the weights of a group, or keep its weights if no option sets them."""
    where, table, sizes = f"group {group.id!r}", options.weight_table, options.sizes or {}
    if table is None and options.weights is WeightSource.NONE:
        return group
    if table is None and options.weights is not WeightSource.SIZE:
        raise InputError(
            f"{where}: a group document shows no {options.weights}; "
            f"set weights when the group is imported: kassay import --weights {options.weights}"
        )

    def weights(topic: Topic) -> tuple[int, ...]:
        if table is None:
            return _from_sizes(sizes, topic.name, topic.partitions, where)
        return _from_table(table, topic.name, topic.partitions, where)

    topics = (replace(topic, weights=weights(topic)) for topic in group.topics)
    note = weight_notes.SIZE if table is None else weight_notes.TABLE
    notes = weight_notes.with_weight_note(group, note)
    return replace(group, topics=tuple(topics), notes=notes)


def _from_table(
    table: Mapping[str, Sequence[int]], topic: str, count: int, where: str
) -> tuple[int, ...]:
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

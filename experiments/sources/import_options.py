"""Options for importing groups: subscriptions, hosts, speeds and weights.

Their values come from files, patterns or measurements.
"""

import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TypeVar

from kassay.experiments.sources.merge_captures import ObservedGroup, PartitionKey
from kassay.experiments.sources.table_rows import Counts
from kassay.reference.documents.input_files import (
    as_object,
    as_text,
    as_texts,
    format_value,
    read_json_object,
)
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import MAX_SPEED, Group, Member, WeightSource
from kassay.reference.model.group_remarks import AssumedSubscriptions

HostRule = Callable[[Member], str]
"""Function that returns the host of a member."""
MemberTopics = Mapping[str, tuple[str, ...]]

_NO_WEIGHTS = "none"
WEIGHT_NAMES: Mapping[str, WeightSource | None] = {
    _NO_WEIGHTS: None,
    **{str(each): each for each in (WeightSource.LAG, WeightSource.RATE, WeightSource.SIZE)},
}
"""Weight source by name, without the weights that come from a file."""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Options of an import, mainly values for data that a source does not contain."""

    assumed_subscriptions: AssumedSubscriptions | None = None  # else the assigned topics
    # By group id, then by member id, client id or group.instance.id.
    subscriptions: Mapping[str, MemberTopics] | None = None
    partition_counts: Counts | None = None  # else the highest partition number plus 1
    minimum_counts: Counts | None = None  # lower bounds of partition counts
    topic_ids: Mapping[str, uuid.UUID] | None = None
    weights: WeightSource | None = None
    without_weights: bool = False  # partitions of documents with weights count 1
    missing_lag: int | None = None  # None makes partitions without a known lag an error
    sizes: Mapping[PartitionKey, int] | None = None  # in bytes
    weight_table: Mapping[str, Sequence[int]] | None = None  # by topic; overrides weights
    hosts: HostRule | None = None  # None keeps the hosts of the source
    speeds: Mapping[str, int] | None = None  # by member, instance or client id, or host
    measures_speeds: bool = False  # speeds from the consumption of a running cluster
    together: bool = False  # join all groups of the source

    @property
    def weight_source(self) -> WeightSource | None:
        """Return the source of the partition weights, or None for equal weights."""
        return self.weights if self.weight_table is None else WeightSource.FILE

    def with_subscriptions(self, source: Path | str | None) -> "ImportOptions":
        """Return a copy with the subscriptions of a file, or with an assumption by its name."""
        if source is None:
            return self
        if source in list(AssumedSubscriptions):
            return replace(self, assumed_subscriptions=AssumedSubscriptions(str(source)))
        return replace(self, subscriptions=load_subscriptions(Path(source)))

    def with_named_weights(self, name: str | None) -> "ImportOptions":
        """Return a copy with the weights of a name such as ``lag``; ``none`` removes weights.

        None keeps the weights of documents. Raise InputError for a name that is not in
        `WEIGHT_NAMES`.
        """
        if name is None:
            return self
        if name not in WEIGHT_NAMES:
            raise InputError(f"weights must be one of {', '.join(WEIGHT_NAMES)}, got {name!r}")
        return replace(self, weights=WEIGHT_NAMES[name], without_weights=name == _NO_WEIGHTS)


def load_subscriptions(path: Path) -> dict[str, MemberTopics]:
    """Read a JSON file with the subscriptions of members, by group.

    The form is ``{"group": {"member, client or instance id": ["topic", ...]}}``.
    """
    return {
        group: {
            member: as_texts(topics, f"{path}: {group}[{member!r}]")
            for member, topics in as_object(members, f"{path}: {group}").items()
        }
        for group, members in read_json_object(path).items()
    }


CLIENT_ID, RATE = "client-id", "rate"
"""Names of sources: the client id as host, and the measured rate as speed."""
_RATE_UNITS = 100
"""Speed of the fastest member if speeds are rounded rates."""

_Value = TypeVar("_Value")


def parse_hosts(text: str) -> HostRule:
    """Convert ``client-id``, a pattern with a part in parentheses or a file name to a rule.

    The rule returns the host of a member, and raises InputError for a member without host.
    """
    if text == CLIENT_ID:
        return _host_of_client_id
    if "(" not in text:
        table = read_json_object(Path(text))
        hosts = {name: as_text(host, f"{text}: {name}") for name, host in table.items()}
        return lambda member: _entry(hosts, member, text)
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise InputError(f"hosts: {text!r} is not a regular expression: {error}") from None
    if pattern.groups != 1:
        raise InputError(
            f"hosts: the pattern {text!r} must have one part in parentheses, got {pattern.groups}"
        )
    return lambda member: _matched_host(pattern, member)


def load_speeds(path: Path) -> dict[str, int]:
    """Read a JSON file of speeds or measured rates: ``{"member, client id or host": 1.5}``."""
    rates = {}
    for name, rate in read_json_object(path).items():
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < 1e18:
            raise InputError(
                f"{path}: {name}: speed must be a number above 0, got {format_value(rate)}"
            )
        rates[name] = Fraction(str(rate))
    return integer_speeds(rates)


def integer_speeds(rates: Mapping[str, Fraction]) -> dict[str, int]:
    """Convert rates to integer speeds: unchanged if valid, else in per cent of the fastest.

    Examples
    --------
    >>> integer_speeds({"a": Fraction(2), "b": Fraction(3)})
    {'a': 2, 'b': 3}
    >>> integer_speeds({"a": Fraction(1873, 2), "b": Fraction(1250)})
    {'a': 75, 'b': 100}
    """
    if all(rate.denominator == 1 and 1 <= rate <= MAX_SPEED for rate in rates.values()):
        return {name: int(rate) for name, rate in rates.items()}
    fastest = max(rates.values())
    return {name: max(1, round(rate * _RATE_UNITS / fastest)) for name, rate in rates.items()}


def with_hosts_and_speeds(group: Group, options: ImportOptions) -> Group:
    """Set the host and the speed of each member, if the import options contain them."""
    rule, speeds = options.hosts, options.speeds
    members = group.members
    if rule is not None:
        members = tuple(replace(m, client=replace(m.client, host=rule(m))) for m in members)
    if speeds is not None:
        members = tuple(replace(m, speed=_entry(speeds, m, "speeds")) for m in members)
    return replace(group, members=members)


def measured_speeds(group: Group, consumed: Mapping[tuple[str, int], int]) -> dict[str, int]:
    """Return the speed per member id, from the messages consumed per partition in a sample.

    A member without partitions gets the mean rate of the other members.
    """
    rates = {
        member.id: Fraction(sum(max(0, consumed.get((topic, n), 0)) for topic, n in member.owned))
        for member in group.members
    }
    busy = [rates[member.id] for member in group.members if member.owned]
    if not any(busy):
        raise InputError(
            f"group {group.id!r}: no member consumed messages in the sample; measure the speeds "
            "while the group has lag, or give --speeds FILE"
        )
    mean = sum(busy, Fraction(0)) / len(busy)
    fastest = max(busy)
    return {
        member.id: max(
            1, round((rates[member.id] if member.owned else mean) * _RATE_UNITS / fastest)
        )
        for member in group.members
    }


def _host_of_client_id(member: Member) -> str:
    if member.client.id is None:
        raise InputError(
            f"member {member.id!r} has no client id; give --hosts a pattern or a file instead of "
            f"{CLIENT_ID}"
        )
    return member.client.id


def _matched_host(pattern: re.Pattern[str], member: Member) -> str:
    name = member.client.id or member.id
    found = pattern.search(name)
    if found is None or not found[1]:
        raise InputError(
            f"member {member.id!r}: the pattern {pattern.pattern!r} of --hosts matches no host in "
            f"{name!r}"
        )
    return found[1]


def _entry(table: Mapping[str, _Value], member: Member, source: str) -> _Value:
    """Return the entry of a member, by its id, instance id, client id or host."""
    client = member.client
    for name in (member.id, member.instance_id, client.id, client.host):
        if name is not None and name in table:
            return table[name]
        if name is not None and name.lstrip("/") in table:
            return table[name.lstrip("/")]
    raise InputError(f"{source}: no entry for member {member.id!r}, its client id or its host")


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
            return _given_weights(options, topic, count)


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
    source = options.weight_source
    if source in (WeightSource.LAG, WeightSource.RATE):
        raise InputError(
            f"a group document shows no {source}; "
            f"set weights when the group is imported: kassay import --weights {source}"
        )

    topics = tuple(
        replace(topic, weights=_given_weights(options, topic.name, topic.partitions))
        for topic in group.topics
    )
    return replace(group, topics=topics, weight_source=source, weight_unit=None)


def _given_weights(options: ImportOptions, topic: str, count: int) -> tuple[int, ...]:
    """Return the weights of a topic's partitions from the file of sizes or of weights."""
    table = options.weight_table
    if table is None:
        return _from_sizes(options.sizes or {}, topic, count)
    if topic not in table:
        raise InputError(f"no weights are given for topic {topic!r}")
    if len(table[topic]) != count:
        raise InputError(
            f"topic {topic!r} has {count} partitions, weights are given for {len(table[topic])}"
        )
    return tuple(table[topic])


def _from_sizes(sizes: Mapping[PartitionKey, int], topic: str, count: int) -> tuple[int, ...]:
    missing = next((n for n in range(count) if (topic, n) not in sizes), None)
    if missing is not None:
        raise InputError(
            f"no size is known for {topic}-{missing}; add the output of "
            "kafka-log-dirs.sh --describe for all brokers to the directory of captures"
        )
    return tuple(sizes[topic, number] for number in range(count))


def _lag(
    observed: ObservedGroup, partition: PartitionKey, options: ImportOptions, notes: list[str]
) -> int:
    lag = observed.lag.get(partition)
    if lag is None:
        if options.missing_lag is None:
            raise InputError(
                f"no lag is shown for {partition[0]}-{partition[1]}; "
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
            f"no rate is known for {partition[0]}-{partition[1]}: a rate "
            "needs two samples of a live cluster, and a leader of the partition in both; use "
            "kassay import --bootstrap-server --weights rate"
        )
    if appended < 0:
        notes.append("partitions that lost messages between the samples have weight 0")
    return max(appended, 0)

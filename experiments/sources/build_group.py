"""Build groups from captures, with notes on data that the captures do not show."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, islice
from typing import Any, TypeVar

from kassay.experiments.sources.capture_contents import NO_ROWS, Counts, DocumentRows
from kassay.experiments.sources.line_account import Account
from kassay.experiments.sources.merge_captures import (
    ObservedGroup,
    ObservedMember,
    PartitionKey,
    Snapshot,
)
from kassay.experiments.sources.recognise_library import recognise_library
from kassay.experiments.sources.weight_windows import RecordedWindows
from kassay.reference.model.display import count_of
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import (
    ASSUMED,
    NO_WINDOWS,
    Assumed,
    Client,
    Group,
    Member,
    Protocol,
    Topic,
    WeightSource,
    Windows,
)
from kassay.reference.model.group_remarks import (
    HIDDEN_MEMBERS,
    NO_IDLE_MEMBER,
    AssumedSubscriptions,
    with_assumption,
)
from kassay.reference.model.topic_partitions import Partitions

HostRule = Callable[[Member], str]
"""Function that returns the host of a member."""
MemberTopics = Mapping[str, tuple[str, ...]]
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Options of an import, mostly with data that the source does not contain."""

    assumed_subscriptions: AssumedSubscriptions | None = None  # else all topics, or as documents
    # By group id, then by member id, client id or group.instance.id.
    subscriptions: Mapping[str, MemberTopics] | None = None
    content: DocumentRows = NO_ROWS  # partition counts, sizes and topic ids
    weights: WeightSource | None = None
    without_weights: bool = False  # partitions of documents with weights count 1
    missing_lag: int | None = None  # None makes partitions without a known lag an error
    weight_table: Mapping[str, Sequence[Any]] | None = None  # by topic; overrides weights
    weight_windows: RecordedWindows | None = None  # overrides the other weights
    hosts: HostRule | None = None  # None keeps the hosts of the source
    speeds: Mapping[str, int] | None = None  # by member, instance or client id, or host
    reads_lag: bool = False  # read the lag of a running cluster also without weights by lag
    measures_speeds: bool = False  # speeds from the consumption of a running cluster
    together: bool = False  # join all groups of the source
    name: str | None = None  # id of groups in captures that do not name theirs
    snapshot: Snapshot | None = None  # to use of several snapshots of a group in one file
    # Function that gets the account of the lines of each file of captures.
    on_account: Callable[[Account], None] | None = None

    @property
    def weight_source(self) -> WeightSource | None:
        """Return the source of the partition weights, or None if all weights are equal."""
        is_file = self.weight_table is not None or self.weight_windows is not None
        return WeightSource.FILE if is_file else self.weights

    @property
    def windows(self) -> Windows:
        """Return the time windows of the partition weights."""
        recorded = self.weight_windows
        return Windows(names=recorded.names, seconds=recorded.seconds) if recorded else NO_WINDOWS

    def weight_notes(self, counts: Counts) -> Iterable[str]:
        """Return notes on weights from recorded traffic. ``counts`` has partitions by topic."""
        return () if self.weight_windows is None else self.weight_windows.notes(counts)


_SHOWN_PARTITIONS = 5
_RATE = (
    "kassay import --weights rate with --bootstrap-server HOST:PORT or with two captures of the "
    "offsets"
)
_NOTABLE_LAG = 1_000
"""Minimum lag of a group, in messages, for a note that few members have most of the lag."""
_NOTES = {
    AssumedSubscriptions.EQUAL: "all topics are assumed for every member",
    AssumedSubscriptions.ASSIGNED: "the assigned topics are assumed",
}


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """Subscriptions by member id, and the ids of members with assumed subscriptions.

    A subscription is not assumed if the member has partitions of all topics of the group.
    """

    topics: Mapping[str, tuple[str, ...]]
    assumed: frozenset[str] = field(default=frozenset())


def member_subscriptions(
    observed: ObservedGroup, options: ImportOptions, notes: list[str]
) -> Subscriptions:
    """Return subscriptions from --subscriptions, from the source or from an assumption."""
    members = list(observed.members.values())
    given = (options.subscriptions or {}).get(observed.id)
    if given is not None:
        topics = {one.id: _given_subscription(one, given) for one in members}
        shown = [one for one in members if one.subscription is not None]
        changed = [one.id for one in shown if set(one.subscription or ()) != set(topics[one.id])]
        notes.extend(_replaced_note(changed))
        return Subscriptions(topics)
    sent = {member.id: member.subscription for member in members if member.subscription is not None}
    notes.extend(_foreign_notes(members))
    missing = [member for member in members if member.id not in sent]
    if not missing:
        return Subscriptions(sent)
    reading = options.assumed_subscriptions or AssumedSubscriptions.EQUAL
    count = f"{len(missing)} " if sent else ""
    subject = "1 subscription is" if count == "1 " else f"{count}subscriptions are"
    notes.append(f"{subject} not shown, {_NOTES[reading]}")
    all_topics = {topic for topic, _ in observed.partitions}.union(*sent.values())
    assigned = {
        one.id: {topic for topic, _ in one.owned | (one.target or set())} for one in missing
    }
    is_equal = reading is AssumedSubscriptions.EQUAL
    topics = {
        member: tuple(sorted(all_topics if is_equal else own)) for member, own in assigned.items()
    }
    assumed = frozenset(member for member, own in assigned.items() if own != all_topics)
    return Subscriptions({one.id: (sent | topics)[one.id] for one in members}, assumed)


def with_subscriptions(group: Group, options: ImportOptions) -> Group:
    """Apply the option --subscriptions to a group from a group document.

    A value without a file replaces only assumed subscriptions. A note states the effect.
    """
    given = (options.subscriptions or {}).get(group.id or "")
    if given is not None:
        members = tuple(_with_given(member, given) for member in group.members)
        changed = [
            new.id
            for old, new in zip(group.members, members, strict=True)
            if Assumed.TOPICS not in old.assumed and old.subscription != new.subscription
        ]
        notes = tuple(_replaced_note(changed))
        return replace(group, members=members, notes=(*group.notes, *notes))
    reading = options.assumed_subscriptions
    if reading is None or not group.members:
        return group
    if not any(Assumed.TOPICS in member.assumed for member in group.members):
        note = f"--subscriptions {reading} has no effect: the source shows all subscriptions"
        return replace(group, notes=(*group.notes, note))
    note = f"--subscriptions {reading}: {_NOTES[reading]}, except for known subscriptions"
    other = [one for one in group.notes if not one.endswith(tuple(_NOTES.values()))]
    return replace(with_assumption(group, reading), notes=(*other, note))


def _with_given(member: Member, given: MemberTopics) -> Member:
    topics = _given_topics((member.id, member.instance_id, member.client.id), given)
    assumed = tuple(one for one in member.assumed if one is not Assumed.TOPICS)
    return replace(member, subscription=topics, assumed=assumed)


def _foreign_notes(members: Iterable[ObservedMember]) -> Iterator[str]:
    # Leaders of some clients assign the topics of their own subscription to all members.
    for member in members:
        if member.subscription is None or member.target is not None:
            continue
        topics = {topic for topic, _ in member.owned} - set(member.subscription)
        if topics:
            yield (
                f"member {member.id!r} has partitions of topics that it does not subscribe to: "
                + ", ".join(sorted(topics))
            )


def _replaced_note(changed: list[str]) -> Iterator[str]:
    if changed:
        others = f" and of {len(changed) - 1} more" if len(changed) > 1 else ""
        yield (
            "the file of --subscriptions replaces the subscription that the source shows of "
            f"member {changed[0]!r}{others}"
        )


def _given_subscription(member: ObservedMember, given: MemberTopics) -> tuple[str, ...]:
    topics = _given_topics((member.id, member.instance_id, member.client_id), given)
    # A member may still own partitions of a topic that it no longer consumes.
    foreign = sorted(
        partition
        for partition in member.owned
        if partition[0] not in topics and member.target is None
    )
    if foreign:
        topic, number = foreign[0]
        raise InputError(
            f"member {member.id!r} has {topic}-{number}, but its subscription in the file is "
            f"{list(topics)}; correct the file of --subscriptions or the capture"
        )
    return topics


def _given_topics(names: tuple[str | None, ...], given: MemberTopics) -> tuple[str, ...]:
    topics = next((given[name] for name in names if name is not None and name in given), None)
    if topics is None:
        text = f"the file of --subscriptions has no entry for member {names[0]!r}; add one"
        raise InputError(text)
    return topics


# The value does not matter, as long as all members have the same one.
ASSUMED_GENERATION = 1
# A damaged partition number must not create a topic with millions of partitions.
MAX_ASSUMED_PARTITIONS = 1_000_000


def build_group(observed: ObservedGroup, options: ImportOptions) -> Group:
    """Build a consumer group from captures, or raise InputError if data is missing."""
    try:
        return with_hosts_and_speeds(_group(observed, options), options)
    except InputError as error:
        raise InputError(f"group {observed.id!r}: {error}") from None


def _group(observed: ObservedGroup, options: ImportOptions) -> Group:
    notes: list[str] = []
    _check_partition_numbers_shown(observed)
    members = list(observed.members.values())
    subscriptions = member_subscriptions(observed, options, notes)
    counts = _partition_counts(observed, subscriptions, options, notes)
    weights = {
        name: topic_weights(observed, name, count, options, notes)
        for name, count in sorted(counts.items())
    }
    if observed.lag and options.weight_source is None:
        notes.append(
            f"the capture shows lag ({observed.status.lag:,} messages), which is not used: lag is "
            "a backlog, not a load; --weights lag spreads the backlog"
        )
        notes.extend(_lag_on_few_members(observed))
    notes.extend(options.weight_notes(counts))
    ids = options.content.topic_ids
    if members and all(member.epoch is None for member in members):
        notes.append(f"generation is not shown, {ASSUMED_GENERATION} is used")
    notes.extend(observed.notes)
    notes.extend(_member_notes(observed))
    notes.extend(_state_notes(observed))
    return Group(
        id=observed.id,
        topics=tuple(
            Topic(
                name=name,
                partitions=counts[name],
                **_weight_fields(values),
                racks=observed.racks.get(name),
                id=ids.get(name),
            )
            for name, values in weights.items()
        ),
        members=tuple(_member(member, subscriptions, observed) for member in members),
        status=observed.status,
        weight_source=options.weight_source,
        available_weights=available_weights(observed, options),
        windows=options.windows,
        notes=tuple(dict.fromkeys(notes)),
    )


def _member(observed: ObservedMember, subscriptions: Subscriptions, group: ObservedGroup) -> Member:
    client_id, target = observed.client_id, observed.target
    library = observed.library or recognise_library(
        client_id, member_id=observed.id, assignor=group.assignor
    )
    assumed = [Assumed.TOPICS] if observed.id in subscriptions.assumed else []
    # Sources that show the rack of a member show its subscription too.
    if observed.subscription is None and any(racks is not None for racks in group.racks.values()):
        assumed.append(Assumed.RACK)
    return Member(
        id=observed.id,
        subscription=subscriptions.topics[observed.id],
        owned=Partitions.of(observed.owned_in_order()),
        generation=ASSUMED_GENERATION if observed.epoch is None else observed.epoch,
        instance_id=observed.instance_id,
        rack=observed.rack,
        protocol_version=observed.protocol_version,
        target=None if target is None else Partitions.of(sorted(target)),
        client=Client(id=client_id, host=observed.host, library=library),
        assumed=tuple(assumed),
    )


def _check_partition_numbers_shown(observed: ObservedGroup) -> None:
    members = observed.members.values()
    is_known = observed.has_offsets or observed.partitions or observed.is_rebalancing
    if observed.hides_partitions and not is_known and all(one.count is None for one in members):
        raise InputError(
            f"the source shows {count_of(len(members), 'member')} but not their partitions; add a "
            "capture with the owners, such as kafka-consumer-groups.sh --describe or a list of lags"
        )
    for member in observed.members.values():
        if member.unnamed is not None:
            _check_topics_known(member)
        if member.count is not None and member.count != len(member.owned):
            raise InputError(
                f"member {member.id!r} has {count_of(member.count, 'partition')}, but "
                f"the captures show {len(member.owned)} of them; add the output of --members "
                "--verbose or --offsets from the same moment"
            )


def _check_topics_known(member: ObservedMember) -> None:
    # The members table of Kafka 3.8 and 3.9 shows partition numbers without topics.
    where = f"member {member.id!r}"
    if not member.owned:
        raise InputError(
            f"{where} has the partitions {format_unnamed(member.unnamed)} of topics that the "
            "members table of Kafka 3.8 and 3.9 does not name; add the output of --describe "
            "--offsets from the same moment"
        )
    numbers: dict[str, list[int]] = {}
    for topic, number in member.owned:
        numbers.setdefault(topic, []).append(number)
    shown = sorted(map(sorted, numbers.values()))
    if shown != sorted(map(sorted, member.unnamed or ())):
        raise InputError(
            f"{where} has the partitions {format_unnamed(member.unnamed)} in the members table, "
            f"but {format_unnamed(shown)} in the offsets table: the captures are from different "
            "moments; save them again"
        )


def format_unnamed(numbers: Iterable[Iterable[int]] | None) -> str:
    """Format partition numbers without topic names, such as ``(0,1), (4,5)``."""
    return ", ".join(f"({','.join(map(str, each))})" for each in numbers or ())


def _member_notes(observed: ObservedGroup) -> Iterator[str]:
    known, stated = len(observed.members), observed.stated_members
    if not known and not observed.is_empty:
        yield "members are not shown" + (f", only their number: {stated}" if stated else "")
    elif not known:
        yield (
            "the group has no members: its consumers call assign() and only commit offsets"
            if observed.protocol is Protocol.SIMPLE
            else "the group has no active members"
        )
    elif not observed.has_members_table and (stated is None or stated > known):
        more = f": {(stated or 0) - known} of {stated}"
        yield NO_IDLE_MEMBER if stated is None else HIDDEN_MEMBERS + more
    elif stated is not None and stated != known:
        yield f"the state table counts {count_of(stated, 'member')}, {known} are shown"
    if observed.owners_without_ids:
        yield "owners are identified by client and host or thread, because member ids are not shown"


def _state_notes(observed: ObservedGroup) -> Iterator[str]:
    # The sources of the members never show that a group is rebalancing.
    if observed.members and observed.state is None and not observed.is_described:
        yield f"{ASSUMED}the group is stable"
    if observed.is_rebalancing:
        yield f"the group was rebalancing, state {observed.state or 'not shown'}"
    if any(member.target is not None for member in observed.members.values()):
        yield "the group was reconciling: owned is the current, not the target assignment"
    for file in observed.unreadable_files:
        yield f"{file} could not be read: its content about the group is missing"


def _gaps_note(observed: ObservedGroup) -> Iterator[str]:
    highest: dict[str, int] = {}
    for topic, number in observed.partitions:
        highest[topic] = max(number, highest.get(topic, 0))
    size = sum(highest.values()) + len(highest) - len(observed.partitions)
    if not size or not observed.shows_owners or max(highest.values()) >= MAX_ASSUMED_PARTITIONS:
        return
    names = (
        f"{topic}-{number}"
        for topic, last in sorted(highest.items())
        for number in range(last)
        if (topic, number) not in observed.partitions
    )
    shown = ", ".join(islice(names, _SHOWN_PARTITIONS))
    more = f" and {size - _SHOWN_PARTITIONS} more" if size > _SHOWN_PARTITIONS else ""
    yield f"{ASSUMED}the partitions that the source does not show have no owner"
    yield f"partitions that no capture shows: {shown}{more}"


def _partition_counts(
    observed: ObservedGroup, subscriptions: Subscriptions, options: ImportOptions, notes: list[str]
) -> Counts:
    known, minimum = options.content.partition_counts, options.content.minimum_counts
    counts: Counts = {}
    for topic, number in observed.partitions:
        counts[topic] = max(counts.get(topic, minimum.get(topic, 0)), number + 1)
    for topic in chain.from_iterable(subscriptions.topics.values()):
        if topic in known:
            counts.setdefault(topic, 0)
    assumed = sorted(counts.keys() - known.keys())
    if assumed:
        note = "partition counts are not shown, the highest partition numbers are used: "
        notes.append(note + ", ".join(assumed))
    notes.extend(_gaps_note(observed))
    for topic, count in counts.items():
        where = f"{topic}-{count - 1}"
        if topic not in known and count > MAX_ASSUMED_PARTITIONS:
            raise InputError(
                f"{where}: without --metadata, a partition number must be below "
                f"{MAX_ASSUMED_PARTITIONS}; give --metadata"
            )
        if count > known.get(topic, count):
            raise InputError(
                f"partition {where} is in a capture, but the topic has {known[topic]} partitions "
                "in the metadata; save the capture and the metadata again"
            )
    return {topic: known.get(topic, count) for topic, count in counts.items()}


def with_hosts_and_speeds(group: Group, options: ImportOptions) -> Group:
    """Set the host and the speed of each member from --hosts and --speeds."""
    rule, speeds = options.hosts, options.speeds
    members = group.members
    if rule is not None:
        members = tuple(replace(m, client=replace(m.client, host=rule(m))) for m in members)
    if speeds is not None:
        members = tuple(replace(m, speed=entry_of_member(speeds, m, "speeds")) for m in members)
    return replace(group, members=members)


def entry_of_member(table: Mapping[str, _Value], member: Member, source: str) -> _Value:
    """Return the table entry of a member, by its id, instance id, client id or host."""
    client = member.client
    for name in (member.id, member.instance_id, client.id, client.host):
        if name is not None and name in table:
            return table[name]
        if name is not None and name.lstrip("/") in table:
            return table[name.lstrip("/")]
    raise InputError(
        f"{source}: no entry for member {member.id!r}; add its id, instance id, client id or host"
    )


def topic_weights(
    observed: ObservedGroup, topic: str, count: int, options: ImportOptions, notes: list[str]
) -> tuple[int, ...] | None:
    """Return the weights of a topic's partitions, or None if all weights are equal."""
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
    """Return the kinds of weights that the captures contain."""
    sizes = options.content.sizes
    shown = {
        WeightSource.LAG: bool(observed.lag),
        WeightSource.RATE: bool(observed.appended),
        WeightSource.SIZE: bool(sizes) and sizes.keys() >= observed.partitions.keys(),
    }
    return tuple(source for source, is_shown in shown.items() if is_shown)


def with_weights(group: Group, options: ImportOptions) -> Group:
    """Set the weights of a group from a group document."""
    source = options.weight_source
    if source in (WeightSource.LAG, WeightSource.RATE):
        raise InputError(
            f"a group document contains no {source}; set weights when the group is imported: "
            + (_RATE if source is WeightSource.RATE else "kassay import --weights lag")
        )

    weights = {
        topic.name: _given_weights(options, topic.name, topic.partitions) for topic in group.topics
    }
    weighted = weighted_group(group, weights, source)
    notes = options.weight_notes({topic.name: topic.partitions for topic in group.topics})
    return replace(weighted, windows=options.windows, notes=(*group.notes, *notes))


def weighted_group(
    group: Group, weights: Mapping[str, tuple[int, ...] | None], source: WeightSource | None = None
) -> Group:
    """Copy a group, with other weights by topic. None means equal weights of a topic."""
    topics = tuple(replace(topic, **_weight_fields(weights[topic.name])) for topic in group.topics)
    members = tuple(
        replace(member, capacity=None) if isinstance(member.capacity, tuple) else member
        for member in group.members
    )
    return replace(
        group,
        topics=topics,
        members=members,
        windows=NO_WINDOWS,
        weight_source=source,
        weight_unit=None,
    )


def _weight_fields(weights: Sequence[Any] | None) -> dict[str, Any]:
    has_windows = weights is not None and any(isinstance(row, tuple) for row in weights)
    name, other = ("profiles", "weights") if has_windows else ("weights", "profiles")
    return {name: weights, other: None}


def _given_weights(options: ImportOptions, topic: str, count: int) -> tuple[int, ...]:
    recorded = options.weight_windows
    table = options.weight_table if recorded is None else recorded.weights
    if table is None:
        return _from_sizes(options.content.sizes, topic, count)
    if topic not in table:
        raise InputError(f"weights: topic {topic!r} has no weights; add one weight per partition")
    rows: Sequence[Any] = table[topic] if recorded is None else recorded.rows(topic, count)
    if len(rows) != count:
        raise InputError(
            f"weights: topic {topic!r} has {count} partitions, but {len(rows)} weights; "
            "give one weight per partition"
        )
    return tuple(rows)


def _from_sizes(sizes: Mapping[PartitionKey, int], topic: str, count: int) -> tuple[int, ...]:
    missing = next((n for n in range(count) if (topic, n) not in sizes), None)
    if missing is not None:
        raise InputError(
            f"no size is known for {topic}-{missing}; add the output of "
            "kafka-log-dirs.sh --describe for all brokers to the directory of captures"
        )
    return tuple(sizes[topic, number] for number in range(count))


def _lag_on_few_members(observed: ObservedGroup) -> Iterator[str]:
    """Yield a note if at least 90% of the lag is on two fifths of the members."""
    lag = Counter[str | None]()
    for partition, messages in observed.lag.items():
        lag[observed.partitions.get(partition)] += max(messages, 0)
    sums = list(accumulate(count for _, count in lag.most_common()))
    few = bisect_left(sums, -(-9 * lag.total() // 10)) + 1
    if len(lag) > 2 and lag.total() >= _NOTABLE_LAG and few <= max(1, 2 * len(lag) // 5):
        yield (
            f"{100 * sums[few - 1] // lag.total()}% of the lag is on partitions of {few} of "
            f"{len(lag)} members, most on {lag.most_common(1)[0][0] or 'none'}: check the "
            f"rate of these partitions ({_RATE}), their records and their consumers"
        )


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
            f"no rate is known for {partition[0]}-{partition[1]}: a rate needs two samples, and a "
            f"leader of the partition in both; use {_RATE}, or give --weights FILE"
        )
    if appended < 0:
        notes.append("partitions that lost messages between the samples have weight 0")
    return max(appended, 0)

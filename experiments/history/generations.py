"""Reconstruct the generations of a consumer group from its records in ``__consumer_offsets``."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kassay.reference.model.group import Protocol
from kassay.reference.protocol.message_decoder import DecodedRecord, Fields, RecordType

AssignedNumbers = tuple[tuple[str, tuple[int, ...]], ...]
"""Partition numbers by topic, in the order of the assignment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationMember:
    """Member in one generation of a group, with subscription and assignment.

    ``subscription`` is None if the group does not consist of consumers. ``assigned`` is
    None if the records do not contain it. ``claimed`` are the partitions that the member claimed
    when it joined, and ``claimed_generation`` is the generation of the claim. These two are None
    if members send no claims to the assignor.
    """

    id: str
    instance_id: str | None = None
    client_id: str = ""
    host: str = ""
    rack: str | None = None
    subscription: tuple[str, ...] | None = ()
    assigned: AssignedNumbers | None = None
    claimed: AssignedNumbers | None = None
    claimed_generation: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """Generation of a group. Each field is a column of the table ``generations``.

    ``incarnation`` counts how often the group was deleted, or its generations restarted, before.
    ``number`` is the generation id or the epoch of the target assignment. ``timestamp`` is in
    milliseconds since 1970; ``partition`` and ``offset`` are those of the last record.
    ``skipped_epochs`` counts the epochs directly before that never had an assignment. Under a
    ``cooperative`` assignor, a rebalance can take several generations. Members are sorted by id.
    """

    group: str
    incarnation: int
    number: int
    protocol: Protocol
    assignor: str | None
    timestamp: int | None
    partition: int | None
    offset: int | None
    members: tuple[GenerationMember, ...]
    partition_counts: tuple[tuple[str, int], ...] = ()
    skipped_epochs: int = 0
    cooperative: bool = False


def generation_of(row: Mapping[str, Any]) -> Generation:
    """Convert a row of the table ``generations`` to a generation."""
    return Generation(
        **{
            **row,
            "protocol": Protocol(row["protocol"]),
            "members": tuple(map(_member_of, row["members"])),
            "partition_counts": tuple(
                (each["topic"], each["partitions"]) for each in row["partition_counts"]
            ),
        }
    )


def _member_of(row: Mapping[str, Any]) -> GenerationMember:
    known = {k: assigned_numbers(row[k]) for k in ("assigned", "claimed") if row[k] is not None}
    subscription = None if row["subscription"] is None else tuple(row["subscription"])
    return GenerationMember(**{**row, "subscription": subscription, **known})


def assigned_numbers(entries: Iterable[Mapping[str, Any]]) -> AssignedNumbers:
    """Convert a list of assigned partitions from JSON to partition numbers by topic."""
    return tuple((each["topic"], tuple(each["partitions"])) for each in entries)


def counts_by_generation(
    generations: Sequence[Generation], given: Mapping[str, int]
) -> Iterator[dict[str, int]]:
    """Yield, for each generation of a group, the partition counts by topic.

    The generations are from one incarnation of the group: it is not deleted between them. ``given``
    has the final counts of assigned and subscribed topics. If later generations assign further
    partitions of a topic, its count is that of the assignments so far. Partitions that are never
    assigned count from the start.
    """
    final: dict[str, int] = {}
    for generation in generations:
        _observe(final, generation)
    observed: dict[str, int] = {}
    for generation in generations:
        _observe(observed, generation)
        counts = dict(observed)
        subscribed = {t for member in generation.members for t in member.subscription or ()}
        for topic in sorted((subscribed | observed.keys()) & given.keys()):
            if observed.get(topic, 0) == final.get(topic, 0):
                counts[topic] = max(given[topic], observed.get(topic, 0))
        yield counts


def _observe(counts: dict[str, int], generation: Generation) -> None:
    for member in generation.members:
        for topic, numbers in member.assigned or ():
            counts[topic] = max([counts.get(topic, 0), *(number + 1 for number in numbers)])
    counts.update(generation.partition_counts)


@dataclass(slots=True)
class _ConsumerGroup:
    """State of a group of the consumer protocol (KIP-848), after some of its records."""

    epoch: int | None = None
    target_epoch: int | None = None
    members: dict[str, Fields] = field(default_factory=dict)
    targets: dict[str, Fields] = field(default_factory=dict)
    regexes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    partition_counts: dict[str, int] = field(default_factory=dict)
    epochs_seen: set[int] = field(default_factory=set)


def reconstruct_generations(
    group: str, records: Iterable[DecodedRecord], *, topic_names: Mapping[str, str] | None = None
) -> Iterator[Generation]:
    """Reconstruct the generations of a group from its records, and yield them in order.

    ``records`` are in ascending order of offset. Repeated records are ignored; the last record of
    a generation determines its content. ``topic_names`` maps topic ids to names; a topic that is
    not in this mapping gets its id as name.
    """
    replay = _Replay(group, topic_names or {})
    position: tuple[int | None, int | None] | None = None
    for record in records:
        if record.offset is not None and (record.partition, record.offset) == position:
            continue
        position = (record.partition, record.offset)
        yield from replay.apply(record)
    yield from replay.flush()


class _Replay:
    """Replay of the records of a group, which yields the generations of the group."""

    def __init__(self, group: str, topic_names: Mapping[str, str]) -> None:
        self._group = group
        self._topic_names = dict(topic_names)  # by id; records add names
        self._incarnation = 0
        self._pending: Generation | None = None
        self._state = _ConsumerGroup()

    def apply(self, record: DecodedRecord) -> Iterator[Generation]:
        pending, epoch, value = self._pending, self._state.epoch, record.value
        match record.kind:
            case RecordType.GROUP_METADATA if value is not None:
                yield from self._replace_pending(self._classic_generation(record, value))
            case RecordType.GROUP_METADATA if pending and pending.protocol is Protocol.CLASSIC:
                yield from self._delete_group()
            case RecordType.CONSUMER_GROUP_METADATA if value is None and epoch is not None:
                yield from self._delete_group()
            case _:
                yield from self._apply_consumer_record(record)

    def flush(self) -> Iterator[Generation]:
        if self._pending is not None:
            yield self._pending
        self._pending = None

    def _delete_group(self) -> Iterator[Generation]:
        yield from self.flush()
        self._incarnation += 1
        self._state = _ConsumerGroup()

    def _replace_pending(self, generation: Generation) -> Iterator[Generation]:
        pending = self._pending
        if not generation.number and not generation.members:
            return
        if pending is not None and generation.number < pending.number:
            self._incarnation += 1
            generation = replace(generation, incarnation=self._incarnation)
        if pending is not None and (
            (generation.incarnation, generation.number) != (pending.incarnation, pending.number)
        ):
            yield pending
        self._pending = generation

    def _classic_generation(self, record: DecodedRecord, value: Fields) -> Generation:
        timestamp = value["timestamp"]
        members = sorted(map(_classic_member, value["members"]), key=lambda member: member.id)
        if any(member.assigned is not None for member in members):
            members = [replace(member, assigned=member.assigned or ()) for member in members]
        return Generation(
            group=self._group,
            incarnation=self._incarnation,
            number=value["generation"],
            protocol=Protocol.CLASSIC,
            assignor=value["protocol"],
            timestamp=record.timestamp if timestamp < 0 else timestamp,
            partition=record.partition,
            offset=record.offset,
            members=tuple(members),
            cooperative=_is_cooperative(value),
        )

    def _apply_consumer_record(self, record: DecodedRecord) -> Iterator[Generation]:
        state, value = self._state, record.value
        member = record.key.get("member_id", "")
        match record.kind:
            case RecordType.CONSUMER_GROUP_METADATA if value is not None:
                state.epoch = value["epoch"]
                state.epochs_seen.add(value["epoch"])
                if not state.members:
                    yield from self._replace_pending(self._snapshot(record, value["epoch"]))
            case RecordType.CONSUMER_GROUP_PARTITION_METADATA:
                for topic in value["topics"] if value else ():
                    self._topic_names[str(topic["topic_id"])] = topic["topic"]
                    state.partition_counts[topic["topic"]] = topic["partitions"]
            case RecordType.CONSUMER_GROUP_MEMBER_METADATA:
                _put(state.members, member, value)
            case RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER:
                _put(state.targets, member, value)
                # When a static member rejoins, its target gets a new member id, but no new epoch.
                if value and state.epoch is not None and state.epoch == state.target_epoch:
                    yield from self._replace_pending(self._snapshot(record, state.epoch))
            case RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA if value is not None:
                state.target_epoch = value["epoch"]
                yield from self._replace_pending(self._snapshot(record, value["epoch"]))
            case RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION:
                _put(state.regexes, record.key["regex"], tuple(value["topics"]) if value else None)

    def _snapshot(self, record: DecodedRecord, epoch: int) -> Generation:
        state = self._state
        previous = -1 if self._pending is None else self._pending.number
        skipped = len(state.epochs_seen & set(range(previous + 1, epoch)))
        state.epochs_seen = {number for number in state.epochs_seen if number >= previous}
        assignors = {one["assignor"] for one in state.members.values() if one["assignor"]}
        return Generation(
            group=self._group,
            incarnation=self._incarnation,
            number=epoch,
            protocol=Protocol.CONSUMER,
            assignor=assignors.pop() if len(assignors) == 1 else None,
            timestamp=record.timestamp,
            partition=record.partition,
            offset=record.offset,
            members=tuple(self._consumer_member(id) for id in sorted(state.members)),
            partition_counts=tuple(sorted(state.partition_counts.items())),
            skipped_epochs=skipped,
        )

    def _consumer_member(self, id: str) -> GenerationMember:
        metadata, target = self._state.members[id], self._state.targets.get(id)
        matched = self._state.regexes.get(metadata["regex"] or "", ())
        return GenerationMember(
            id=id,
            instance_id=metadata["instance_id"],
            client_id=metadata["client_id"],
            host=metadata["client_host"],
            rack=metadata["rack"] or None,
            subscription=tuple(sorted({*metadata["topics"], *matched})),
            assigned=None
            if target is None
            else tuple(
                (self._topic_names.get(id := str(each["topic_id"]), id), tuple(each["partitions"]))
                for each in target["assigned"]
            ),
        )


def _classic_member(member: Fields) -> GenerationMember:
    # Other applications than consumers put their own bytes here.
    subscription, assignment = (
        member[name] if isinstance(member[name], dict) else None
        for name in ("subscription", "assignment")
    )
    claimed, generation = _claim(subscription or {})
    return GenerationMember(
        id=member["member_id"],
        instance_id=member["instance_id"],
        client_id=member["client_id"],
        host=member["client_host"],
        rack=None if subscription is None else subscription["rack"] or None,
        subscription=None if subscription is None else tuple(subscription["topics"]),
        assigned=None if assignment is None else assigned_numbers(assignment["assigned"]),
        claimed=claimed,
        claimed_generation=generation,
    )


def _is_cooperative(group: Fields) -> bool:
    """Return whether a recorded group uses the cooperative rebalance protocol.

    Under the eager protocol, members revoke their partitions before they join. Then no
    subscription contains owned partitions.
    """
    subscriptions = (member["subscription"] for member in group["members"])
    return "cooperative" in (group["protocol"] or "") or any(
        isinstance(each, dict) and each.get("owned") for each in subscriptions
    )


def _claim(subscription: Fields) -> tuple[AssignedNumbers | None, int | None]:
    """Return the claimed partitions of a joining member, and their generation.

    Members with sticky assignors send the claim in the user data of the subscription, members with
    cooperative assignors in its field for owned partitions.
    """
    data, owned = subscription.get("user_data"), subscription.get("owned")
    stated: int = subscription.get("generation", -1)
    if data is None:
        return (assigned_numbers(owned), stated) if owned else (None, None)
    previous = data["previous_assignment"] or owned or ()
    return assigned_numbers(previous), max(stated, data["generation"])


def _put(table: dict[str, Any], key: str, value: object) -> None:
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value

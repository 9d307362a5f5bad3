"""Generations of a group, rebuilt from its records in their order."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from kassay.experiments.history.group_state import (
    Generation,
    GenerationMember,
    GroupRecord,
    RebalanceProtocol,
)
from kassay.reference.protocol.record_codec import Fields
from kassay.reference.protocol.record_schemas import RecordType

_T = TypeVar("_T")


@dataclass(slots=True)
class _Consumers:
    """What the records of a KIP-848 group have said so far."""

    epoch: int | None = None
    target_epoch: int | None = None
    members: dict[str, Fields] = field(default_factory=dict)
    targets: dict[str, Fields] = field(default_factory=dict)
    regexes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    announced: set[int] = field(default_factory=set)


def generations(
    group: str, entries: Iterable[GroupRecord], *, names: Mapping[str, str] | None = None
) -> Iterator[Generation]:
    """Rebuild the generations of a group.

    Records of one generation are put together: its last one holds. A group that nobody
    has joined yet is in no generation.

    Parameters
    ----------
    group
        Group id.
    entries
        Its records by ascending offset; one that is there twice counts once.
    names
        Topic names by id, for KIP-848 groups, whose assignments name topics by id. Ids
        without a name stand for themselves.
    """
    replay = _Replay(group, names or {})
    place: tuple[int | None, int | None] | None = None
    for entry in entries:
        if entry.offset is not None and (entry.partition, entry.offset) == place:
            continue
        place = (entry.partition, entry.offset)
        yield from replay.enter(entry)
    yield from replay.end()


class _Replay:
    """Goes through the records of a group; holds a generation back until it is over."""

    def __init__(self, group: str, names: Mapping[str, str]) -> None:
        self._group = group
        self._names = dict(names)
        self._life = 0
        self._held: Generation | None = None
        self._consumers = _Consumers()

    def enter(self, entry: GroupRecord) -> Iterator[Generation]:
        if entry.kind == RecordType.GROUP_METADATA:
            if entry.value is not None:
                yield from self._hold(self._classic(entry, entry.value))
            elif self._held is not None and self._held.protocol is RebalanceProtocol.CLASSIC:
                yield from self._delete()
        elif self._is_deletion(entry):
            yield from self._delete()
        else:
            yield from self._consumer(entry)

    def end(self) -> Iterator[Generation]:
        if self._held is not None:
            yield self._held
        self._held = None

    def _is_deletion(self, entry: GroupRecord) -> bool:
        return (
            entry.kind == RecordType.CONSUMER_GROUP_METADATA
            and entry.value is None
            and self._consumers.epoch is not None
        )

    def _delete(self) -> Iterator[Generation]:
        yield from self.end()
        self._life += 1
        self._consumers = _Consumers()

    def _hold(self, found: Generation) -> Iterator[Generation]:
        held = self._held
        if not found.number and not found.members:
            return
        if held is not None and found.number < held.number:
            self._life += 1
            found = replace(found, life=self._life)
        if held is not None and (found.life, found.number) != (held.life, held.number):
            yield held
        self._held = found

    def _classic(self, entry: GroupRecord, value: Fields) -> Generation:
        stamp = value["timestamp"]
        return Generation(
            group=self._group,
            life=self._life,
            number=value["generation"],
            protocol=RebalanceProtocol.CLASSIC,
            assignor=value["protocol"],
            timestamp=entry.timestamp if stamp < 0 else stamp,
            partition=entry.partition,
            offset=entry.offset,
            members=_classic_members(value["members"]),
        )

    def _consumer(self, entry: GroupRecord) -> Iterator[Generation]:
        now, value = self._consumers, entry.value
        member = entry.key.get("member_id", "")
        match entry.kind:
            case RecordType.CONSUMER_GROUP_METADATA if value is not None:
                now.epoch = value["epoch"]
                now.announced.add(value["epoch"])
                if not now.members:
                    yield from self._hold(self._snapshot(entry, value["epoch"]))
            case RecordType.CONSUMER_GROUP_PARTITION_METADATA:
                self._learn(value)
            case RecordType.CONSUMER_GROUP_MEMBER_METADATA:
                _put(now.members, member, value)
            case RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER:
                _put(now.targets, member, value)
                # A static member takes over from itself without a new epoch.
                if value is not None and now.epoch is not None and now.epoch == now.target_epoch:
                    yield from self._hold(self._snapshot(entry, now.epoch))
            case RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA if value is not None:
                now.target_epoch = value["epoch"]
                yield from self._hold(self._snapshot(entry, value["epoch"]))
            case RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION:
                _put(now.regexes, entry.key["regex"], tuple(value["topics"]) if value else None)

    def _learn(self, value: Fields | None) -> None:
        for topic in value["topics"] if value else ():
            self._names[topic["topic_id"]] = topic["topic"]
            self._consumers.counts[topic["topic"]] = topic["partitions"]

    def _snapshot(self, entry: GroupRecord, epoch: int) -> Generation:
        now = self._consumers
        held = -1 if self._held is None else self._held.number
        passed = len(now.announced & set(range(held + 1, epoch)))
        now.announced = {number for number in now.announced if number >= held}
        assignors = {one["assignor"] for one in now.members.values() if one["assignor"]}
        return Generation(
            group=self._group,
            life=self._life,
            number=epoch,
            protocol=RebalanceProtocol.CONSUMER,
            assignor=assignors.pop() if len(assignors) == 1 else None,
            timestamp=entry.timestamp,
            partition=entry.partition,
            offset=entry.offset,
            members=tuple(self._member(id) for id in sorted(now.members)),
            counts=tuple(sorted(now.counts.items())),
            passed=passed,
        )

    def _member(self, id: str) -> GenerationMember:
        said, target = self._consumers.members[id], self._consumers.targets.get(id)
        expressed = self._consumers.regexes.get(said["regex"] or "", ())
        return GenerationMember(
            id=id,
            instance_id=said["instance_id"],
            client_id=said["client_id"],
            host=said["client_host"],
            rack=said["rack"],
            subscription=tuple(sorted({*said["topics"], *expressed})),
            assigned=None
            if target is None
            else tuple(
                (self._names.get(each["topic_id"], each["topic_id"]), tuple(each["partitions"]))
                for each in target["assigned"]
            ),
        )


def _classic_members(said: Sequence[Fields]) -> tuple[GenerationMember, ...]:
    """Return members by id; where some got partitions, those without any got none."""
    members = sorted(map(_classic_member, said), key=lambda member: member.id)
    if any(member.assigned is not None for member in members):
        members = [replace(member, assigned=member.assigned or ()) for member in members]
    return tuple(members)


def _classic_member(said: Fields) -> GenerationMember:
    # Of other applications these are bytes, which say nothing here.
    subscription, assignment = (
        said[name] if isinstance(said[name], dict) else None
        for name in ("subscription", "assignment")
    )
    return GenerationMember(
        id=said["member_id"],
        instance_id=said["instance_id"],
        client_id=said["client_id"],
        host=said["client_host"],
        rack=None if subscription is None else subscription["rack"],
        subscription=None if subscription is None else tuple(subscription["topics"]),
        assigned=None
        if assignment is None
        else tuple((each["topic"], tuple(each["partitions"])) for each in assignment["assigned"]),
    )


def _put(table: dict[str, _T], key: str, value: _T | None) -> None:
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value

"""From what captures show to a group document, with a note for everything they do not."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from kassay.experiments.sources.errors import SourceError
from kassay.experiments.sources.merge_captures import ObservedGroup, ObservedMember, PartitionKey
from kassay.experiments.sources.partition_weights import WeightOptions, weigh
from kassay.experiments.sources.topic_metadata import Counts
from kassay.reference.documents.document_fields import as_array, as_object, as_text
from kassay.reference.documents.json_text import parse_json
from kassay.reference.model.group import Group, Member, Topic
from kassay.reference.model.topic_partitions import Partitions

# Stands for the last rebalance where its generation is not shown: any one will do, as long
# as all members have the same.
UNKNOWN_GENERATION = 1
# A damaged partition number must not become a topic of millions of partitions.
MOST_PARTITIONS = 1_000_000

ByMember = Mapping[str, tuple[str, ...]]


class AssumedSubscriptions(StrEnum):
    """What to take for the subscriptions, which no table shows."""

    ASSIGNED = "assigned"
    EQUAL = "equal"


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How to fill in what captures do not tell.

    Parameters
    ----------
    assume
        For groups that ``subscriptions`` does not list: `AssumedSubscriptions.ASSIGNED`, a member
        subscribes to the topics that it has partitions of; `AssumedSubscriptions.EQUAL`, to all
        that any member has.
    subscriptions
        By group id, then by member id, client id or group.instance.id.
    counts
        Partition counts by topic; those of other topics are the highest number seen, and
        one more.
    at_least
        By topic, a partition count that it may exceed.
    weights
        What a partition weighs.
    missing_lag
        Lag of a partition for which none is shown; None to refuse it.
    sizes
        Bytes of partitions.
    table
        By topic, what its partitions weigh; None to weigh by ``weights``.
    """

    assume: AssumedSubscriptions = AssumedSubscriptions.ASSIGNED
    subscriptions: Mapping[str, ByMember] | None = None
    counts: Counts | None = None
    at_least: Counts | None = None
    weights: WeightOptions = WeightOptions.NONE
    missing_lag: int | None = None
    sizes: Mapping[PartitionKey, int] | None = None
    table: Mapping[str, Sequence[int]] | None = None


def load_subscriptions(path: Path) -> dict[str, ByMember]:
    """Read ``{"group": {"member, client or instance id": ["topic", ...]}}``.

    Raises
    ------
    SourceError
        If the file has another form.
    """
    where = str(path)
    document = as_object(parse_json(path.read_text(encoding="utf-8"), where=where), where)
    return {
        group: {
            member: tuple(
                as_text(topic, f"{where}: {group}[{member!r}][{index}]")
                for index, topic in enumerate(as_array(topics, f"{where}: {group}[{member!r}]"))
            )
            for member, topics in as_object(members, f"{where}: {group}").items()
        }
        for group, members in document.items()
    }


def to_group(seen: ObservedGroup, joining: ImportOptions) -> Group:
    """Build the document of one group.

    Raises
    ------
    SourceError
        If a partition lies beyond the count that the metadata gives, a member has a
        partition outside its stated subscription, or a weight is missing.
    """
    notes: list[str] = []
    _require_shown_partitions(seen)
    members = sorted(seen.members.values(), key=lambda member: member.id)
    wanted = _subscriptions(seen, members, joining, notes)
    counts = _counts(seen, wanted, joining, notes)
    topics = tuple(
        Topic(name=name, partitions=count, weights=weigh(seen, name, count, joining, notes))
        for name, count in sorted(counts.items())
    )
    if members and all(member.epoch is None for member in members):
        notes.append(f"no generation is shown; {UNKNOWN_GENERATION} stands for the last one")
    notes.extend(_member_notes(seen))
    notes.extend(_state_notes(seen))
    return Group(
        id=seen.id,
        topics=topics,
        members=tuple(
            Member(
                id=member.id,
                subscription=wanted[member.id],
                owned=Partitions.of(sorted(member.owned)),
                generation=UNKNOWN_GENERATION if member.epoch is None else member.epoch,
                instance_id=member.instance_id,
            )
            for member in members
        ),
        notes=tuple(dict.fromkeys(notes)),
    )


def _require_shown_partitions(seen: ObservedGroup) -> None:
    for member in seen.members.values():
        if member.count is not None and member.count != len(member.owned):
            raise SourceError(
                f"group {seen.id!r}: member {member.id!r} has {member.count} partitions, of which "
                f"the captures show {len(member.owned)}; add what --members --verbose or "
                "--offsets prints at the same moment"
            )


def _member_notes(seen: ObservedGroup) -> Iterator[str]:
    known, stated = len(seen.members), seen.stated_members
    if not known and (stated or not seen.shows_owners) and "empty" not in seen.notices:
        yield "members are not shown" + (f", only that there are {stated}" if stated else "")
    elif not known:
        yield "the group has no active members"
    elif not seen.listed and (stated is None or stated > known):
        yield "no members table was given: members without partitions are not known"
    elif stated is not None and stated != known:
        yield f"the group is said to have {stated} members, {known} are shown"
    if seen.named:
        yield "owners are shown by client and host or thread, not by member id: they stand for it"


def _state_notes(seen: ObservedGroup) -> Iterator[str]:
    if "rebalancing" in seen.notices:
        yield f"the group was rebalancing, state {seen.state or 'not shown'}"
    if any(not member.settled for member in seen.members.values()):
        yield "the group was reconciling: owned is what members had, not what they shall have"
    for file in seen.unread:
        yield f"{file} could not be read: what it says of the group is missing"


def _subscriptions(
    seen: ObservedGroup, members: Sequence[ObservedMember], joining: ImportOptions, notes: list[str]
) -> dict[str, tuple[str, ...]]:
    stated = (joining.subscriptions or {}).get(seen.id)
    if stated is not None:
        return {member.id: _stated(seen, member, stated) for member in members}
    everything = tuple(sorted({topic for topic, _ in seen.partitions}))
    if joining.assume is AssumedSubscriptions.EQUAL:
        if members:
            notes.append("subscriptions are not shown: every member is taken to have all topics")
        return {member.id: everything for member in members}
    if members:
        notes.append("subscriptions are not shown: members are taken to have the topics assigned")
    return {member.id: tuple(sorted({topic for topic, _ in member.owned})) for member in members}


def _stated(seen: ObservedGroup, member: ObservedMember, stated: ByMember) -> tuple[str, ...]:
    names = (member.id, member.instance_id, member.client_id)
    found = next((name for name in names if name is not None and name in stated), None)
    if found is None:
        raise SourceError(f"group {seen.id!r}: no subscription is given for member {member.id!r}")
    foreign = sorted(tp for tp in member.owned if tp[0] not in stated[found])
    if foreign:
        topic, number = foreign[0]
        raise SourceError(
            f"group {seen.id!r}: member {member.id!r} has {topic}-{number}, but its "
            f"subscription is given as {list(stated[found])}"
        )
    return stated[found]


def _counts(
    seen: ObservedGroup,
    wanted: Mapping[str, tuple[str, ...]],
    joining: ImportOptions,
    notes: list[str],
) -> Counts:
    known, at_least = joining.counts or {}, joining.at_least or {}
    highest: Counts = {}
    for topic, number in seen.partitions:
        highest[topic] = max(highest.get(topic, at_least.get(topic, 0)), number + 1)
    for topics in wanted.values():
        for topic in topics:
            if topic in known:
                highest.setdefault(topic, 0)
    guessed = [topic for topic in highest if topic not in known]
    if guessed:
        names = ", ".join(sorted(guessed))
        notes.append(f"partition counts are not shown, the highest numbers seen are taken: {names}")
    for topic, count in highest.items():
        if topic not in known and count > MOST_PARTITIONS:
            raise SourceError(
                f"group {seen.id!r}: {topic}-{count - 1} is beyond the {MOST_PARTITIONS} "
                "partitions that a topic may have without metadata"
            )
        if count > known.get(topic, count):
            raise SourceError(
                f"group {seen.id!r}: {topic}-{count - 1} is in a capture, but the metadata has "
                f"{known[topic]} partitions"
            )
    return {topic: known.get(topic, count) for topic, count in highest.items()}

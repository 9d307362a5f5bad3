"""Current owners of partitions, and the validity and the moves of assignments."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from itertools import repeat
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model import display
from kassay.reference.model.display import short_mapping
from kassay.reference.model.errors import KassayError
from kassay.reference.model.group import NO_GENERATION, Group, Results, cached, topic_starts
from kassay.reference.model.topic_partitions import (
    NO_PARTITIONS,
    UNKNOWN,
    Column,
    PartitionColumns,
    Partitions,
    TopicPartition,
    TopicStarts,
    select,
)

NO_OWNER = -1
# Larger tables of members and topics take more time and memory than the subscriptions.
_MAX_CELLS = 2**24


class Claim(NamedTuple):
    """Invalid claim of a member to a partition, with the reason."""

    member: str
    topic: str
    partition: int
    reason: str


@dataclass(frozen=True)
class Ownership:
    """Current owners of the partitions, and the claims that are not valid.

    ``stale`` are claims to a topic or partition that does not exist or is not subscribed to, and
    claims of an older generation. ``contested`` are claims of several members to one partition in
    the same generation; the partition then has no owner. ``column`` is read-only. In the order of
    the topics, it has the index of each partition's owner in ``group.members``, or `NO_OWNER`.
    """

    starts: TopicStarts
    stale: tuple[Claim, ...]
    contested: tuple[Claim, ...]
    column: Column

    def __repr__(self) -> str:
        return (
            f"<ownership: {self.owned_count} of {self.starts.size} partitions have an owner, "
            f"{len(self.stale) + len(self.contested)} claims are invalid>"
        )

    @cached_property
    def owners(self) -> dict[str, Column]:
        """Return the owner of each partition, as one read-only array per topic."""
        return self.starts.by_topic(self.column)

    @property
    def owned_count(self) -> int:
        """Return the number of partitions with an owner."""
        return int(np.count_nonzero(self.column != NO_OWNER))


@cached
def ownership(group: Group) -> Ownership:
    """Return the current owner of each partition.

    A claim is valid if the member subscribes to the topic, the partition exists and no
    claim has a higher generation. If several members claim a partition in the highest
    generation, it has no owner: Kafka's sticky assignors remove such a partition from all
    lists (``AbstractStickyAssignor``, Kafka 4.4.0).
    """
    starts = topic_starts(group)
    claims = starts.rows((index, member.owned) for index, member in enumerate(group.members))
    generations = np.array([member.generation for member in group.members], dtype=np.int64)
    exists = starts.exist(claims)
    present = select(claims, exists)
    place = starts.flat(present)
    generation = generations[present.member]
    highest = np.full(starts.size, NO_GENERATION, dtype=np.int64)
    np.maximum.at(highest, place, generation)
    outdated = generation < highest[place]
    claimant = np.full(starts.size, NO_OWNER, dtype=np.int32)
    claimant[place[~outdated]] = present.member[~outdated]
    disputed = np.zeros(starts.size, dtype=np.bool_)
    disputed[place[~outdated & (claimant[place] != present.member)]] = True
    subscribed = are_subscribed(group, present)
    owners = claimant.copy()
    owners[disputed] = NO_OWNER
    owners[place[~subscribed & ~outdated & ~disputed[place]]] = NO_OWNER
    owners.flags.writeable = False
    refused = [
        (select(claims, ~exists & (claims.topic == UNKNOWN)), "the topic does not exist"),
        (select(claims, ~exists & (claims.topic != UNKNOWN)), "the partition does not exist"),
        (select(present, ~subscribed), "the member does not subscribe to the topic"),
        (select(present, subscribed & outdated), "another member claims it in a higher generation"),
    ]
    contested = select(present, subscribed & ~outdated & disputed[place])
    return Ownership(
        starts=starts,
        stale=tuple(claim for rows, reason in refused for claim in _claims(group, rows, reason)),
        contested=tuple(
            _claims(group, contested, "another member claims it in the same generation")
        ),
        column=owners,
    )


def current_partitions(group: Group) -> dict[str, list[tuple[str, int]]]:
    """Return the partitions that each member owns by valid claims."""
    owned: list[list[tuple[str, int]]] = [[] for _ in group.members]
    for topic, column in ownership(group).owners.items():
        for number in np.flatnonzero(column != NO_OWNER).tolist():
            owned[column[number]].append((topic, number))
    return {member.id: owned[index] for index, member in enumerate(group.members)}


def rejoin(
    group: Group, assignment: Mapping[str, Partitions], *, generation: int | None = None
) -> Group:
    """Return the group after a rebalance, with the assigned partitions as owned partitions.

    Each member owns exactly the partitions it was assigned, in that order; a member that is
    missing from the assignment owns nothing. Every member has the given ``generation``, by
    default the highest in the group plus 1; ``sub_generation``, ``user_data``, ``target`` and the
    state of the group become None.
    """
    if generation is None:
        generation = 1 + max((m.generation for m in group.members), default=NO_GENERATION)
    members = tuple(
        replace(
            member,
            owned=assignment.get(member.id, NO_PARTITIONS),
            generation=generation,
            sub_generation=None,
            user_data=None,
            target=None,
        )
        for member in group.members
    )
    return replace(group, members=members, status=replace(group.status, state=None))


def _claims(group: Group, rows: PartitionColumns, reason: str) -> Iterator[Claim]:
    if len(rows.topic) and int(rows.topic[0]) == UNKNOWN:
        known = {topic.name for topic in group.topics}
        for index in dict.fromkeys(rows.member.tolist()):
            member = group.members[index]
            for topic, number in member.owned:
                if topic not in known:
                    yield Claim(member.id, topic, number, reason)
        return
    for index, topic_index, number in zip(*(column.tolist() for column in rows), strict=True):
        yield Claim(group.members[index].id, group.topics[topic_index].name, number, reason)


@cached
def subscription_mask(group: Group) -> NDArray[np.bool_]:
    """Return a boolean matrix of members (rows) and subscribed topics (columns)."""
    starts = topic_starts(group)
    table = np.zeros((len(group.members), len(group.topics)), dtype=np.bool_)
    known: dict[tuple[str, ...], Column] = {}  # topic indices per distinct subscription
    for row, member in enumerate(group.members):
        names = member.subscription
        if names not in known:
            indices = map(starts.index.get, names, repeat(UNKNOWN))
            codes = np.fromiter(indices, dtype=np.int32, count=len(names))
            known[names] = codes[codes != UNKNOWN]
        table[row, known[names]] = True
    return table


def are_subscribed(group: Group, rows: PartitionColumns) -> NDArray[np.bool_]:
    """Return whether the member of each row subscribes to the topic of the row."""
    topics = len(group.topics)
    if not len(rows.member):
        return np.zeros(0, dtype=np.bool_)
    if len(group.members) * topics <= _MAX_CELLS:
        return subscription_mask(group)[rows.member, rows.topic]
    index = topic_starts(group).index
    keys = {
        row * topics + index[name]
        for row in np.flatnonzero(np.bincount(rows.member)).tolist()
        for name in group.members[row].subscription
        if name in index
    }
    claimed = rows.member.astype(np.int64) * topics + rows.topic
    return np.isin(claimed, np.fromiter(keys, dtype=np.int64, count=len(keys)))


@cached
def consumed_partitions(group: Group) -> NDArray[np.bool_]:
    """Return whether the topic of each partition has a subscriber."""
    subscribers = group.subscribers()
    consumed = [bool(subscribers.get(topic.name)) for topic in group.topics]
    return np.repeat(np.array(consumed, dtype=np.bool_), topic_starts(group).counts)


Value = TypeVar("Value")


class Assignment(Mapping[str, Partitions]):
    """Partitions of each member, in the order in which the assignor lists them.

    ``by_member`` maps each member id to (topic, partition) pairs.

    Examples
    --------
    >>> assignment = Assignment({"a": [("t", 0), ("t", 1)], "b": []})
    >>> assignment.counts()
    {'a': 2, 'b': 0}
    >>> assignment["a"]
    Partitions([t-0, t-1])
    """

    __slots__ = ("_by_member", "results")

    def __init__(self, by_member: Mapping[str, Iterable[tuple[str, int]]]) -> None:
        self._by_member = {member: Partitions.of(tps) for member, tps in by_member.items()}
        self.results = Results()

    def counts(self) -> dict[str, int]:
        """Count the partitions of each member. `kassay.loads` returns the loads, with weights."""
        return {member: len(partitions) for member, partitions in self._by_member.items()}

    def __getitem__(self, member: str) -> Partitions:
        return self._by_member[member]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_member)

    def __len__(self) -> int:
        return len(self._by_member)

    def __reduce__(self) -> tuple[type["Assignment"], tuple[dict[str, Partitions]]]:
        return (Assignment, (self._by_member,))

    def __hash__(self) -> int:
        return hash(frozenset(self._by_member.items()))

    def __repr__(self) -> str:
        return f"Assignment({short_mapping(self._by_member)})"

    def _repr_html_(self) -> str:
        return display.loads_table(self.counts(), self, heading="count")


class LivelockError(KassayError):
    """Error: Kafka's assignor does not terminate, because its state repeats.

    ``state`` is the assignment when the repetition was detected, ``cycle_length`` the passes over
    the partitions from a state to its first repetition, ``circling`` the partitions that move
    within the cycle, by topic and number.
    """

    def __init__(
        self, state: Assignment, cycle_length: int, circling: tuple[TopicPartition, ...]
    ) -> None:
        super().__init__(state, cycle_length, circling)
        self.state = state
        self.cycle_length = cycle_length
        self.circling = circling

    def __str__(self) -> str:
        names = ", ".join(str(tp) for tp in self.circling)
        passes = "in every pass" if self.cycle_length == 1 else f"every {self.cycle_length} passes"
        return f"the state repeats {passes}; partitions that move back and forth: {names}"


def cached_per_group(
    function: Callable[[Group, Assignment], Value],
) -> Callable[[Group, Assignment], Value]:
    """Cache the result of a function of a group and an assignment."""

    @wraps(function)
    def wrapper(group: Group, assignment: Assignment) -> Value:
        last_group, value = assignment.results.get(wrapper, (None, None))
        if last_group is not group:
            value = function(group, assignment)
            assignment.results[wrapper] = (group, value)
        result: Value = value
        return result

    return wrapper


def assignee_column(group: Group, assignment: Assignment) -> Column:
    """Return the index of the assigned member of each partition.

    The partitions are in the order of the topics. Unassigned partitions have `NO_OWNER`. Unknown
    members, topics and partition numbers are skipped. If a partition has several assignees, the
    column contains the last one.
    """
    return _check(group, assignment)[0]


@cached_per_group
def _check(group: Group, assignment: Assignment) -> tuple[Column, bool]:
    """Return the assigned member of each partition, and whether the assignment is valid."""
    starts = topic_starts(group)
    rows = starts.rows(
        (index, assignment[member.id])
        for index, member in enumerate(group.members)
        if member.id in assignment
    )
    exists = starts.exist(rows)
    known = bool(exists.all()) and group.member_table().keys() >= assignment.keys()
    if not known:
        rows = select(rows, exists)
    column = np.full(starts.size, NO_OWNER, dtype=np.int32)
    column[starts.flat(rows)] = rows.member
    valid = (
        known
        and not group.has_copies
        # As many rows as partitions with subscribers, and each of these has an assignee.
        and len(rows.member) == np.count_nonzero(consumed_partitions(group))
        and np.array_equal(column != NO_OWNER, consumed_partitions(group))
        and bool(are_subscribed(group, rows).all())
    )
    return column, valid


def violations(group: Group, assignment: Assignment) -> Iterator[str]:
    """Yield one message per rule that an assignment violates.

    In a valid assignment, each partition of a topic with subscribers has exactly one
    assignee, which subscribes to the topic, and no other partition is assigned. The number of
    assignees of a partition with `Topic.copies` is in its range. Members that are not in the
    assignment have no partitions.

    Examples
    --------
    >>> from kassay import Member, Topic
    >>> topic, member = Topic(name="t", partitions=2), Member(id="a", subscription=("t",))
    >>> group = Group(topics=(topic,), members=(member,))
    >>> list(violations(group, Assignment({"a": [("t", 0), ("t", 0)]})))
    ["t-0 is assigned 2 times: ['a', 'a']", 't-1 is not assigned']
    """
    if _check(group, assignment)[1]:
        return
    starts = topic_starts(group)
    index_of = {member.id: index for index, member in enumerate(group.members)}
    for member_id in assignment:
        if member_id not in index_of:
            yield f"member {member_id!r} is not in the group"
    lists = [(index_of[m], tps) for m, tps in assignment.items() if m in index_of]
    rows = starts.rows(lists)
    for index, partitions in lists:
        for topic in partitions.distinct_topics():
            if topic not in starts.index:
                member = group.members[index].id
                yield f"member {member!r} is assigned topic {topic!r}, which has no metadata"
    exists = starts.exist(rows)
    for index, topic_index, number in _triples(select(rows, ~exists & (rows.topic != UNKNOWN))):
        name = f"{group.topics[topic_index].name}-{number}"
        yield f"member {group.members[index].id!r} is assigned {name}, which does not exist"
    present = select(rows, exists)
    not_subscribed = select(present, ~are_subscribed(group, present))
    for index, topic_index in dict.fromkeys(triple[:2] for triple in _triples(not_subscribed)):
        member, topic = group.members[index].id, group.topics[topic_index].name
        yield f"member {member!r} is assigned topic {topic!r}, but does not subscribe to it"
    times = np.bincount(starts.flat(present), minlength=starts.size)
    consumed = consumed_partitions(group)
    least, most = copy_limits(group)
    for position in np.flatnonzero((times > most) | ((times < least) & consumed)).tolist():
        yield _wrong_count(group, assignment, starts, position, int(times[position]))
    yield from _repeated_copies(group, starts, present)


def _repeated_copies(group: Group, starts: TopicStarts, rows: PartitionColumns) -> Iterator[str]:
    if not group.has_copies:
        return
    pairs = starts.flat(rows) * len(group.members) + rows.member
    distinct, repeated = np.unique(pairs, return_counts=True)
    for pair in distinct[repeated > 1].tolist():
        position, index = divmod(pair, len(group.members))
        tp = _partition_at(group, starts, position)
        yield f"{tp} is assigned twice to member {group.members[index].id!r}"


def copy_limits(group: Group) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the minimum and the maximum number of members per partition."""
    limits = np.ones((topic_starts(group).size, 2), dtype=np.int64)
    for topic, start in zip(group.topics, topic_starts(group).starts.tolist(), strict=False):
        if topic.copies:
            limits[start : start + topic.partitions] = topic.copies
    return limits[:, 0], limits[:, 1]


def _triples(rows: PartitionColumns) -> Iterator[tuple[int, int, int]]:
    return zip(rows.member.tolist(), rows.topic.tolist(), rows.number.tolist(), strict=True)


def _partition_at(group: Group, starts: TopicStarts, position: int) -> TopicPartition:
    index = int(np.searchsorted(starts.starts, position, side="right")) - 1
    return TopicPartition(group.topics[index].name, position - int(starts.starts[index]))


def _wrong_count(
    group: Group, assignment: Assignment, starts: TopicStarts, position: int, times: int
) -> str:
    tp = _partition_at(group, starts, position)
    if times == 0:
        return f"{tp} is not assigned"
    assignees_of_tp = [m for m, tps in assignment.items() for assigned in tps if assigned == tp]
    return f"{tp} is assigned {times} times: {assignees_of_tp}"


class MovementCount(NamedTuple):
    """Numbers of partitions that are kept, moved, or placed without an earlier owner."""

    kept: int
    moved: int
    placed: int


@cached_per_group
def movement_count(group: Group, assignment: Assignment) -> MovementCount:
    """Count the kept, moved and placed partitions of an assignment."""
    before, after = ownership(group).column, assignee_column(group, assignment)
    owned, assigned, same = before != NO_OWNER, after != NO_OWNER, before == after
    masks = (owned & same, owned & assigned & ~same, ~owned & assigned)
    return MovementCount(*(int(np.count_nonzero(mask)) for mask in masks))


def movement(group: Group, assignment: Assignment) -> int:
    """Count the partitions that move from their owner to another member."""
    return movement_count(group, assignment).moved

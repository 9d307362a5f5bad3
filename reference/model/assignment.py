"""What an assignor returns, and the judge of its validity."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kassay.reference.model import html_tables as notebook
from kassay.reference.model.errors import RunError
from kassay.reference.model.group import Group
from kassay.reference.model.ownership import NO_OWNER
from kassay.reference.model.partition_index import (
    UNKNOWN,
    Offsets,
    PartitionIndex,
    consumed_partitions,
    offsets_of,
    select,
    subscription_mask,
)
from kassay.reference.model.result_cache import Results, cached_per_group
from kassay.reference.model.topic_partitions import Column, Partitions, TopicPartition


class InvalidAssignmentError(RunError):
    """An assignment of our own making that breaks the rules: a bug."""


class Assignment(Mapping[str, Partitions]):
    """The partitions of each member, in the order the assignor listed them.

    Parameters
    ----------
    by_member
        Member id to its partitions; any iterables of (topic, partition) pairs.

    Examples
    --------
    >>> assignment = Assignment({"a": [("t", 0), ("t", 1)], "b": []})
    >>> assignment.loads()
    {'a': 2, 'b': 0}
    >>> assignment["a"]
    Partitions([t-0, t-1])
    """

    __slots__ = ("_by_member", "results")

    def __init__(self, by_member: Mapping[str, Iterable[tuple[str, int]]]) -> None:
        self._by_member = {member: Partitions.of(tps) for member, tps in by_member.items()}
        self.results = Results()

    def loads(self) -> dict[str, int]:
        """Count the partitions of each member."""
        return {member: len(partitions) for member, partitions in self._by_member.items()}

    def __getitem__(self, member: str) -> Partitions:
        """Return the partitions of a member."""
        return self._by_member[member]

    def __iter__(self) -> Iterator[str]:
        """Yield member ids."""
        return iter(self._by_member)

    def __len__(self) -> int:
        """Count the members."""
        return len(self._by_member)

    def __reduce__(self) -> tuple[type["Assignment"], tuple[dict[str, Partitions]]]:
        """Pickle the lists, without what is remembered of them."""
        return (Assignment, (self._by_member,))

    def __hash__(self) -> int:
        """Hash the content."""
        return hash(frozenset(self._by_member.items()))

    def __repr__(self) -> str:
        """Show members and partitions."""
        return f"Assignment({self._by_member!r})"

    def _repr_html_(self) -> str:
        """Show the members in a notebook: how many partitions each has, and which."""
        return notebook.loads_table("assignment", self.loads(), self)


def assignees(group: Group, assignment: Assignment) -> dict[str, Column]:
    """For each topic with metadata, the member index that each partition is assigned to.

    Entries that `violations` would complain of (unknown members, topics or partition
    numbers) are passed over; of several assignees the last listed counts.

    Returns
    -------
    dict
        Topic to an array of shape (partitions,), `NO_OWNER` where unassigned.
    """
    return offsets_of(group).by_topic(group, assignee_column(group, assignment))


def assignee_column(group: Group, assignment: Assignment) -> Column:
    """Return the arrays of `assignees` as one, in the order of the topics."""
    return _tally(group, assignment).column


@cached_per_group
def held_counts(group: Group, assignment: Assignment) -> NDArray[np.int64]:
    """Count the partitions that each member is assigned of each topic.

    Returns
    -------
    numpy.ndarray
        Shape (topics, members); what `assignees` passes over does not count.
    """
    column, width = assignee_column(group, assignment), len(group.members)
    topic = np.repeat(np.arange(len(group.topics)), offsets_of(group).counts)
    held = column != NO_OWNER
    keys = topic[held] * width + column[held]
    counts = np.bincount(keys, minlength=len(group.topics) * width)
    return counts.reshape(len(group.topics), width)


@dataclass(frozen=True, slots=True)
class _Tally:
    """Who got each partition, and whether there is nothing to complain of."""

    column: Column
    valid: bool


@cached_per_group
def _tally(group: Group, assignment: Assignment) -> _Tally:
    offsets = offsets_of(group)
    rows = offsets.rows(
        (index, assignment[member.id])
        for index, member in enumerate(group.members)
        if member.id in assignment
    )
    exists = offsets.exist(rows)
    known = bool(exists.all()) and group.member_table().keys() >= assignment.keys()
    if not known:
        rows = select(rows, exists)
    column = np.full(offsets.size, NO_OWNER, dtype=np.int32)
    column[offsets.flat(rows)] = rows.member
    valid = (
        known
        # As many rows as partitions that somebody consumes, and each of these has one.
        and len(rows.member) == np.count_nonzero(consumed_partitions(group))
        and np.array_equal(column != NO_OWNER, consumed_partitions(group))
        and bool(subscription_mask(group)[rows.member, rows.topic].all())
    )
    return _Tally(column, valid)


def violations(group: Group, assignment: Assignment) -> Iterator[str]:
    """Say what makes an assignment invalid; nothing if it is valid.

    Valid: every partition of a topic that somebody subscribes to has exactly one
    assignee, a member subscribed to its topic, and nothing else is assigned.

    Parameters
    ----------
    group
        The rebalance.
    assignment
        What to judge. Members it leaves out have no partitions.

    Yields
    ------
    str
        One violation, naming member and partition.

    Examples
    --------
    >>> from kassay.reference.model.group import Member, Topic
    >>> group = Group(
    ...     topics=(Topic(name="t", partitions=2),),
    ...     members=(Member(id="a", subscription=("t",)),),
    ... )
    >>> list(violations(group, Assignment({"a": [("t", 0), ("t", 0)]})))
    ["t-0 is assigned 2 times: ['a', 'a']", 't-1 is assigned to nobody']
    """
    if _tally(group, assignment).valid:
        return
    offsets = offsets_of(group)
    index_of = {member.id: index for index, member in enumerate(group.members)}
    for member_id in assignment:
        if member_id not in index_of:
            yield f"member {member_id!r} is not in the group"
    lists = [(index_of[m], tps) for m, tps in assignment.items() if m in index_of]
    rows = offsets.rows(lists)
    yield from _not_in_metadata(group, lists, offsets)
    exists = offsets.exist(rows)
    for member, topic, number in _triples(select(rows, ~exists & (rows.topic != UNKNOWN))):
        name = f"{group.topics[topic].name}-{number}"
        yield f"member {group.members[member].id!r} is assigned {name}, which does not exist"
    present = select(rows, exists)
    subscribed = subscription_mask(group)
    strangers = select(present, ~subscribed[present.member, present.topic])
    pairs = dict.fromkeys((member, topic) for member, topic, _ in _triples(strangers))
    for member, topic in pairs:
        yield (
            f"member {group.members[member].id!r} is assigned {group.topics[topic].name!r}, "
            "which it does not subscribe to"
        )
    times = np.bincount(offsets.flat(present), minlength=offsets.size)
    wanted = consumed_partitions(group)
    for place in np.flatnonzero((times > 1) | ((times == 0) & wanted)).tolist():
        yield _not_exactly_once(group, assignment, offsets, place, int(times[place]))


def _not_in_metadata(
    group: Group, lists: Iterable[tuple[int, Partitions]], offsets: Offsets
) -> Iterator[str]:
    for index, partitions in lists:
        codes = np.unique(partitions.codes).tolist()
        for topic in (partitions.topics[code] for code in codes):
            if topic not in offsets.index:
                member = group.members[index].id
                yield f"member {member!r} is assigned topic {topic!r}, which has no metadata"


def _triples(rows: PartitionIndex) -> Iterator[tuple[int, int, int]]:
    return zip(rows.member.tolist(), rows.topic.tolist(), rows.number.tolist(), strict=True)


def _not_exactly_once(
    group: Group, assignment: Assignment, offsets: Offsets, place: int, times: int
) -> str:
    index = int(np.searchsorted(offsets.starts, place, side="right")) - 1
    tp = TopicPartition(group.topics[index].name, place - int(offsets.starts[index]))
    if times == 0:
        return f"{tp} is assigned to nobody"
    holders = [member for member, tps in assignment.items() for held in tps if held == tp]
    return f"{tp} is assigned {times} times: {holders}"

"""What an assignor returns, and the judge of its validity."""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from reference.group import Group
from reference.ownership import NOBODY
from reference.partitions import Column, Partitions


class InvalidAssignmentError(RuntimeError):
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

    __slots__ = ("_by_member",)

    def __init__(self, by_member: Mapping[str, Iterable[tuple[str, int]]]) -> None:
        self._by_member = {member: Partitions.of(tps) for member, tps in by_member.items()}

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

    def __hash__(self) -> int:
        """Hash the content."""
        return hash(frozenset(self._by_member.items()))

    def __repr__(self) -> str:
        """Show members and partitions."""
        return f"Assignment({self._by_member!r})"


def assignees(group: Group, assignment: Assignment) -> dict[str, Column]:
    """For each topic with metadata, the member index that each partition is assigned to.

    Entries that `violations` would complain of (unknown members, topics or partition
    numbers) are passed over; of several assignees the last listed counts.

    Returns
    -------
    dict
        Topic to an array of shape (partitions,), `NOBODY` where unassigned.
    """
    table = {t.name: np.full(t.partitions, NOBODY, dtype=np.int32) for t in group.topics}
    for index, member in enumerate(group.members):
        if member.id not in assignment:
            continue
        for topic, numbers in split_by_topic(assignment[member.id]):
            if topic in table:
                column = table[topic]
                column[numbers[(numbers >= 0) & (numbers < len(column))]] = index
    return table


def split_by_topic(partitions: Partitions) -> Iterator[tuple[str, Column]]:
    """Yield each topic of a list with its partition numbers, in list order."""
    if not len(partitions):
        return
    order = np.argsort(partitions.codes, kind="stable")
    codes = partitions.codes[order]
    numbers = partitions.numbers[order]
    starts = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(codes)], strict=True):
        yield partitions.topics[codes[start]], numbers[start:stop]


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
    >>> from reference.group import Member, Topic
    >>> group = Group(
    ...     topics=(Topic(name="t", partitions=2),),
    ...     members=(Member(id="a", subscription=("t",)),),
    ... )
    >>> list(violations(group, Assignment({"a": [("t", 0), ("t", 0)]})))
    ["t-0 is assigned 2 times: ['a', 'a']", 't-1 is assigned to nobody']
    """
    members = group.member_table()
    topics = group.topic_table()
    times = {t.name: np.zeros(t.partitions, dtype=np.int64) for t in group.topics}
    for member_id, partitions in assignment.items():
        if member_id not in members:
            yield f"member {member_id!r} is not in the group"
            continue
        subscription = members[member_id].subscription
        for topic, numbers in split_by_topic(partitions):
            if topic not in topics:
                yield f"member {member_id!r} is assigned topic {topic!r}, which has no metadata"
                continue
            if topic not in subscription:
                yield f"member {member_id!r} is assigned {topic!r}, which it does not subscribe to"
            exists = (numbers >= 0) & (numbers < topics[topic].partitions)
            for number in numbers[~exists].tolist():
                yield f"member {member_id!r} is assigned {topic}-{number}, which does not exist"
            np.add.at(times[topic], numbers[exists], 1)
    yield from _not_exactly_once(group, assignment, times)


def _not_exactly_once(
    group: Group, assignment: Assignment, times: dict[str, NDArray[np.int64]]
) -> Iterator[str]:
    subscribers = group.subscribers()
    for topic, count in times.items():
        for number in np.flatnonzero(count > 1).tolist():
            holders = [m for m, tps in assignment.items() for tp in tps if tp == (topic, number)]
            yield f"{topic}-{number} is assigned {count[number]} times: {holders}"
        if subscribers.get(topic):
            for number in np.flatnonzero(count == 0).tolist():
                yield f"{topic}-{number} is assigned to nobody"

"""How large a group is."""

from typing import NamedTuple

from reference.group import Group
from reference.ownership import ownership


class Size(NamedTuple):
    """How large a group is: by this order smaller groups come first."""

    members: int
    partitions: int
    topics: int
    owned: int
    subscriptions: int


def size_of(group: Group) -> Size:
    """Measure a group.

    Examples
    --------
    >>> from experiments.families import REMARKABLE
    >>> size_of(REMARKABLE["A"].group)
    Size(members=3, partitions=3, topics=2, owned=0, subscriptions=4)
    """
    return Size(
        members=len(group.members),
        partitions=group.partition_count,
        topics=len(group.topics),
        owned=ownership(group).owned_count,
        subscriptions=sum(len(member.subscription) for member in group.members),
    )

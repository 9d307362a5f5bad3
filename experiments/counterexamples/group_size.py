"""How large a group is."""

from typing import NamedTuple

from kassay.reference.model.group import Group
from kassay.reference.model.ownership import ownership


class GroupSize(NamedTuple):
    """How large a group is: by this order smaller groups come first."""

    members: int
    partitions: int
    topics: int
    owned: int
    subscriptions: int


def size_of(group: Group) -> GroupSize:
    """Measure a group.

    Examples
    --------
    >>> from kassay.experiments.study.families.named_groups import NAMED_GROUPS
    >>> size_of(NAMED_GROUPS["A"].group)
    GroupSize(members=3, partitions=3, topics=2, owned=0, subscriptions=4)
    """
    return GroupSize(
        members=len(group.members),
        partitions=group.partition_count,
        topics=len(group.topics),
        owned=ownership(group).owned_count,
        subscriptions=sum(len(member.subscription) for member in group.members),
    )

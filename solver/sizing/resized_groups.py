"""Add members to a group, or remove members from it."""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm

from kassay.reference.model.assignment import Assignment, current_partitions, rejoin
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group, Member, WeightSource
from kassay.reference.model.group_remarks import require_single_copies
from kassay.reference.model.metrics import LoadUnits, loads
from kassay.reference.model.topic_partitions import Partitions


@dataclass(frozen=True, slots=True)
class Resizing:
    """Group, member to add to it, and the common unit of loads for all numbers of members.

    In the common unit, a load is divided by the speed of its member and multiplied by ``multiple``.
    If all speeds are equal, it is the load of the member.
    """

    group: Group
    added: Member
    multiple: int
    """Least common multiple of the speeds of the group and of the added member."""
    fastest: int
    """Maximum of these speeds."""

    @classmethod
    def of(cls, group: Group, *, like: str | None = None, allow_lag: bool = False) -> "Resizing":
        """Check a group, and create the member that is added to it.

        ``like`` is the id of the member with the subscription, capacity, speed and rack of added
        members. By default they subscribe to every topic with subscribers. Raises InputError if
        this member does not exist, if it is not given and members differ in speed, or if the
        weights are lag without ``allow_lag``.
        """
        require_single_copies(group)
        if group.weight_source is WeightSource.LAG and not allow_lag:
            raise InputError(
                f"group {group.id!r}: the weights are lag, and lag is a backlog, not a load: it "
                "does not show how many members the traffic needs. Use rates (kassay import "
                "--bootstrap-server HOST:PORT --weights rate) or --weights FILE; --allow-lag "
                "(Python: allow_lag=True) shares the backlog among members"
            )
        added = _new_member(group, like)
        members = (*(group.members[index] for index in group.participant_indices), added)
        speeds = [member.speed for member in members]
        return cls(group, added, lcm(*speeds), max(speeds))

    def resized(self, number: int) -> Group:
        """Add members, or remove the last members, to reach a number of members."""
        taken = {member.id for member in self.group.members}
        members = list(self.group.members[:number])
        count = 0
        while len(members) < number:
            count += 1
            name = f"new-{count}"
            if name not in taken:
                members.append(replace(self.added, id=name))
        return replace(self.group, members=tuple(members))

    def without_owners(self) -> "Resizing":
        """Return the same group without owned partitions, which do not change the loads."""
        return replace(self, group=rejoin(self.group, Assignment({})))

    def unserved(self, number: int) -> tuple[str, ...]:
        """Return the topics that lose their last subscriber with a number of members."""
        before, after = self.group.subscribers(), self.resized(number).subscribers()
        return tuple(
            topic.name
            for topic in self.group.topics
            if topic.partitions and before[topic.name] and not after[topic.name]
        )

    def factor(self, group: Group) -> int:
        """Return the factor from relative loads of a resized group to the common unit."""
        speeds = (group.members[index].speed for index in group.participant_indices)
        return self.multiple // lcm(*speeds)

    def shown(self, load: int) -> int | float:
        """Convert a load in the common unit to the load of the fastest member."""
        return LoadUnits((), (), ()).shown(load, Fraction(self.fastest, self.multiple))

    def max_load(self, group: Group, assignment: Assignment) -> int:
        """Return the maximum load of an assignment of a resized group, in the common unit."""
        members = group.member_table()
        return max(
            (
                load * self.multiple // members[name].speed
                for name, load in loads(group, assignment).items()
            ),
            default=0,
        )


def with_valid_ownership(group: Group) -> Group:
    """Keep only the valid claims of each member.

    Otherwise, the removal of a member could make a claim of another member valid.
    """
    owned = {member: Partitions.of(tps) for member, tps in current_partitions(group).items()}
    return rejoin(group, owned, generation=0)


def _new_member(group: Group, like: str | None) -> Member:
    if like is not None:
        model = group.member_table().get(like)
        if model is None:
            raise InputError(f"no member {like!r} in group {group.id!r}")
        return replace(model, owned=Partitions.of(()), instance_id=None)
    if not group.has_equal_speeds:
        raise InputError(
            f"group {group.id!r}: members differ in speed, and the speed of added members is not "
            "known; give --like MEMBER (Python: like), the member whose speed they get"
        )
    consumed = tuple(topic for topic, members in group.subscribers().items() if members)
    speed = group.members[0].speed if group.members else 1
    return Member(id="new", subscription=consumed, generation=0, speed=speed)

"""Current and planned loads of the hosts of a group."""

from dataclasses import dataclass

from kassay.experiments.comparison.optimum import keep_owners
from kassay.reference.model.assignment import Assignment
from kassay.reference.model.group import Group
from kassay.reference.model.metrics import host_units, load_vector


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLoad:
    """Loads of one host: the sums of the loads of its members.

    A relative load is the load divided by the speed of the host, which is the sum of the speeds
    of its members; see `kassay.reference.model.metrics.LoadUnits`.
    """

    host: str
    members: int
    speed: int
    current: int
    planned: int
    relative_current: int
    relative_planned: int


def host_loads(group: Group, planned: Assignment) -> tuple[HostLoad, ...]:
    """Return the loads of each host, the highest relative load first.

    Return nothing if there is only one host, or if no host has several members.

    Examples
    --------
    >>> from kassay.reference.model.group_annotations import Client
    >>> from kassay.reference.model.group import Member, Topic
    >>> members = tuple(
    ...     Member(id=id, subscription=("t",), client=Client(host=host))
    ...     for id, host in (("a", "x"), ("b", "x"), ("c", "y"))
    ... )
    >>> group = Group(topics=(Topic(name="t", partitions=3),), members=members)
    >>> plan = Assignment({"a": [("t", 0)], "b": [("t", 1)], "c": [("t", 2)]})
    >>> [(one.host, one.members, one.planned) for one in host_loads(group, plan)]
    [('x', 2, 2), ('y', 1, 1)]
    """
    hosts = host_units(group)
    if not 1 < len(hosts.names) < len(hosts.unit_of):
        return ()
    speeds = [0] * len(hosts.names)
    for unit, index in zip(hosts.unit_of, group.participant_indices, strict=True):
        speeds[unit] += group.members[index].speed
    before, after = (
        hosts.loads(load_vector(group, assignment)) for assignment in (keep_owners(group), planned)
    )
    columns = (speeds, before, after, hosts.relative_loads(before), hosts.relative_loads(after))
    rows = (
        HostLoad(
            host=name,
            members=hosts.unit_of.count(unit),
            speed=speed,
            current=current,
            planned=then,
            relative_current=relative_current,
            relative_planned=relative_then,
        )
        for unit, (name, speed, current, then, relative_current, relative_then) in enumerate(
            zip(hosts.names, *columns, strict=True)
        )
    )
    return tuple(sorted(rows, key=lambda row: (-row.relative_current, row.host)))

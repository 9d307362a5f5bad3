"""What several captures say of each group, put together and held against each other."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from kassay.experiments.sources.describe_output import (
    MemberRow,
    Notice,
    OffsetCheckerRow,
    OffsetRow,
    ParsedTable,
    ParsedText,
    StateRow,
)
from kassay.experiments.sources.describe_output.typed_rows import TableRow
from kassay.experiments.sources.errors import SourceError, located

PartitionKey = tuple[str, int]
_OWNERS = frozenset({"CONSUMER-ID", "OWNER", "Owner"})


@dataclass(slots=True)
class ObservedMember:
    """One member, as far as the captures show it.

    Parameters
    ----------
    id, client_id, instance_id
        Its names.
    epoch
        The epoch of what it has, where shown.
    count
        How many partitions it is said to have, where shown.
    settled
        Whether what it has is what it shall have; False while the group reconciles.
    owned
        The partitions that it is shown to have.
    """

    id: str
    client_id: str | None = None
    instance_id: str | None = None
    epoch: int | None = None
    count: int | None = None
    settled: bool = True
    owned: set[PartitionKey] = field(default_factory=set)


@dataclass(slots=True)
class ObservedGroup:
    """One group, as far as the captures show it.

    Parameters
    ----------
    id
        Its name.
    members
        By member id.
    partitions
        Every partition that any capture shows, with the owner that it names.
    lag
        Lag in messages of each partition for which it is shown.
    appended
        Messages that each partition grew by between two samples, for a rate.
    listed
        Whether a members table lists all members, idle ones included.
    named
        Whether owners were shown as something else than member ids.
    shows_owners
        Whether any capture could show who has a partition.
    state
        Its state, where shown.
    stated_members
        How many members it is said to have, where shown.
    epoch
        Its group epoch, where shown.
    notices
        Kinds of notices about it.
    directories
        Where its captures lie.
    unread
        Files beside its captures that could not be read.
    error
        The first contradiction between captures of it.
    """

    id: str
    members: dict[str, ObservedMember] = field(default_factory=dict)
    partitions: dict[PartitionKey, str | None] = field(default_factory=dict)
    lag: dict[PartitionKey, int] = field(default_factory=dict)
    appended: dict[PartitionKey, int] = field(default_factory=dict)
    listed: bool = False
    named: bool = False
    shows_owners: bool = False
    state: str | None = None
    stated_members: int | None = None
    epoch: int | None = None
    notices: set[str] = field(default_factory=set)
    directories: set[str] = field(default_factory=set)
    unread: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Capture:
    """A parsed text with its name and the group that rows without a group column are of."""

    name: str
    parsed: ParsedText
    group: str | None


def merge_captures(
    captures: Iterable[Capture], *, unread: Iterable[Path] = ()
) -> dict[str, ObservedGroup]:
    """Put captures of any number of groups together, by group id.

    Captures that contradict each other about who has a partition leave an error with
    their group.

    Parameters
    ----------
    captures
        What could be read.
    unread
        Files that could not be; groups with captures in the same directory note them.

    Raises
    ------
    SourceError
        If a table or notice that names no group comes without one.
    """
    groups: dict[str, ObservedGroup] = {}
    ordered = list(captures)
    # Tables of members come first: they say which members there are.
    for members_first in (True, False):
        for capture in ordered:
            for table in capture.parsed.tables:
                if (table.kind == "members") is members_first:
                    _enter_table(groups, capture, table)
    for capture in ordered:
        for notice in capture.parsed.notices:
            _enter_notice(groups, capture, notice)
    for file in unread:
        for group in groups.values():
            if str(file.parent) in group.directories:
                group.unread = (*group.unread, file.name)
    return groups


def _enter_table(groups: dict[str, ObservedGroup], capture: Capture, table: ParsedTable) -> None:
    for row in table.rows:
        if isinstance(row, MemberRow | OffsetRow | OffsetCheckerRow | StateRow):
            group = _group_of(groups, capture, row)
            group.directories.add(str(Path(capture.name).parent))
            group.shows_owners |= not _OWNERS.isdisjoint(table.columns)
            try:
                _enter_row(group, row, f"{capture.name}:{row.line}")
            except SourceError as error:
                group.error = group.error or str(error)


def _group_of(
    groups: dict[str, ObservedGroup],
    capture: Capture,
    row: MemberRow | OffsetRow | OffsetCheckerRow | StateRow,
) -> ObservedGroup:
    name = row.group if row.group is not None else capture.group
    if name is None:
        raise located(capture.name, row.line, "the table does not name its group, give --group")
    return groups.setdefault(name, ObservedGroup(name))


def _enter_row(group: ObservedGroup, row: TableRow, where: str) -> None:
    match row:
        case MemberRow():
            _enter_member(group, row, where)
        case OffsetRow():
            _enter_offset(group, row, where)
        case OffsetCheckerRow():
            place = (row.topic, row.partition)
            group.named |= row.owner is not None
            _enter_owner(group, place, row.owner, where)
            _enter_lag(group, place, row.lag)
        case StateRow():
            group.state = row.state if row.state != "-" else group.state
            group.stated_members = group.stated_members if row.members is None else row.members
            group.epoch = row.epoch if row.epoch is not None else group.epoch


def _enter_member(group: ObservedGroup, row: MemberRow, where: str) -> None:
    group.listed = True
    member = group.members.setdefault(row.consumer_id, ObservedMember(row.consumer_id))
    member.client_id = row.client_id or member.client_id
    member.instance_id = row.instance_id or member.instance_id
    member.epoch = row.epoch if row.epoch is not None else member.epoch
    if row.partitions is None:
        return
    if member.count is not None and member.count != row.partitions:
        raise SourceError(
            f"{where}: member {member.id!r} has {row.partitions} partitions here but "
            f"{member.count} in another capture: they are of different moments, take them again"
        )
    member.count = row.partitions
    if row.target is not None and row.epoch is not None:
        member.settled &= sorted(row.target) == sorted(row.assignment or ())
    for topic, numbers in row.assignment or ():
        for number in numbers:
            _enter_owner(group, (topic, number), row.consumer_id, where)


def _enter_offset(group: ObservedGroup, row: OffsetRow, where: str) -> None:
    holder = row.consumer_id or row.owner
    group.named |= row.consumer_id is None and row.owner is not None
    if group.listed and row.consumer_id is not None and row.consumer_id not in group.members:
        raise SourceError(
            f"{where}: consumer {row.consumer_id!r} is not in the members table of group "
            f"{group.id!r}: the captures are of different moments, take them again"
        )
    if holder is not None:
        member = group.members.setdefault(holder, ObservedMember(holder))
        member.client_id = row.client_id or member.client_id
    if row.topic is None or row.partition is None:
        return
    place = (row.topic, row.partition)
    _enter_owner(group, place, holder, where)
    _enter_lag(group, place, row.lag)


def _enter_lag(group: ObservedGroup, place: PartitionKey, lag: int | None) -> None:
    if lag is not None:
        group.lag[place] = lag


def _enter_owner(group: ObservedGroup, place: PartitionKey, holder: str | None, where: str) -> None:
    known = group.partitions.get(place)
    if holder is None:
        group.partitions.setdefault(place, None)
        return
    if known is not None and known != holder:
        topic, number = place
        raise SourceError(
            f"{where}: {topic}-{number} is with {holder!r} here but with {known!r} in another "
            "capture of the group: they are of different moments, take them again"
        )
    group.partitions[place] = holder
    group.members.setdefault(holder, ObservedMember(holder)).owned.add(place)


def _enter_notice(groups: dict[str, ObservedGroup], capture: Capture, notice: Notice) -> None:
    name = notice.group or capture.group
    if name is None:
        raise located(capture.name, notice.line, "the notice names no group", notice.text)
    group = groups.setdefault(name, ObservedGroup(name))
    group.notices.add(notice.kind)
    if notice.kind == "error":
        failure = located(capture.name, notice.line, "the tool failed", notice.text)
        group.error = group.error or str(failure)

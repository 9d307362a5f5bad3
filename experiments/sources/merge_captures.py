"""Merge all captures of a group, and check that the captures do not contradict each other."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from kassay.experiments.sources.table_rows import (
    NO_ROWS,
    DocumentRows,
    MemberRow,
    Notice,
    OffsetRow,
    ParsedTable,
    ParsedText,
    StateRow,
)
from kassay.reference.documents.input_files import error_at
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import (
    LATEST_PROTOCOL_VERSION,
    REBALANCING,
    REBALANCING_STATES,
    GroupStatus,
    Protocol,
)

PartitionKey = tuple[str, int]
Racks = tuple[tuple[str | None, ...], ...]
AssignedNumbers = Iterable[tuple[str, Iterable[int]]]
DescribedRow = MemberRow | OffsetRow | StateRow
_STATES_WITHOUT_MEMBERS = frozenset({"Empty", "Dead"})
_OWNER_COLUMNS = frozenset({"CONSUMER-ID", "OWNER", "Owner"})
_RETRY = "the captures are from different moments, take them again"


@dataclass(slots=True)
class ObservedMember:
    """A member as the captures show it. None means that no capture shows the value."""

    id: str
    client_id: str | None = None
    host: str | None = None
    instance_id: str | None = None
    epoch: int | None = None
    count: int | None = None  # number of partitions in the members table
    # Partition numbers per topic, without the topics (releases 3.8 and 3.9).
    unnamed: tuple[tuple[int, ...], ...] | None = None
    owned: set[PartitionKey] = field(default_factory=set)
    target: set[PartitionKey] | None = None  # None if equal to owned
    subscription: tuple[str, ...] | None = None  # as the member sent it
    library: str | None = None  # indicated by the form of the subscription
    rack: str | None = None
    protocol_version: int = LATEST_PROTOCOL_VERSION
    ordered: tuple[PartitionKey, ...] = ()  # partitions in the coordinator's order

    def owned_in_order(self) -> list[PartitionKey]:
        """Return the owned partitions in the coordinator's order if known, otherwise sorted."""
        first = [partition for partition in self.ordered if partition in self.owned]
        return first + sorted(self.owned.difference(first))


@dataclass(slots=True)
class ObservedGroup:
    """A group as the captures show it. None means that no capture shows the value."""

    id: str
    members: dict[str, ObservedMember] = field(default_factory=dict)
    partitions: dict[PartitionKey, str | None] = field(default_factory=dict)  # owner by partition
    racks: dict[str, Racks | None] = field(default_factory=dict)  # by topic
    lag: dict[PartitionKey, int] = field(default_factory=dict)  # in messages
    appended: dict[PartitionKey, int] = field(default_factory=dict)  # messages between two samples
    has_members_table: bool = False  # a members table also lists members without partitions
    owners_without_ids: bool = False  # owners have another name than the member id
    shows_owners: bool = False  # a capture has a column for owners
    state: str | None = None
    assignor: str | None = None  # as the state table shows it
    protocol: Protocol | None = None
    stated_members: int | None = None  # number of members in the state table
    notices: set[str] = field(default_factory=set)
    directories: set[str] = field(default_factory=set)  # directories of the captures
    unreadable_files: tuple[str, ...] = ()  # files in these directories
    error: str | None = None  # first contradiction between its captures

    @property
    def is_rebalancing(self) -> bool:
        """Return whether a capture shows that the group is rebalancing."""
        return "rebalancing" in self.notices or self.state in REBALANCING_STATES

    @property
    def is_empty(self) -> bool:
        """Return whether the captures show that the group has no members."""
        if self.members or self.is_rebalancing or self.stated_members:
            return False
        known = self.stated_members == 0 or self.state in _STATES_WITHOUT_MEMBERS
        return known or "empty" in self.notices or self.shows_owners

    @property
    def hides_members(self) -> bool:
        """Return whether the group may have members although the captures show no members."""
        return not (self.members or self.is_empty or self.is_rebalancing)

    @property
    def status(self) -> GroupStatus:
        """Return the state, protocol and assignor of the group."""
        state = REBALANCING if self.state is None and self.is_rebalancing else self.state
        return GroupStatus(state=state, protocol=self.protocol, assignor=self.assignor)


@dataclass(frozen=True, slots=True)
class Capture:
    """Parsed capture with its file name, and the group id for rows without a group column."""

    name: str
    group: str | None
    parsed: ParsedText
    content: DocumentRows = NO_ROWS  # with partition counts and sizes


def merge_captures(
    captures: Iterable[Capture], *, unreadable_files: Iterable[Path] = ()
) -> dict[str, ObservedGroup]:
    """Merge captures into one `ObservedGroup` per group id.

    A contradiction between two captures is stored as the error of their group. Groups with
    captures in the directory of an unreadable file list that file.
    """
    groups: dict[str, ObservedGroup] = {}
    ordered = list(captures)
    # Members tables come first, because they list all members.
    for members_first in (True, False):
        for capture in ordered:
            for table in capture.parsed.tables:
                if (table.kind == "members") is members_first:
                    _add_table(groups, capture, table)
    for capture in ordered:
        for notice in capture.parsed.notices:
            _add_notice(groups, capture, notice)
    for file in unreadable_files:
        for group in groups.values():
            if str(file.parent) in group.directories:
                group.unreadable_files = (*group.unreadable_files, file.name)
    return groups


def _add_table(groups: dict[str, ObservedGroup], capture: Capture, table: ParsedTable) -> None:
    for row in table.rows:
        if isinstance(row, DescribedRow):
            name = row.group if row.group is not None else capture.group
            if name is None:
                message = "the table does not name its group, give --group"
                raise error_at(capture.name, row.line, message)
            group = groups.setdefault(name, ObservedGroup(name))
            group.directories.add(str(Path(capture.name).parent))
            if isinstance(row, MemberRow) and "CURRENT-EPOCH" in table.columns:
                # Members of the classic protocol have no epoch.
                group.protocol = group.protocol or Protocol.CLASSIC
            group.shows_owners |= not _OWNER_COLUMNS.isdisjoint(table.columns)
            try:
                _add_row(group, row, f"{capture.name}:{row.line}")
            except InputError as error:
                group.error = group.error or str(error)


def _add_row(group: ObservedGroup, row: DescribedRow, where: str) -> None:
    match row:
        case MemberRow():
            _add_member(group, row, where)
        case OffsetRow():
            _add_offset(group, row, where)
        case StateRow():
            group.state = row.state if row.state != "-" else group.state
            group.assignor = row.strategy or group.assignor
            if row.epoch is not None:
                group.protocol = Protocol.CONSUMER
            group.stated_members = group.stated_members if row.members is None else row.members


def _add_member(group: ObservedGroup, row: MemberRow, where: str) -> None:
    group.has_members_table = True
    member = group.members.setdefault(row.consumer_id, ObservedMember(row.consumer_id))
    member.client_id = row.client_id or member.client_id
    member.host = row.host or member.host
    member.instance_id = row.instance_id or member.instance_id
    if row.epoch is not None:
        member.epoch = row.epoch
        group.protocol = Protocol.CONSUMER
    member.unnamed = row.unnamed or member.unnamed
    if row.partitions is None:
        return
    if member.count is not None and member.count != row.partitions:
        raise InputError(
            f"{where}: member {member.id!r} has {row.partitions} partitions here but "
            f"{member.count} in another capture: {_RETRY}"
        )
    member.count = row.partitions
    if row.target is not None and row.epoch is not None:
        target = _pairs(row.target)
        if target != _pairs(row.assignment or ()):
            member.target = target
            for partition in sorted(target):
                group.partitions.setdefault(partition, None)
    for topic, numbers in row.assignment or ():
        for number in numbers:
            _add_partition(group, (topic, number), row.consumer_id, None, where)


def _pairs(assignment: AssignedNumbers) -> set[PartitionKey]:
    return {(topic, number) for topic, numbers in assignment for number in numbers}


def _add_offset(group: ObservedGroup, row: OffsetRow, where: str) -> None:
    owner = row.consumer_id or row.owner
    group.owners_without_ids |= row.consumer_id is None and row.owner is not None
    if (
        group.has_members_table
        and row.consumer_id is not None
        and row.consumer_id not in group.members
    ):
        raise InputError(
            f"{where}: consumer {row.consumer_id!r} is not in the members table of group "
            f"{group.id!r}: {_RETRY}"
        )
    if owner is not None:
        member = group.members.setdefault(owner, ObservedMember(owner))
        member.client_id = row.client_id or member.client_id
        member.host = row.host or member.host
    if row.topic is not None and row.partition is not None:
        _add_partition(group, (row.topic, row.partition), owner, row.lag, where)


def _add_partition(
    group: ObservedGroup, partition: PartitionKey, owner: str | None, lag: int | None, where: str
) -> None:
    known = group.partitions.setdefault(partition, owner)
    if owner is not None:
        if known not in (None, owner):
            topic, number = partition
            raise InputError(
                f"{where}: {topic}-{number} has owner {owner!r} here but {known!r} in another "
                f"capture of the group: {_RETRY}"
            )
        group.partitions[partition] = owner
        group.members.setdefault(owner, ObservedMember(owner)).owned.add(partition)
    if lag is not None:
        group.lag[partition] = lag


def _add_notice(groups: dict[str, ObservedGroup], capture: Capture, notice: Notice) -> None:
    name = notice.group or capture.group
    if name is None:
        raise error_at(capture.name, notice.line, "the notice names no group", notice.text)
    group = groups.setdefault(name, ObservedGroup(name))
    group.notices.add(notice.kind)
    if notice.kind == "error":
        failure = error_at(capture.name, notice.line, "the tool failed", notice.text)
        group.error = group.error or str(failure)

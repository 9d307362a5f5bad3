"""Merge the captures of each group, and find contradictions between them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from kassay.experiments.sources import table_rows
from kassay.experiments.sources.clean_lines import FORMS
from kassay.experiments.sources.line_account import ReadCapture
from kassay.experiments.sources.table_headers import TableKind
from kassay.reference.documents.files import error_at
from kassay.reference.model import group as group_model
from kassay.reference.model.errors import InputError

PartitionKey = tuple[str, int]
Racks = tuple[tuple[str | None, ...], ...]
AssignedNumbers = Iterable[tuple[str, Iterable[int]]]
DescribedRow = table_rows.MemberRow | table_rows.OffsetRow | table_rows.StateRow
_OFFSETS = TableKind.OFFSETS
_STATES_WITHOUT_MEMBERS = frozenset({"Empty", "Dead"})
_OWNER_COLUMNS = frozenset({"CONSUMER-ID", "OWNER", "Owner"})
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_HIDDEN_ID = FORMS["hidden id"]
"""Form of ids that a person has shortened or replaced, or that contain a part of a message."""
_RANDOM_ID = re.compile(r"(.*-)[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}")
_CONFUSED = str.maketrans("Oo1I5", "00llS", " ")
"""Replacements of similar characters, which people or text recognition can confuse."""
_RETRY = "the captures are from different moments; save them again"


@dataclass(slots=True)
class ObservedMember:
    """Data about a member in captures or in a cluster. None means that a value is unknown."""

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
    protocol_version: int = group_model.LATEST_PROTOCOL_VERSION
    # The partitions in the coordinator's order, which affects the broker's assignors.
    ordered: tuple[PartitionKey, ...] = field(default=(), compare=False)
    pattern: str | None = None  # regular expression of the subscription, which a broker resolves
    is_classic: bool = False  # uses the classic protocol in a group of the consumer protocol

    def owned_in_order(self) -> list[PartitionKey]:
        """Return the owned partitions in the coordinator's order, or sorted if it is unknown."""
        first = [partition for partition in self.ordered if partition in self.owned]
        return first + sorted(self.owned.difference(first))


@dataclass(slots=True)
class ObservedGroup:
    """Data about a group in captures. None means that a value is unknown."""

    id: str
    members: dict[str, ObservedMember] = field(default_factory=dict)
    partitions: dict[PartitionKey, str | None] = field(default_factory=dict)  # owner by partition
    racks: dict[str, Racks | None] = field(default_factory=dict)  # by topic
    lag: dict[PartitionKey, int] = field(default_factory=dict)  # in messages
    appended: dict[PartitionKey, int] = field(default_factory=dict)  # messages between two samples
    has_members_table: bool = False  # a members table also lists members without partitions
    owners_without_ids: bool = False  # owners have another name than the member id
    owners_with_ids: bool = False
    shows_owners: bool = False  # a capture has a column for owners
    has_offsets: bool = False  # a capture lists partitions, or members without partitions
    hides_partitions: bool = False  # a capture lists members without their partitions
    is_described: bool = False  # by Kafka's tool, which states that a group is rebalancing
    state: str | None = None
    assignor: str | None = None  # as the state table shows it
    protocol: group_model.Protocol | None = None
    stated_members: int | None = None  # number of members in the state table
    notices: set[str] = field(default_factory=set)
    directories: set[str] = field(default_factory=set)  # directories of the captures
    unreadable_files: tuple[str, ...] = ()  # files in these directories
    error: str | None = None  # first contradiction between its captures
    cluster: str | None = None  # if the captures are of several clusters
    unowned: set[PartitionKey] = field(default_factory=set)  # a capture shows that it has no owner
    notes: list[str] = field(default_factory=list)  # about the captures

    @property
    def is_rebalancing(self) -> bool:
        """Return whether a capture shows that the group is rebalancing."""
        return "rebalancing" in self.notices or self.state in group_model.REBALANCING_STATES

    @property
    def is_empty(self) -> bool:
        """Return whether the captures show that the group has no members."""
        if self.members or self.is_rebalancing or self.stated_members:
            return False
        known = self.stated_members == 0 or self.state in _STATES_WITHOUT_MEMBERS
        return known or "empty" in self.notices or self.shows_owners

    @property
    def status(self) -> group_model.GroupStatus:
        """Return the state, protocol, assignor and lag of the group."""
        state = (
            group_model.REBALANCING if self.state is None and self.is_rebalancing else self.state
        )
        return group_model.GroupStatus(
            state=state,
            protocol=self.protocol,
            assignor=self.assignor,
            lag=sum(max(0, lag) for lag in self.lag.values()) if self.lag else None,
        )


class Snapshot(StrEnum):
    """Choice of the first or last snapshot if a file shows a group at several times."""

    FIRST = "first"
    LAST = "last"


@dataclass(frozen=True)
class Capture:
    """Parsed capture with its file name and a default group id.

    ``group_source`` states the origin of the default id in a note, for example the file name.
    """

    name: str
    group: str | None
    read: ReadCapture
    group_source: str | None = None

    @property
    def groups(self) -> frozenset[str]:
        """Return the ids of the groups in the tables and messages of the capture."""
        named = {self.group_of(row, table) for row, table in self.rows()}
        named |= {notice.group or self.group for notice in self.read.notices}
        return frozenset(name for name in named if name is not None)

    def rows(self) -> Iterator[tuple[DescribedRow, table_rows.ParsedTable]]:
        """Yield each row about a group, with the table of the row."""
        for table in self.read.tables:
            for row in table.rows:
                if isinstance(row, DescribedRow):
                    yield row, table

    def group_of(self, row: DescribedRow, table: table_rows.ParsedTable) -> str | None:
        """Return the group id of a row, from the row, the table or the file name."""
        return row.group or table.group or self.only_group or self.group

    @property
    def named_groups(self) -> set[str]:
        """Return the group ids that rows or tables of the capture contain."""
        every = (row.group or table.group for row, table in self.rows())
        return {name for name in every if name is not None}

    @cached_property
    def only_group(self) -> str | None:
        """Return the group id if all rows name the same group, else None."""
        named = {row.group for row, _ in self.rows()} - {None}
        return next(iter(named)) if len(named) == 1 else None


def merge_captures(
    captures: Iterable[Capture],
    *,
    unreadable_files: Iterable[Path] = (),
    snapshot: Snapshot | None = None,
    are_samples: bool = False,
) -> dict[str, ObservedGroup]:
    """Merge captures into one `ObservedGroup` per group id.

    A contradiction is stored as the error of its group. Each group lists the unreadable files in
    the directories of its captures. If captures are of several clusters, ids are ``CLUSTER/GROUP``.
    With ``are_samples``, the offsets of a group in two files are samples of its rate.
    """
    groups: dict[str, ObservedGroup] = {}
    ordered = [_one_snapshot(capture, snapshot, groups) for capture in captures]
    tables = [(capture, table) for capture in ordered for table in capture.read.tables]
    _add_tables(groups, tables, are_samples=are_samples)
    for capture in ordered:
        for notice in capture.read.notices:
            _add_notice(groups, capture, notice)
    for capture in ordered:
        _add_problems(groups, capture)
        _add_notes(groups.values(), capture)
    if (cut := _cut_id(groups)) is not None:
        for name in cut:
            groups[name].error = groups[name].error or f"group {name!r}: {_damaged(*cut)}"
    # Ids of groups of which some captures name their cluster.
    named = {one.id.removeprefix(f"{one.cluster}/") for one in groups.values() if one.cluster}
    for group in groups.values():
        _check_consistent(group, is_ambiguous=group.cluster is None and group.id in named)
        for file in unreadable_files:
            if str(file.parent) in group.directories:
                group.unreadable_files = (*group.unreadable_files, file.name)
    return groups


def _add_notes(groups: Iterable[ObservedGroup], capture: Capture) -> None:
    for name, note in capture.read.notes:
        for group in groups:
            if name is None or group.id == name or group.id.endswith(f"/{name}"):
                group.notes.append(note)


def _add_problems(groups: dict[str, ObservedGroup], capture: Capture) -> None:
    account, every = capture.read.account, capture.groups
    found: dict[str, list[ObservedGroup]] = {}
    for group in groups.values():
        if group.cluster is not None or "/" not in group.id:
            found.setdefault(group.id.rpartition("/")[2], []).append(group)
    for problem in account.problems:
        for name in every if problem.group is None else {problem.group}:
            for group in found.get(name) or [groups.setdefault(name, ObservedGroup(name))]:
                group.error = group.error or str(account.error(problem))


def _check_consistent(group: ObservedGroup, *, is_ambiguous: bool) -> None:
    """Set the error of a group if its captures contradict each other."""
    problem = None
    cut = _cut_id(group.members) or _cut_id({topic for topic, _ in group.partitions})
    unowned = sorted(key for key in group.unowned if group.partitions.get(key) is not None)
    if group.members and not group.notices.isdisjoint({"empty", "missing"}):
        stated = "has no active members" if "empty" in group.notices else "does not exist"
        problem = f"one capture states that the group {stated}, another shows members: {_RETRY}"
    elif (hidden := next(filter(_HIDDEN_ID.fullmatch, group.members), None)) is not None:
        problem = f"the id {hidden!r} of a member is shortened or hidden; give the complete ids"
    elif group.state == "Stable" and group.stated_members == 0:
        problem = "the group is stable, but has no members"
    elif group.owners_without_ids and (group.owners_with_ids or group.has_members_table):
        problem = "captures name members by id and by client and host; give only one of the two"
    elif not group.owners_without_ids and (odd := _odd_id(group.members)) is not None:
        problem = f"the id {odd!r} of a member has another form than the other ids"
    elif cut is not None:
        problem = _damaged(*cut)
    elif unowned and not group.is_rebalancing:
        (topic, number), owner = unowned[0], group.partitions[unowned[0]]
        problem = (
            f"{topic}-{number} has owner {owner!r} in one capture and none in another: {_RETRY}"
        )
    elif is_ambiguous:
        problem = "not all captures of the group name their cluster; give captures of one cluster"
    if problem is not None:
        group.error = group.error or f"group {group.id!r}: {problem}"


def _odd_id(ids: Mapping[str, object]) -> str | None:
    odd = [id for id in ids if not table_rows.UNIQUE_ID.fullmatch(id)]
    return min(odd) if 0 < len(odd) < len(ids) else None


def _damaged(name: str, other: str) -> str:
    return f"{name!r} may be the damaged name of {other!r}"


def _cut_id(ids: Iterable[str]) -> tuple[str, str] | None:
    """Return an id that is truncated or misread, and the id that it resembles, or None."""
    ordered = sorted(ids)
    spelled: dict[str, str] = {}
    for id in ordered:
        other = spelled.setdefault(id.translate(_CONFUSED), id)
        if other != id:
            return id, other
    for short, long in pairwise(ordered):
        match = _RANDOM_ID.fullmatch(long)
        if match is not None and long.startswith(short) and len(short) > len(match[1]):
            return short, long
    return None


def _one_snapshot(
    capture: Capture, snapshot: Snapshot | None, groups: dict[str, ObservedGroup]
) -> Capture:
    """Keep one snapshot per group in a capture, or set the error of the group."""
    tables: dict[tuple[str | None, str | None, TableKind], list[table_rows.ParsedTable]] = {}
    kept: list[table_rows.ParsedTable] = []
    for table in capture.read.tables:
        parts: dict[str | None, list[table_rows.TableRow]] = {}
        for row in table.rows:
            if isinstance(row, DescribedRow):
                parts.setdefault(capture.group_of(row, table), []).append(row)
        for group, rows in parts.items():
            part = replace(table, rows=tuple(rows), file=capture.name)
            tables.setdefault((table.cluster, group, table.kind), []).append(part)
    notices = list(capture.read.notices)
    for (_, group, kind), parts_of_group in tables.items():
        snapshots = _snapshots(parts_of_group)
        if len(snapshots) == 1:
            kept.extend(snapshots[0])
            continue
        second = snapshots[1][0]
        if snapshot is None:
            name = group or ""
            observed = groups.setdefault(name, ObservedGroup(name))
            message = (
                f"{capture.name}:{second.rows[0].line}: a second {kind} table of group {name!r}; "
                "choose one with --snapshot first or --snapshot last"
            )
            observed.error = observed.error or message
            kept.extend(snapshots[0])
            continue
        kept.extend(snapshots[0 if snapshot is Snapshot.FIRST else -1])
        end = snapshots[-2][-1].rows[-1].line
        notices = [
            one
            for one in notices
            if (one.group or capture.group) != group
            or (one.line < second.line if snapshot is Snapshot.FIRST else one.line > end)
        ]
    return replace(capture, read=replace(capture.read, tables=kept, notices=notices))


def _snapshots(tables: Sequence[table_rows.ParsedTable]) -> list[list[table_rows.ParsedTable]]:
    snapshots: list[list[table_rows.ParsedTable]] = []
    for table in (each for one in tables for each in _without_repetitions(one)):
        current = snapshots[-1] if snapshots else []
        known = {_key(row): row for one in current for row in one.rows}
        again = [row for row in table.rows if _key(row) in known]
        agree = all(_agree(known[_key(row)], row) for row in again)
        is_same = bool(current) and table.columns == current[0].columns
        if again and agree and is_same and len(again) == len(table.rows):
            continue  # pasted twice
        lists_all = table.kind is TableKind.MEMBERS and "#PARTITIONS" in table.columns
        is_other = (bool(again) and (is_same or not agree)) or (
            bool(known) and lists_all and not len(known) == len(again) == len(table.rows)
        )
        if is_other or not snapshots:
            snapshots.append([table])
        else:
            current.append(table)
    return snapshots


def _without_repetitions(table: table_rows.ParsedTable) -> Iterator[table_rows.ParsedTable]:
    """Split a table between two contradicting rows about the same partition or member."""
    rows: dict[object, table_rows.TableRow] = {}
    for row in table.rows:
        if _key(row) in rows and not _agree(rows[_key(row)], row):
            yield replace(table, rows=tuple(rows.values()))
            rows = {}
        rows[id(row) if _key(row) in rows else _key(row)] = row
    yield replace(table, rows=tuple(rows.values()))


def _key(row: table_rows.TableRow) -> object:
    match row:
        case table_rows.OffsetRow():
            return (row.topic, row.partition) if row.topic is not None else row.consumer_id
        case table_rows.MemberRow():
            return row.consumer_id
    return None


def _agree(left: table_rows.TableRow, right: table_rows.TableRow) -> bool:
    """Return whether two rows have no contradicting values. None agrees with any value."""
    if type(left) is not type(right):
        return False
    pairs = (
        (getattr(left, each.name), getattr(right, each.name))
        for each in fields(left)
        if each.name != "line"
    )
    return all(one == other or {None, "-"} & {one, other} for one, other in pairs)


def _add_tables(
    groups: dict[str, ObservedGroup],
    tables: list[tuple[Capture, table_rows.ParsedTable]],
    *,
    are_samples: bool,
) -> None:
    has_clusters = len({table.cluster for _, table in tables} - {None}) > 1
    by_group: dict[str, list[table_rows.ParsedTable]] = {}
    # Members tables come first, because they list all members.
    for capture, table in sorted(tables, key=lambda each: each[1].kind != TableKind.MEMBERS):
        group = _group_of_table(groups, capture, table, has_clusters=has_clusters)
        by_group.setdefault(group.id, []).append(table)
    for id, found in by_group.items():
        used = _with_rate(groups[id], found) if are_samples else found
        for kind in dict.fromkeys(table.kind for table in used):
            of_kind = [table for table in used if table.kind is kind]
            groups[id].error = groups[id].error or _second_table(id, of_kind)
        for table in used:
            _add_rows(groups[id], table)


def _with_rate(
    group: ObservedGroup, tables: list[table_rows.ParsedTable]
) -> list[table_rows.ParsedTable]:
    """Add the growth of the offsets between two files. Return the tables without the old offsets.

    The second sample is the one with the greater sum, because end offsets only grow.
    """
    ends: dict[str, dict[PartitionKey, int]] = {}
    for table in tables:
        for row in table.rows:
            if isinstance(row, table_rows.OffsetRow) and row.end is not None:
                ends.setdefault(table.file, {})[str(row.topic), row.partition or 0] = row.end
    if len(ends) != 2 or len(set(map(frozenset, ends.values()))) > 1:
        return tables
    (old, first), (new, second) = sorted(ends.items(), key=lambda one: sum(one[1].values()))
    group.appended = {key: end - first[key] for key, end in second.items()}
    group.notes.append(f"weights are messages appended from {old} to {new}")
    return [one for one in tables if one.file != old or one.kind is not _OFFSETS]


def _second_table(group: str, tables: Sequence[table_rows.ParsedTable]) -> str | None:
    """Return an error if the tables of one kind in two files differ, else None."""
    if len({table.file for table in tables}) == 1 or len(snapshots := _snapshots(tables)) == 1:
        return None
    second = snapshots[1][0]
    keys = {_key(row) for row in second.rows}
    others = [one.file for one in snapshots[0] if not keys.isdisjoint(map(_key, one.rows))]
    return (
        f"{second.file}:{second.rows[0].line}: a second {second.kind} table of group {group!r}, "
        f"which differs from that in {(others or [snapshots[0][0].file])[0]}; remove one of the two"
        + (", or compute rates from both with --weights rate" if second.kind is _OFFSETS else "")
    )


def _group_of_table(
    groups: dict[str, ObservedGroup],
    capture: Capture,
    table: table_rows.ParsedTable,
    *,
    has_clusters: bool,
) -> ObservedGroup:
    """Return the group of all rows of a table. Raise InputError if it has no valid id."""
    row = next(row for row in table.rows if isinstance(row, DescribedRow))
    name = capture.group_of(row, table)
    if name is None:
        message = "the table does not name its group; give --name GROUP"
        raise error_at(capture.name, row.line, message)
    if _CONTROL.search(name):
        message = f"the id of a group contains a control character: {name!r}"
        raise error_at(capture.name, row.line, message)
    cluster = table.cluster if has_clusters else None
    id = name if cluster is None else f"{cluster}/{name}"
    group = groups.setdefault(id, ObservedGroup(id, cluster=cluster))
    group.directories.add(str(Path(capture.name).parent))
    if capture.group_source and not (row.group or table.group or capture.only_group):
        note = f"the id of the group is {capture.group_source}, because no capture names it"
        group.notes[:] = [note]
    return group


def _add_rows(group: ObservedGroup, table: table_rows.ParsedTable) -> None:
    group.is_described |= table.states_rebalances
    group.shows_owners |= not _OWNER_COLUMNS.isdisjoint(table.columns)
    for row in table.rows:
        if not isinstance(row, DescribedRow):
            continue
        if isinstance(row, table_rows.MemberRow) and "CURRENT-EPOCH" in table.columns:
            # Members of the classic protocol have no epoch.
            group.protocol = group.protocol or group_model.Protocol.CLASSIC
        group.has_offsets |= isinstance(row, table_rows.OffsetRow)
        try:
            _add_row(group, row, f"{table.file}:{row.line}")
        except InputError as error:
            group.error = group.error or str(error)
        if (
            isinstance(row, table_rows.OffsetRow)
            and {"CONSUMER-ID", "HOST"} <= set(table.columns)
            and row.consumer_id is None
            and row.topic is not None
            and row.partition is not None
        ):
            group.unowned.add((row.topic, row.partition))


def _add_row(group: ObservedGroup, row: DescribedRow, where: str) -> None:
    match row:
        case table_rows.MemberRow():
            _add_member(group, row, where)
        case table_rows.OffsetRow():
            _add_offset(group, row, where)
        case table_rows.StateRow():
            group.state = row.state if row.state != "-" else group.state
            group.assignor = row.strategy or group.assignor
            if row.epoch is not None:
                group.protocol = group_model.Protocol.CONSUMER
            group.stated_members = group.stated_members if row.members is None else row.members


def _add_member(group: ObservedGroup, row: table_rows.MemberRow, where: str) -> None:
    group.has_members_table = True
    member = group.members.setdefault(row.consumer_id, ObservedMember(row.consumer_id))
    member.client_id = row.client_id or member.client_id
    member.host = row.host or member.host
    member.instance_id = row.instance_id or member.instance_id
    if row.epoch is not None:
        member.epoch = row.epoch
        group.protocol = group_model.Protocol.CONSUMER
    member.unnamed = row.unnamed or member.unnamed
    member.subscription = row.subscription or member.subscription
    if row.partitions is None:
        group.hides_partitions = True
        return
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


def _add_offset(group: ObservedGroup, row: table_rows.OffsetRow, where: str) -> None:
    owner = row.consumer_id or row.owner
    group.owners_without_ids |= row.consumer_id is None and row.owner is not None
    group.owners_with_ids |= row.consumer_id is not None
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
    if not table_rows.TOPIC.fullmatch(partition[0]) or _CONTROL.search(owner or ""):
        name = partition[0] if not table_rows.TOPIC.fullmatch(partition[0]) else owner
        raise InputError(f"{where}: Kafka does not accept the name {name!r}; check the capture")
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


def _add_notice(
    groups: dict[str, ObservedGroup], capture: Capture, notice: table_rows.Notice
) -> None:
    name = notice.group or capture.group
    if name is None:
        message = "the message contains no group id; give --name GROUP"
        raise error_at(capture.name, notice.line, message, notice.text)
    group = groups.setdefault(name, ObservedGroup(name))
    group.notices.add(notice.kind)
    if notice.kind == "error":
        failure = f"{capture.name}:{notice.line}: the tool failed: {notice.text!r}"
        group.error = group.error or failure  # not shortened: the cause stands at the end

"""Import groups from captures and group documents.

Group documents are yielded while they are read. Captures of one path are parsed, merged per group
and converted. Options add subscriptions, hosts, speeds and weights from files, names or patterns.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import TextIO

from kassay.experiments.sources import build_group as group_builder
from kassay.experiments.sources import kind_captures
from kassay.experiments.sources.capture_contents import (
    NO_ROWS,
    DocumentRows,
    add_stated_values,
    merge_rows,
)
from kassay.experiments.sources.line_account import UNKNOWN_LINE
from kassay.experiments.sources.merge_captures import Capture, ObservedGroup, merge_captures
from kassay.experiments.sources.read_capture import read_capture
from kassay.reference.documents.files import (
    SourceText,
    as_object,
    as_text,
    as_texts,
    format_value,
    read_json_object,
    read_text,
    source_texts,
)
from kassay.reference.documents.json_codec import read_groups
from kassay.reference.documents.kind_documents import (
    KindDocument,
    OtherKindError,
    read_kind_documents,
)
from kassay.reference.model import display
from kassay.reference.model.display import count_of
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import MAX_SPEED, Group, Member, WeightSource
from kassay.reference.model.group_remarks import AssumedSubscriptions
from kassay.reference.model.joined_groups import join_groups

_NO_WEIGHTS = "none"
WEIGHT_NAMES: Mapping[str, WeightSource | None] = {
    _NO_WEIGHTS: None,
    **{str(each): each for each in (WeightSource.LAG, WeightSource.RATE, WeightSource.SIZE)},
}
"""Sources of weights by their names in --weights; files of weights have no name."""
CLIENT_ID, RATE = "client-id", "rate"
"""Values of --hosts (the client id is the host) and of --speeds (measure the rate)."""
_RATE_UNITS = 100
"""Speed of the fastest member if kassay rounds measured rates to speeds."""
_NO_TABLE = (
    "the text contains no table and no notice of kafka-consumer-groups.sh, and no output of "
    "another supported tool; give the output of kafka-consumer-groups.sh --describe, also with "
    "--members --verbose, of rpk group describe, or JSON such as of /connectors?expand=status; "
    "kcat -L -J shows partition counts"
)


@dataclass(frozen=True, slots=True)
class ImportedGroup:
    """Imported group, or an error, or the reason why a group is skipped."""

    id: str | None
    group: Group | None = None
    error: str | None = None
    skipped: str | None = None
    unused: str | None = None  # files of a directory that are not used, and why
    is_unread_file: bool = False  # ``error`` is the error of a file that can contain any group
    is_document: bool = False
    option_notes: tuple[str, ...] = ()  # notes that options add to a group document
    # Group of another kind; ``error`` is the error of readers of consumer groups.
    document: KindDocument | None = None

    @classmethod
    def of_document(cls, id: str | None, document: KindDocument | InputError) -> "ImportedGroup":
        """Create the result for a document of share groups, Streams or Connect."""
        if isinstance(document, InputError):
            return cls(id, error=str(document))
        return cls(id, error=str(OtherKindError(document)), document=document)


class EmptyGroups(StrEnum):
    """Treatment of groups without members: keep, skip or reject."""

    KEEP = "keep"
    SKIP = "skip"
    REJECT = "reject"  # skip them; a group whose members the source does not show is an error


def import_groups(
    paths: Sequence[Path],
    options: group_builder.ImportOptions,
    *,
    stdin: TextIO | None = None,
    group: str | None = None,
    empty: EmptyGroups = EmptyGroups.KEEP,
    is_joined: bool = False,
) -> Iterator[ImportedGroup]:
    """Read captures and group documents, and yield one result per group.

    Captures in a directory and its subdirectories are from one moment and are merged per group.
    The path ``-`` is standard input. ``group`` is the id for tables without group id; the default
    is the name of the file or directory. ``empty`` does not apply to group documents. With
    ``is_joined``, captures of several files are merged like those of a directory.
    """
    group = group or options.name
    if options.measures_speeds:
        raise InputError(
            "speeds can be measured only in a running cluster: kassay import --bootstrap-server "
            "HOST:PORT --speeds rate"
        )
    files = [path for path in paths if is_joined and not path.is_dir()]
    for batch in (files, *([path] for path in paths if path not in files)):
        each = (_texts_or_error(path, stdin=stdin, group=group) for path in batch)
        try:
            texts = chain.from_iterable(each)
            yield from _import_texts(texts, options, is_named=group is not None, empty=empty)
        except InputError as error:
            yield ImportedGroup(None, error=str(error))


def _texts_or_error(path: Path, *, stdin: TextIO | None, group: str | None) -> Iterator[SourceText]:
    """Yield the texts of a file, or an empty text with the error if the file is unreadable."""
    try:
        yield from source_texts(path, stdin=stdin, group=group)
    except InputError as error:
        yield SourceText(str(path), group, error=error)


def _import_texts(
    texts: Iterable[SourceText],
    options: group_builder.ImportOptions,
    *,
    is_named: bool,
    empty: EmptyGroups,
) -> Iterator[ImportedGroup]:
    """Import each group document when it is read, and all captures after the last file."""
    captures: list[Capture] = []
    unreadable: list[Path] = []
    documents: dict[str | None, str] = {}  # last file of each id
    contents = _Contents(options)
    for text in texts:
        if text.documents is not None:
            for imported in _read_documents(text, options):
                if text.from_directory:
                    documents[imported.id] = text.name
                yield imported
            continue
        if text.unused is not None:
            yield ImportedGroup(None, unused=f"not used, no suffix of captures: {text.unused}")
            continue
        found = _read(text, contents, is_named=is_named)
        if isinstance(found, Capture):
            captures.append(found)
            yield from _unattributed(found)
            continue
        unreadable += [] if found.error is None else [Path(text.name)]
        yield found
    if captures:
        captures = captures if is_named else _of_named_group(captures)
        yield from _groups_of_captures(captures, contents, unreadable, documents, empty=empty)


def _groups_of_captures(
    captures: list[Capture],
    contents: "_Contents",
    unreadable: list[Path],
    documents: dict[str | None, str],
    *,
    empty: EmptyGroups,
) -> Iterator[ImportedGroup]:
    """Yield the consumer groups of captures, then groups of other kinds."""
    groups = merge_captures(
        captures,
        unreadable_files=unreadable,
        snapshot=contents.options.snapshot,
        are_samples=contents.options.weight_source == WeightSource.RATE,
    )
    if not (groups or unreadable or documents):
        yield from _without_groups(captures, contents)
    for id in sorted(groups):
        yield _import_group(groups[id], contents, document=documents.get(id), empty=empty)
    for capture in captures:
        yield from _kind_groups(capture, contents)
    yield from _connectors(captures)


def _of_named_group(captures: list[Capture]) -> list[Capture]:
    """Set the group id of captures without group id, if all other captures have the same one."""
    named = set[str]().union(*(one.named_groups for one in captures))
    if len(named) != 1:
        return captures
    known = next(iter(named))
    return [
        one if one.named_groups else replace(one, group=known, group_source=None)
        for one in captures
    ]


def _read(text: SourceText, contents: "_Contents", *, is_named: bool) -> Capture | ImportedGroup:
    """Read the text of a capture, or return the reason why it is not used."""
    try:
        if text.error is not None:
            raise text.error
        read = read_capture(text.text, name=text.name, group=text.group)
        kind = "directory" if text.from_directory else "file"
        source = None if is_named or text.group is None else f"the name of the {kind}"
        capture = Capture(text.name, text.group, read, source)
        if contents.options.on_account is not None:
            contents.options.on_account(read.account)
        if text.from_directory and (reason := _unrelated(capture, text)) is not None:
            return ImportedGroup(None, unused=f"not used: {reason}")
        contents.add(capture)
    except InputError as error:
        if text.may_be_unrelated:
            return ImportedGroup(None, unused=f"not used: {error}")
        return ImportedGroup(text.group, error=str(error), is_unread_file=True)
    return capture


def _unrelated(capture: Capture, text: SourceText) -> str | None:
    """Return the reason why a file in a directory is not used, or None."""
    account = capture.read.account
    is_unused = text.may_be_unrelated and not account.is_used
    if capture.read.is_foreign or (account.problems and is_unused):
        return str(account.error(account.problems[0]))
    return f"{text.name}: no table" if is_unused else None


def _without_groups(captures: Sequence[Capture], contents: "_Contents") -> Iterator[ImportedGroup]:
    """Yield an error if the captures contain no group."""
    has_kinds = any(
        one.read.kinds or one.read.kind_tables or one.read.connectors for one in captures
    )
    found = contents.found.values()
    is_filled = any(one.partition_counts or one.minimum_counts or one.sizes for one in found)
    if is_filled and not has_kinds:
        names = ", ".join(one.name for one in captures)
        problem = "the files contain only partition counts or sizes, no group"
        yield ImportedGroup(None, error=f"{names}: {problem}")


def _unattributed(capture: Capture) -> Iterator[ImportedGroup]:
    """Yield the first problem of a capture that contains no group."""
    account = capture.read.account
    if not account.is_used and all(one.message == UNKNOWN_LINE for one in account.problems):
        line = account.problems[0].line if account.problems else 1
        message = f"{capture.name}:{line}: {_NO_TABLE}"
        yield ImportedGroup(capture.group, error=message, is_unread_file=True)
    elif account.problems and not (
        capture.groups or any(table.rows for table in capture.read.kind_tables)
    ):
        problem = str(account.error(account.problems[0]))
        yield ImportedGroup(capture.group, error=problem, is_unread_file=True)


def _kind_groups(capture: Capture, contents: "_Contents") -> Iterator[ImportedGroup]:
    read = capture.read
    for id, found in read.kinds:
        yield ImportedGroup.of_document(id, found)
    rows: dict[str, list[kind_captures.ToolMemberRow]] = {}
    errors: dict[str, InputError] = {}
    for group, row in kind_captures.kind_member_rows(read.kind_tables, name=capture.name):
        rows.setdefault(group, [])
        if isinstance(row, InputError):
            errors.setdefault(group, row)
        else:
            rows[group].append(row)
    for problem in read.account.problems:
        for id in set(rows) if problem.group is None else {problem.group}.intersection(rows):
            errors.setdefault(id, read.account.error(problem))
    if read.kind_tables and not (rows or read.account.problems):
        yield ImportedGroup(capture.group, error=f"{capture.name}: the table has no rows")
    for id in sorted(rows):
        try:
            found = errors.get(id) or kind_captures.document_of_rows(
                id, rows[id], contents.of(None)
            )
        except InputError as failure:
            found = failure
        yield ImportedGroup.of_document(id, found)


def _connectors(captures: Sequence[Capture]) -> Iterator[ImportedGroup]:
    found: dict[str, object] = {}
    for capture in captures:
        for status in capture.read.connectors:
            name = as_text(as_object(status["status"], capture.name)["name"], capture.name)
            if found.setdefault(name, status) != status:
                error = f"{capture.name}: connector {name!r} has two statuses; keep one of them"
                yield ImportedGroup(capture.group, error=error)
                return
    if found:
        first = next(one for one in captures if one.read.connectors)
        yield ImportedGroup.of_document(
            *kind_captures.connect_result(found, where=first.name, id=first.group)
        )


class _Contents:
    """Partition counts, sizes and topic ids in captures, by cluster."""

    def __init__(self, options: group_builder.ImportOptions) -> None:
        self.options = options
        self.found: dict[str | None, DocumentRows] = {None: options.content}
        # First file and value of each statement, by cluster.
        self.stated: dict[str | None, dict[object, tuple[str, object]]] = {}

    def add(self, capture: Capture) -> None:
        for content in capture.read.contents:
            add_stated_values(self.stated.setdefault(content.cluster, {}), content, capture.name)
            counts = replace(content, offsets=(), members=(), states=(), replica_sizes={})
            parts = (self._of(content.cluster), counts)
            self.found[content.cluster] = merge_rows(parts, capture.name)

    def of(self, cluster: str | None) -> group_builder.ImportOptions:
        """Return import options with the data of a cluster, or of the only cluster for None."""
        clusters = [one for one in self.found if one is not None]
        if cluster is None and len(clusters) == 1:
            cluster = clusters[0]
        parts = (self._of(None), self._of(cluster))
        return replace(self.options, content=merge_rows(parts, cluster or ""))

    def _of(self, cluster: str | None) -> DocumentRows:
        return self.found.get(cluster, self.options.content)


def load_metadata(path: Path | None) -> DocumentRows:
    """Read partition counts from the file of --metadata, or raise InputError."""
    if path is None:
        return NO_ROWS
    read = read_capture(read_text(path), name=str(path))
    if read.account.problems:
        raise read.account.error(read.account.problems[0])
    content = merge_rows(read.contents, str(path))
    if not (content.partition_counts or content.minimum_counts):
        raise InputError(
            f"{path}: --metadata: the file contains no partition counts of topics; give the "
            "output of kcat -L -J"
        )
    return content


def imported_group(
    name: str, build: Callable[[], Group], *, is_empty: bool, empty: EmptyGroups
) -> ImportedGroup:
    """Build a group with ``build``, and return it, its error or the reason for skipping it."""
    if is_empty and empty is not EmptyGroups.KEEP:
        return ImportedGroup(name, skipped="the group has no active members")
    try:
        return ImportedGroup(name, group=build())
    except InputError as error:
        return ImportedGroup(name, error=str(error))


def select_imported(
    imported: Iterable[ImportedGroup], ids: Collection[str], *, source: str
) -> Iterator[ImportedGroup]:
    """Yield the groups with the ids, and the errors of files. Raise InputError for other ids."""
    found = list(imported)
    known = {one.id for one in found if one.id is not None}
    if missing := sorted(set(ids) - known):
        names = display.names(sorted(known)) or "none"
        raise InputError(f"{source} contains no group {missing[0]!r}; its groups: {names}")
    yield from (one for one in found if one.id is None or one.id in ids or one.is_unread_file)


def join_imported(groups: Iterable[ImportedGroup]) -> Iterator[ImportedGroup]:
    """Join all imported groups into one group."""
    found = []
    is_document = True
    for imported in groups:
        if imported.group is None:
            yield imported
        else:
            found.append(imported.group)
            is_document = is_document and imported.is_document
    if not found:
        return
    try:
        joined = join_groups(found)
    except InputError as error:
        yield ImportedGroup(None, error=str(error))
    else:
        yield ImportedGroup(joined.id, joined, is_document=is_document)


def _read_documents(
    text: SourceText, options: group_builder.ImportOptions
) -> Iterator[ImportedGroup]:
    others: list[ImportedGroup] = []
    for id, group in read_groups(_without_kinds(text, others), name=text.name):
        try:
            if isinstance(group, InputError):
                raise group
            changed = _with_options(group, options)
            added = tuple(note for note in changed.notes if note not in group.notes)
            yield ImportedGroup(id, changed, is_document=True, option_notes=added)
        except InputError as error:
            yield ImportedGroup(id, error=str(error), is_document=True)
    yield from others


def _without_kinds(text: SourceText, others: list[ImportedGroup]) -> Iterator[str]:
    """Yield the lines of consumer groups, and append the other kinds of groups to ``others``."""
    for line in text.documents or ():
        found = read_kind_documents([line], name=text.name, kind=None) if '"kind"' in line else ()
        read = [one for one in found if isinstance(one[1], KindDocument)]
        others += (ImportedGroup.of_document(*one) for one in read)
        yield "\n" if read else line


def _with_options(group: Group, options: group_builder.ImportOptions) -> Group:
    """Apply import options to a group from a group document."""
    try:
        if options.subscriptions is not None or options.assumed_subscriptions is not None:
            group = group_builder.with_subscriptions(group, options)
        if options.hosts is not None or options.speeds is not None:
            group = group_builder.with_hosts_and_speeds(group, options)
        if options.without_weights:
            return group_builder.weighted_group(group, {topic.name: None for topic in group.topics})
        if options.weight_source is None:
            return group
        return group_builder.with_weights(group, options)
    except InputError as error:
        raise InputError(f"{group.label}: {error}") from None


def _import_group(
    observed: ObservedGroup, contents: _Contents, *, document: str | None, empty: EmptyGroups
) -> ImportedGroup:
    """Build a group from captures, or return an error if a group document has the same id."""
    if document is not None:
        return ImportedGroup(
            observed.id,
            error=f"group {observed.id!r} is in captures and in the group document "
            f"{document}; move one of them to another directory",
        )
    if observed.error is not None:
        return ImportedGroup(observed.id, error=observed.error)
    if not observed.members and "missing" in observed.notices:
        return ImportedGroup(observed.id, skipped="the cluster has no such group")
    has_answer = observed.members or observed.is_empty or observed.is_rebalancing
    if empty is EmptyGroups.REJECT and not has_answer:
        number = observed.stated_members
        return ImportedGroup(
            observed.id,
            error=f"group {observed.id!r}: the source shows "
            + ("no members" if number is None else count_of(number, "member"))
            + " and no owners of partitions; add the output of kafka-consumer-groups.sh "
            "--describe, or read the cluster with kassay import --bootstrap-server",
        )
    return imported_group(
        observed.id,
        lambda: group_builder.build_group(observed, contents.of(observed.cluster)),
        is_empty=observed.is_empty,
        empty=empty,
    )


def with_named_data(
    options: group_builder.ImportOptions, *, subscriptions: Path | str | None, weights: str | None
) -> group_builder.ImportOptions:
    """Add the values of --subscriptions and --weights to the options.

    The value ``none`` of --weights removes the weights of documents; None keeps them.
    """
    if subscriptions in list(AssumedSubscriptions):
        options = replace(options, assumed_subscriptions=AssumedSubscriptions(str(subscriptions)))
    elif subscriptions is not None:
        options = replace(options, subscriptions=load_subscriptions(Path(subscriptions)))
    if weights is None:
        return options
    if weights not in WEIGHT_NAMES:
        raise InputError(f"weights must be one of {', '.join(WEIGHT_NAMES)}, got {weights!r}")
    return replace(options, weights=WEIGHT_NAMES[weights], without_weights=weights == _NO_WEIGHTS)


def load_subscriptions(path: Path) -> dict[str, group_builder.MemberTopics]:
    """Read subscriptions from a JSON file, by group and member.

    The form is ``{"group": {"member, client or instance id": ["topic", ...]}}``.
    """
    return {
        group: {
            member: as_texts(topics, f"{path}: {group}[{member!r}]")
            for member, topics in as_object(members, f"{path}: {group}").items()
        }
        for group, members in read_json_object(path).items()
    }


def parse_hosts(text: str) -> group_builder.HostRule:
    """Convert a value of --hosts to a function that returns the host of a member."""
    if text == CLIENT_ID:
        return _host_of_client_id
    if "(" not in text:
        table = read_json_object(Path(text))
        hosts = {name: as_text(host, f"{text}: {name}") for name, host in table.items()}
        return lambda member: group_builder.entry_of_member(hosts, member, text)
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise InputError(f"hosts: {text!r} is not a regular expression: {error}") from None
    if pattern.groups != 1:
        raise InputError(
            f"hosts: the pattern {text!r} must have one group in parentheses, got {pattern.groups}"
        )
    return lambda member: _matched_host(pattern, member)


def load_speeds(path: Path) -> dict[str, int]:
    """Read the speeds of members from a JSON file, or raise InputError."""
    rates = {}
    for name, rate in read_json_object(path).items():
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate < 1e18:
            raise InputError(
                f"{path}: {name}: speed must be a number above 0 and below 1e18, "
                f"got {format_value(rate)}"
            )
        rates[name] = Fraction(str(rate))
    return integer_speeds(rates)


def integer_speeds(rates: Mapping[str, Fraction]) -> dict[str, int]:
    """Convert speeds to integers, in per cent of the fastest speed if necessary."""
    if all(rate.denominator == 1 and 1 <= rate <= MAX_SPEED for rate in rates.values()):
        return {name: int(rate) for name, rate in rates.items()}
    fastest = max(rates.values())
    return {name: max(1, round(rate * _RATE_UNITS / fastest)) for name, rate in rates.items()}


def measured_speeds(group: Group, consumed: Mapping[tuple[str, int], int]) -> dict[str, int]:
    """Compute the speeds of members from the messages that they consumed in a sample.

    Members without partitions get the mean rate. Raise InputError if no member consumed messages.
    """
    rates = {
        member.id: Fraction(sum(max(0, consumed.get((topic, n), 0)) for topic, n in member.owned))
        for member in group.members
    }
    busy = [rates[member.id] for member in group.members if member.owned]
    if not any(busy):
        raise InputError(
            f"{group.label}: no member consumed messages in the sample; measure the speeds "
            "while the group has lag, or give --speeds FILE"
        )
    mean = sum(busy, Fraction(0)) / len(busy)
    fastest = max(busy)
    return {
        member.id: max(
            1, round((rates[member.id] if member.owned else mean) * _RATE_UNITS / fastest)
        )
        for member in group.members
    }


def _host_of_client_id(member: Member) -> str:
    if member.client.id is None:
        raise InputError(
            f"member {member.id!r} has no client id; give --hosts a pattern or a file instead of "
            f"{CLIENT_ID}"
        )
    return member.client.id


def _matched_host(pattern: re.Pattern[str], member: Member) -> str:
    name = member.client.id or member.id
    found = pattern.search(name)
    if found is None or not found[1]:
        raise InputError(
            f"member {member.id!r}: the pattern {pattern.pattern!r} of --hosts matches no host in "
            f"{name!r}"
        )
    return found[1]

"""Read groups from captures and group documents in files, directories or standard input."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TextIO

from kassay.experiments.sources.build_group import build_group
from kassay.experiments.sources.describe_output import ParsedText, parse_text
from kassay.experiments.sources.hosts_and_speeds import with_hosts, with_speeds
from kassay.experiments.sources.import_options import ImportOptions
from kassay.experiments.sources.merge_captures import (
    Capture,
    ObservedGroup,
    PartitionKey,
    merge_captures,
)
from kassay.experiments.sources.partition_weights import apply_weights
from kassay.experiments.sources.source_texts import SourceText, source_texts
from kassay.experiments.sources.tool_documents.document_rows import DocumentRows, merge_counts
from kassay.experiments.sources.tool_documents.format_detection import (
    UnknownFormatError,
    read_tool_document,
)
from kassay.experiments.sources.tool_documents.kafka_tools import (
    is_log_dirs,
    is_topic_description,
    parse_log_dirs,
    parse_topic_description,
)
from kassay.reference.documents.json_codec import read_groups
from kassay.reference.documents.text_files import read_text
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group
from kassay.reference.model.joined_groups import join_groups

_RECORDS = re.compile(r"^Dumping .*__consumer_offsets|^\| offset: \d+ ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ImportedGroup:
    """Result of importing one group: the group, an error, or the reason for skipping it."""

    id: str | None
    group: Group | None = None
    error: str | None = None
    skipped: str | None = None
    is_document: bool = False


class EmptyGroups(StrEnum):
    """Option for captured groups without members: keep, skip or reject them."""

    KEEP = "keep"
    SKIP = "skip"  # groups that have no members
    REJECT = "reject"  # like SKIP; a group with members that the source does not show is an error


def import_groups(
    paths: Sequence[Path],
    options: ImportOptions,
    *,
    stdin: TextIO | None = None,
    group: str | None = None,
    empty: EmptyGroups = EmptyGroups.KEEP,
) -> Iterator[ImportedGroup]:
    """Read captures and group documents and yield their groups.

    Captures in a directory and its subdirectories are from one moment and are merged per
    group; they come sorted by id. The path ``-`` is standard input. ``group`` is the id for
    tables without a group column; the default is the name of the file without its suffix,
    or of the directory. ``empty`` does not apply to group documents.
    """
    if options.measures_speeds:
        raise InputError(
            "speeds can be measured only in a running cluster: kassay import --bootstrap-server "
            "HOST:PORT --speeds rate"
        )
    for path in paths:
        content = _Content(options)
        try:
            for text in source_texts(path, stdin=stdin, group=group):
                yield from content.add(text)
            yield from content.groups(empty=empty)
        except InputError as error:
            yield ImportedGroup(None, error=str(error))


def load_metadata(path: Path) -> DocumentRows:
    """Read partition counts of topics from a file that one of the supported tools wrote."""
    content = _read_metadata(read_text(path), str(path))
    if content is None or not (content.partition_counts or content.minimum_counts):
        raise InputError(f"{path}: the file contains no partition counts of topics")
    return content


def load_sizes(path: Path) -> Mapping[PartitionKey, int]:
    """Read the bytes per partition from a file with ``kafka-log-dirs.sh --describe`` output."""
    text = read_text(path)
    if not is_log_dirs(text):
        raise InputError(f"{path}: the file is not the output of kafka-log-dirs.sh --describe")
    return parse_log_dirs(text, name=str(path)).sizes


def imported_group(
    name: str, build: Callable[[], Group], *, is_empty: bool, empty: EmptyGroups
) -> ImportedGroup:
    """Return the result of importing one group: the built group, an error or a skip reason."""
    if is_empty and empty is not EmptyGroups.KEEP:
        return ImportedGroup(name, skipped="the group has no active members")
    try:
        return ImportedGroup(name, group=build())
    except InputError as error:
        return ImportedGroup(name, error=str(error))


def join_imported(groups: Iterable[ImportedGroup]) -> Iterator[ImportedGroup]:
    """Join the imported groups to one group. Errors and skipped groups stay."""
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


@dataclass(slots=True)
class _Content:
    """Data read from one import path: captures, group documents, partition counts and sizes."""

    options: ImportOptions
    captures: list[Capture] = field(default_factory=list)
    unreadable: list[Path] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    documents: dict[str | None, str] = field(default_factory=dict)  # last file of each id

    def add(self, text: SourceText) -> Iterator[ImportedGroup]:
        """Add one source text. Yield its groups if it contains group documents, or its error."""
        if text.documents is not None:
            for imported in _read_documents(text, self.options):
                self.documents[imported.id] = text.name
                yield imported
            return
        self.names.append(text.name)
        try:
            content, parsed = _read_text(text)
            self.options = _with_content(self.options, content, where=text.name)
        except InputError as error:
            # Directories may hold unrelated JSON files.
            if not (isinstance(error, UnknownFormatError) and text.from_directory):
                yield ImportedGroup(text.group, error=str(error))
            if not isinstance(error, UnknownFormatError):
                self.unreadable.append(Path(text.name))
            return
        if parsed is not None:
            self.captures.append(Capture(text.name, parsed, text.group))

    def groups(self, *, empty: EmptyGroups) -> Iterator[ImportedGroup]:
        """Merge the captures, and yield one import result per group."""
        try:
            groups = merge_captures(self.captures, unreadable_files=self.unreadable)
        except InputError as error:
            yield ImportedGroup(None, error=str(error))
            return
        if self.names and not (groups or self.unreadable or self.documents):
            known = self.options
            if known.partition_counts or known.minimum_counts or known.sizes:
                problem = "the files contain only partition counts or sizes, no group"
                yield ImportedGroup(None, error=f"{', '.join(self.names)}: {problem}")
        for name in sorted(groups):
            if name in self.documents:
                yield ImportedGroup(
                    name,
                    error=f"group {name!r} is in captures and in the group document "
                    f"{self.documents[name]}; move one of them to another directory",
                )
            else:
                yield _import_group(groups[name], self.options, empty=empty)


def _with_content(known: ImportOptions, content: DocumentRows, *, where: str) -> ImportOptions:
    """Add the partition counts, sizes and topic ids of a file to a copy of import options.

    Raise InputError if the file and the options have different partition counts.
    """
    minimum, sizes = dict(known.minimum_counts or {}), dict(known.sizes or {})
    minimum |= {t: max(n, minimum.get(t, 0)) for t, n in content.minimum_counts.items()}
    sizes |= {tp: max(n, sizes.get(tp, 0)) for tp, n in content.sizes.items()}
    return replace(
        known,
        partition_counts=merge_counts(
            known.partition_counts or {}, content.partition_counts, where=where
        ),
        minimum_counts=minimum,
        sizes=sizes,
        topic_ids={**(known.topic_ids or {}), **content.topic_ids},
    )


def _read_documents(text: SourceText, options: ImportOptions) -> Iterator[ImportedGroup]:
    for id, group in read_groups(text.documents or (), name=text.name):
        try:
            if isinstance(group, InputError):
                raise group
            known = with_speeds(with_hosts(group, options.hosts), options.speeds)
            yield ImportedGroup(id, apply_weights(known, options), is_document=True)
        except InputError as error:
            yield ImportedGroup(id, error=str(error), is_document=True)


def _read_metadata(text: str, name: str) -> DocumentRows | None:
    if is_topic_description(text):
        described = parse_topic_description(text, name=name)
        return DocumentRows(partition_counts=described.counts, topic_ids=described.ids)
    return read_tool_document(text, name=name)


def _read_text(text: SourceText) -> tuple[DocumentRows, ParsedText | None]:
    if text.error is not None:
        raise text.error
    if _RECORDS.search(text.text):
        raise UnknownFormatError(
            f"{text.name}: contains records of kafka-dump-log.sh; read it with kassay history"
        )
    content = _read_metadata(text.text, text.name)
    if content is None:
        return DocumentRows(), parse_text(text.text, name=text.name)
    parsed = content.parsed()
    return content, parsed if parsed.tables else None


def _import_group(
    observed: ObservedGroup, options: ImportOptions, *, empty: EmptyGroups
) -> ImportedGroup:
    if observed.error is not None:
        return ImportedGroup(observed.id, error=observed.error)
    if not observed.members and "missing" in observed.notices:
        return ImportedGroup(observed.id, skipped="the cluster has no such group")
    if empty is EmptyGroups.REJECT and observed.hides_members:
        number = observed.stated_members
        return ImportedGroup(
            observed.id,
            error=f"group {observed.id!r}: the source shows "
            + ("no members" if number is None else f"{number} members")
            + " and no owners of partitions; add the output of kafka-consumer-groups.sh "
            "--describe, or read the cluster with kassay import --bootstrap-server",
        )
    return imported_group(
        observed.id,
        lambda: build_group(observed, options),
        is_empty=observed.is_empty,
        empty=empty,
    )

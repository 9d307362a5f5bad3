"""Import groups of captures and group documents from files, directories or standard input.

Group documents are yielded while they are read. Captures of one path are parsed, joined per group
and built.
"""

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TextIO

from kassay.experiments.sources.build_group import build_group, with_subscriptions
from kassay.experiments.sources.describe_output import parse_text
from kassay.experiments.sources.import_options import (
    ImportOptions,
    with_hosts_and_speeds,
    with_weights,
)
from kassay.experiments.sources.kind_texts import is_kind_text, read_kind_text
from kassay.experiments.sources.merge_captures import Capture, ObservedGroup, merge_captures
from kassay.experiments.sources.table_rows import NO_ROWS, DocumentRows, merge_counts
from kassay.experiments.sources.tool_documents import UnknownFormatError, recognise_tool
from kassay.reference.documents.input_files import SourceText, read_text, source_texts
from kassay.reference.documents.json_codec import read_groups
from kassay.reference.documents.kind_documents import KindDocument, OtherKindError
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
    option_notes: tuple[str, ...] = ()  # notes that options add to a group document
    # Group of another kind; ``error`` is the error of readers of consumer groups.
    document: KindDocument | None = None

    @classmethod
    def of_document(cls, id: str | None, document: KindDocument | InputError) -> "ImportedGroup":
        """Return the result for a group of another kind than consumers, or for its error."""
        if isinstance(document, InputError):
            return cls(id, error=str(document))
        return cls(id, error=str(OtherKindError(document)), document=document)


class EmptyGroups(StrEnum):
    """Treatment of captured groups without members."""

    KEEP = "keep"
    SKIP = "skip"
    REJECT = "reject"  # skip them; a group whose members the source does not show is an error


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
        try:
            texts = source_texts(path, stdin=stdin, group=group)
            yield from _import_texts(texts, options, empty=empty)
        except InputError as error:
            yield ImportedGroup(None, error=str(error))


def _import_texts(
    texts: Iterable[SourceText], options: ImportOptions, *, empty: EmptyGroups
) -> Iterator[ImportedGroup]:
    """Yield the consumer groups of all texts, then the groups of other kinds."""
    kind_texts: list[SourceText] = []
    options = yield from _consumer_groups(
        _without_kind_texts(texts, kind_texts), options, empty=empty
    )
    for text in kind_texts:
        yield from _kind_groups(text, options)


def _without_kind_texts(
    texts: Iterable[SourceText], kind_texts: list[SourceText]
) -> Iterator[SourceText]:
    """Yield the texts about consumer groups, and add the others to a list."""
    for text in texts:
        if text.error is None and text.documents is None and is_kind_text(text.text):
            kind_texts.append(text)
        else:
            yield text


def _consumer_groups(
    texts: Iterable[SourceText], options: ImportOptions, *, empty: EmptyGroups
) -> Generator[ImportedGroup, None, ImportOptions]:
    """Yield the groups of group documents while they are read, then those of all captures.

    Return the options with the partition counts and sizes of the captures.
    """
    captures: list[Capture] = []
    names: list[str] = []
    unreadable: list[Path] = []
    documents: dict[str | None, str] = {}  # last file of each id
    for text in texts:
        if text.documents is not None:
            for imported in _read_documents(text, options):
                if text.from_directory:
                    documents[imported.id] = text.name
                yield imported
            continue
        names.append(text.name)
        try:
            capture = _parse(text)
            options = _with_content(options, capture)
            captures.append(capture)
        except InputError as error:
            # Directories may hold unrelated JSON files.
            is_unrelated = isinstance(error, UnknownFormatError)
            if not is_unrelated:
                unreadable.append(Path(text.name))
            if not (is_unrelated and text.from_directory):
                yield ImportedGroup(text.group, error=str(error))
    if names:
        groups = merge_captures(captures, unreadable_files=unreadable)
        if not (groups or unreadable or documents):
            yield from _without_groups(names, options)
        yield from (
            _import_group(groups[id], options, document=documents.get(id), empty=empty)
            for id in sorted(groups)
        )
    return options


def _kind_groups(text: SourceText, options: ImportOptions) -> Iterator[ImportedGroup]:
    """Yield the groups of a text about share groups, Streams applications or Connect."""
    try:
        for id, found in read_kind_text(
            text.text, name=text.name, group=text.group, options=options
        ):
            yield ImportedGroup.of_document(id, found)
    except InputError as error:
        yield ImportedGroup(text.group, error=str(error))


def load_metadata(path: Path | None) -> DocumentRows:
    """Read partition counts of topics from the output of a supported tool, if a file is given."""
    if path is None:
        return NO_ROWS
    text = read_text(path)
    parse = recognise_tool(text)
    content = NO_ROWS if parse is None else parse(text, name=str(path))
    if not (content.partition_counts or content.minimum_counts):
        raise InputError(f"{path}: the file contains no partition counts of topics")
    return content


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


def _parse(text: SourceText) -> Capture:
    """Recognise the tool that wrote a text, and parse the text."""
    if text.error is not None:
        raise text.error
    if _RECORDS.search(text.text):
        raise UnknownFormatError(
            f"{text.name}: the file contains records of kafka-dump-log.sh; read it with kassay "
            "history"
        )
    parse = recognise_tool(text.text)
    if parse is None:
        return Capture(text.name, text.group, parse_text(text.text, name=text.name))
    content = parse(text.text, name=text.name)
    return Capture(text.name, text.group, content.parsed(), content)


def _with_content(known: ImportOptions, capture: Capture) -> ImportOptions:
    """Add the partition counts, sizes and topic ids of a capture to a copy of import options.

    Raise InputError if the capture and the options have different partition counts.
    """
    content = capture.content
    if content is NO_ROWS:
        return known
    minimum, sizes = dict(known.minimum_counts or {}), dict(known.sizes or {})
    minimum |= {t: max(n, minimum.get(t, 0)) for t, n in content.minimum_counts.items()}
    sizes |= {tp: max(n, sizes.get(tp, 0)) for tp, n in content.sizes.items()}
    counts = merge_counts(
        known.partition_counts or {}, content.partition_counts, where=capture.name
    )
    return replace(
        known,
        partition_counts=counts,
        minimum_counts=minimum,
        sizes=sizes,
        topic_ids={**(known.topic_ids or {}), **content.topic_ids},
    )


def _read_documents(text: SourceText, options: ImportOptions) -> Iterator[ImportedGroup]:
    for id, group in read_groups(text.documents or (), name=text.name):
        try:
            if isinstance(group, InputError):
                raise group
            changed = _with_options(group, options)
            added = tuple(note for note in changed.notes if note not in group.notes)
            yield ImportedGroup(id, changed, is_document=True, option_notes=added)
        except InputError as error:
            yield ImportedGroup(id, error=str(error), is_document=True)


def _with_options(group: Group, options: ImportOptions) -> Group:
    """Set subscriptions, hosts, speeds and weights of a group document that the options give."""
    try:
        if options.subscriptions is not None or options.assumed_subscriptions is not None:
            group = with_subscriptions(group, options)
        if options.hosts is not None or options.speeds is not None:
            group = with_hosts_and_speeds(group, options)
        if options.without_weights:
            topics = tuple(replace(topic, weights=None) for topic in group.topics)
            return replace(group, topics=topics, weight_source=None, weight_unit=None)
        return group if options.weight_source is None else with_weights(group, options)
    except InputError as error:
        raise InputError(f"group {group.id!r}: {error}") from None


def _without_groups(names: Sequence[str], options: ImportOptions) -> Iterator[ImportedGroup]:
    if options.partition_counts or options.minimum_counts or options.sizes:
        problem = "the files contain only partition counts or sizes, no group"
        yield ImportedGroup(None, error=f"{', '.join(names)}: {problem}")


def _import_group(
    observed: ObservedGroup, options: ImportOptions, *, document: str | None, empty: EmptyGroups
) -> ImportedGroup:
    """Build a group from its captures, unless the file ``document`` also contains the group."""
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
        observed.id, lambda: build_group(observed, options), is_empty=observed.is_empty, empty=empty
    )

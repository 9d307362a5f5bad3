"""Import groups from files and directories of captures."""

import codecs
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

from kassay.experiments.sources.describe_output import ParsedText, parse_text
from kassay.experiments.sources.group_documents import build_group
from kassay.experiments.sources.import_options import ImportOptions
from kassay.experiments.sources.merge_captures import (
    Capture,
    ObservedGroup,
    PartitionKey,
    merge_captures,
)
from kassay.experiments.sources.tool_documents.document_rows import DocumentRows
from kassay.experiments.sources.tool_documents.format_detection import (
    UnknownFormatError,
    read_tool_document,
)
from kassay.experiments.sources.tool_documents.log_dirs import is_log_dirs, parse_log_dirs
from kassay.experiments.sources.topic_metadata import (
    Counts,
    is_topic_description,
    merge_counts,
    parse_topic_description,
)
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group

CAPTURE_SUFFIXES = (".txt", ".log", ".out", ".prom", ".json", ".jsonl")
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),  # written by PowerShell's >
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class ImportedGroup:
    """Imported group, or the error or reason that prevented its import."""

    id: str | None
    group: Group | None = None
    error: str | None = None
    skipped: str | None = None


@dataclass(frozen=True, slots=True)
class _Text:
    name: str
    text: str
    group: str | None
    from_directory: bool = False


def import_groups(
    paths: Sequence[Path],
    options: ImportOptions,
    *,
    stdin: TextIO | None = None,
    group: str | None = None,
    skip_empty: bool = False,
) -> Iterator[ImportedGroup]:
    """Read captures and yield their groups, sorted by id for each path.

    Captures in a directory and its subdirectories are from one moment and are merged per
    group. The path ``-`` is standard input. ``group`` is the id for tables without a group
    column; the default is the name of the file without its suffix, or of the directory.
    """
    for path in paths:
        try:
            texts = list(_read_texts(path, stdin, group))
        except InputError as error:
            yield ImportedGroup(None, error=str(error))
            continue
        yield from _import_texts(texts, options, skip_empty=skip_empty)


def load_metadata(path: Path) -> DocumentRows:
    """Read partition counts from a file in any supported format that shows them."""
    content = _read_metadata(_decode(path), str(path))
    if content is None or not (content.partition_counts or content.minimum_counts):
        raise InputError(f"{path}: the file contains no partition counts of topics")
    return content


def load_sizes(path: Path) -> Mapping[PartitionKey, int]:
    """Read the bytes per partition from the output of ``kafka-log-dirs.sh --describe``."""
    text = _decode(path)
    if not is_log_dirs(text):
        raise InputError(f"{path}: the file is not the output of kafka-log-dirs.sh --describe")
    return parse_log_dirs(text, name=str(path)).sizes


def imported_group(
    name: str, build: Callable[[], Group], *, has_members: bool, skip_empty: bool
) -> ImportedGroup:
    """Build a group, or return the reason why the group is skipped or invalid."""
    if not has_members and skip_empty:
        return ImportedGroup(name, skipped="the group has no active members")
    try:
        return ImportedGroup(name, group=build())
    except InputError as error:
        return ImportedGroup(name, error=str(error))


def _import_texts(
    texts: list[_Text], options: ImportOptions, *, skip_empty: bool
) -> Iterator[ImportedGroup]:
    """Import the texts of one path; an unreadable file is noted in its directory's groups."""
    counts: Counts = dict(options.partition_counts or {})
    minimum: Counts = dict(options.minimum_counts or {})
    sizes = dict(options.sizes or {})
    captures: list[Capture] = []
    unreadable: list[Path] = []
    for text in texts:
        try:
            content, parsed = _read_text(text)
            counts = merge_counts(counts, content.partition_counts, where=text.name)
        except InputError as error:
            # Directories may hold unrelated JSON files.
            if not (isinstance(error, UnknownFormatError) and text.from_directory):
                yield ImportedGroup(text.group, error=str(error))
            if not isinstance(error, UnknownFormatError):
                unreadable.append(Path(text.name))
            continue
        minimum |= {t: max(n, minimum.get(t, 0)) for t, n in content.minimum_counts.items()}
        sizes |= {tp: max(n, sizes.get(tp, 0)) for tp, n in content.sizes.items()}
        if parsed is not None:
            captures.append(Capture(text.name, parsed, text.group))
    try:
        groups = merge_captures(captures, unreadable_files=unreadable)
    except InputError as error:
        yield ImportedGroup(None, error=str(error))
        return
    if not groups and (counts or minimum or sizes) and not unreadable:
        names = ", ".join(text.name for text in texts)
        yield ImportedGroup(
            None, error=f"{names}: the files contain only partition counts or sizes, no group"
        )
    known = replace(options, partition_counts=counts, minimum_counts=minimum, sizes=sizes)
    for name in sorted(groups):
        yield _import_group(groups[name], known, skip_empty=skip_empty)


def _read_metadata(text: str, name: str) -> DocumentRows | None:
    if is_topic_description(text):
        return DocumentRows(partition_counts=parse_topic_description(text, name=name))
    return read_tool_document(text, name=name)


def _read_text(text: _Text) -> tuple[DocumentRows, ParsedText | None]:
    content = _read_metadata(text.text, text.name)
    if content is None:
        return DocumentRows(), parse_text(text.text, name=text.name)
    parsed = content.parsed()
    return content, parsed if parsed.tables else None


def _import_group(
    observed: ObservedGroup, options: ImportOptions, *, skip_empty: bool
) -> ImportedGroup:
    if observed.error is not None:
        return ImportedGroup(observed.id, error=observed.error)
    if not observed.members and "missing" in observed.notices:
        return ImportedGroup(observed.id, skipped="the cluster has no such group")
    return imported_group(
        observed.id,
        lambda: build_group(observed, options),
        has_members=bool(observed.members),
        skip_empty=skip_empty,
    )


def _read_texts(path: Path, stdin: TextIO | None, group: str | None) -> Iterator[_Text]:
    if str(path) == "-":
        if stdin is None:
            raise InputError("the path - requires an open standard input")
        yield _Text("standard input", stdin.read(), group)
        return
    if path.is_file():
        yield _Text(str(path), _decode(path), group or path.stem)
        return
    if not path.is_dir():
        raise InputError(f"{path}: no such file or directory")
    files = sorted(f for f in path.rglob("*") if f.suffix in CAPTURE_SUFFIXES and f.is_file())
    if not files:
        suffixes = " or ".join(CAPTURE_SUFFIXES)
        raise InputError(f"{path}: the directory contains no captures (files {suffixes})")
    for file in files:
        yield _Text(str(file), _decode(file), group or file.parent.name, from_directory=True)


def _decode(path: Path) -> str:
    """Decode a text file as UTF-8, or as its byte order mark states."""
    data = path.read_bytes()
    mark, encoding = next(
        ((mark, name) for mark, name in _BYTE_ORDER_MARKS if data.startswith(mark)),
        (b"", "utf-8"),
    )
    try:
        return data[len(mark) :].decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{path}:{line}: not text in {encoding.upper()}: byte 0x{error.object[error.start]:02x}"
        ) from None

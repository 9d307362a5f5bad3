"""Files and directories of captures: which are which, and what they say together."""

import codecs
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

from kassay.experiments.sources.describe_output import ParsedText, parse_text
from kassay.experiments.sources.errors import SourceError, UnknownToolError
from kassay.experiments.sources.group_documents import ImportOptions, to_group
from kassay.experiments.sources.merge_captures import (
    Capture,
    ObservedGroup,
    PartitionKey,
    merge_captures,
)
from kassay.experiments.sources.tool_documents import DocumentRows, read_tool
from kassay.experiments.sources.tool_documents.log_dirs import is_log_dirs, parse_log_dirs
from kassay.experiments.sources.topic_metadata import (
    Counts,
    is_topic_description,
    merge_counts,
    parse_topic_description,
)
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group

SUFFIXES = (".txt", ".log", ".out", ".prom", ".json", ".jsonl")
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),  # what PowerShell's > writes
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True)
class ImportedGroups:
    """One group, or the error or the reason that stands in its place."""

    id: str | None
    group: Group | None = None
    error: str | None = None
    skipped: str | None = None


@dataclass(frozen=True, slots=True)
class _Text:
    name: str
    text: str
    group: str | None
    named: bool = True  # by the caller; False if it was found in a directory


def import_groups(
    paths: Sequence[Path],
    joining: ImportOptions,
    *,
    stdin: TextIO | None = None,
    group: str | None = None,
    skip_empty: bool = False,
) -> Iterator[ImportedGroups]:
    """Read captures and yield the groups they show, sorted by id for each path.

    Parameters
    ----------
    paths
        Each a file, or a directory whose text files, nested ones included, are captures
        of one moment and are joined group by group; ``-`` for standard input.
    joining
        How to fill in what captures do not tell.
    stdin
        Standard input.
    group
        Group of the tables that do not name theirs.
    skip_empty
        Whether to leave out groups without members.
    """
    for path in paths:
        try:
            texts = list(_texts(path, stdin, group))
        except SourceError as error:
            yield ImportedGroups(None, error=str(error))
            continue
        yield from _import_set(texts, joining, skip_empty=skip_empty)


def load_metadata(path: Path) -> DocumentRows:
    """Read partition counts off a metadata file.

    It is what ``kafka-topics.sh --describe``, ``kcat -L -J`` or an exporter prints, a topic
    list of the REST API, or a list of ``kafka-reassign-partitions.sh``.

    Raises
    ------
    SourceError
        If it is none of these, or damaged.
    """
    text = _decode(path)
    if is_topic_description(text):
        return DocumentRows(counts=parse_topic_description(text, name=str(path)))
    found = read_tool(text, name=str(path))
    if found is None or not (found.counts or found.at_least):
        raise SourceError(f"{path}: no partition counts of topics in it")
    return found


def load_sizes(path: Path) -> Mapping[PartitionKey, int]:
    """Read the bytes of every partition off what ``kafka-log-dirs.sh --describe`` printed.

    Raises
    ------
    SourceError
        If the file is of another form, or damaged.
    """
    text = _decode(path)
    if not is_log_dirs(text):
        raise SourceError(f"{path}: not what kafka-log-dirs.sh --describe prints")
    return parse_log_dirs(text, name=str(path)).sizes


def _import_set(
    texts: list[_Text], joining: ImportOptions, *, skip_empty: bool
) -> Iterator[ImportedGroups]:
    """Import what one path holds; a text that cannot be read leaves a note with its groups."""
    counts: Counts = dict(joining.counts or {})
    at_least: Counts = dict(joining.at_least or {})
    sizes = dict(joining.sizes or {})
    captures: list[Capture] = []
    unread: list[Path] = []
    for text in texts:
        try:
            found, parsed = _read_text(text)
            counts = merge_counts(counts, found.counts, where=text.name)
            at_least |= {t: max(n, at_least.get(t, 0)) for t, n in found.at_least.items()}
            sizes |= {tp: max(n, sizes.get(tp, 0)) for tp, n in found.sizes.items()}
        except UnknownToolError as error:
            # Directories hold other JSON too; a file that the caller names must be read.
            if text.named:
                yield ImportedGroups(text.group, error=str(error))
            continue
        except InputError as error:
            yield ImportedGroups(text.group, error=str(error))
            unread.append(Path(text.name))
            continue
        if parsed is not None:
            captures.append(Capture(text.name, parsed, text.group))
    try:
        groups = merge_captures(captures, unread=unread)
    except SourceError as error:
        yield ImportedGroups(None, error=str(error))
        return
    if not groups and (counts or at_least or sizes) and not unread:
        names = ", ".join(text.name for text in texts)
        yield ImportedGroups(None, error=f"{names}: partition counts or sizes only, no group")
    for name in sorted(groups):
        known = replace(joining, counts=counts, at_least=at_least, sizes=sizes)
        yield _import_group(groups[name], known, skip_empty=skip_empty)


def _read_text(text: _Text) -> tuple[DocumentRows, ParsedText | None]:
    if is_topic_description(text.text):
        return DocumentRows(counts=parse_topic_description(text.text, name=text.name)), None
    found = read_tool(text.text, name=text.name)
    if found is None:
        return DocumentRows(), parse_text(text.text, name=text.name)
    parsed = found.parsed()
    return found, parsed if parsed.tables else None


def _import_group(
    seen: ObservedGroup, joining: ImportOptions, *, skip_empty: bool
) -> ImportedGroups:
    if seen.error is not None:
        return ImportedGroups(seen.id, error=seen.error)
    if not seen.members and "missing" in seen.notices:
        return ImportedGroups(seen.id, skipped="the cluster has no such group")
    if not seen.members and skip_empty:
        return ImportedGroups(seen.id, skipped="the group has no active members")
    try:
        return ImportedGroups(seen.id, group=to_group(seen, joining))
    except SourceError as error:
        return ImportedGroups(seen.id, error=str(error))
    except InputError as error:
        return ImportedGroups(seen.id, error=f"group {seen.id!r}: {error}")


def _texts(path: Path, stdin: TextIO | None, group: str | None) -> Iterator[_Text]:
    if str(path) == "-":
        if stdin is None:
            raise SourceError("standard input is not given")
        yield _Text("standard input", stdin.read(), group)
        return
    if path.is_file():
        yield _Text(str(path), _decode(path), group or path.stem)
        return
    if not path.is_dir():
        raise SourceError(f"{path}: no such file or directory")
    files = sorted(file for file in path.rglob("*") if _is_capture(file))
    if not files:
        raise SourceError(f"{path}: no capture in it, that is no file {' or '.join(SUFFIXES)}")
    for file in files:
        yield _Text(str(file), _decode(file), group or file.parent.name, named=False)


def _is_capture(file: Path) -> bool:
    return file.suffix in SUFFIXES and file.is_file()


def _decode(path: Path) -> str:
    """Read a text file: UTF-8, or what its byte order mark says."""
    data = path.read_bytes()
    mark, encoding = next(
        ((mark, name) for mark, name in _MARKS if data.startswith(mark)), (b"", "utf-8")
    )
    try:
        return data[len(mark) :].decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SourceError(
            f"{path}:{line}: not text in {encoding.upper()}: byte 0x{error.object[error.start]:02x}"
        ) from None

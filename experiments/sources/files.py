"""Files and directories of captures: which are which, and what they say together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

from experiments.sources.consumer_groups import parse_text
from experiments.sources.errors import SourceError
from experiments.sources.gather import Capture, SeenGroup, gather
from experiments.sources.join import Joining, to_group
from experiments.sources.metadata import (
    Counts,
    is_topic_description,
    merge_counts,
    parse_topic_description,
)
from reference.group import Group, InvalidGroupError

SUFFIXES = (".txt", ".log", ".out")


@dataclass(frozen=True, slots=True)
class Imported:
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


def import_groups(
    paths: Sequence[Path],
    joining: Joining,
    *,
    stdin: TextIO | None = None,
    group: str | None = None,
    skip_empty: bool = False,
) -> Iterator[Imported]:
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
        except (SourceError, UnicodeDecodeError) as error:
            yield Imported(None, error=_words(path, error))
            continue
        yield from _import_set(texts, joining, skip_empty=skip_empty)


def _import_set(texts: list[_Text], joining: Joining, *, skip_empty: bool) -> Iterator[Imported]:
    """Import what one path holds; a text that cannot be read costs the groups in it."""
    counts: Counts = dict(joining.counts or {})
    captures: list[Capture] = []
    for text in texts:
        try:
            if is_topic_description(text.text):
                found = parse_topic_description(text.text, name=text.name)
                counts = merge_counts(counts, found, where=text.name)
            else:
                parsed = parse_text(text.text, name=text.name)
                captures.append(Capture(text.name, parsed, text.group))
        except InvalidGroupError as error:
            yield Imported(text.group, error=str(error))
    try:
        groups = gather(captures)
    except SourceError as error:
        yield Imported(None, error=str(error))
        return
    for name in sorted(groups):
        yield _import_group(groups[name], replace(joining, counts=counts), skip_empty=skip_empty)


def _import_group(seen: SeenGroup, joining: Joining, *, skip_empty: bool) -> Imported:
    if seen.error is not None:
        return Imported(seen.id, error=seen.error)
    if not seen.members and "missing" in seen.notices:
        return Imported(seen.id, skipped="the cluster has no such group")
    if not seen.members and skip_empty:
        return Imported(seen.id, skipped="the group has no active members")
    try:
        return Imported(seen.id, group=to_group(seen, joining))
    except InvalidGroupError as error:
        return Imported(seen.id, error=str(error))


def _texts(path: Path, stdin: TextIO | None, group: str | None) -> Iterator[_Text]:
    if str(path) == "-":
        if stdin is None:
            raise SourceError("standard input is not given")
        yield _Text("standard input", stdin.read(), group)
        return
    if path.is_file():
        yield _Text(str(path), path.read_text(encoding="utf-8"), group or path.stem)
        return
    files = sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES)
    if not files:
        raise SourceError(f"{path}: no capture in it, that is no file {' or '.join(SUFFIXES)}")
    for file in files:
        yield _Text(str(file), file.read_text(encoding="utf-8"), group or file.parent.name)


def _words(path: Path, error: SourceError | UnicodeDecodeError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"{path}: not UTF-8 text: byte 0x{error.object[error.start]:02x}"
    return str(error)

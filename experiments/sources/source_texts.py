"""Read the texts of files, directories and standard input, and detect group documents."""

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TextIO

from kassay.reference.documents.text_files import (
    GZIP_SUFFIX,
    STDIN,
    decode_text,
    name_of,
    open_binary,
    read_text,
    without_gzip,
)
from kassay.reference.model.errors import InputError

CAPTURE_SUFFIXES = (".txt", ".log", ".out", ".csv", ".prom", ".json", ".jsonl")
_GROUP_KEYS = frozenset({"topics", "members"})
_IMPORT_ERROR = frozenset({"id", "error"})
_OTHER_TOOLS = frozenset({"kind", "brokers", "version", "status", "request"})


@dataclass(frozen=True, slots=True)
class SourceText:
    """Text of one input file: a capture, or the lines of group documents.

    ``group`` is the id of groups in tables without a group column.
    """

    name: str
    group: str | None = None
    text: str = ""
    documents: Iterable[str] | None = None
    from_directory: bool = False
    error: InputError | None = None  # why the file cannot be read


def source_texts(path: Path, *, stdin: TextIO | None, group: str | None) -> Iterator[SourceText]:
    """Yield the texts to import from a file, a directory tree or standard input.

    The lines of group documents are read while the caller iterates over them.
    """
    if path.is_dir():
        yield from _directory_texts(path, group)
        return
    if path != STDIN and not path.exists():
        raise InputError(f"{path}: no such file or directory")
    name = name_of(path)
    id = group if path == STDIN else group or without_gzip(path).stem
    with open_binary(path, stdin=stdin) as data:
        first = _first_line(data)
        document = _first_value(first.decode(errors="replace"))
        if isinstance(document, Mapping) and is_group_document(document):
            rest = io.TextIOWrapper(data, encoding="utf-8")
            yield SourceText(name, documents=chain(first.decode().splitlines(keepends=True), rest))
            rest.detach()  # closing it would close standard input
            return
        text = decode_text(first + data.read(), name=name)
    if not text.strip():
        raise InputError(f"{name}: the input is empty; expected group documents or captures")
    yield SourceText(name, id, text, documents=_document_lines(text))


def is_group_document(document: object) -> bool:
    """Return whether a JSON value is a group document and not the output of another tool."""
    if isinstance(document, list):
        document = document[0] if document else None
    if not isinstance(document, Mapping):
        return False
    keys = frozenset(document)
    return keys == _IMPORT_ERROR or bool(keys & _GROUP_KEYS and not keys & _OTHER_TOOLS)


def _directory_texts(path: Path, group: str | None) -> Iterator[SourceText]:
    files = sorted(
        file
        for file in path.rglob("*")
        if is_capture(file) and not _is_hidden(file.relative_to(path))
    )
    if not files:
        suffixes = " or ".join(CAPTURE_SUFFIXES)
        raise InputError(
            f"{path}: the directory contains no captures (files {suffixes}, also with "
            f"{GZIP_SUFFIX})"
        )
    for file in files:
        id = group or file.parent.name
        try:
            text = read_text(file)
            error = None if text.strip() else InputError(f"{file}: the file is empty")
        except InputError as unreadable:
            text, error = "", unreadable
        if error is not None:
            yield SourceText(str(file), id, from_directory=True, error=error)
            continue
        # A directory may hold unrelated JSON files.
        value = _first_value(text)
        complete = isinstance(value, Mapping) and value.keys() >= _GROUP_KEYS
        lines = text.splitlines(keepends=True) if complete else None
        yield SourceText(str(file), id, text, documents=lines, from_directory=True)


def is_capture(file: Path) -> bool:
    """Return whether a file has a suffix of captures or group documents, such as ``.txt``."""
    return without_gzip(file).suffix in CAPTURE_SUFFIXES and file.is_file()


def _is_hidden(file: Path) -> bool:
    return any(part.startswith(".") for part in file.parts)


def _first_line(data: io.BufferedReader) -> bytes:
    """Read lines up to and including the first line that is not blank."""
    lines = b""
    while line := data.readline():
        lines += line
        if line.strip():
            break
    return lines


def _document_lines(text: str) -> list[str] | None:
    """Return the lines of a text if it contains group documents, otherwise None.

    A damaged text with members is a group document, whose parser reports the damage.
    """
    value = _first_value(text)
    damaged = value is None and text.lstrip().startswith("{") and '"members"' in text
    return text.splitlines(keepends=True) if damaged or is_group_document(value) else None


def _first_value(text: str) -> object:
    """Return the JSON object or array at the start of a text, or None if it is not complete."""
    start = text.lstrip()
    if not start.startswith(("{", "[")):
        return None
    try:
        value: object = json.JSONDecoder().raw_decode(start)[0]
    except (ValueError, RecursionError):
        return None
    return value

"""Read text from files, directories and standard input, and detect group documents.

Files may be compressed with gzip, and start with a byte order mark.
"""

import codecs
import gzip
import io
import json
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from kassay.reference.documents.json_values import as_object, parse_json
from kassay.reference.model.errors import InputError

STDIN = Path("-")
GZIP_SUFFIX = ".gz"
_GZIP_MAGIC = b"\x1f\x8b"
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),  # written by PowerShell's >
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DAMAGED = (gzip.BadGzipFile, EOFError, zlib.error)
CAPTURE_SUFFIXES = (".txt", ".log", ".out", ".csv", ".prom", ".json", ".jsonl")
_GROUP_KEYS = frozenset({"topics", "members"})
_IMPORT_ERROR = frozenset({"id", "error"})
_OTHER_TOOLS = frozenset({"kind", "brokers", "version", "status", "request"})


def name_of(path: Path) -> str:
    """Return a file's path for messages, or ``standard input`` for the path ``-``."""
    return "standard input" if path == STDIN else str(path)


def without_gzip(path: Path) -> Path:
    """Remove the suffix ``.gz`` from a path, if the path has this suffix."""
    return path.with_suffix("") if path.suffix == GZIP_SUFFIX else path


@contextmanager
def open_binary(path: Path, *, stdin: TextIO | None = None) -> Iterator[io.BufferedReader]:
    """Open a file or standard input (path `STDIN`) in binary mode, and decompress gzip.

    Gzip is recognised by the first bytes, not by the file name. ``stdin`` replaces ``sys.stdin``.
    """
    raw = _standard_input(stdin) if path == STDIN else path.open("rb")
    # Standard input stays open.
    with nullcontext(raw) if path == STDIN else raw as data:
        try:
            yield _decompressed(data)
        except _DAMAGED as error:
            name = name_of(path)
            raise InputError(f"{name}: the gzip file is truncated or damaged: {error}") from None


@contextmanager
def open_text(path: Path, *, errors: str = "strict") -> Iterator[TextIO]:
    """Open a file or standard input (path `STDIN`) as text, and decompress gzip.

    ``errors`` is the treatment of bytes that are not text, as in `open`.
    """
    with open_binary(path) as data:
        text = io.TextIOWrapper(data, encoding=_encoding(data.peek(4)), errors=errors)
        yield text
        text.detach()  # closing it would close standard input


def read_text(path: Path) -> str:
    """Read all text from a file or standard input. An error names the line with invalid bytes."""
    with open_binary(path) as data:
        return decode_text(data.read(), name=name_of(path))


def decode_text(data: bytes, *, name: str) -> str:
    """Decode bytes as UTF-8, or as UTF-16 if a UTF-16 byte order mark comes first.

    An error names the line with invalid bytes.
    """
    encoding = _encoding(data)
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        shown = encoding.removesuffix("-sig").upper()
        byte = error.object[error.start]
        raise InputError(
            f"{name}:{line}: the file must be text in {shown}, got byte 0x{byte:02x}"
        ) from None


def _standard_input(stdin: TextIO | None) -> BinaryIO:
    stream = sys.stdin if stdin is None else stdin
    buffer = getattr(stream, "buffer", None)
    return io.BytesIO(stream.read().encode()) if buffer is None else cast("BinaryIO", buffer)


def _decompressed(data: BinaryIO) -> io.BufferedReader:
    buffered = _peekable(data)
    if not buffered.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC):
        return buffered
    return io.BufferedReader(cast("io.RawIOBase", gzip.GzipFile(fileobj=buffered)))


def _peekable(data: BinaryIO) -> io.BufferedReader:
    if isinstance(data, io.BufferedReader):
        return data
    return io.BufferedReader(cast("io.RawIOBase", data))


def _encoding(start: bytes) -> str:
    return next((name for mark, name in _BYTE_ORDER_MARKS if start.startswith(mark)), "utf-8")


def read_json_object(path: Path) -> Mapping[str, object]:
    """Read a file with one JSON object."""
    return as_object(parse_json(read_text(path), where=str(path)), str(path))


def error_at(name: str, line: int, message: str, text: str = "") -> InputError:
    """Build an `InputError` with file, line, message and the start of the invalid text."""
    shown = text.strip()
    shown = shown if len(shown) <= 100 else shown[:97] + "..."
    return InputError(f"{name}:{line}: {message}" + (f": {shown!r}" if shown else ""))


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

"""Read and write text, JSON and CSV files, and check output directories.

Input files may be compressed with gzip, and start with a byte order mark. Standard input and
directories are read too. JSON is strict: repeated keys and NaN are errors. Errors name the file,
the line and the field.

An output file is replaced only when its new content is complete. A full disk, an interruption or a
crash leaves the old file. The content goes to a temporary file in the same directory, which is
flushed to the disk and then renamed.

A spreadsheet takes a cell that starts with ``=``, ``+``, ``-``, ``@`` or a control character for
a formula. An apostrophe before it makes it a text. Numbers are not changed.
"""

import codecs
import csv
import errno
import gzip
import io
import json
import os
import re
import secrets
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, NoReturn, TextIO, TypeVar, cast

from kassay.reference.model.errors import InputError, UsageError

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
_SHOWN_FILES = 5
_GROUP_KEYS = frozenset({"topics", "members"})
_DOCUMENT_KEYS = _GROUP_KEYS | {
    *("id", "state", "protocol", "assignor", "weight_source", "weight_unit"),
    *("available_weights", "notes", "windows"),
}
_IMPORT_ERROR = frozenset({"id", "error"})
_OTHER_TOOLS = {
    *("kind", "brokers", "version", "status", "request", "groupId"),
    *("group_id", "group_name", "partitions", "offsets", "coordinator"),
    *("partitionAssignor", "partition_assignor", "consumer_group"),
}
_SCHEMES = ("hdfs", "viewfs", "s3a", "gs", "abfs", "abfss", "wasb", "wasbs", "o3fs", "ofs", "oss")
_NAME_LENGTH = 100
"""Characters of the file name in the name of its temporary file; names are limited to 255 bytes."""


def name_of(path: Path) -> str:
    """Return a file's path for messages, or ``standard input`` for the path ``-``."""
    return "standard input" if path == STDIN else str(path)


def without_gzip(path: Path) -> Path:
    """Remove the suffix ``.gz`` from a path, if the path has this suffix."""
    return path.with_suffix("") if path.suffix == GZIP_SUFFIX else path


def read_data_file(package: str, name: str) -> list[list[str]]:
    """Read a data file of kassay. Return the tab-separated cells of each line."""
    # On Spark workers, the packages are in an archive.
    lines = files(package).joinpath(name).read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if line and not line.startswith("# ")]


@contextmanager
def open_binary(path: Path, *, stdin: TextIO | None = None) -> Iterator[io.BufferedReader]:
    """Open a file or standard input as bytes. Decompress gzip data."""
    try:
        raw = _standard_input(stdin) if path == STDIN else path.open("rb")
    except OSError as error:
        raise InputError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    # Standard input stays open.
    with nullcontext(raw) if path == STDIN else raw as data:
        try:
            yield _decompressed(data)
        except _DAMAGED as error:
            name = name_of(path)
            raise InputError(
                f"{name}: the gzip file is truncated or damaged: {error}; compress it again"
            ) from None


@contextmanager
def open_text(path: Path, *, errors: str = "strict") -> Iterator[TextIO]:
    """Open a file or standard input as text."""
    with open_binary(path) as data:
        text = io.TextIOWrapper(data, encoding=_encoding(data.peek(4)), errors=errors)
        yield text
        text.detach()  # closing it would close standard input


def read_text(path: Path) -> str:
    """Read all text from a file or standard input. Errors name the invalid line."""
    with open_binary(path) as data:
        return decode_text(data.read(), name=name_of(path))


def decode_text(data: bytes, *, name: str) -> str:
    """Decode UTF-8, or UTF-16 with a byte order mark. Errors name the line and the byte."""
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
    buffered = (
        data
        if isinstance(data, io.BufferedReader)
        else io.BufferedReader(cast("io.RawIOBase", data))
    )
    if not buffered.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC):
        return buffered
    return io.BufferedReader(cast("io.RawIOBase", gzip.GzipFile(fileobj=buffered)))


def _encoding(start: bytes) -> str:
    return next((name for mark, name in _BYTE_ORDER_MARKS if start.startswith(mark)), "utf-8")


def read_json_object(path: Path) -> Mapping[str, object]:
    """Read a file with one JSON object. Raise InputError for other content."""
    return as_object(parse_json(read_text(path), where=str(path)), str(path))


def error_at(name: str, line: int, message: str, text: str = "") -> InputError:
    """Build an `InputError` with file, line, message and the start of the invalid text."""
    shown = text.strip()
    shown = shown if len(shown) <= 100 else shown[:97] + "..."
    return InputError(f"{name}:{line}: {message}" + (f": {shown!r}" if shown else ""))


@dataclass(frozen=True, slots=True)
class SourceText:
    """Text of an input file, with its name and a default group id."""

    name: str
    group: str | None = None
    text: str = ""
    documents: Iterable[str] | None = None
    from_directory: bool = False
    error: InputError | None = None  # why the file cannot be read
    may_be_unrelated: bool = False  # a file of a directory without suffix
    unused: str | None = None  # names of files that are not read


def source_texts(path: Path, *, stdin: TextIO | None, group: str | None) -> Iterator[SourceText]:
    """Yield the text of a file or of standard input, or of all files in a directory."""
    if path.is_dir():
        yield from _directory_texts(path, group)
        return
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
    if keys & _OTHER_TOOLS or not isinstance(document.get("members", []), list):
        return False
    if "topics" in document:
        return isinstance(document["topics"], Mapping) or keys <= _DOCUMENT_KEYS
    return keys == _IMPORT_ERROR or ("members" in document and keys <= _DOCUMENT_KEYS)


def _directory_texts(path: Path, group: str | None) -> Iterator[SourceText]:
    every = sorted(
        file
        for file in path.rglob("*")
        if file.is_file() and not any(part.startswith(".") for part in file.relative_to(path).parts)
    )
    files = [file for file in every if without_gzip(file).suffix in ("", *CAPTURE_SUFFIXES)]
    if not files:
        kinds = f"files {' or '.join(CAPTURE_SUFFIXES)}, also with {GZIP_SUFFIX}"
        raise InputError(f"{path}: the directory contains no captures; expected {kinds}")
    if others := [str(file) for file in every if file not in set(files)]:
        more = f" and {len(others) - _SHOWN_FILES} more" if len(others) > _SHOWN_FILES else ""
        yield SourceText(str(path), unused=", ".join(others[:_SHOWN_FILES]) + more)
    for file in files:
        try:
            text = read_text(file)
            error = None if text.strip() else InputError(f"{file}: the file is empty")
        except InputError as unreadable:
            text, error = "", unreadable
        # A directory may hold unrelated JSON files.
        value = _first_value(text)
        complete = isinstance(value, Mapping) and value.keys() >= _GROUP_KEYS
        yield SourceText(
            str(file),
            group or file.parent.name,
            text,
            documents=text.splitlines(keepends=True) if complete else None,
            from_directory=True,
            error=error,
            may_be_unrelated=not without_gzip(file).suffix,
        )


def _first_line(data: io.BufferedReader) -> bytes:
    lines = b""
    while line := data.readline():
        lines += line
        if line.strip():
            break
    return lines


def _document_lines(text: str) -> list[str] | None:
    """Return the lines of a text with group documents, or None for other texts."""
    value = _first_value(text)
    first = _FIRST_KEY.match(text)
    is_kassay = first is not None and first[1] in _DOCUMENT_KEYS
    damaged = value is None and is_kassay and '"members"' in text
    lines = text.splitlines(keepends=True)
    # Documents of other kinds can come before those of groups.
    known = lines if isinstance(value, Mapping) and "kind" in value else [text]
    return lines if damaged or any(is_group_document(_first_value(one)) for one in known) else None


_FIRST_KEY = re.compile(r'\s*\{\s*"(\w+)"')


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


_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_TOO_MANY_DIGITS = "a number has thousands of digits"
Convert = Callable[[dict[str, object]], None]
"""Function that changes each object in place when it has been parsed."""
T = TypeVar("T")
Word = TypeVar("Word", bound=StrEnum)
Parser = Callable[[object, str], T]
"""Function that checks and converts a JSON value. Its second argument is the place for errors."""
_SHOWN_LENGTH = 60  # characters of an invalid value in a message


@dataclass(frozen=True, slots=True)
class LocatedDocument:
    """JSON document or error, with its file and line (``groups.jsonl:3``)."""

    where: str
    value: object = None
    error: InputError | None = None


def document_id(document: object) -> str | None:
    """Return the id of a group document, or None if the document has no valid id."""
    id = document.get("id") if isinstance(document, Mapping) else None
    return id if isinstance(id, str) else None


def parse_json(
    text: str, *, where: str, first_line: int = 1, convert: Convert | None = None
) -> object:
    """Parse one JSON document. NaN, Infinity and keys that occur twice are errors."""

    def build(pairs: list[tuple[str, object]]) -> dict[str, object]:
        table = _unique_keys(pairs)
        if convert is not None:
            convert(table)
        return table

    text = text.rstrip("\n")  # so that errors at the end have the number of the last line
    try:
        if _SURROGATE.search(text):
            _check_encodable(text)
        return json.loads(text, object_pairs_hook=build, parse_constant=_reject_constant)
    except json.JSONDecodeError as error:
        line = first_line + error.lineno - 1
        shown = text[error.pos : error.pos + 24]
        near = f"near {shown!r}" if shown else "at the end of the text"
        raise InputError(
            f"{where}:{line}: not valid JSON: {error.msg.lower()}, column {error.colno}, {near}"
        ) from None
    except RecursionError:
        raise InputError(f"{where}:{first_line}: JSON is nested too deeply; flatten it") from None
    except ValueError as error:
        problem = _TOO_MANY_DIGITS if "int_max_str_digits" in str(error) else error
        raise InputError(f"{where}:{first_line}: {problem}") from None


def read_json_documents(
    stream: Iterable[str], *, name: str, convert: Convert | None = None
) -> Iterator[LocatedDocument]:
    """Yield the documents of a file: one JSON document over many lines, or JSON Lines.

    Lines are read one by one, so that a long batch streams. A line that cannot be parsed
    gives one error in its place.
    """

    def parse(text: str, line: int) -> LocatedDocument:
        where = f"{name}:{line}"
        try:
            value = parse_json(text, where=name, first_line=line, convert=convert)
        except InputError as error:
            return LocatedDocument(where, error=error)
        return LocatedDocument(where, value)

    lines: Iterator[tuple[int, str]] = enumerate(_text_lines(stream, name), start=1)
    number, line = next(((n, text) for n, text in lines if text.strip()), (0, ""))
    if not line:
        return
    document = parse(line, number)
    if not isinstance(document.value, dict) and not _is_object(line):
        rest = list(lines)
        if not any(_is_object(text) for _, text in rest):
            yield parse(line + "".join(text for _, text in rest), number)
            return
        lines = iter(rest)
    yield document
    for following, text in lines:
        if text.strip():
            yield parse(text, following)


def _text_lines(stream: Iterable[str], name: str) -> Iterator[str]:
    try:
        yield from stream
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise InputError(f"{name}: the file must be text in UTF-8, got byte 0x{byte:02x}") from None


def _is_object(line: str) -> bool:
    """Return whether a line is a JSON object. Keys may occur twice, and values may be NaN."""
    try:
        return line.rstrip().endswith("}") and isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    table = dict(pairs)
    if len(table) != len(pairs):
        counts = Counter(key for key, _ in pairs)
        repeated = next(key for key in table if counts[key] > 1)
        raise ValueError(f"key {repeated!r} is repeated in one object")
    return table


def _check_encodable(text: str) -> None:
    """Raise ValueError for invalid JSON and for a string that UTF-8 cannot represent."""
    try:
        json.dumps(json.loads(text), ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        lone = ascii(error.object[error.start])[1:-1]
        raise ValueError(
            f"a string contains the invalid character {lone}; Kafka's names are UTF-8 text"
        ) from None


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number; use a finite number or null")


def format_value(value: object) -> str:
    """Return a value as JSON, shortened for an error message."""
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= _SHOWN_LENGTH else text[: _SHOWN_LENGTH - 3] + "..."


def value_of(kind: type | tuple[type, ...], expected: str) -> Parser[Any]:
    """Return a parser that accepts values of a type. It does not accept booleans as integers."""

    def parse(value: object, where: str) -> Any:
        if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
            return value
        raise unexpected(value, where, expected)

    return parse


def unexpected(value: object, where: str, expected: str) -> InputError:
    """Build an InputError that states the expected value and the invalid value."""
    return InputError(f"{where}: expected {expected}, got {format_value(value)}")


def optional(parse: Parser[T]) -> Parser[T | None]:
    """Return a parser that accepts null, and all values that ``parse`` accepts."""
    return lambda value, where: None if value is None else parse(value, where)


def _column_of(kind: type[T], parse: Parser[T]) -> Parser[tuple[T, ...]]:
    """Return a parser of arrays with items of one type. It is fast for long arrays."""

    def parse_column(value: object, where: str) -> tuple[T, ...]:
        values: Any = as_array(value, where)
        return tuple(values) if has_only(kind, values) else items_of(parse)(values, where)

    return parse_column


def items_of(parse: Parser[T]) -> Parser[tuple[T, ...]]:
    """Return a parser of arrays. It parses each item with ``parse``."""
    return lambda value, where: tuple(
        parse(item, f"{where}[{index}]") for index, item in enumerate(as_array(value, where))
    )


as_object: Parser[Mapping[str, object]] = value_of(Mapping, "an object")
as_array: Parser[Sequence[object]] = value_of((list, tuple), "a list")
as_integer: Parser[int] = value_of(int, "an integer")
as_text: Parser[str] = value_of(str, "a string")
as_flag: Parser[bool] = value_of(bool, "true or false")
as_optional_integer, as_optional_text = optional(as_integer), optional(as_text)
as_integers, as_texts = _column_of(int, as_integer), _column_of(str, as_text)


def table_of(parse: Parser[T]) -> Parser[dict[str, T]]:
    """Return a parser of objects with any keys. It parses each value with ``parse``."""
    return lambda value, where: {
        key: parse(one, f"{where}[{key!r}]") for key, one in as_object(value, where).items()
    }


def word_of(words: type[Word]) -> Parser[Word]:
    """Return a parser that accepts the values of a string enumeration."""

    def parse(value: object, where: str) -> Word:
        word = as_text(value, where)
        if word not in list(words):
            kind = re.split(r"[. ]", where)[-1]
            raise InputError(
                f"{where}: unknown {kind} {word!r}, expected one of {', '.join(words)}"
            )
        return words(word)

    return parse


def parse_fields(
    value: object,
    where: str,
    required: Mapping[str, Parser[Any]],
    optional: Mapping[str, Parser[Any]] = MappingProxyType({}),
    *,
    separator: str = ".",
) -> dict[str, Any]:
    """Parse a JSON object with required and optional keys."""
    table = as_object(value, where)
    check_keys(table, (*required, *optional), where, required=tuple(required))
    parsers = {**required, **optional}
    return {
        key: parse(table[key], f"{where}{separator}{key}")
        for key, parse in parsers.items()
        if key in table
    }


def fields_of(optional: Mapping[str, Parser[Any]]) -> Parser[dict[str, Any]]:
    """Return a parser of objects with only optional keys."""
    return lambda value, where: parse_fields(value, where, {}, optional)


def has_only(kind: type, values: Sequence[object]) -> bool:
    """Return whether all values have the type ``kind``. A boolean is not an integer."""
    return set(map(type, values)) <= {kind}


def check_keys(
    table: Mapping[str, object], known: Sequence[str], where: str, *, required: Sequence[str] = ()
) -> None:
    """Raise InputError if a JSON object has unknown keys or lacks required keys."""
    unknown = [key for key in table if key not in known]
    if unknown:
        names = ", ".join(map(repr, unknown))
        plural = "s" if len(unknown) > 1 else ""
        raise InputError(
            f"{where}: unknown key{plural} {names}, expected one of {', '.join(map(repr, known))}"
        )
    for key in required:
        if key not in table:
            raise InputError(f"{where}: missing key {key!r}")


def write_text(path: Path, text: str) -> None:
    """Replace the content of a text file, and create missing directories."""
    with replacing_file(path) as stream:
        stream.write(text.encode())


@contextmanager
def replacing_file(path: Path) -> Iterator[BinaryIO]:
    """Open a stream that replaces a file at the end of the ``with`` block.

    An exception in the block leaves the old file. A device or a pipe receives the bytes
    immediately. A symbolic link and the permissions of the old file are kept.
    """
    # The resolved path of /dev/stdout does not exist if standard output is a pipe.
    if path.exists() and not path.is_file():
        with _naming(path), path.open("wb") as device:
            yield device
        return
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    new = target.with_name(f".{target.name[:_NAME_LENGTH]}.{secrets.token_hex(4)}.new")
    try:
        with _naming(path, new):
            with os.fdopen(_create(new, target), "wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            new.replace(target)
    except BaseException:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        raise
    _flush_directory(target.parent)


@contextmanager
def _naming(path: Path, temporary: Path | None = None) -> Iterator[None]:
    """Set the file name in each OSError of the ``with`` block to ``path``."""
    try:
        yield
    except OSError as error:
        if error.filename not in (None, str(temporary)):
            raise
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def _create(new: Path, target: Path) -> int:
    """Create the temporary file with the permissions of the file that it replaces."""
    exists = target.exists()
    if exists and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "Permission denied", str(new))
    descriptor = os.open(
        new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666
    )
    if exists:
        with suppress(OSError):
            new.chmod(target.stat().st_mode & 0o7777)
    return descriptor


def _flush_directory(directory: Path) -> None:
    """Flush a rename to the disk. Some systems and file systems cannot do this."""
    with suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def location(output: str) -> Path | None:
    """Return the local path of an output directory, or None for a URI of a remote file system."""
    scheme, separator, path = output.partition(":")
    if not separator or not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme):
        return Path(output)
    if scheme == "file":
        return Path("/" + path.lstrip("/"))
    if scheme not in _SCHEMES:
        raise UsageError(
            f"{output}: unknown scheme {scheme!r}, expected one of file, {', '.join(_SCHEMES)}"
        )
    return None


def check_writable(output: str) -> None:
    """Create a local output directory. Raise OSError if it is not writable."""
    directory = location(output)
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass


# The default limit, 131,072, is less than the names that a hostile client can choose.
csv.field_size_limit(2**31 - 1)
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def write_csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Convert a header and rows to CSV text. Cells that look like formulas stay text."""
    return "".join(map(_line, (header, *rows)))


def formulas_as_text(csv_text: str) -> str:
    r"""Add an apostrophe before the CSV cells that look like formulas."""
    rows = list(csv.reader(io.StringIO(csv_text, newline="")))
    return write_csv(rows[0], rows[1:]) if rows else csv_text


def _line(row: Sequence[object]) -> str:
    text = io.StringIO()
    # The writer quotes carriage returns only if they are part of the line terminator.
    csv.writer(text, lineterminator="\r\n").writerow(map(_cell, row))
    return text.getvalue().removesuffix("\r\n") + "\n"


def _cell(value: object) -> object:
    if not isinstance(value, str) or not value.startswith(_FORMULA_STARTS) or is_number(value):
        return value
    return f"'{value}"


def is_number(text: str) -> bool:
    """Return whether Python reads a text as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True

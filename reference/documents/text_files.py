"""Read text from files and standard input, with gzip, UTF-16 and byte order marks."""

import codecs
import gzip
import io
import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
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


def name_of(path: Path) -> str:
    """Return a file's path for messages, or ``standard input`` for the path ``-``."""
    return "standard input" if path == STDIN else str(path)


def without_gzip(path: Path) -> Path:
    """Remove the suffix ``.gz`` from a path, if the path has this suffix.

    Examples
    --------
    >>> without_gzip(Path("orders.txt.gz")).suffix
    '.txt'
    """
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
def open_text(
    path: Path, *, stdin: TextIO | None = None, errors: str = "strict"
) -> Iterator[TextIO]:
    """Open a file or standard input (path `STDIN`) as text, and decompress gzip.

    ``errors`` is the treatment of bytes that are not text, as in `open`.
    """
    with open_binary(path, stdin=stdin) as data:
        text = io.TextIOWrapper(data, encoding=_encoding(data.peek(4)), errors=errors)
        yield text
        text.detach()  # closing it would close standard input


def read_text(path: Path, *, stdin: TextIO | None = None) -> str:
    """Read all text from a file or standard input. An error names the line with invalid bytes."""
    with open_binary(path, stdin=stdin) as data:
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

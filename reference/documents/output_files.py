"""Check output directories, and write output files and CSV texts.

A file is replaced only when its new content is complete. A full disk, an interruption or a crash
leaves the old file. The content goes to a temporary file in the same directory, which is flushed to
the disk and then renamed.

A spreadsheet takes a cell that starts with ``=``, ``+``, ``-``, ``@`` or a control character for
a formula. An apostrophe before it makes it a text. Numbers are not changed.
"""

import csv
import errno
import io
import os
import re
import secrets
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from kassay.reference.model.errors import UsageError

_SCHEMES = ("hdfs", "viewfs", "s3a", "gs", "abfs", "abfss", "wasb", "wasbs", "o3fs", "ofs", "oss")
_NAME_LENGTH = 100
"""Characters of the file name in the name of its temporary file; names are limited to 255 bytes."""


def write_text(path: Path, text: str) -> None:
    """Replace a UTF-8 text file. Create missing directories. OSError names the file."""
    with replacing_file(path) as stream:
        stream.write(text.encode())


@contextmanager
def replacing_file(path: Path) -> Iterator[BinaryIO]:
    """Open a stream whose bytes replace the content of a file at the end of the ``with`` block.

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
    """Set the file name in an OSError of the ``with`` block to ``path``."""
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
            f"{output}: unknown scheme {scheme!r}, expected file, {', '.join(_SCHEMES)}"
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
    r"""Write a header and rows as CSV; prefix cells that look like formulas.

    Examples
    --------
    >>> write_csv(("member", "load"), [("=1+1", 5), ("c0", -5)])
    "member,load\n'=1+1,5\nc0,-5\n"
    """
    return "".join(map(_line, (header, *rows)))


def formulas_as_text(csv_text: str) -> str:
    r"""Prefix the cells of a CSV text that look like formulas with an apostrophe."""
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

"""JSON text in, with nothing lost silently: repeated keys and NaN are errors, and located.

Every reader of JSON in kassay goes through here, so that they all refuse the same things.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NoReturn, TextIO

from kassay.reference.model.errors import InputError


@dataclass(frozen=True, slots=True)
class Located:
    """One JSON document, or the error that stands in its place.

    Parameters
    ----------
    where
        File name and line, as ``groups.jsonl:3``.
    value
        The document, None where ``error`` is set.
    error
        What is wrong with the text.
    """

    where: str
    value: object = None
    error: InputError | None = None


def parse_json(text: str, *, where: str, first_line: int = 1) -> object:
    """Parse one JSON document.

    Parameters
    ----------
    text
        The document.
    where
        Name of the file or stream, for errors.
    first_line
        Line of the file that ``text`` starts on, from 1.

    Raises
    ------
    InvalidGroupError
        If the text is not JSON, repeats a key in one object, or has NaN or Infinity.

    Examples
    --------
    >>> parse_json('{"a": 1, "a": 2}', where="x.json")
    Traceback (most recent call last):
    kassay...InputError: x.json:1: key 'a' is repeated in one object
    """
    text = text.rstrip("\n")  # the end of a line is not the next one
    try:
        return json.loads(text, object_pairs_hook=_no_repeats, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        line = first_line + error.lineno - 1
        shown = text[error.pos : error.pos + 24]
        near = f"near {shown!r}" if shown else "at the end of the text"
        raise InputError(
            f"{where}:{line}: not valid JSON: {error.msg.lower()}, column {error.colno}, {near}"
        ) from None
    except RecursionError:
        raise InputError(f"{where}:{first_line}: not valid JSON: nested too deeply") from None
    except ValueError as error:
        raise InputError(f"{where}:{first_line}: {error}") from None


def read_json_documents(stream: TextIO, *, name: str) -> Iterator[Located]:
    """Yield the documents of a file: one JSON document over many lines, or JSON Lines.

    Lines are read one at a time, so that a long batch streams. A line that cannot be
    parsed gives one error in its place.
    """
    lines = iter(enumerate(_lines(stream, name), start=1))
    first = next(((number, line) for number, line in lines if line.strip()), None)
    if first is None:
        return
    number, line = first
    if _is_document(line):
        yield from _json_lines(chain([(number, line)], lines), name)
        return
    rest = list(lines)
    if any(_is_document(text) for _, text in rest):
        yield from _json_lines([(number, line), *rest], name)
        return
    text = line + "".join(text for _, text in rest)
    yield _located(text, where=f"{name}:{number}", name=name, first_line=number)


def _lines(stream: TextIO, name: str) -> Iterator[str]:
    try:
        yield from stream
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise InputError(f"{name}: not UTF-8 text: byte 0x{byte:02x}") from None


def _json_lines(
    lines: "Iterator[tuple[int, str]] | list[tuple[int, str]]", name: str
) -> Iterator[Located]:
    for number, line in lines:
        if line.strip():
            yield _located(line, where=f"{name}:{number}", name=name, first_line=number)


def _located(text: str, *, where: str, name: str, first_line: int) -> Located:
    try:
        return Located(where, value=parse_json(text, where=name, first_line=first_line))
    except InputError as error:
        return Located(where, error=error)


def _is_document(line: str) -> bool:
    """Whether a line is a whole JSON object, well formed or merely repeating a key."""
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _no_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    table = dict(pairs)
    if len(table) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"key {key!r} is repeated in one object")
            seen.add(key)
    return table


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number here")

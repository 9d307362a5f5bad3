"""Strict JSON parsing and typed access to values. Errors name the file, the line and the field.

Repeated keys and NaN are errors.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from kassay.reference.model.errors import InputError

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_TOO_MANY_DIGITS = "a number has thousands of digits"
Convert = Callable[[dict[str, object]], None]
"""Function that changes each object in place when it has been parsed."""
T = TypeVar("T")
_SHOWN_LENGTH = 60  # characters of an invalid value in a message


@dataclass(frozen=True, slots=True)
class LocatedDocument:
    """One JSON document of a file, or the error if the document is invalid.

    ``where`` has file name and line, as ``groups.jsonl:3``.
    """

    where: str
    value: object = None
    error: InputError | None = None


def parse_json(
    text: str, *, where: str, first_line: int = 1, convert: Convert | None = None
) -> object:
    """Parse one JSON document. Repeated keys, NaN and Infinity are errors.

    InputError names the file ``where`` and the line, counted from ``first_line``.
    """

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
        raise InputError(f"{where}:{first_line}: the JSON document is nested too deeply") from None
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
    """Return whether a line is a JSON object, possibly with repeated keys or NaN."""
    try:
        return line.rstrip().endswith("}") and isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    table = dict(pairs)
    if len(table) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"key {key!r} is repeated in one object")
            seen.add(key)
    return table


def _check_encodable(text: str) -> None:
    """Raise ValueError if the text is invalid JSON, or a string cannot be written as UTF-8."""
    try:
        json.dumps(json.loads(text), ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        lone = ascii(error.object[error.start])[1:-1]
        raise ValueError(
            f"a string contains half of a surrogate pair, {lone}; Kafka's names are UTF-8 text"
        ) from None


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def format_value(value: object) -> str:
    """Return a value as JSON, shortened for an error message."""
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= _SHOWN_LENGTH else text[: _SHOWN_LENGTH - 3] + "..."


def as_object(value: object, where: str, *, expected: str = "an object") -> Mapping[str, object]:
    """Return the value if it is a JSON object. Otherwise raise InputError."""
    if isinstance(value, Mapping):
        return value
    raise _unexpected(value, where, expected)


def as_array(value: object, where: str, *, expected: str = "a list") -> Sequence[object]:
    """Return the value if it is a JSON array. Otherwise raise InputError."""
    if isinstance(value, list | tuple):
        return value
    raise _unexpected(value, where, expected)


def as_integer(value: object, where: str) -> int:
    """Return the value if it is an integer. Otherwise raise InputError.

    Booleans and 1.0 are not integers.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise _unexpected(value, where, "an integer")


def as_text(value: object, where: str) -> str:
    """Return the value if it is a string. Otherwise raise InputError."""
    if isinstance(value, str):
        return value
    raise _unexpected(value, where, "a string")


def as_optional_integer(value: object, where: str) -> int | None:
    """Return the value if it is an integer or None. Otherwise raise InputError."""
    return None if value is None else as_integer(value, where)


def as_optional_text(value: object, where: str) -> str | None:
    """Return the value if it is a string or None. Otherwise raise InputError."""
    return None if value is None else as_text(value, where)


def as_integers(value: object, where: str) -> tuple[int, ...]:
    """Return a JSON array of integers as a tuple. Raise InputError for other values."""
    return _elements(value, where, int, as_integer)


def as_texts(value: object, where: str) -> tuple[str, ...]:
    """Return a JSON array of strings as a tuple. Raise InputError for other values."""
    return _elements(value, where, str, as_text)


def _elements(
    value: object, where: str, kind: type[T], parse: Callable[[object, str], T]
) -> tuple[T, ...]:
    values: Sequence[Any] = as_array(value, where)
    if has_only(kind, values):
        return tuple(values)
    return tuple(parse(each, f"{where}[{index}]") for index, each in enumerate(values))


def _unexpected(value: object, where: str, expected: str) -> InputError:
    return InputError(f"{where}: expected {expected}, got {format_value(value)}")


def has_only(kind: type, values: Sequence[object]) -> bool:
    """Return whether all values have exactly the given type. Booleans do not count as integers."""
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

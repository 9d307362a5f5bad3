"""Typed access to the fields of a JSON document. Errors name the field and the value."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from kassay.reference.model.errors import InputError

T = TypeVar("T")
_SHOWN_LENGTH = 60  # characters of an invalid value in a message


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

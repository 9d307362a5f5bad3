"""Typed access to the fields of a JSON document, with errors that name field and value."""

import json
from collections.abc import Mapping, Sequence

from kassay.reference.model.errors import InputError

_SHOWN = 60  # characters of an offending value that a message repeats


def format_value(value: object) -> str:
    """Return a value as JSON, cut to a length that fits into a message."""
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def as_object(value: object, where: str, *, instead: str = "an object") -> Mapping[str, object]:
    """Take a JSON object; InvalidGroupError for anything else."""
    if isinstance(value, Mapping):
        return value
    raise InputError(f"{where}: expected {instead}, got {format_value(value)}")


def as_array(value: object, where: str, *, instead: str = "a list") -> Sequence[object]:
    """Take a JSON array; InvalidGroupError for anything else."""
    if isinstance(value, list | tuple):
        return value
    raise InputError(f"{where}: expected {instead}, got {format_value(value)}")


def as_integer(value: object, where: str) -> int:
    """Take an integer; InvalidGroupError for anything else, booleans and 1.0 included."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise InputError(f"{where}: expected an integer, got {format_value(value)}")


def as_optional_integer(value: object, where: str) -> int | None:
    """Take an integer or null."""
    return None if value is None else as_integer(value, where)


def as_text(value: object, where: str) -> str:
    """Take a string; InvalidGroupError for anything else."""
    if isinstance(value, str):
        return value
    raise InputError(f"{where}: expected a string, got {format_value(value)}")


def as_optional_text(value: object, where: str) -> str | None:
    """Take a string or null."""
    return None if value is None else as_text(value, where)


def no_unknown_keys(table: Mapping[str, object], known: Sequence[str], where: str) -> None:
    """Refuse keys that the format does not have.

    Examples
    --------
    >>> no_unknown_keys({"id": "g", "topcs": {}}, ("id", "topics"), "g.json:1")
    Traceback (most recent call last):
    kassay...InputError: g.json:1: unknown key 'topcs', known are 'id', 'topics'
    """
    unknown = [key for key in table if key not in known]
    if unknown:
        names = ", ".join(map(repr, unknown))
        plural = "s" if len(unknown) > 1 else ""
        raise InputError(
            f"{where}: unknown key{plural} {names}, known are {', '.join(map(repr, known))}"
        )

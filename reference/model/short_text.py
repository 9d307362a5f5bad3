"""Short texts of names and values, for tables, pages and ``repr``."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_MAX_ITEMS = 8


def first_items(items: Sequence[object]) -> str:
    """Join the first items of a list, and append the number of all items if it has more.

    Examples
    --------
    >>> first_items(range(20))
    '0, 1, 2, 3, 4, 5, 6, 7, ... 20 in all'
    """
    shown = ", ".join(str(item) for item in items[:_MAX_ITEMS])
    return f"{shown}, ... {len(items)} in all" if len(items) > _MAX_ITEMS else shown


def short_text(value: "DataclassInstance") -> str:
    """Return the text of a dataclass: fields that differ from their defaults, lists cut."""
    shown = [
        (one.name, getattr(value, one.name))
        for one in fields(value)
        if one.repr and (one.default is MISSING or getattr(value, one.name) != one.default)
    ]
    values = ", ".join(f"{name}={_short(item)}" for name, item in shown)
    return f"{type(value).__name__}({values})"


def short_mapping(values: Mapping[str, object]) -> str:
    """Return the text of a mapping with only its first items."""
    return f"{{{first_items([f'{key!r}: {value!r}' for key, value in values.items()])}}}"


def shorten_middle(text: str, width: int) -> str:
    """Cut the middle of a text that is longer than ``width`` characters.

    Examples
    --------
    >>> shorten_middle("orders-consumer-12", 11)
    'order…er-12'
    """
    if len(text) <= width:
        return text
    tail = (width - 1) // 2
    return f"{text[: width - 1 - tail]}…{text[len(text) - tail :]}"


def _short(value: object) -> str:
    if type(value) is not tuple:
        return repr(value)
    text = first_items([_short(item) for item in value])
    return f"({text},)" if len(value) == 1 else f"({text})"

"""Short texts and HTML tables of groups and assignments, and names of new members."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from itertools import islice
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_MAX_ITEMS = 8


def count_of(number: int, noun: str) -> str:
    """Format a number with a noun in singular or plural, such as ``2 moves``."""
    ending = "" if number == 1 else "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun}{ending}"


def first_items(items: Sequence[object]) -> str:
    """Join the first items of a list. If items are omitted, append the number of all items."""
    shown = ", ".join(str(item) for item in items[:_MAX_ITEMS])
    return f"{shown}, ... {len(items)} in all" if len(items) > _MAX_ITEMS else shown


def short_text(value: "DataclassInstance") -> str:
    """Return a short text of a dataclass, without fields that have default values."""
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


def _short(value: object) -> str:
    if type(value) is not tuple:
        return repr(value)
    text = first_items([_short(item) for item in value])
    return f"({text},)" if len(value) == 1 else f"({text})"


MAX_ROWS = 40
"""Maximum number of rows in a table. One more row then has the number of omitted rows."""
_MAX_NAMES = 12
_BAR = Markup(
    '<span style="display:inline-block;height:.7em;width:{width}px;max-width:none;'
    'background:#0b66a8;margin-right:.4em"></span>{value}'
)
_BAR_WIDTH = 160  # pixels for the maximum value


def table(caption: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return an HTML table. Cell values that are not `Markup` are escaped."""
    rest = iter(rows)
    shown = list(islice(rest, MAX_ROWS))
    remaining = sum(1 for _ in rest)
    lines = ["".join(f"<td>{escape(value)}</td>" for value in row) for row in shown]
    if remaining:
        lines.append(f'<td colspan="{len(header)}">and {remaining} more</td>')
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return (
        f'<table><caption style="text-align:left">{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def bar(value: int, maximum: int) -> Markup:
    """Return the HTML of a number with a bar of proportional length."""
    width = round(_BAR_WIDTH * value / maximum) if maximum else 0
    return _BAR.format(width=width, value=value)


def names(values: Iterable[object]) -> str:
    """Join the first values to a text. If values are omitted, append their number."""
    rest = iter(values)
    shown = [str(value) for value in islice(rest, _MAX_NAMES)]
    remaining = sum(1 for _ in rest)
    return ", ".join(shown) + (f" and {remaining} more" if remaining else "")


def loads_table(
    loads: Mapping[str, int], partitions: Mapping[str, Iterable[object]], *, heading: str = "load"
) -> str:
    """Return an HTML table of an assignment: members, loads as bars, and partitions."""
    maximum = max(loads.values(), default=0)
    rows = (
        (member, bar(load, maximum), names(partitions.get(member, ())))
        for member, load in loads.items()
    )
    return table("assignment", ("member", heading, "partitions"), rows)


_ORDINAL = re.compile(r"(.*?)(\d+)", re.DOTALL)


def ordinal(name: str) -> tuple[str, int] | None:
    """Split a name into its prefix and the number at its end. Return None without a number."""
    match = _ORDINAL.fullmatch(name)
    return None if match is None else (match[1], int(match[2]))


def by_ordinal(names: Iterable[str]) -> list[str] | None:
    """Sort names by the number at the end. Return None if one is missing or repeated."""
    found = {name: ordinal(name) for name in names}
    keys = list(found.values())
    if None in keys or len(set(keys)) < len(keys):
        return None
    return sorted(found, key=lambda name: found[name] or ("", 0))


def next_names(names: Iterable[str], count: int) -> list[str]:
    """Return names for new members, such as ``c3`` if ``c2`` exists."""
    taken = set(names)
    found = [ordinal(name) for name in names]
    prefixes = Counter(one[0] for one in found if one is not None)
    prefix, start = "new-", 1
    if prefixes:
        prefix = prefixes.most_common(1)[0][0]
        start = 1 + max(one[1] for one in found if one is not None and one[0] == prefix)
    numbered = (f"{prefix}{number}" for number in range(start, start + count + len(taken)))
    return [name for name in numbered if name not in taken][:count]

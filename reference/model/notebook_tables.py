"""HTML tables that show groups and assignments in notebooks."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import islice

MAX_ROWS = 40
"""Maximum number of rows of a table; a last row has the number of the others."""
_MAX_NAMES = 12
_BAR = (
    '<span style="display:inline-block;height:.7em;width:{width}px;max-width:none;'
    'background:#0b66a8;margin-right:.4em"></span>{value}'
)
_BAR_WIDTH = 160  # pixels for the maximum value


class Markup(str):
    """HTML that is not escaped in a cell."""

    __slots__ = ()


def table(caption: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table. Every value that is not `Markup` is escaped."""
    rest = iter(rows)
    shown = list(islice(rest, MAX_ROWS))
    remaining = sum(1 for _ in rest)
    lines = ["".join(f"<td>{_cell(value)}</td>" for value in row) for row in shown]
    if remaining:
        lines.append(f'<td colspan="{len(header)}">and {remaining} more</td>')
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return (
        f'<table><caption style="text-align:left">{_cell(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def bar(value: int, maximum: int) -> Markup:
    """Return a number with a bar, proportional to its share of the maximum."""
    width = round(_BAR_WIDTH * value / maximum) if maximum else 0
    return Markup(_BAR.format(width=width, value=value))


def names(values: Iterable[object]) -> str:
    """Return the first values as text, and the number of the others."""
    rest = iter(values)
    shown = [str(value) for value in islice(rest, _MAX_NAMES)]
    remaining = sum(1 for _ in rest)
    return ", ".join(shown) + (f" and {remaining} more" if remaining else "")


def loads_table(
    caption: str, loads: Mapping[str, int], partitions: Mapping[str, Iterable[object]]
) -> str:
    """Return a table of loads with bars, and the partitions of each member."""
    maximum = max(loads.values(), default=0)
    rows = (
        (member, bar(load, maximum), names(partitions.get(member, ())))
        for member, load in loads.items()
    )
    return table(caption, ("member", "load", "partitions"), rows)


def members_table(
    caption: str, rows: Iterable[tuple[str, Iterable[object], Iterable[object]]]
) -> str:
    """Return a table of member, subscription and owned partitions."""
    cells = ((member, names(topics), names(owned)) for member, topics, owned in rows)
    return table(caption, ("member", "subscribes to", "owns"), cells)


def _cell(value: object) -> str:
    return value if isinstance(value, Markup) else escape(str(value))

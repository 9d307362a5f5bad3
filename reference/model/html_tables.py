"""Small HTML tables: how groups and assignments show themselves in notebooks."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import islice

MOST_ROWS = 40
"""Rows that a table shows before it says how many more there are."""
_MOST_NAMES = 12
_BAR = (
    '<span style="display:inline-block;height:.7em;width:{width}px;max-width:none;'
    'background:#0b66a8;margin-right:.4em"></span>{value}'
)
_BAR_WIDTH = 160  # pixels of the greatest value


class Markup(str):
    """HTML that is put into a cell as it is."""

    __slots__ = ()


def table(caption: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write a table; what is not `Markup` is escaped.

    Examples
    --------
    >>> "a &lt; b" in table("", ["claim"], [["a < b"]])
    True
    """
    rest = iter(rows)
    shown = list(islice(rest, MOST_ROWS))
    left = sum(1 for _ in rest)
    lines = ["".join(f"<td>{_cell(value)}</td>" for value in row) for row in shown]
    if left:
        lines.append(f'<td colspan="{len(header)}">and {left} more</td>')
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return (
        f'<table><caption style="text-align:left">{_cell(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def bar(value: int, greatest: int) -> Markup:
    """Draw a number as a bar, as long as its share of the greatest."""
    width = round(_BAR_WIDTH * value / greatest) if greatest else 0
    return Markup(_BAR.format(width=width, value=value))


def names(values: Iterable[object]) -> str:
    """List names, the first of them where there are many."""
    rest = iter(values)
    shown = [str(value) for value in islice(rest, _MOST_NAMES)]
    left = sum(1 for _ in rest)
    return ", ".join(shown) + (f" and {left} more" if left else "")


def loads_table(
    caption: str, loads: Mapping[str, int], partitions: Mapping[str, Iterable[object]]
) -> str:
    """Write loads as bars, with the partitions of each member."""
    greatest = max(loads.values(), default=0)
    rows = (
        (member, bar(load, greatest), names(partitions.get(member, ())))
        for member, load in loads.items()
    )
    return table(caption, ("member", "load", "partitions"), rows)


def _cell(value: object) -> str:
    return value if isinstance(value, Markup) else escape(str(value))

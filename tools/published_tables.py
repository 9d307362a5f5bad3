"""Read the numbers of the tables in docs/results."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "docs" / "results"
_TABLE = re.compile(r"^(?P<title>[^\n|]+)\n\n(?P<rows>(?:\|.*\n)+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """Markdown table with the line of text before it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@cache
def tables(page: str) -> tuple[PublishedTable, ...]:
    """Return the tables of a page in docs/results."""
    text = (RESULTS / f"{page}.md").read_text(encoding="utf-8")
    found = []
    for match in _TABLE.finditer(text):
        columns, _, *rows = map(_cells, match["rows"].splitlines())
        found.append(PublishedTable(match["title"], columns, tuple(rows)))
    return tuple(found)


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip().strip("`") for cell in line.strip("|").split("|"))


def cell(page: str, title: str, row: str, column: str, *, interval: bool = False) -> str:
    """Return a cell of the first table with a title, a row and a column.

    Parameters
    ----------
    title
        Part of the line before the table.
    row
        First cell of the row; the first cells with `` | `` between them if one is not sufficient.
    interval
        Keep the interval in brackets after the number.

    Raises
    ------
    KeyError
        If no table has this cell.
    """
    names = row.split(" | ")
    for table in tables(page):
        for cells in table.rows if title in table.title and column in table.columns else ():
            if list(cells[: len(names)]) == names:
                text = cells[table.columns.index(column)]
                return text if interval else text.partition(" (")[0]
    raise KeyError(f"docs/results/{page}.md has no cell {title!r}, {row!r}, {column!r}")


def number(page: str, title: str, row: str, column: str) -> float:
    """Return the number of a cell, without its unit."""
    return float(cell(page, title, row, column).rstrip(" %").replace(",", "").replace("\u202f", ""))

"""Write CSV texts in which spreadsheets do not interpret cells as formulas.

A spreadsheet takes a cell that starts with ``=``, ``+``, ``-``, ``@`` or a control character for
a formula. An apostrophe before it makes it a text. Numbers are not changed.
"""

import csv
import io
from collections.abc import Iterable, Sequence

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

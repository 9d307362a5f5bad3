"""Print tables on a terminal, with the columns that fit its width."""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kassay.experiments.cli.messages import print_note
from kassay.experiments.cli.options.output_options import shows_all_columns
from kassay.reference.model.display import shorten_middle

if TYPE_CHECKING:
    from rich.console import Console

_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters, and characters that change the direction of text."""
_FILE_WIDTH = 120
"""Width in characters of tables that are not written to a terminal."""
_NAME_WIDTH = 22
"""Width of long names in a table that is wider than the terminal."""
_KEPT = 2
"""Number of columns at the start that are always shown."""


@dataclass(frozen=True, slots=True)
class TextTable:
    """Table of texts. The columns ``first`` and ``last`` are text, the others numbers.

    If a terminal is too narrow, the columns ``optional`` are hidden first, from the right.
    """

    first: Sequence[str]
    numbers: Sequence[str]
    last: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str | None = None
    optional: Sequence[str] = ()

    def print(self) -> None:
        """Print the table. A terminal shows the columns that fit, or all with ``--wide``."""
        from rich.table import Table

        console = _console()
        table, hidden = self, list[str]()
        if sys.stdout.isatty() and shows_all_columns():
            console.width = max(console.width, self._width())
        elif sys.stdout.isatty():
            table, hidden = self._fitted(console.width)
        shown = Table(title=self.title)
        for heading in table.first:
            is_name = heading == "assignor" or (hidden and heading == "group")
            shown.add_column(heading, no_wrap=bool(is_name))
        for heading in table.numbers:
            shown.add_column(heading, justify="right")
        for heading in table.last:
            shown.add_column(heading)
        for row in table.rows:
            shown.add_row(*row)
        console.print(shown)
        if hidden:
            names = ", ".join(heading.replace("\n", " ") for heading in hidden)
            print_note(f"hidden columns: {names}; show them with --wide")

    def _fitted(self, width: int) -> "tuple[TextTable, list[str]]":
        """Shorten names, then hide columns until the table fits a width."""
        if self._width() <= width:
            return self, []
        names = len(self.first)
        rows = [
            [text if " " in text else shorten_middle(text, _NAME_WIDTH) for text in row[:names]]
            + list(row[names:])
            for row in self.rows
        ]
        table = replace(self, rows=rows)
        headings = [*self.first, *self.numbers]
        free = range(len(headings) - 1, _KEPT - 1, -1)
        order = sorted(free, key=lambda column: headings[column] not in self.optional)
        for count in range(len(order) + 1):
            shown = table.without(order[:count])
            if shown._least_width() <= width:  # noqa: SLF001
                break
        return shown, [headings[column] for column in sorted(order[:count])]

    def without(self, hidden: Sequence[int]) -> "TextTable":
        """Return the table without the columns of the given numbers."""
        names = len(self.first)
        return replace(
            self,
            first=[text for at, text in enumerate(self.first) if at not in hidden],
            numbers=[text for at, text in enumerate(self.numbers, names) if at not in hidden],
            rows=[[text for at, text in enumerate(row) if at not in hidden] for row in self.rows],
        )

    def _columns(self) -> list[tuple[str, ...]]:
        headings = [
            max(heading.split("\n"), key=len)
            for heading in (*self.first, *self.numbers, *self.last)
        ]
        return list(zip(headings, *self.rows, strict=True))

    def _width(self) -> int:
        """Return the width of the table if no cell is wrapped."""
        return 1 + sum(3 + max(map(len, column)) for column in self._columns())

    def _least_width(self) -> int:
        """Return the width of the table if cells are wrapped between words.

        Long words of the last columns are split.
        """
        words = [" ".join(column).split() for column in self._columns()]
        widths = [max(map(len, column), default=0) for column in words]
        end = len(self.first) + len(self.numbers)
        return 1 + sum(
            3 + (width if at < end else min(width, _NAME_WIDTH)) for at, width in enumerate(widths)
        )


def _console() -> "Console":
    """Create a console for tables, with the width of the terminal or 120 characters."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else _FILE_WIDTH
    # Names of groups and members can contain [ ] and :word:, which Rich would interpret.
    return Console(width=width, markup=False, emoji=False)


def cell(value: object) -> str:
    """Return the text of a table cell; None is empty."""
    return "" if value is None else without_control_characters(str(value))


def without_control_characters(text: str) -> str:
    """Replace characters that could control the terminal, except line ends."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)

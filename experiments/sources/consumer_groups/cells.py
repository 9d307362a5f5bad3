"""Rows: which characters belong to which column."""

import re
from collections.abc import Callable

from experiments.sources.consumer_groups.layout import Header

Cells = dict[str, str]

# Only a dynamic member in a group with static ones has a blank cell.
_MAY_BE_BLANK = "GROUP-INSTANCE-ID"
# The tool itself prints several blanks inside this cell.
_MAY_HOLD_GAPS = "COORDINATOR (ID)"
_GAP = re.compile(r" {2,}")
_GLUED = re.compile(
    r"(?P<id>.{14,}-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?P<host>/.*)"
)
_GLUED_WIDTH = 50  # releases 0.10.2 to 1.0 leave no blank after an id of this length


def split_row(text: str, header: Header, fits: Callable[[Cells], bool]) -> Cells | None:
    """Cut a row into its cells; None if no reading of it fits.

    Tried in this order: by commas (release 0.9), by the offsets of the header, by blanks
    if there are as many words as columns (fixed widths overflow), by blanks with a
    consumer id glued to its host.

    Parameters
    ----------
    text
        The line.
    header
        The table's header.
    fits
        Says whether the cells hold what their columns promise.
    """
    if header.commas:
        readings = [_by_commas(text, header)]
    else:
        readings = [_by_offsets(text, header), _by_words(text, header), _unglued(text, header)]
    return next((cells for cells in readings if cells is not None and fits(cells)), None)


def _by_commas(text: str, header: Header) -> Cells | None:
    values = [value.strip() for value in text.split(", ")]
    return _named(header, values)


def _by_offsets(text: str, header: Header) -> Cells | None:
    if "\t" in text:
        return None
    values: list[str] = []
    for column, (start, stop) in enumerate(
        zip(header.starts, [*header.starts[1:], len(text)], strict=True)
    ):
        if start > 0 and start <= len(text) and text[start - 1] != " ":
            return None
        value = text[start : max(stop, start)]
        name = header.names[column]
        if value.startswith(" ") and value.strip():
            return None
        value = value.strip()
        if (not value and name != _MAY_BE_BLANK) or (name != _MAY_HOLD_GAPS and _GAP.search(value)):
            return None
        values.append(value)
    return _named(header, values)


def _by_words(text: str, header: Header) -> Cells | None:
    return _named(header, text.split())


def _unglued(text: str, header: Header) -> Cells | None:
    words = text.split()
    if "HOST" not in header.names or len(words) != len(header.names) - 1:
        return None
    for index, word in enumerate(words):
        match = _GLUED.fullmatch(word)
        if match and len(match["id"]) >= _GLUED_WIDTH:
            return _named(header, [*words[:index], match["id"], match["host"], *words[index + 1 :]])
    return None


def _named(header: Header, values: list[str]) -> Cells | None:
    if len(values) != len(header.names):
        return None
    return dict(zip(header.names, values, strict=True))

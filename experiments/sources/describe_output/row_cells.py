"""Rows: which characters belong to which column."""

import re
from collections.abc import Callable, Iterator

from kassay.experiments.sources.describe_output.headers import Header

Cells = dict[str, str]

# A dynamic member beside static ones, a client that sets no client id, an empty group.
_MAY_BE_BLANK = frozenset({"GROUP-INSTANCE-ID", "CLIENT-ID", "ASSIGNMENT-STRATEGY"})
# The tool itself prints several blanks inside this cell.
_MAY_HOLD_GAPS = "COORDINATOR (ID)"
_GAP = re.compile(r" {2,}")
_COORDINATOR_GAP = re.compile(r" +(?=\(-?[0-9]+\)( |$))")
_GLUED = re.compile(
    r"(?P<id>.+-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?P<host>/.*)"
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
        The line, with the blanks at its end.
    header
        The table's header.
    fits
        Says whether the cells hold what their columns promise.
    """
    if header.commas:
        # A group or an owner may hold commas itself: then only one reading may fit.
        fitting = [cells for cells in _by_commas(text.strip(), header) if fits(cells)]
        return fitting[0] if len(fitting) == 1 else None
    readings = (_by_offsets(text, header), _by_words(text, header), _unglued(text, header))
    return next((cells for cells in readings if cells is not None and fits(cells)), None)


def _by_commas(text: str, header: Header) -> Iterator[Cells]:
    values = text.split(", ")
    width = len(values) - len(header.names) + 1
    if width < 1:
        return
    for first in range(1, width + 1):
        middle = first + len(header.names) - 2
        parts = [", ".join(values[:first]), *values[first:middle], ", ".join(values[middle:])]
        yield dict(zip(header.names, (part.strip() for part in parts), strict=True))


def _by_offsets(text: str, header: Header) -> Cells | None:
    if "\t" in text or text[: header.starts[0]].strip():
        return None
    values: list[str] = []
    for name, start, stop in zip(
        header.names, header.starts, [*header.starts[1:], len(text)], strict=True
    ):
        if start > 0 and (start > len(text) or text[start - 1] != " "):
            return None
        value = text[start : max(stop, start)]
        if value.startswith(" ") and value.strip():
            return None
        value = value.strip()
        if (not value and name not in _MAY_BE_BLANK) or (
            name != _MAY_HOLD_GAPS and _GAP.search(value)
        ):
            return None
        values.append(value)
    return _named(header, values)


def _by_words(text: str, header: Header) -> Cells | None:
    if _MAY_HOLD_GAPS in header.names:
        text = _COORDINATOR_GAP.sub("", text)
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

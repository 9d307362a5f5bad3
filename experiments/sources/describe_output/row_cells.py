"""Split table rows of ``kafka-consumer-groups.sh`` into cells."""

import re
from collections.abc import Callable, Iterator

from kassay.experiments.sources.describe_output.headers import Header

Cells = dict[str, str]

# Empty for a dynamic member beside static members, no client id, an empty group.
_MAY_BE_BLANK = frozenset({"GROUP-INSTANCE-ID", "CLIENT-ID", "ASSIGNMENT-STRATEGY"})
# The tool prints several spaces inside this cell.
_MAY_CONTAIN_GAPS = "COORDINATOR (ID)"
_GAP = re.compile(r" {2,}")
_COORDINATOR_GAP = re.compile(r" +(?=\(-?[0-9]+\)( |$))")
_JOINED_ID_AND_HOST = re.compile(
    r"(?P<id>.+-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(?P<host>/.*)"
)
# Releases 0.10.2 to 1.0 print no space after an id of at least this length.
_JOINED_LENGTH = 50


def split_row(text: str, header: Header, is_valid: Callable[[Cells], bool]) -> Cells | None:
    """Split a table row into cells, or return None if no split gives valid cells.

    Release 0.9 separates cells by commas. Other rows are split by the first of these methods
    that gives valid cells: at the column offsets of the header; at spaces, if there are as many
    words as columns (fixed widths overflow); at spaces, with a consumer id joined to its host.
    The text includes the spaces at its end.
    """
    if header.commas:
        # Groups and owners may contain commas. The split must be unambiguous.
        valid = [cells for cells in _by_commas(text.strip(), header) if is_valid(cells)]
        return valid[0] if len(valid) == 1 else None
    splits = (
        _by_offsets(text, header),
        _by_words(text, header),
        _by_words_with_joined_host(text, header),
    )
    return next((cells for cells in splits if cells is not None and is_valid(cells)), None)


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
            name != _MAY_CONTAIN_GAPS and _GAP.search(value)
        ):
            return None
        values.append(value)
    return _named(header, values)


def _by_words(text: str, header: Header) -> Cells | None:
    if _MAY_CONTAIN_GAPS in header.names:
        text = _COORDINATOR_GAP.sub("", text)
    return _named(header, text.split())


def _by_words_with_joined_host(text: str, header: Header) -> Cells | None:
    words = text.split()
    if "HOST" not in header.names or len(words) != len(header.names) - 1:
        return None
    for index, word in enumerate(words):
        match = _JOINED_ID_AND_HOST.fullmatch(word)
        if match and len(match["id"]) >= _JOINED_LENGTH:
            return _named(header, [*words[:index], match["id"], match["host"], *words[index + 1 :]])
    return None


def _named(header: Header, values: list[str]) -> Cells | None:
    if len(values) != len(header.names):
        return None
    return dict(zip(header.names, values, strict=True))

"""Whether the last line of a text is whole, if no newline ends it."""

import re
from collections.abc import Iterable

from kassay.experiments.sources.describe_output.row_cells import Cells
from kassay.experiments.sources.describe_output.typed_rows import TableRow

_UUID_TAIL = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_NOBODY = ("none", "-", "unknown")
# Counted against #PARTITIONS, or one of two words.
_CHECKED = ("ASSIGNMENT", "UPGRADED")
_FIELDS = {
    "CLIENT-ID": "client_id",
    "CONSUMER-ID": "consumer_id",
    "OWNER": "owner",
    "Owner": "owner",
}


def is_complete(cells: Cells, column: str, others: Iterable[TableRow]) -> bool:
    """Say whether a row's last cell is whole although nothing follows it.

    Parameters
    ----------
    cells
        The row.
    column
        Its last column.
    others
        All other rows: what they show as well is no accident of a cut.
    """
    value = cells[column]
    if column in _CHECKED:
        return True
    if column not in _FIELDS:
        return False
    if value in _NOBODY or value in {getattr(row, _FIELDS[column], None) for row in others}:
        return True
    # The classic protocol's member id is the client id and a UUID.
    consumer = cells.get("CONSUMER-ID", "")
    stem = _UUID_TAIL.sub("", consumer)
    return column == "CLIENT-ID" and value == stem != consumer

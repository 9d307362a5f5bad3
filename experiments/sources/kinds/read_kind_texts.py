"""Recognise and read texts that describe share groups, Streams applications and Connect."""

import json
from collections.abc import Iterator
from io import StringIO

from kassay.experiments.sources.import_options import ImportOptions
from kassay.experiments.sources.kinds.connect_rest import connect_document, is_connect_status
from kassay.experiments.sources.kinds.share_and_streams_groups import (
    ToolMemberRow,
    document_of_rows,
    is_kind_table,
    read_member_rows,
)
from kassay.reference.documents.json_values import read_json_documents
from kassay.reference.documents.kind_documents import (
    Kind,
    KindDocument,
    read_kind_documents,
)
from kassay.reference.model.errors import InputError

_KINDS = frozenset(Kind) - {Kind.CONSUMER}


def is_kind_text(text: str) -> bool:
    """Return whether a text is a document with a kind, a table or a REST answer of another kind."""
    start = text.lstrip()
    if not start.startswith("{"):
        return is_kind_table(text)
    try:
        value = json.JSONDecoder().raw_decode(start)[0]
    except (ValueError, RecursionError):
        return False
    kind = value.get("kind")
    return (isinstance(kind, str) and kind in _KINDS) or is_connect_status(value)


def read_kind_text(
    text: str, *, name: str, group: str | None, options: ImportOptions
) -> Iterator[tuple[str | None, KindDocument | InputError]]:
    """Yield the id and the document, or an error, of each group in a text.

    ``name`` is the name of the file in errors, and ``group`` the id of a Connect cluster.
    """
    if not text.lstrip().startswith("{"):
        rows: dict[str, list[ToolMemberRow]] = {}
        for row in read_member_rows(text, name=name):
            rows.setdefault(row.group, []).append(row)
        if not rows:
            raise InputError(f"{name}: the table has no rows")
        for id in sorted(rows):
            yield id, document_of_rows(id, rows[id], options)
        return
    first = next(read_json_documents(StringIO(text), name=name))
    if is_connect_status(first.value):
        document = connect_document(first.value, where=name, id=group)
        yield document.id, document
        return
    yield from read_kind_documents(StringIO(text), name=name, kind=None)

"""Separate documents of other kinds from consumer groups, for commands that read both."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from kassay.experiments.cli.read_groups import ParsedGroup, check_selected
from kassay.reference.documents.family_documents import FamilyDocument, Kind, OtherKindError
from kassay.reference.model.errors import InputError

ParsedDocument = tuple[str | None, FamilyDocument | InputError]


def documents_of_other_kinds(
    groups: Iterable[ParsedGroup],
) -> tuple[list[ParsedDocument], Iterator[ParsedGroup]]:
    """Return the documents of a source with another kind than consumers.

    The first valid document decides. The list is empty for a source of consumer groups; the
    iterator then yields all groups.
    """
    stream = iter(groups)
    start: list[ParsedGroup] = []
    is_other = False
    for id, one in stream:
        start.append((id, one))
        is_other = isinstance(one, OtherKindError)
        if is_other or not isinstance(one, InputError):
            break
    if not is_other:
        return [], chain(start, stream)
    found: list[ParsedDocument] = []
    for id, one in chain(start, stream):
        if isinstance(one, OtherKindError):
            found.append((id, one.document))
        elif isinstance(one, InputError):
            found.append((id, one))
        else:
            text = f"group {id!r}: a source with other kinds must not contain consumer groups"
            found.append((id, InputError(text)))
    return found, iter(())


def select_documents(
    file: Path, documents: Sequence[ParsedDocument], selected: set[str]
) -> Sequence[ParsedDocument]:
    """Return the selected documents and all errors, or all documents if none is selected."""
    if not selected:
        return documents
    check_selected(file, selected, (id for id, one in documents if isinstance(one, FamilyDocument)))
    return [(id, one) for id, one in documents if id in selected or isinstance(one, InputError)]


def refuse(command: str, kind: Kind, reason: str) -> InputError:
    """Build the error of a command that does not apply to documents of a kind."""
    return InputError(
        f"kassay {command} does not apply to documents of kind {str(kind)!r}: {reason}"
    )

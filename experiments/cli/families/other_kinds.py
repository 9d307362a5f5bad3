"""Separate documents of other kinds from consumer groups, for commands that read both."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from kassay.experiments.cli.options.output_options import Format
from kassay.experiments.cli.process_groups import GroupResult, process_documents
from kassay.experiments.cli.read_groups import ParsedGroup
from kassay.experiments.cli.write_results import TableLayout
from kassay.reference.documents.family_documents import FamilyDocument, Kind, OtherKindError
from kassay.reference.model.errors import InputError

ParsedDocument = tuple[str | None, FamilyDocument | InputError]


def documents_of_other_kinds(
    groups: Iterable[ParsedGroup],
) -> tuple[list[ParsedDocument], Iterator[ParsedGroup]]:
    """Return the documents of a source that starts with another kind than consumers.

    The list is empty for a source of consumer groups; the iterator then yields all groups.
    """
    stream = iter(groups)
    first = next(stream, None)
    if first is None or not isinstance(first[1], OtherKindError):
        return [], stream if first is None else chain([first], stream)
    found: list[ParsedDocument] = []
    for id, one in chain([first], stream):
        if isinstance(one, OtherKindError):
            found.append((id, one.document))
        elif isinstance(one, InputError):
            found.append((id, one))
        else:
            text = f"group {id!r}: a source with other kinds must not contain consumer groups"
            found.append((id, InputError(text)))
    return found, iter(())


def process_other_kinds(
    file: Path,
    documents: Sequence[ParsedDocument],
    process: Callable[[FamilyDocument], GroupResult],
    output_format: Format,
    layout: TableLayout,
) -> None:
    """Process documents of other kinds than consumers, and write the results."""
    process_documents(file, process, documents, output_format, layout)


def refuse(command: str, kind: Kind, reason: str) -> InputError:
    """Build the error of a command that does not apply to documents of a kind."""
    return InputError(
        f"kassay {command} does not apply to documents of kind {str(kind)!r}: {reason}"
    )

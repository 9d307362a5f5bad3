"""Separate documents of other kinds from consumer groups, for commands that read both."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TypeVar

from kassay.experiments.cli.source_options import ParsedGroup, check_selected, read_source
from kassay.experiments.sources.import_options import ImportOptions
from kassay.reference.documents.kind_documents import Kind, KindDocument, OtherKindError
from kassay.reference.model.errors import InputError

T = TypeVar("T")

ParsedDocument = tuple[str | None, KindDocument | InputError]


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


def read_selected(
    file: Path, options: ImportOptions, ids: Collection[str] | None
) -> tuple[Sequence[ParsedDocument], Iterable[ParsedGroup]]:
    """Return the documents of other kinds, or the groups, with the given ids, or all of them.

    The result also has the errors in all documents. With the option ``together``, the groups with
    these ids are joined.

    Raises
    ------
    InputError
        If the source has no document with one of the ids.
    """
    selected = set(ids or ())
    others, groups = documents_of_other_kinds(read_source(file, options, selected=selected))
    if not selected or (options.together and not others):
        return others, groups
    if others:
        return _select(file, others, selected), ()
    return (), _select(file, list(groups), selected)


def _select(
    file: Path, parsed: Sequence[tuple[str | None, T | InputError]], selected: set[str]
) -> Sequence[tuple[str | None, T | InputError]]:
    check_selected(file, selected, (id for id, _ in parsed))
    return [(id, one) for id, one in parsed if id in selected or isinstance(one, InputError)]


def refuse(command: str, kind: Kind, reason: str) -> InputError:
    """Build the error of a command that does not apply to documents of a kind."""
    return InputError(
        f"kassay {command} does not apply to documents of kind {str(kind)!r}: {reason}"
    )

"""Read group documents and captures."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

from kassay.experiments.cli.messages import print_error, print_note
from kassay.experiments.sources.capture_files import (
    EmptyGroups,
    ImportedGroup,
    import_groups,
    join_imported,
)
from kassay.experiments.sources.import_options import ImportOptions
from kassay.reference.documents import text_files
from kassay.reference.documents.family_documents import OtherKindError
from kassay.reference.documents.json_codec import group_document
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group

STDIN, name_of = text_files.STDIN, text_files.name_of

ParsedGroup = tuple[str | None, Group | InputError]
"""Pair of a group id, and the parsed group or the error in its document."""


def read_source(
    file: Path,
    options: ImportOptions | None = None,
    *,
    selected: Collection[str] = (),
    print_notes: bool = True,
) -> Iterator[ParsedGroup]:
    """Read groups from documents or captures. Yield an `InputError` for each invalid group.

    Unless ``print_notes`` is false, the notes of captures, and the state of rebalancing groups,
    are printed. If ``selected`` is given, they are printed only for the selected groups. With the
    option ``together``, the selected groups are joined.
    """
    if file != STDIN and not file.exists():
        raise InputError(f"{file}: no such file or directory")
    known = ImportOptions() if options is None else options
    imported = import_groups([file], known, empty=EmptyGroups.REJECT)
    if known.together:
        imported = join_imported(one for one in imported if not selected or one.id in selected)
        selected = ()
    return parsed_groups(
        imported, is_shown=lambda id: print_notes and (not selected or id in selected)
    )


def check_selected(file: Path, selected: set[str], known: Iterable[str | None]) -> None:
    """Raise InputError if a selected id is not one of the known ids of a source."""
    missing = sorted(selected.difference(known))
    if missing:
        raise InputError(f"{name_of(file)} contains no group {missing[0]!r}")


def parsed_groups(
    imported: Iterable[ImportedGroup], *, is_shown: Callable[[str | None], bool]
) -> Iterator[ParsedGroup]:
    """Yield the groups of an import, with an `InputError` for each invalid group.

    The notes and the state of a group are printed if ``is_shown`` returns true for its id.
    """
    for one in imported:
        if one.group is not None:
            if is_shown(one.id):
                _print_notes(one)
            yield one.id, one.group
        elif one.document is not None:
            yield one.id, OtherKindError(one.document)
        elif one.error is not None:
            yield one.id, InputError(one.error)
        elif is_shown(one.id):
            print_note(f"skipped {one.id!r}: {one.skipped}")


def _print_notes(imported: ImportedGroup) -> None:
    """Print the notes of a captured group; for a document, those of options, and its rebalance."""
    group = imported.group
    if group is None:
        return
    state = group.status.state
    if imported.option_notes:
        print_note(f"group {imported.id!r}: {'; '.join(imported.option_notes)}")
    if imported.is_document and group.status.is_rebalancing:
        print_note(f"group {imported.id!r}: the group was rebalancing, state {state}")
    elif group.notes and not imported.is_document:
        print_note(f"group {imported.id!r}: {'; '.join(group.notes)}")


def read_group_documents(paths: Iterable[Path]) -> tuple[list[str], bool]:
    """Read valid groups of files as JSON documents, and return whether all groups are valid."""
    groups, all_valid = read_valid_groups(paths)
    return [json.dumps(group_document(group), ensure_ascii=False) for group in groups], all_valid


def read_valid_groups(paths: Iterable[Path]) -> tuple[list[Group], bool]:
    """Read valid groups of files, print errors, and return whether all groups are valid."""
    groups, all_valid = [], True
    for path in paths:
        for _, group in read_source(path):
            if isinstance(group, InputError):
                print_error(str(group))
                all_valid = False
            else:
                groups.append(group)
    return groups, all_valid

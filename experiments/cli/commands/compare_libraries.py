"""``kassay compare --libraries`` and ``--releases``: compare assignors of client libraries."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import typer

from kassay.experiments.cli.assignor_options import CustomAssignors, known_assignor
from kassay.experiments.cli.option_groups import option
from kassay.experiments.cli.output import Format, Record, TableLayout, print_records
from kassay.experiments.cli.process_each_group import GroupResult, process_each_group
from kassay.experiments.cli.run_control import (
    BAD_INPUT,
    STOP,
    exit_interrupted,
    print_note,
    stop_on_interrupt,
)
from kassay.experiments.cli.source_options import GroupSource, read_valid_groups
from kassay.experiments.comparison.library_agreement import (
    Agreement,
    AgreementCounts,
    ReleaseResult,
    Runs,
    add_agreements,
    empty_counts,
    run_releases,
    sorted_loads,
)
from kassay.experiments.comparison.optimum import CaseLimits
from kassay.experiments.implementations.installation import installed_versions
from kassay.experiments.implementations.library_catalogue import Library, parse_library_assignor
from kassay.experiments.study.cases import cases_of
from kassay.experiments.study.families.all_families import USUAL
from kassay.reference.documents.json_codec import group_document
from kassay.reference.documents.text_files import STDIN
from kassay.reference.model.assignment import movement
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import Group

_SHOWN_LOADS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryOptions:
    """Command-line options for comparisons between client libraries, and between releases."""

    panel: ClassVar[str] = "Options for client libraries"

    libraries: bool = option(
        False,
        "Count the groups on which each assignor gives each member the same partitions, or the "
        "same load, as the port with its name, or as the port range. The default of --assignor is "
        "all assignors of the installed libraries.",
    )
    cases: int = option(
        0,
        "With --libraries: number of generated groups of the usual families. SOURCE is then not "
        "read if it is standard input.",
        min=0,
    )
    orders: int = option(
        1,
        "With --libraries: number of orders of the members per group: the order of the group, and "
        "random orders. The first member leads the group.",
        min=1,
    )
    repeat: int | None = option(
        None,
        "With --libraries: number of runs per group and order of its members.",
        min=1,
        show_default="1, or 5 if the results of the assignor vary",
    )
    releases: bool = option(
        False,
        "Run the assignor LIBRARY:ASSIGNOR of each installed release of the library on each group, "
        "from the oldest to the newest.",
    )


def compare_libraries(
    library: LibraryOptions,
    source: GroupSource,
    assignors: Sequence[str] | None,
    *,
    custom: CustomAssignors,
    limits: CaseLimits,
    output_format: Format,
) -> None:
    """Compare assignors of client libraries with ports, or an assignor between releases."""
    if library.libraries and library.releases:
        raise typer.BadParameter("--libraries and --releases cannot be combined")
    if library.releases:
        if assignors is None or len(assignors) != 1 or custom.names():
            raise typer.BadParameter("--releases requires one --assignor LIBRARY:ASSIGNOR")
        _print_releases(
            source, assignors[0], seconds=custom.assignor_timeout, output_format=output_format
        )
        return
    names = custom.names([known_assignor(name) for name in assignors or _installed_assignors()])
    if not names:
        raise UsageError("no library is installed: see kassay libraries, or give --assignor")
    _print_agreement(
        names,
        [] if library.cases and source.file == STDIN else [source.file],
        library.cases,
        runs=Runs(orders=library.orders, repetitions=library.repeat),
        limits=limits,
        output_format=output_format,
    )


def _installed_assignors() -> list[str]:
    """Return the names of all assignors of the installed libraries."""
    return [
        f"{library.name}@{version}:{name}"
        for library, version in installed_versions()
        for name in library.assignors_of(version)
    ]


def _print_agreement(
    names: Sequence[str],
    files: Iterable[Path],
    cases: int,
    *,
    runs: Runs,
    limits: CaseLimits,
    output_format: Format,
) -> None:
    """Count the groups on which each assignor agrees with the port of its name.

    The groups are those of files, and generated groups of the usual families.
    """
    imported, all_valid = read_valid_groups(files)
    counts = empty_counts(names)
    # A call of an assignor can outlast the grace period after Ctrl-C. The counts are kept.
    with suppress(KeyboardInterrupt), stop_on_interrupt():
        add_agreements(counts, _groups(imported, cases), runs=runs, limits=limits)
    found = list(counts.values())
    if STOP.is_set() and not any(one.agreements for one in found):
        exit_interrupted("no group is counted")
    print_records(
        list(map(_agreement_record, found)), output_format, rows=list(map(_agreement_row, found))
    )
    if STOP.is_set():
        exit_interrupted("the output counts the groups compared until then")
    if not all_valid:
        raise typer.Exit(BAD_INPUT)


def _groups(imported: list[Group], cases: int) -> Iterator[Group]:
    yield from imported
    generated = cases_of(USUAL, seeds=cases, assignors=["sticky"]) if cases else ()
    for case in generated:
        yield case.build()


def _agreement_row(counts: AgreementCounts) -> dict[str, object]:
    groups = counts.agreements.total()
    found = counts.agreements
    return {
        "assignor": counts.assignor,
        "groups": groups,
        "identical": found[Agreement.IDENTICAL],
        "same": found[Agreement.SAME_LOADS],
        "other": found[Agreement.OTHER_LOADS],
        "optimal": counts.least_imbalance,
        "moves": f"{counts.unnecessary_moves}/{counts.with_owners}",
        "invalid": found[Agreement.INVALID],
        "hangs": found[Agreement.NONTERMINATING],
        "crashes": found[Agreement.CRASHED],
        "failures": found[Agreement.FAILED],
        "no ref": found[Agreement.INCOMPARABLE],
        "vary": f"{counts.varying_assignments}/{counts.varying_loads}",
    }


def _agreement_record(counts: AgreementCounts) -> dict[str, object]:
    return {
        "assignor": counts.assignor,
        "reference": counts.reference,
        "groups": counts.agreements.total(),
        "agreement": {str(kind): counts.agreements[kind] for kind in Agreement},
        "minimum_imbalance": counts.least_imbalance,
        "groups_with_owners": counts.with_owners,
        "unnecessary_moves": counts.unnecessary_moves,
        "groups_by_distinct_assignments": _distribution(counts.distinct_assignments),
        "groups_by_distinct_loads": _distribution(counts.distinct_loads),
        "runs_by_excess_sum_of_squares": _distribution(counts.excess_sum_of_squares),
        "runs_by_excess_maximum_load": _distribution(counts.excess_load),
        "runs_by_unnecessary_moves": _distribution(counts.moves),
        "smallest": {kind: group_document(group) for kind, group in counts.smallest.items()},
    }


def _distribution(counts: Counter[int]) -> dict[str, int]:
    return {str(value): counts[value] for value in sorted(counts)}


def _print_releases(
    source: GroupSource, assignor: str, *, seconds: float, output_format: Format
) -> None:
    """Run an assignor of each installed release of its library on each group."""
    try:
        parsed = parse_library_assignor(assignor)
        parsed.check_kind()
    except InputError as error:
        raise typer.BadParameter(str(error)) from None
    library, name = parsed.library, parsed.assignor.name
    if assignor != f"{library.name}:{name}":
        raise typer.BadParameter(
            "--releases requires LIBRARY:ASSIGNOR without a version and a time limit, "
            f"got {assignor!r}; all installed releases run, and --assignor-timeout sets the limit"
        )
    versions = _installed_releases(library, name)

    def process(group: Group) -> GroupResult:
        results = list(run_releases(group, library, name, versions, seconds=seconds))
        return GroupResult(_releases_record(group, assignor, results))

    layout = TableLayout(
        first=("releases", "loads"),
        numbers=("moves",),
        last=("difference from the previous release", "known changes"),
        rows=_release_rows,
    )
    process_each_group(source, process, output_format, layout)


def _installed_releases(library: Library, assignor: str) -> list[str]:
    offered = [version for version in library.versions if library.offers(assignor, version)]
    found = [version for one, version in installed_versions() if one is library]
    versions = [version for version in offered if version in found]
    missing = [version for version in offered if version not in found]
    if not versions:
        raise InputError(
            f"no version of {library.name} with {assignor} is installed; "
            f"run: kassay libraries install {library.name}@{offered[0]}"
        )
    if missing:
        print_note(f"not installed: {', '.join(missing)}")
    return versions


def _releases_record(
    group: Group, assignor: str, results: Sequence[ReleaseResult]
) -> dict[str, object]:
    return {
        "id": group.id,
        "assignor": assignor,
        "first_difference": next((one.version for one in results if one.is_difference), None),
        "releases": [_release(group, one) for one in results],
    }


def _release(group: Group, one: ReleaseResult) -> dict[str, object]:
    result = one.result
    entry: dict[str, object] = {
        "version": one.version,
        "runs": one.runs,
        "ending": str(result.ending),
    }
    if result.detail is not None:
        entry["detail"] = result.detail
    if result.assignment is not None:
        entry["loads"] = list(sorted_loads(group, result.assignment))
        entry["movement"] = movement(group, result.assignment)
    if one.change is not None:
        entry["change"] = str(one.change)
    if one.is_difference:
        entry["known_changes"] = list(one.known)
    return entry


def _release_rows(record: Record) -> Iterator[Sequence[object]]:
    """Yield one row per sequence of consecutive releases with equal results."""
    entries = record["releases"]
    starts = [n for n, entry in enumerate(entries) if n == 0 or "known_changes" in entry]
    for start, end in pairwise([*starts, len(entries)]):
        entry, last = entries[start], entries[end - 1]["version"]
        loads = [str(load) for load in entry.get("loads", ())]
        shown = "/".join(loads[:_SHOWN_LOADS]) + ("/…" if len(loads) > _SHOWN_LOADS else "")
        change = entry.get("change", "")
        is_difference = "known_changes" in entry
        known = "; ".join(entry.get("known_changes", ())) or ("not known" if is_difference else "")
        yield (
            entry["version"] if last == entry["version"] else f"{entry['version']} to {last}",
            shown or f"{entry['ending']}: {entry.get('detail', '')}",
            entry.get("movement", "–"),
            change if is_difference else "",
            known,
        )

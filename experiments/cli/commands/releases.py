"""``kassay releases``: run an assignor of each release of a library on each group."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import typer

from kassay.experiments.cli.assignor_options import timeout_option
from kassay.experiments.cli.option_groups import REQUIRED, option
from kassay.experiments.cli.output import Format, Record, TableLayout, TableOptions, format_option
from kassay.experiments.cli.process_each_group import GroupResult, process_each_group
from kassay.experiments.cli.run_control import print_note
from kassay.experiments.cli.source_options import GroupSource
from kassay.experiments.comparison.library_agreement import sorted_loads
from kassay.experiments.comparison.release_results import ReleaseResult, run_releases
from kassay.experiments.implementations.installation import installed_versions
from kassay.experiments.implementations.library_catalogue import Library, parse_library_assignor
from kassay.reference.model.assignment import movement
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group

_SHOWN_LOADS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasesOptions(TableOptions):
    """Command-line options of ``kassay releases``."""

    assignor: str = option(
        REQUIRED, "Assignor of a library, such as kafka-clients:sticky.", metavar="LIBRARY:ASSIGNOR"
    )
    assignor_timeout: float = timeout_option()
    output_format: Format = format_option(Format.TABLE)


def releases(options: ReleasesOptions, source: GroupSource) -> None:
    """Run an assignor of each installed release of a library on each group.

    The output shows the releases from the oldest to the newest, the difference from the previous
    release, and the upstream changes between both releases, if they are known. If the results of
    the assignor vary, each release runs five times, and the output shows the first run. Two
    releases then differ only if their runs have no loads in common.

    Example: `kassay releases groups.jsonl --assignor kafka-clients:sticky`
    """
    try:
        parsed = parse_library_assignor(options.assignor)
        parsed.check_kind()
    except InputError as error:
        raise typer.BadParameter(str(error)) from None
    library, name = parsed.library, parsed.assignor.name
    if options.assignor != f"{library.name}:{name}":
        raise typer.BadParameter(
            "--assignor: expected LIBRARY:ASSIGNOR without a version and a time limit, "
            f"got {options.assignor!r}; all installed releases run, and --assignor-timeout sets "
            "the limit"
        )
    versions = _installed(library, name)

    def process(group: Group) -> GroupResult:
        results = list(
            run_releases(group, library, name, versions, seconds=options.assignor_timeout)
        )
        return GroupResult(_record(group, f"{library.name}:{name}", results))

    layout = TableLayout(
        first=("releases", "loads"),
        numbers=("moves",),
        last=("difference from the previous release", "known changes"),
        rows=_rows,
    )
    process_each_group(source, process, options.output_format, layout)


def _installed(library: Library, assignor: str) -> list[str]:
    offered = [version for version in library.versions if library.offers(assignor, version)]
    found = [version for one, version in installed_versions() if one is library]
    versions = [version for version in offered if version in found]
    missing = [version for version in offered if version not in found]
    if not versions:
        raise InputError(
            f"no version of {library.name} with {assignor} is installed; "
            f"run: kassay implementations install {library.name}@{offered[0]}"
        )
    if missing:
        print_note(f"not installed: {', '.join(missing)}")
    return versions


def _record(group: Group, assignor: str, results: Sequence[ReleaseResult]) -> dict[str, object]:
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


def _rows(record: Record) -> Iterator[Sequence[object]]:
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

"""``kassay compare``: compare the results of assignors with the optimum."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import chain, pairwise

import typer

from kassay.experiments.cli import application, shared_options
from kassay.experiments.cli.process_groups import (
    GroupResult,
    GroupSource,
    process_each_group,
    read_valid_groups,
)
from kassay.experiments.cli.process_kind_documents import compared_documents
from kassay.experiments.cli.search_options import LimitOptions, ObjectiveOptions
from kassay.experiments.cli.write_results import Format, Record, TableLayout, print_records
from kassay.experiments.comparison import compare_libraries
from kassay.experiments.comparison.compare import (
    CaseLimits,
    compare_assignors,
    compare_levels,
    compared,
    solve_optimum,
)
from kassay.experiments.comparison.comparison_result import Comparison
from kassay.experiments.implementations import client_libraries
from kassay.experiments.implementations.assignor_names import (
    check_consumer_kind,
    is_custom_assignor,
    parse_custom_assignor,
    shown_name,
)
from kassay.experiments.planning.identify_assignor import identify_assignor
from kassay.experiments.planning.plan_result import level_words
from kassay.experiments.study.cases import cases_of
from kassay.experiments.study.families.all_families import USUAL
from kassay.reference.documents.files import STDIN
from kassay.reference.documents.json_codec import group_document
from kassay.reference.documents.kind_documents import Kind
from kassay.reference.model.errors import InputError, UsageError
from kassay.reference.model.group import Group
from kassay.reference.model.load_metrics import Measure, loads
from kassay.solver.objective import Level
from kassay.solver.solution import Status

_SHOWN_LOADS = 8


class CompareFormat(StrEnum):
    """Output format of ``kassay compare``, including formats for pull requests."""

    JSONL = "jsonl"
    JSON = "json"
    TABLE = "table"
    MARKDOWN = "markdown"
    JUNIT = "junit"


_FORMS = (CompareFormat.MARKDOWN, CompareFormat.JUNIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """Command-line options of ``kassay compare``."""

    assignor: list[str] | None = shared_options.assignors_option()
    output_format: CompareFormat = application.option(CompareFormat.JSONL, "--format")


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryOptions:
    """Command-line options that compare client libraries or their releases."""

    libraries: bool = application.option(False)
    cases: int = application.option(0, min=0)
    releases: bool = application.option(False)


def compare(
    options: CompareOptions,
    source: GroupSource,
    *,
    objective: ObjectiveOptions,
    limits: LimitOptions,
    library: LibraryOptions,
) -> None:
    """Run ``kassay compare`` with parsed options."""
    case_limits = limits.interruptible_limits()
    if library.libraries and library.releases:
        raise typer.BadParameter("--libraries and --releases cannot be combined; omit one")
    if (library.libraries or library.releases) and not objective.is_default:
        text = "--libraries and --releases exclude levels and constraints; remove their options"
        raise typer.BadParameter(text)
    if options.output_format in _FORMS:
        is_plain = objective.is_default and library == LibraryOptions()
        _print_form(options, source, is_plain=is_plain, limits=case_limits)
        return
    if library.releases:
        _compare_releases(options, source)
        return
    if library.libraries:
        _compare_libraries(library, options, source, limits=case_limits)
        return
    if library != LibraryOptions():
        raise typer.BadParameter("--cases requires --libraries")
    names = shared_options.assignors_of_one_kind(options.assignor)
    others = compared_documents(names, case_limits, has_levels=not objective.is_default)

    def process(group: Group) -> GroupResult:
        if not objective.is_default:
            return _level_result(group, names, objective, case_limits)
        record = compare_assignors(group, names, case_limits, progress=application.PROGRESS)
        return GroupResult(_with_own_failure_first(group, record))

    layout = TableLayout(
        first=("assignor", "measure"),
        numbers=("imbalance", "minimum imbalance", "moves", "moves of optimum", "unnecessary"),
        last=("result",),
        not_empty=("measure",),
        rows=_rows,
        below="unnecessary: moves minus the fewest with equal or lower imbalance and off-rack "
        "reads (JSON: movement_within)",
    )
    if not objective.is_default:
        layout = TableLayout(
            first=("assignor", "level"),
            numbers=("value", "optimum", "gap"),
            last=("result",),
            rows=_level_rows,
        )
    process_each_group(source, process, Format(options.output_format), layout, others=others)


def _print_form(
    options: CompareOptions, source: GroupSource, *, is_plain: bool, limits: CaseLimits
) -> None:
    """Compare assignors, and print the result as a Markdown table or a JUnit test."""
    from kassay.experiments.report.pull_request_texts import (
        ComparedGroup,
        junit_test,
        markdown_table,
    )

    form, is_table = options.output_format, options.output_format is CompareFormat.MARKDOWN
    names = shared_options.assignors_of_one_kind(options.assignor)
    java = parse_custom_assignor(names[0]).java if is_custom_assignor(names[0]) else None
    if not is_plain:
        raise typer.BadParameter(f"--format {form}: remove levels, constraints and --libraries")
    if len(names) > 2 or len(names) <= is_table:
        raise typer.BadParameter(f"--format {form} requires --assignor AFTER --assignor BEFORE")
    if not is_table and (java is None or java.kind is not Kind.CONSUMER):
        raise typer.BadParameter("--format junit requires --assignor class:CLASS@PATH")
    groups, all_valid = read_valid_groups([source.file])
    compared = []
    for group in groups:
        record = compare_assignors(group, names, limits, progress=application.PROGRESS)
        if limits.is_stopped:
            application.exit_interrupted("no table or test is printed")
        compared.append(ComparedGroup(group, record))
    shown = [shown_name(name) for name in (*names, "the optimum")]
    write = partial(markdown_table, compared)
    if java is not None and not is_table:
        write = partial(junit_test, compared, java)
    typer.echo(write(after=shown[0], before=shown[1], command=sys.argv[1:]), nl=False)
    if not all_valid:
        raise typer.Exit(application.BAD_INPUT)
    if any(one.rank(0) is None for one in compared):
        raise typer.Exit(application.NOT_REACHED)


def _with_own_failure_first(group: Group, record: Record) -> Record:
    """If the current assignor fails, move its comparison to the start."""
    own = identify_assignor(group).name

    def is_failure(entry: Record) -> bool:
        name = entry["assignor"].rpartition(":")[2]
        return own is not None and name == own and entry["ending"] != "ok"

    for entry in filter(is_failure, record["comparisons"]):
        application.print_note(
            f"{group.id}: the group's own assignor {entry['assignor']}: {_result(entry)}"
        )
    first = sorted(record["comparisons"], key=lambda one: not is_failure(one))
    return {**record, "comparisons": first}


def _level_result(
    group: Group, names: Sequence[str], objective: ObjectiveOptions, limits: CaseLimits
) -> GroupResult:
    """Compare the values of assignors on the levels that the options select."""
    levels, constraints = objective.levels(group), objective.constraints(group)
    application.PROGRESS("optimum")
    optimum = solve_optimum(group, levels=levels, constraints=constraints, limits=limits)
    comparisons = [
        compare_levels(group, name, levels=levels, constraints=constraints, optimum=optimum)
        for name in names
        if not limits.is_stopped
    ]
    record = {
        "id": group.id,
        "optimum": {
            "status": str(optimum.status),
            "levels": optimum.values_by_level(),
            "loads": {} if optimum.assignment is None else loads(group, optimum.assignment),
            **({"conflict": list(optimum.conflict)} if optimum.conflict else {}),
        },
        "comparisons": [_level_entry(group, comparison, levels) for comparison in comparisons],
        "proof": optimum.proof_by_level(),
    }
    return GroupResult(record, reached=optimum.assignment is not None)


def _level_entry(
    group: Group, comparison: Comparison, levels: Sequence[Level]
) -> dict[str, object]:
    names = ("assignor", "ending", "detail", "rounds")
    entry = {name: getattr(comparison, name) for name in names}
    values = {
        key: compared(level.name, value, group)
        for level, (key, value) in zip(levels, comparison.levels.items(), strict=True)
    }
    entry |= {"levels": values, "violated": list(comparison.violated)}
    return {key: value for key, value in entry.items() if value is not None}


def _level_rows(record: Record) -> Iterator[Sequence[object]]:
    for entry in record["comparisons"]:
        result = "" if entry["ending"] == "ok" else f"{entry['ending']}: {entry.get('detail', '')}"
        result = "; ".join(filter(None, [result, *(f"violated: {r}" for r in entry["violated"])]))
        for index, (key, values) in enumerate(entry["levels"].items()):
            numbers = ["–" if number is None else number for number in values.values()]
            yield (entry["assignor"] if index == 0 else "", key, *numbers, "" if index else result)


def _rows(record: Record) -> Iterator[Sequence[object]]:
    optimum = record["optimum"]
    measure, value, bound = (optimum[key] for key in ("measure", "imbalance", "imbalance_bound"))
    minimum = f"{value}" if value == bound else f"≤ {value} (bound {bound})"
    for entry in record["comparisons"]:
        yield (
            entry["assignor"],
            "" if measure == Measure.SUM_OF_SQUARES else level_words(measure),
            entry.get(measure, {}).get("value", "–"),
            minimum,
            entry.get("movement", {}).get("value", "–"),
            f"{'' if optimum['status'] == Status.OPTIMAL else '≤ '}{optimum['movement']}",
            entry.get("unnecessary_moves", "–"),
            _result(entry),
        )


def _result(entry: Record) -> str:
    if entry["ending"] != "ok":
        return f"{entry['ending']}: {entry.get('detail', '')}"
    if entry.get("least_imbalance") is False:
        return "imbalance not optimal"
    if not entry.get("proven"):
        return "optimum not proven"
    return "unnecessary moves" if entry.get("unnecessary_moves") else "optimal"


def _compare_libraries(
    library: LibraryOptions, options: CompareOptions, source: GroupSource, *, limits: CaseLimits
) -> None:
    """Compare assignors of libraries with ports, and count the groups with equal results.

    The groups are from the source, and generated ones of the usual families.
    """
    selected = options.assignor or [
        f"{found.name}@{version}:{name}"
        for found, version in client_libraries.installed_versions()
        for name in found.assignors_of(version)
    ]
    names = [shared_options.known_assignor(name) for name in selected]
    if not names:
        raise UsageError("no client library is installed: run kassay libraries install available")
    has_source = not library.cases or source.file != STDIN
    imported, all_valid = read_valid_groups([source.file] if has_source else [])
    counts = {name: compare_libraries.AgreementCounts(shown_name(name)) for name in names}
    generated = cases_of(USUAL, seeds=library.cases, assignors=["sticky"]) if library.cases else ()
    groups = chain(imported, (case.build() for case in generated))
    # A call of an assignor can outlast the grace period after Ctrl-C. The counts are kept.
    with suppress(KeyboardInterrupt), application.stop_on_interrupt():
        compare_libraries.add_agreements(counts, groups, limits=limits)
    found = list(counts.values())
    if application.STOP.is_set() and not any(one.agreements for one in found):
        application.exit_interrupted("no group is counted")
    print_records(
        [_agreement_record(name, one) for name, one in counts.items()],
        Format(options.output_format),
        rows=list(map(_agreement_row, found)),
    )
    if application.STOP.is_set():
        application.exit_interrupted("the output counts the groups compared until then")
    if not all_valid:
        raise typer.Exit(application.BAD_INPUT)


def _agreement_row(counts: compare_libraries.AgreementCounts) -> dict[str, object]:
    groups = counts.agreements.total()
    found = counts.agreements
    return {
        "assignor": counts.assignor,
        "groups": groups,
        "identical": found[compare_libraries.Agreement.IDENTICAL],
        "same": found[compare_libraries.Agreement.SAME_LOADS],
        "other": found[compare_libraries.Agreement.OTHER_LOADS],
        "optimal": counts.least_imbalance,
        "moves": f"{counts.unnecessary_moves}/{counts.with_owners}",
        "invalid": found[compare_libraries.Agreement.INVALID],
        "hangs": found[compare_libraries.Agreement.NONTERMINATING],
        "crashes": found[compare_libraries.Agreement.CRASHED],
        "failures": found[compare_libraries.Agreement.FAILED],
        "no ref": found[compare_libraries.Agreement.INCOMPARABLE],
        "vary": f"{counts.varying_assignments}/{counts.varying_loads}",
    }


def _agreement_record(name: str, counts: compare_libraries.AgreementCounts) -> dict[str, object]:
    return {
        "assignor": counts.assignor,
        "reference": compare_libraries.reference_of(name),
        "groups": counts.agreements.total(),
        "agreement": {str(kind): counts.agreements[kind] for kind in compare_libraries.Agreement},
        "minimum_imbalance": counts.least_imbalance,
        "groups_with_owners": counts.with_owners,
        "unnecessary_moves": counts.unnecessary_moves,
        "varying_assignments": counts.varying_assignments,
        "varying_loads": counts.varying_loads,
        "smallest": {kind: group_document(group) for kind, group in counts.smallest.items()},
    }


def _compare_releases(options: CompareOptions, source: GroupSource) -> None:
    given = options.assignor or []
    if len(given) != 1:
        raise typer.BadParameter("--releases requires one --assignor LIBRARY:ASSIGNOR")
    assignor = given[0]
    try:
        parsed = client_libraries.parse_library_assignor(assignor)
        check_consumer_kind(assignor)
    except InputError as error:
        raise typer.BadParameter(str(error)) from None
    library, name, seconds = parsed.library, parsed.assignor.name, parsed.time_limit
    if assignor == str(parsed):
        raise typer.BadParameter(
            f"--releases requires LIBRARY:ASSIGNOR without a version, because all "
            f"installed releases run, got {assignor!r}"
        )
    versions = _installed_releases(library, name)

    def process(group: Group) -> GroupResult:
        results = list(
            compare_libraries.run_releases(group, library, name, versions, seconds=seconds)
        )
        changed = (one["version"] for one in results if "known_changes" in one)
        record = {"id": group.id, "assignor": assignor, "first_difference": next(changed, None)}
        return GroupResult({**record, "releases": results})

    layout = TableLayout(
        first=("releases", "loads"),
        numbers=("moves",),
        last=("difference from the previous release", "known changes"),
        rows=_release_rows,
    )
    process_each_group(source, process, Format(options.output_format), layout)


def _installed_releases(library: client_libraries.Library, assignor: str) -> list[str]:
    offered = [version for version in library.versions if library.offers(assignor, version)]
    found = [version for one, version in client_libraries.installed_versions() if one is library]
    versions = [version for version in offered if version in found]
    missing = [version for version in offered if version not in found]
    if not versions:
        raise InputError(
            f"no version of {library.name} with {assignor} is installed; "
            f"run: kassay libraries install {library.name}@{offered[0]}"
        )
    if missing:
        application.print_note(f"not installed: {', '.join(missing)}")
    return versions


def _release_rows(record: Record) -> Iterator[Sequence[object]]:
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

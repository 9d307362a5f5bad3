"""``kassay hunt``: search for the smallest groups on which an assignor has a shortcoming."""

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import typer

from kassay.experiments.cli import application
from kassay.experiments.cli.process_groups import read_group_documents
from kassay.experiments.cli.search_options import LimitOptions
from kassay.experiments.cli.shared_options import SparkOptions, known_assignor, required_assignor
from kassay.experiments.cli.write_results import directory_option, json_lines, print_table
from kassay.experiments.comparison.compare import CaseLimits
from kassay.experiments.counterexamples.find_counterexample import (
    EXHAUSTIVE,
    ORDERS,
    CaseSearch,
    CounterexampleOptions,
    GroupEvent,
    Shortcoming,
    exhaustive_cases,
    run_repeatable,
)
from kassay.experiments.counterexamples.find_kind_counterexample import (
    DocumentCounterexample,
    DocumentHunt,
)
from kassay.experiments.counterexamples.render_gallery import Gallery, gallery, render_gallery
from kassay.experiments.counterexamples.shrinking import size_of
from kassay.experiments.implementations.assignor_names import (
    is_custom_assignor,
    kind_of_assignor,
    shown_name,
)
from kassay.experiments.spark.session import spark_session
from kassay.experiments.spark.study_pipeline import search_cases
from kassay.experiments.study.cases import Cases, JoinedCases, cases_of, imported_cases
from kassay.experiments.study.families.all_families import DOCUMENT_FAMILIES, FAMILIES
from kassay.reference.documents.files import check_writable, name_of, open_text, write_text
from kassay.reference.documents.json_codec import group_document, parse_group
from kassay.reference.documents.kind_documents import Kind, KindDocument, read_kind_documents
from kassay.reference.model.errors import InputError, UsageError

_FAMILIES = (EXHAUSTIVE, *FAMILIES, *DOCUMENT_FAMILIES)
_FIRST_CASES = 10
"""Number of cases on which a custom assignor runs twice before Spark starts."""
_DRAWN = 24
"""Maximum number of counterexamples drawn in gallery.html."""
_PRINTED = 10
"""Maximum number of counterexamples in the printed table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HuntOptions:
    """Command-line options of ``kassay hunt``."""

    output: Path = directory_option()
    shortcoming: Shortcoming = application.option(Shortcoming.IMBALANCE, metavar="NAME")
    measure: str | None = application.option(None, metavar="NAME")
    excess: int = application.option(1, min=1)
    worse_than: str | None = application.option(None, metavar="NAME")
    event: GroupEvent | None = application.option(None, metavar="NAME")
    earlier_assignor: str | None = application.option(None, metavar="NAME")
    assignor: str = required_assignor()
    family: list[str] | None = application.option(
        None,
        callback=application.known_names("family", _FAMILIES),
        show_default=f"{EXHAUSTIVE}, or all of the kind of the assignor",
    )
    members: int = application.option(3, min=1)
    partitions: int | None = application.option(None, min=1, show_default="4; 3 with --worse-than")
    groups: list[Path] | None = application.option(None)
    cases: int = application.option(1000, min=0)


def hunt(
    options: HuntOptions, spark: SparkOptions, limits: LimitOptions = LimitOptions(work=10.0)
) -> None:
    """Run ``kassay hunt`` with parsed options."""
    name = options.assignor
    kind = kind_of_assignor(name)
    if (options.measure is None) is not (kind is Kind.CONSUMER):
        raise typer.BadParameter(
            "--measure requires an assignor of share groups, Streams or Connect, and such an "
            "assignor requires --measure"
        )
    if options.measure is not None:
        search = DocumentHunt(name, options.measure, limits.case_limits(), options.excess)
        _hunt_documents(search, options, kind)
        return
    target = _target(options, limits.case_limits())
    families = options.family or ([] if options.groups else [EXHAUSTIVE])
    for family in families:
        application.check_name("family of consumer groups", [EXHAUSTIVE, *FAMILIES], family)
    documents, all_valid = read_group_documents(options.groups or ())
    searched = _cases(options, name, families, documents)
    if not len(searched):
        raise UsageError("there is no group to search: give --groups, or --cases above 0")
    if is_custom_assignor(name):
        for case in (searched[number] for number in range(min(_FIRST_CASES, len(searched)))):
            run_repeatable(case.build(), name)
    check_writable(str(options.output))
    with spark_session(master=spark.master, settings=spark.settings()) as session:
        results = search_cases(session, searched, target)
        result = gallery(_show_finds(results, options.output / "found.jsonl"), target)
    about = _description(options, target, [*families, *(["imported"] if documents else [])])
    _write(result, options.output, about=about)
    _print_summary(result)
    if not all_valid:
        raise typer.Exit(application.BAD_INPUT)


def _target(options: HuntOptions, limits: CaseLimits) -> CounterexampleOptions:
    other, earlier = options.worse_than, options.earlier_assignor
    if options.event is None and earlier is not None:
        raise typer.BadParameter("--earlier-assignor requires --event")
    if other is None and options.event is not None:
        raise typer.BadParameter("--event requires --worse-than")
    if other is not None:
        if options.shortcoming not in (Shortcoming.IMBALANCE, Shortcoming.MOVES):
            raise typer.BadParameter("--worse-than requires --shortcoming imbalance or moves")
        if other not in ORDERS:
            other = known_assignor(other)
        elif options.event is GroupEvent.SWITCH and earlier is None:
            raise typer.BadParameter(
                "--event switch requires --earlier-assignor, or --worse-than with an assignor"
            )
    return CounterexampleOptions(
        assignor=options.assignor,
        shortcoming=options.shortcoming,
        limits=limits,
        worse_than=other,
        excess=options.excess,
        event=options.event,
        earlier_assignor=None if earlier is None else known_assignor(earlier),
    )


def _partitions(options: HuntOptions) -> int:
    return options.partitions or (3 if options.worse_than else 4)


def _cases(options: HuntOptions, name: str, families: Sequence[str], documents: list[str]) -> Cases:
    parts: list[Cases] = [imported_cases(documents, assignors=[name])]
    if EXHAUSTIVE in families:
        size = {"members": options.members, "partitions": _partitions(options)}
        parts.append(tuple(exhaustive_cases(**size, assignor=name)))
    seeded = [each for each in families if each != EXHAUSTIVE]
    parts.append(cases_of(seeded, seeds=options.cases, assignors=[name]))
    return JoinedCases(tuple(parts))


def _show_finds(results: Iterable[CaseSearch], file: Path) -> Iterator[CaseSearch]:
    """Print each new kind of counterexample, and append its group to a file.

    Raise UsageError at the first result that shows that the assignor is not deterministic.
    """
    start, kinds = time.monotonic(), set[str]()
    for result in results:
        if not result.is_deterministic:
            raise UsageError(result.error)
        kind, smallest = result.kind, result.smallest
        if kind is not None and smallest is not None and kind not in kinds:
            if not kinds:
                write_text(file, "")
            kinds.add(kind)
            group = parse_group(json.loads(smallest))
            with file.open("a", encoding="utf-8") as found:
                found.write(smallest + "\n")
            application.print_note(
                f"counterexample {len(kinds)} after {time.monotonic() - start:.0f} s: "
                f"{len(group.members)} members, {group.partition_count} partitions, severity "
                f"{result.smallest_severity}, from {result.case}"
            )
        yield result


def _description(
    options: HuntOptions, target: CounterexampleOptions, families: Sequence[str]
) -> dict[str, str]:
    earlier = target.earlier_assignor
    description = {
        "assignor": shown_name(target.assignor),
        "shortcoming": str(target.shortcoming),
        **({} if target.worse_than is None else {"worse than": shown_name(target.worse_than)}),
        **({} if target.event is None else {"event": str(target.event)}),
        **({"earlier assignor": shown_name(earlier)} if earlier is not None else {}),
        "families": ", ".join(families),
    }
    if EXHAUSTIVE in families:
        size = f"{options.members} members and {_partitions(options)} partitions"
        description["small worlds"] = f"all groups up to {size}"
    if any(FAMILIES[one].size is None for one in families if one in FAMILIES):
        description["seeds"] = f"{options.cases}, from 0"
    return description


def _write(result: Gallery, directory: Path, *, about: dict[str, str]) -> None:
    groups = (group_document(entry.group) for entry in result.entries)
    write_text(directory / "groups.jsonl", json_lines(groups))
    document = json.dumps(result.document(), ensure_ascii=False, indent=2) + "\n"
    write_text(directory / "gallery.json", document)
    write_text(directory / "gallery.html", render_gallery(result, about=about, top=_DRAWN))


def _print_summary(result: Gallery) -> None:
    counts = result.counts
    typer.echo(
        f"{counts['cases']} groups with {counts['namings']} namings: "
        f"{shown_name(result.options.assignor)} has the shortcoming on {counts['short']}; "
        f"kinds: {counts['kinds']}; not proven: {counts['unproven']}; errors: {counts['errors']}"
    )
    sizes = [(entry, size_of(entry.group)._asdict()) for entry in result.entries[:_PRINTED]]
    print_table([{"group": one.group.id, **size, "severity": one.severity} for one, size in sizes])


def _hunt_documents(search: DocumentHunt, options: HuntOptions, kind: Kind) -> None:
    found: list[DocumentCounterexample] = []
    file = options.output / "found.jsonl"
    write_text(file, "")
    for one in search.search(_documents(options, kind)):
        found.append(one)
        with file.open("a", encoding="utf-8") as stream:
            stream.write(json_lines([one.document.content]))
    found.sort(key=lambda one: (one.size, one.text))
    write_text(options.output / "groups.jsonl", json_lines(one.document.content for one in found))
    typer.echo(
        f"{search.searched} documents: {shown_name(search.assignor)} is above the minimum of "
        f"{search.measure} on {search.above}; different smallest documents: {len(found)}"
    )
    print_table(
        [
            {
                "document": one.document.id,
                "places": one.size.places,
                "tasks": one.size.tasks,
                "value": one.value,
                "minimum": one.minimum,
            }
            for one in found[:_PRINTED]
        ]
    )


def _documents(options: HuntOptions, kind: Kind) -> Iterator[KindDocument]:
    """Yield the documents of --groups or, without this option, generated small documents.

    Raise InputError for the first invalid document.
    """
    for file in options.groups or ():
        with open_text(file) as stream:
            for _, document in read_kind_documents(stream, name=name_of(file), kind=kind):
                if isinstance(document, InputError):
                    raise document
                yield document
    if options.groups:
        return
    known = {name: family for name, family in DOCUMENT_FAMILIES.items() if family.kind is kind}
    if not known:
        raise UsageError(f"no family has documents of kind {str(kind)!r}; give --groups FILE")
    names = options.family or list(known)
    for number in range(options.cases):
        seed, place = divmod(number, len(names))
        application.check_name("family of this kind", list(known), names[place])
        small = replace(
            known[names[place]],
            places=(2, max(2, options.members)),
            topics=(1, 2),
            partitions=(1, _partitions(options)),
        )
        yield replace(small.document(seed), id=f"{names[place]}/{seed}")

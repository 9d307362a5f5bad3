"""``kassay agreement``: compare assignors of client libraries with Kafka's Java assignors."""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import typer

from kassay.experiments.cli.assignor_options import (
    CustomAssignors,
    cases_option,
    known_assignor,
)
from kassay.experiments.cli.option_groups import known_names, option
from kassay.experiments.cli.output import Format, TableOptions, format_option, print_records
from kassay.experiments.cli.run_control import BAD_INPUT, STOP, exit_interrupted, stop_on_interrupt
from kassay.experiments.cli.search_options import LimitOptions
from kassay.experiments.cli.source_options import read_valid_groups
from kassay.experiments.comparison.library_agreement import (
    Agreement,
    AgreementCounts,
    Runs,
    add_agreements,
    compare_with_reference,
    empty_counts,
)
from kassay.experiments.comparison.optimum import CaseLimits
from kassay.experiments.counterexamples.find_counterexample import is_valid_input
from kassay.experiments.counterexamples.shrinking import shrink as shrink_while
from kassay.experiments.implementations.installation import installed_versions
from kassay.experiments.study.case import cases_of
from kassay.experiments.study.families.registry import FAMILIES, USUAL
from kassay.reference.documents.json_codec import group_document
from kassay.reference.model.errors import UsageError
from kassay.reference.model.group import Group


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreementOptions(TableOptions):
    """Command-line options of ``kassay agreement``."""

    groups: list[Path] | None = option(None, "File of group documents; repeatable.")
    family: list[str] | None = option(
        None,
        "Family of generated groups, repeatable.",
        callback=known_names("family", list(FAMILIES)),
        show_default=f"{USUAL[0]} to {USUAL[-1]} without --groups",
    )
    cases: int = cases_option(100)
    assignor: list[str] | None = option(
        None,
        "Assignor of a library, such as sarama:sticky; repeatable.",
        metavar="NAME",
        show_default="all assignors of the installed libraries",
    )
    reference: str | None = option(
        None,
        "Reference assignor, with which the others are compared.",
        metavar="NAME",
        show_default="the port with the same name, or the port range",
    )
    orders: int = option(
        1,
        "Number of orders of the members per group: the order of the group, and random orders. "
        "The first member leads the group.",
        min=1,
    )
    order_seed: int = option(0, "Random seed of the orders of the members.")
    repeat: int | None = option(
        None,
        "Number of runs per group and order of its members.",
        min=1,
        show_default="1, or 5 if the results of the assignor vary",
    )
    shrink: int = option(
        0,
        "Maximum number of groups to try while kassay shrinks the smallest group of each kind; 0 "
        "for no shrinking.",
        min=0,
    )
    output_format: Format = format_option(Format.TABLE)


def agreement(options: AgreementOptions, custom: CustomAssignors, limits: LimitOptions) -> None:
    """Compare assignors of client libraries with Kafka's Java assignors.

    The reference of an assignor is the port of Kafka's assignor with the same name. If no port has
    this name, the reference is the port range. The output counts the groups on which an assignor
    gives each member the same partitions as the reference, has the same loads, has minimum
    imbalance, or makes unnecessary moves, and the groups on which it has no valid assignment.

    Columns of the table: same and other mean the same loads and other loads with other
    partitions. Optimal means minimum imbalance. Moves means groups with unnecessary moves per
    groups with owned partitions. Hangs means groups on which the assignor does not terminate.
    No ref means groups on which only the reference has no assignment. Vary means groups on which
    the partitions and the loads vary between runs. An assignor with results that vary between runs
    runs five times per group; its worst run counts. With --orders, each assignor runs with several
    orders of the members. The formats json and jsonl contain the distributions of the runs and the
    smallest group of each kind; --shrink makes it smaller.

    Example: `kassay agreement --assignor sarama:sticky --family mixed-leave`
    """
    selected = [known_assignor(name) for name in options.assignor or _installed()]
    names = custom.names(selected)
    if not names:
        raise UsageError("no library is installed: see kassay implementations, or give --assignor")
    reference = options.reference and known_assignor(options.reference)
    imported, all_valid = read_valid_groups(options.groups or ())
    families = options.family or ([] if options.groups else list(USUAL))
    runs = Runs(orders=options.orders, seed=options.order_seed, repetitions=options.repeat)
    stoppable = limits.interruptible_limits()
    counts = empty_counts(names, reference=reference)
    # A call of an assignor can outlast the grace period after Ctrl-C. The counts are kept.
    with suppress(KeyboardInterrupt), stop_on_interrupt():
        compared = _groups(imported, families, options.cases)
        add_agreements(counts, compared, reference=reference, runs=runs, limits=stoppable)
        for one in counts.values() if options.shrink else ():
            _shrink(one, options.shrink, runs, stoppable)
    found = list(counts.values())
    if STOP.is_set() and not any(one.agreements for one in found):
        exit_interrupted("no group is counted")
    print_records(list(map(_record, found)), options.output_format, rows=list(map(_row, found)))
    if STOP.is_set():
        exit_interrupted("the output counts the groups compared until then")
    if not all_valid:
        raise typer.Exit(BAD_INPUT)


def _installed() -> list[str]:
    return [
        f"{library.name}@{version}:{name}"
        for library, version in installed_versions()
        for name in library.assignors_of(version)
    ]


def _groups(imported: list[Group], families: list[str], cases: int) -> Iterator[Group]:
    yield from imported
    generated = cases_of(families, seeds=cases, assignors=["sticky"])
    for case in generated if families else ():
        yield case.build()


def _shrink(counts: AgreementCounts, attempts: int, runs: Runs, limits: CaseLimits) -> None:
    """Shrink the smallest groups of an assignor, as long as their kind remains.

    If ``limits`` stop the search, the groups keep the size that they have.
    """
    names, reference = [counts.assignor], counts.reference
    for kind, largest in counts.smallest.items():
        if kind in {Agreement.IDENTICAL, Agreement.INCOMPARABLE}:
            continue

        def has_kind(group: Group, kind: str = kind, largest: Group = largest) -> bool:
            if limits.is_stopped or not is_valid_input(group, original=largest):
                return False
            compared = compare_with_reference(
                group, names, reference=reference, runs=runs, limits=limits
            )
            return any(kind in one.kinds for one in compared)

        # If the results vary between runs, the group need not show the kind again.
        with suppress(UsageError):
            smaller = shrink_while(largest, has_kind, attempts=attempts)
            counts.smallest[kind] = smaller


def _row(counts: AgreementCounts) -> dict[str, object]:
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


def _record(counts: AgreementCounts) -> dict[str, object]:
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

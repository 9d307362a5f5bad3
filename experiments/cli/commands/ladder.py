"""``kassay ladder``: list the numbers of members at which the maximum load drops."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path

import typer

from kassay.experiments.cli.option_groups import option
from kassay.experiments.cli.output import (
    Format,
    Record,
    TableLayout,
    TableOptions,
    error_record,
    format_option,
)
from kassay.experiments.cli.planning_options import AddedMembers
from kassay.experiments.cli.process_each_group import GroupResult, process_each_group
from kassay.experiments.cli.run_control import BAD_INPUT, PROGRESS
from kassay.experiments.cli.search_options import SearchOptions
from kassay.experiments.cli.source_options import (
    GroupSource,
    ParsedGroup,
    SourceOptions,
    read_source,
)
from kassay.experiments.planning.member_ladder import (
    Autoscaler,
    Backlog,
    PartitionValues,
    autoscaler_values,
    ladder_record,
    lag_of,
    spread_backlog,
)
from kassay.reference.documents.text_files import STDIN
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group
from kassay.reference.model.group_annotations import WeightSource
from kassay.solver.sizing.load_by_member_count import Ladder, load_by_member_count


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainOptions:
    """Command-line options for the time to read the current lag."""

    consume_rate: float | None = option(
        None,
        "Maximum number of messages per second that a member of speed 1, the default speed, "
        "reads. With this option, the output contains the time to read the current lag, per "
        "number of members.",
        min=0,
        metavar="RATE",
    )
    produce_rate: float = option(
        0.0,
        "Messages appended per second, summed over all partitions of the group. This rate is "
        "divided equally or, with --weights rate, in proportion to the weights.",
        min=0,
        metavar="RATE",
    )
    lag: int | None = option(
        None,
        "Lag of the group in messages, divided equally among its partitions.",
        min=0,
        show_default="the lag in the source",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderOptions(TableOptions):
    """Command-line options of ``kassay ladder``."""

    first: int = option(
        1, "Smallest number of members; smaller numbers are not compared.", "--from", min=1
    )
    last: int | None = option(
        None,
        "Largest number of members.",
        "--to",
        min=1,
        show_default="current number, or number of consumed partitions if higher; the sum of both "
        "if members differ in subscription, capacity or speed",
    )
    autoscaler: Autoscaler | None = option(
        None, "Print a manifest for this autoscaler, not the ladder."
    )
    lag_threshold: int = option(10, "Lag per replica in the manifest, in messages.", min=1)
    output_format: Format = format_option(Format.JSONL)


def ladder(
    options: LadderOptions,
    added: AddedMembers,
    source: GroupSource,
    drain: DrainOptions,
    search: SearchOptions,
) -> None:
    """List the numbers of members at which the maximum load drops.

    Each line of the table is such a number, which has a lower maximum load than every smaller
    number from --from. All other numbers waste members. "Not proven" marks a line or a topic for
    which this is not proven. The output also shows these numbers for each topic alone, the moves
    from the current owners and from the line before, and, with --consume-rate, the time to read the
    current lag. --autoscaler prints a manifest for KEDA or the HorizontalPodAutoscaler (HPA) of
    Kubernetes. If weights or speeds differ, the search for
    the group's maximum loads takes at most 1/30 of the time limit, the search for the fewest moves
    1/50, and the search for the current number of members 1/20. The searches for each topic alone
    are additional. A number after ≤ is not proven minimal; – means that the search had no result in
    its share of the time.

    Example: `kassay ladder groups.jsonl --consume-rate 500 --produce-rate 900 --format table`

    Example: `kassay ladder groups.jsonl --autoscaler keda --lag-threshold 1000`
    """
    if options.last is not None and options.first > options.last:
        raise typer.BadParameter(
            f"--from must be at most --to, got {options.first} and {options.last}"
        )
    find = partial(
        load_by_member_count,
        like=added.like,
        allow_lag=added.allow_lag,
        seed=search.seed,
        progress=PROGRESS,
    )
    if options.autoscaler is not None:
        find = partial(find, first=options.first, last=options.last, limits=search.limits())
        groups = read_source(source.file, source.import_options())
        _print_manifests(groups, find, options.autoscaler, options.lag_threshold)
        return
    lags = _lags(source.file, drain, replace(source, weights=WeightSource.LAG.value))

    def process(group: Group) -> GroupResult:
        record = ladder_record(
            group,
            find,
            first=options.first,
            last=options.last,
            backlog=_backlog(group, drain, lags),
            limits=search.limits(),
            seed=search.seed,
            progress=PROGRESS,
        )
        return GroupResult(record)

    layout = TableLayout(
        numbers=(
            *("members", "up to", "maximum load", "moves"),
            *("placed", "step moves", "lag read in"),
        ),
        optional=("up to", "placed", "step moves"),
        last=("remark",),
        rows=_rows,
    )
    process_each_group(source, process, options.output_format, layout)


def _print_manifests(
    groups: Iterable[ParsedGroup],
    find: Callable[[Group], Ladder],
    autoscaler: Autoscaler,
    lag_threshold: int,
) -> None:
    """Print one YAML document per group, and exit with 2 if a group has none."""
    code = 0
    for number, (id, group) in enumerate(groups):
        try:
            if isinstance(group, InputError):
                raise group
            values = autoscaler_values(group, find(group), autoscaler, lag_threshold=lag_threshold)
        except InputError as error:
            code = BAD_INPUT
            error_record(id, error)
        else:
            typer.echo(("---\n" if number else "") + values, nl=False)
    if code:
        raise typer.Exit(code)


def _lags(
    file: Path, drain: DrainOptions, source_data: SourceOptions
) -> dict[str | None, PartitionValues | InputError]:
    """Read the lag of each group from the source, if the drain time needs it."""
    if drain.consume_rate is None or drain.lag is not None:
        return {}
    if file == STDIN:
        raise typer.BadParameter("--consume-rate requires --lag if the source is standard input")
    groups = read_source(file, source_data.import_options(), print_notes=False)
    return {id: group if isinstance(group, InputError) else lag_of(group) for id, group in groups}


def _backlog(
    group: Group, drain: DrainOptions, lags: Mapping[str | None, PartitionValues | InputError]
) -> Backlog | None:
    if drain.consume_rate is None:
        return None
    lag = drain.lag if drain.lag is not None else lags[group.id]
    if isinstance(lag, InputError):
        raise lag
    return spread_backlog(
        group,
        lag=lag,
        produced=Fraction(str(drain.produce_rate)),
        consumed=Fraction(str(drain.consume_rate)),
    )


def _rows(record: Record) -> Iterator[Sequence[object]]:
    for index, step in enumerate(record["steps"]):
        is_open = index == 0 and record["from"] > 1
        is_current = step["members"] <= record["current"] <= step["equal_up_to"]
        remarks = [
            "" if step["drop_proven"] else "not proven",
            "" if not is_current else f"current number {record['current']}",
            f"wastes {record['wasted_members']}{' or more' if is_open else ''}"
            if is_current and record["wasted_members"]
            else "",
            "smaller numbers not compared" if is_open else "",
            f"{step['limiting_partition']} alone has this load"
            if step["limiting_partition"]
            else "",
        ]
        yield (
            step["members"],
            step["equal_up_to"],
            _at_most(step["makespan"]),
            _at_most(step["movement"]),
            step["placed"],
            _at_most(step["movement_from_previous"]),
            _drain_text(step),
            ", ".join(filter(None, remarks)),
        )
    if record["limiting_partition"] is not None:
        yield *[""] * 7, record["limiting_partition"]["reason"]
    for topic, members in record["topics"].items():
        proof = " (not proven)" if topic in record["topics_not_proven"] else ""
        yield *[""] * 7, f"{topic} alone{proof}: {', '.join(map(str, members))}"


def _at_most(level: Mapping[str, int] | None) -> str:
    """Return a value as text, with ≤ if it is not proven to be minimal."""
    if level is None:
        return "–"
    return f"{'' if level['value'] == level['bound'] else '≤ '}{level['value']}"


def _drain_text(step: Record) -> str:
    if "drain_seconds" not in step:
        return ""
    return "never" if step["drain_seconds"] is None else f"{step['drain_seconds']} s"

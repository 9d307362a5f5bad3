"""``kassay scale``: find the maximum load for each number of members."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import typer

from kassay.experiments.cli.application import BAD_INPUT, PROGRESS, option
from kassay.experiments.cli.process_groups import (
    GroupResult,
    GroupSource,
    process_each_group,
    read_source,
)
from kassay.experiments.cli.search_options import AddedMembers, SearchOptions
from kassay.experiments.cli.shared_options import assignor_option
from kassay.experiments.cli.write_results import Format, Record, TableLayout, error_record
from kassay.experiments.planning.scale import Autoscaler, Scale, autoscaler_values
from kassay.experiments.planning.scale import scale as find_scale
from kassay.reference.model.errors import InputError
from kassay.reference.model.group import Group


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleOptions:
    """Command-line options of ``kassay scale``."""

    maximum_load: int | None = option(None, min=0, metavar="LOAD")
    first: int | None = option(
        None, "--from", min=1, show_default="40 numbers around the current one; 1, if --to is given"
    )
    last: int | None = option(
        None, "--to", min=1, show_default="40 numbers, at most the number of consumed partitions"
    )
    assignor: str | None = assignor_option()
    autoscaler: Autoscaler | None = option(None)
    lag_threshold: int = option(10, min=1)
    output_format: Format = option(Format.JSONL, "--format")


def scale(
    options: ScaleOptions, added: AddedMembers, source: GroupSource, search: SearchOptions
) -> None:
    """Run ``kassay scale`` with parsed options."""
    if options.last is not None and (options.first or 1) > options.last:
        raise typer.BadParameter(
            f"--from must be at most --to, got {options.first} and {options.last}"
        )

    def find(group: Group) -> Scale:
        return find_scale(
            group,
            maximum_load=options.maximum_load,
            first=options.first,
            last=options.last,
            assignor=options.assignor,
            like=added.like,
            allow_lag=added.allow_lag,
            limits=search.limits(),
            seed=search.seed,
            progress=PROGRESS,
        )

    def process(group: Group) -> GroupResult:
        found = find(group)
        is_found = found.needed is None or found.needed.optimum is not None
        has_loads = all(step.failure is None for step in found.steps)
        return GroupResult(found.record(), reached=is_found and has_loads)

    if options.autoscaler is not None:
        code = 0
        for number, (id, group) in enumerate(read_source(source.file, source.import_options())):
            try:
                if isinstance(group, InputError):
                    raise group
                values = autoscaler_values(
                    group, find(group), options.autoscaler, lag_threshold=options.lag_threshold
                )
            except InputError as error:
                code = BAD_INPUT
                error_record(id, error)
            else:
                typer.echo(("---\n" if number else "") + values, nl=False)
        if code:
            raise typer.Exit(code)
        return
    layout = TableLayout(
        numbers=("members", "optimum", "assignor", "best"),
        last=("best assignor", "remark"),
        rows=_rows,
    )
    process_each_group(source, process, options.output_format, layout)


def _rows(record: Record) -> Iterator[Sequence[object]]:
    for step in record["steps"]:
        optimum, best = step["optimum"], step["best"] or {"name": "", "load": None}
        unserved = step.get("topics_without_subscribers")
        remarks = [
            "current" if step["members"] == record["current"] else "",
            "useful" if step["useful"] else "not useful",
            f"no subscriber of {', '.join(unserved)}" if unserved else "",
            f"{record['assignor']} {step['failure']}" if "failure" in step else "",
        ]
        yield (
            step["members"],
            None if optimum is None else _at_most(optimum["value"], optimum["bound"]),
            step["assignor"],
            best["load"],
            best["name"],
            ", ".join(filter(None, remarks)),
        )
    helping = record["members_that_help"]
    if helping["value"] is not None:
        both = (helping["value"], None) if record["assignor"] else (None, helping["value"])
        yield "helps", None, *both, helping["assignor"], "smallest number with a lower load"
    needed = record["needed"]
    if needed is not None:
        best = needed["best"] or {"name": "", "members": None}
        optimum = needed["optimum"]
        yield (
            "needed",
            None if optimum is None else _at_most(optimum, needed["bound"]),
            needed["assignor"],
            best["members"],
            best["name"],
            needed.get("reason") or f"members for the maximum load {needed['maximum_load']}",
        )
        if "headroom" in needed:
            known = needed["with_headroom"]
            number = None if known is None else _at_most(known["value"], known["bound"])
            text = f"members with headroom: the peak grows {needed['headroom']:.2f} times in the "
            text += "last cycle" + ("; no number is enough" if known is None else "")
            yield "needed", number, None, None, "", text


def _at_most(value: float, bound: float) -> str:
    return f"{'' if value == bound else '≤ '}{value:,}"

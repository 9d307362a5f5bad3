"""``kassay members``: find the minimum number of members for a maximum load."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import lcm

import typer

from kassay.experiments.cli.option_groups import REQUIRED, option
from kassay.experiments.cli.output import Format, Record, TableLayout, TableOptions, format_option
from kassay.experiments.cli.planning_options import AddedMembers
from kassay.experiments.cli.process_each_group import GroupResult, process_each_group
from kassay.experiments.cli.run_control import PROGRESS
from kassay.experiments.cli.search_options import SearchOptions
from kassay.experiments.cli.source_options import GroupSource
from kassay.reference.model.group import Group
from kassay.solver.sizing.members_needed import Sizing, members_needed
from kassay.solver.sizing.size_search import MemberCount
from kassay.solver.solution import value_and_bound


@dataclass(frozen=True, slots=True, kw_only=True)
class MembersOptions(TableOptions):
    """Command-line options of ``kassay members``."""

    makespan: int = option(
        REQUIRED,
        "Target for the maximum load of a member; if speeds differ, of the fastest member.",
        "--maximum-load",
        min=0,
    )
    first: int | None = option(
        None,
        "Smallest number of members to show.",
        "--from",
        min=0,
        show_default="1, if --to is given",
    )
    last: int | None = option(
        None,
        "Largest number of members to show.",
        "--to",
        min=0,
        show_default="if --from is given: current number, or --from if higher",
    )
    output_format: Format = format_option(Format.JSONL)


def members(
    options: MembersOptions, added: AddedMembers, source: GroupSource, search: SearchOptions
) -> None:
    """Find the minimum number of members for a maximum load.

    Without --from and --to, the output shows the minimum number of members, the numbers next to the
    minimum, and the current number. For a number below the current number, the last members of the
    group leave. Without --from and --to, the searches for the lowest maximum loads and the fewest
    moves have at most 1/16 of the work. Exits with 1
    if no number of members is sufficient, or if none is found within the time limit.

    Example: `kassay members groups.jsonl --maximum-load 100 --from 2 --to 12 --format table`
    """
    first = 1 if options.first is None else options.first
    if options.last is not None and first > options.last:
        raise typer.BadParameter(f"--from must be at most --to, got {first} and {options.last}")

    def process(group: Group) -> GroupResult:
        sweep = None
        if options.first is not None or options.last is not None:
            last = max(first, len(group.members)) if options.last is None else options.last
            sweep = range(first, last + 1)
        sizing = members_needed(
            group,
            makespan=_relative_target(group, options.makespan),
            like=added.like,
            sweep=sweep,
            allow_lag=added.allow_lag,
            limits=search.limits(),
            seed=search.seed,
            progress=PROGRESS,
        )
        return GroupResult(_record(group, sizing), reached=sizing.needed is not None)

    layout = TableLayout(
        numbers=(
            *("members", "maximum load", "load bound"),
            *("sum of squares", "moves", "moves bound"),
        ),
        optional=("sum of squares",),
        last=("sufficient",),
        rows=_rows,
    )
    process_each_group(source, process, options.output_format, layout)


def _relative_target(group: Group, maximum_load: int) -> int:
    """Convert a target in the unit of the loads of the fastest member to a relative load."""
    speeds = [group.members[index].speed for index in group.participant_indices] or [1]
    return maximum_load * lcm(*speeds) // max(speeds)


def _record(group: Group, sizing: Sizing) -> dict[str, object]:
    current = len(group.members)
    needed = None if sizing.needed is None else sizing.needed.value
    record: dict[str, object] = {"id": group.id, "current": current, "needed": needed}
    if sizing.needed is None:
        record["reason"] = sizing.reason
    else:
        record |= {"bound": sizing.needed.bound, "proven": sizing.needed.is_proven}
    record["sizes"] = [_size(size) for size in sizing.sizes]
    return record


def _size(size: MemberCount) -> dict[str, object]:
    record: dict[str, object] = {
        "members": size.members,
        "sufficient": size.enough,
        "makespan": value_and_bound(size.makespan),
        "imbalance": size.imbalance,
        "movement": value_and_bound(size.movement),
    }
    if size.unserved:
        record["topics_without_subscribers"] = list(size.unserved)
    return record


def _rows(record: Record) -> Iterator[Sequence[object]]:
    if record["needed"] is None:
        yield *[""] * 6, record["reason"]
    for size in record["sizes"]:
        makespan, movement = size["makespan"] or {}, size["movement"] or {}
        yield (
            size["members"],
            makespan.get("value"),
            makespan.get("bound"),
            size["imbalance"],
            movement.get("value"),
            movement.get("bound"),
            _remark(record, size),
        )


def _remark(record: Record, size: Record) -> str:
    remark = {True: "yes", False: "no", None: "not known"}[size["sufficient"]]
    if "topics_without_subscribers" in size:
        remark += f", no subscriber of {', '.join(size['topics_without_subscribers'])}"
    if size["members"] == record["needed"]:
        remark += ", minimum" if record["proven"] else ", minimum not proven"
    return remark + (", current" if size["members"] == record["current"] else "")

"""``kassay forecast --events``: compare the moves of assignors over planned events."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from kassay.experiments.cli.kind_results import consumer_groups
from kassay.experiments.cli.option_groups import check_name, option
from kassay.experiments.cli.output import Format, Record, TableLayout, directory_option, write_text
from kassay.experiments.cli.process_each_group import GroupResult, process_each_group
from kassay.experiments.cli.run_control import STOP, print_note
from kassay.experiments.cli.source_options import SelectedGroups
from kassay.experiments.planning.identify_assignor import identify_assignor
from kassay.experiments.planning.planned_events import (
    forecast_events,
    load_planned_events,
    planned_rebalances,
    render_events,
)
from kassay.experiments.planning.render_plan import directory_names
from kassay.reference.assignors import ASSIGNORS, NEWEST_ASSIGNORS
from kassay.reference.model.group import Group
from kassay.solver.limits import SearchLimits

_ONE_BY_ONE = "fewest at each"


@dataclass(frozen=True, slots=True, kw_only=True)
class EventOptions:
    """Command-line options for planned events."""

    panel: ClassVar[str] = "Options for planned events"

    events: Path | None = option(
        None,
        "Planned events, as in a simulation script: a YAML or JSON file with the key events, and "
        "optionally topics (new topics) and settings. kassay then finds the fewest moves over all "
        "rebalances of the events, and the moves of each assignor.",
        metavar="FILE",
    )
    output: Path | None = directory_option(
        "Directory to write events.html to, or GROUP/events.html if the source has several groups.",
        default=None,
    )
    work: float = option(
        60.0,
        "Limit on the counted work of the search for the fewest moves, per group.",
        min=0,
        metavar="UNITS",
    )
    time_limit: float | None = option(
        None,
        "Safety limit in seconds of this search; no limit by default.",
        min=0,
        metavar="SECONDS",
    )


def print_event_forecast(
    events: Path,
    planned: EventOptions,
    source: SelectedGroups,
    *,
    assignors: Sequence[str] | None,
    current: str | None,
    output_format: Format,
) -> None:
    """Print the moves of each assignor over planned events, and the fewest possible moves."""
    names = tuple(assignors or NEWEST_ASSIGNORS)
    for name in names:
        check_name("assignor", list(ASSIGNORS), name)
    groups = list(
        consumer_groups(
            source.file,
            source.import_options(),
            None,
            output_format,
            selected=source.group,
        )
    )
    ids = [id for id, _ in groups]
    places = directory_names(ids) if len(groups) > 1 else ["."]
    directories = dict(zip(ids, places, strict=True))
    limits = SearchLimits(work=planned.work, time=planned.time_limit, stop=STOP)

    def process(group: Group) -> GroupResult:
        rebalances = planned_rebalances(group, load_planned_events(events, group))
        found = forecast_events(rebalances, assignors=names, limits=limits)
        own = identify_assignor(group).name or current
        if planned.output is not None:
            page = planned.output / directories[group.id] / "events.html"
            write_text(page, render_events(found, group, current=own))
            print_note(f"wrote {page}")
        return GroupResult(found.record(group, current=own))

    layout = TableLayout(
        first=("minute", "events"),
        numbers=("members", "fewest in total", _ONE_BY_ONE, *names),
        rows=_events_rows,
    )
    process_each_group(
        source,
        process,
        output_format,
        layout,
        groups=groups,
        both_readings=planned.output is None,
    )


def _events_rows(record: Record) -> Iterator[Sequence[object]]:
    names = list(record["assignors"])
    for one in record["rebalances"]:
        yield (
            f"{one['at'] / 60:.1f}",
            _events_text(one["events"]),
            *(one["members"], one["moves"], one["one_after_the_other"]),
            *(one["assignors"].get(name, "–") for name in names),
        )
    totals = record["assignors"]
    yield (
        "total",
        f"at least {record['moves']['bound']}",
        *("", record["moves"]["value"], record["one_after_the_other"]),
        *("failed" if (moves := totals[name]["moves"]) is None else moves for name in names),
    )
    for protocol, seconds in record["partition_seconds_without_owner"].items():
        own = (totals[name]["partition_seconds_without_owner"] for name in names)
        text = f"{protocol} protocol"
        yield ("unowned s", text, "", seconds, "", *(one.get(protocol, "–") for one in own))
    uneven = [totals[name]["uneven_rebalances"] for name in names]
    yield ("uneven", f"rebalances without {record['rule']}", "", 0, 0, *uneven)


def _events_text(events: Sequence[str]) -> str:
    more = len(events) - 1
    return events[0] if not more else f"{events[0]}, {more} more"

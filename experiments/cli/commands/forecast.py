"""``kassay forecast``: forecast the rebalances that a change of a group causes."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import typer

from kassay.experiments.cli.kind_results import forecasts_of_documents
from kassay.experiments.cli.option_groups import check_name, given_options, option
from kassay.experiments.cli.output import (
    Format,
    Record,
    TableLayout,
    directory_option,
    format_option,
    write_text,
)
from kassay.experiments.cli.process_each_group import (
    GroupResult,
    consumer_groups,
    process_each_group,
)
from kassay.experiments.cli.run_control import print_note
from kassay.experiments.cli.search_options import LimitOptions, downtime_option, pause_option
from kassay.experiments.cli.source_options import SelectedGroups
from kassay.experiments.kinds.group_kind import ForecastRequest
from kassay.experiments.planning.configuration_forecast import (
    DEFAULT_CHANGES,
    Criterion,
    RestartSettings,
    forecast_record,
)
from kassay.experiments.planning.identify_assignor import identify_assignor
from kassay.experiments.planning.planned_events import (
    forecast_events,
    load_planned_events,
    planned_rebalances,
    render_events,
)
from kassay.experiments.planning.render_plan import directory_names
from kassay.reference.assignors import ASSIGNORS, NEWEST_ASSIGNORS, RebalanceProtocol
from kassay.reference.model.group import Group

_BROKER_ASSIGNORS = [
    name for name in NEWEST_ASSIGNORS if ASSIGNORS[name].protocol is RebalanceProtocol.CONSUMER
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastOptions:
    """Command-line options of ``kassay forecast``."""

    assignor: list[str] | None = option(
        None,
        f"Assignor to change to, repeatable. {' and '.join(_BROKER_ASSIGNORS)} run on the broker "
        "and require the consumer protocol.",
        show_default=", ".join(DEFAULT_CHANGES),
    )
    current: str | None = option(
        None, "Current assignor of groups for which the source does not show it."
    )
    at_once: list[int] | None = option(
        None,
        "Number of members that restart at the same time; repeatable.",
        min=1,
        show_default="1",
    )
    downtime: float = downtime_option()
    pause: float = pause_option()
    session_timeout: float = option(45.0, "Session timeout of the members.", min=1)
    criterion: Criterion = option(
        Criterion.UNOWNED,
        "The recommendation minimises this cost of a rolling restart: rebalances, moves, or "
        "unowned (partition-seconds without an owner).",
        "--minimise",
    )
    seed: int = option(0, "Random seed of the delays of heartbeats.")
    output_format: Format = format_option(Format.JSONL)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventOptions(LimitOptions):
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


def forecast(options: ForecastOptions, planned: EventOptions, source: SelectedGroups) -> None:
    """Forecast the rebalances that a change of a group causes.

    kassay simulates each configuration from the current owners: the current one, static
    members, other assignors, and the consumer protocol. The result of a configuration has the
    cost of the change, by rolling restarts, and the cost of a later rolling restart, such as an
    upgrade of the client: rebalances, moves, and partition-seconds without an owner. The
    recommendation is the configuration with the lowest cost of a later restart, see --minimise.
    `kassay plan` shows the loads after a change. All times are in seconds.

    For a Connect cluster, kassay simulates a restart, a rolling restart, a new worker and the loss
    of a worker per setting of scheduled.rebalance.max.delay.ms, and recommends a setting. For a
    Streams application, it compares task assignors and settings.

    With --events, kassay compares the moves of each assignor over a planned sequence of events
    with the fewest possible moves over all rebalances of the sequence.

    Example: `kassay forecast captures/ --at-once 1 --at-once 2 --format table`

    Example: `kassay forecast connect-status.json --downtime 30 --format table`
    """
    if planned.events is not None:
        _print_events(planned.events, planned, options, source)
        return
    if planned.output is not None:
        raise typer.BadParameter("--output requires --events")
    settings = RestartSettings.of_seconds(
        downtime=options.downtime,
        pause=options.pause,
        session=options.session_timeout,
        seed=options.seed,
    )
    request = ForecastRequest(
        downtime_ms=settings.downtime,
        pause_ms=settings.pause,
        assignors=options.assignor or (),
        limits=planned.interruptible_limits(),
    )
    others = forecasts_of_documents("forecast", request, options.output_format)

    def process(group: Group) -> GroupResult:
        record = forecast_record(
            group,
            assignors=options.assignor,
            current=options.current,
            batch_sizes=options.at_once or [1],
            settings=settings,
            criterion=options.criterion,
        )
        if options.output_format is Format.TABLE:
            print_note(f"{group.id}: {_text(record)}")
            print_note(
                f"{group.id}: loads and moves per assignor in one rebalance: "
                f"{_plan_command(group, source)}"
            )
        return GroupResult(record)

    layout = TableLayout(
        first=("configuration",),
        numbers=(
            *("at\nonce", "rolling\nrestarts", "change", "moves", "unowned\ns"),
            *("later\nrestart", "later\nmoves", "later\nunowned s", "max\nload"),
        ),
        rows=_rows,
    )
    process_each_group(source, process, options.output_format, layout, others=others)


def _plan_command(group: Group, source: SelectedGroups) -> str:
    """Return the command that plans the same group, or the same joined groups."""
    given = given_options(source, without=["--file", "--group"])
    ids = source.group or [] if source.together else [group.id or ""]
    selected = [part for id in ids for part in ("--group", id)]
    return shlex.join(["kassay", "plan", str(source.file), *given, *selected])


def _rows(record: Record) -> Iterator[Sequence[object]]:
    for one in record["forecasts"]:
        yield (
            one["configuration"],
            one["at_once"],
            one["rolling_restarts"],
            *_cells(one["change"]),
            *_cells(one["restart"]),
            one["maximum_partitions"],
        )


def _text(record: Record) -> str:
    best = record["recommendation"]
    return f"recommended: {best['configuration']}, {best['at_once']} at once: {best['reason']}"


def _cells(cost: Record | None) -> Sequence[object]:
    keys = ("rebalances", "moves", "partition_seconds_without_owner")
    return ["–"] * 3 if cost is None else [cost[key] for key in keys]


def _print_events(
    events: Path, planned: EventOptions, options: ForecastOptions, source: SelectedGroups
) -> None:
    """Print the moves of each assignor over planned events, and the fewest possible moves."""
    names = tuple(options.assignor or NEWEST_ASSIGNORS)
    for name in names:
        check_name("assignor", list(ASSIGNORS), name)
    groups = list(consumer_groups(source, options.output_format))
    ids = [id for id, _ in groups]
    places = directory_names(ids) if len(groups) > 1 else ["."]
    directories = dict(zip(ids, places, strict=True))
    limits = planned.interruptible_limits()

    def process(group: Group) -> GroupResult:
        rebalances = planned_rebalances(group, load_planned_events(events, group))
        found = forecast_events(rebalances, assignors=names, limits=limits)
        own = identify_assignor(group).name or options.current
        if planned.output is not None:
            page = planned.output / directories[group.id] / "events.html"
            write_text(page, render_events(found, group, current=own))
            print_note(f"wrote {page}")
        return GroupResult(found.record(group, current=own))

    layout = TableLayout(
        first=("minute", "events"),
        numbers=("members", "fewest in total", "fewest at each", *names),
        rows=_events_rows,
    )
    process_each_group(
        source,
        process,
        options.output_format,
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
